/* Sleeps on a futex word of its own, without the C library's help, behind and in front of words
 * such as a reader-writer lock has that one reader holds and a writer wants. */

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    unsigned before[2];
    unsigned word;
    unsigned behind[16];
} lookalike = {{2 | 1 << 3, 0}, 2, {1}};

static long futex_wait(unsigned *word, unsigned value) {
    long result;
    register long none __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_futex), "D"(word), "S"((long)FUTEX_WAIT_PRIVATE),
                       "d"((long)value), "r"(none)
                     : "rcx", "r11", "memory");
    return result;
}

int main(void) {
    alarm(300);
    for (;;) futex_wait(&lookalike.word, 2);
}
