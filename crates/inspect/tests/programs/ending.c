/* A thread that sleeps in a function which ends in a call that does not return, with the return
   address of a function that has returned long ago among its variables. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

static void *volatile returned_to;
static void *volatile kept;
static volatile int sink;

APART long snooze(void)
{
    struct timespec long_time = { 1000, 0 };
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "a"((long)SYS_nanosleep), "D"(&long_time), "S"(0L)
                     : "rcx", "r11", "memory");
    return answer + 1;
}

APART void note(void) { returned_to = __builtin_return_address(0); }

APART void long_gone(void)
{
    sink = 1;
    note();
    sink = 2;
}

APART void ends(void)
{
    struct {
        void *volatile address;
        volatile long more[2];
    } variables;
    variables.address = returned_to;
    variables.more[0] = variables.more[1] = 1;
    kept = (void *)&variables;
    snooze();
    exit(3);
}

/* Its code lies behind that of `ends`. */
APART void behind(void) { sink = 3; }

APART int calls(int number)
{
    sink = number;
    ends();
    sink = 5;
    return number;
}

static void *sleeper(void *unused)
{
    sink = calls(7) + 1;
    return unused;
}

int main(void)
{
    pthread_t thread;
    long_gone();
    pthread_create(&thread, NULL, sleeper, NULL);
    pthread_setname_np(thread, "sleeper");
    pthread_join(thread, NULL);
    behind();
    return sink;
}
