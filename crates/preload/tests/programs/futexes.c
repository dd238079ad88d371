/* Sleeps on futex words and wakes by libc's function for system calls, as the locks of Rust, abseil
 * and C++20 do. */

#include <errno.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include "stops.h"

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s, errno %d\n", __LINE__, #what, errno); \
            exit(1); \
        } \
    } while (0)

/* As parking_lot keeps a thread that is parked. */
struct parked {
    void *lock;
    struct parked *next;
    uintptr_t first, second;
    uint32_t word;
};

static uint32_t plain = 2, bits = 7, pi;
static char lock;
static struct parked parked = {.lock = &lock, .word = 1};

static long futex(uint32_t *word, int operation, uint32_t value, const void *time, uint32_t bitset)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, time, NULL, bitset);
}

static void *waits(void *word)
{
    CHECK(futex(word, FUTEX_WAIT, *(uint32_t *)word, NULL, 0) == 0);
    return NULL;
}

static void *waits_for_bits(void *word)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 3600;
    CHECK(futex(word, FUTEX_WAIT_BITSET, *(uint32_t *)word, &end, 1 << 9) == 0);
    return NULL;
}

static void *waits_for_pi(void *word)
{
    CHECK(futex(word, FUTEX_LOCK_PI, 0, NULL, 0) == 0);
    CHECK(futex(word, FUTEX_UNLOCK_PI, 0, NULL, 0) == 0);
    return NULL;
}

/* Wakes until somebody was woken. */
static void wake(uint32_t *word, uint32_t bitset)
{
    int operation = bitset ? FUTEX_WAKE_BITSET : FUTEX_WAKE;
    while (futex(word, operation, 1, NULL, bitset) == 0)
        sched_yield();
}

static void families(void)
{
    SHOW(plain);
    SHOW(bits);
    SHOW(pi);
    SHOW(lock);
    SHOW(parked.word);
    pi = (uint32_t)syscall(SYS_gettid);
    pthread_t threads[] = {
        start("plain", waits, &plain),
        start("bits", waits_for_bits, &bits),
        start("pi", waits_for_pi, &pi),
        start("parked", waits, &parked.word),
    };
    stop("waiting");
    wake(&plain, 0);
    wake(&bits, 1 << 9);
    wake(&parked.word, 0);
    CHECK(futex(&pi, FUTEX_UNLOCK_PI, 0, NULL, 0) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    /* What has changed was no wait; nor is a wake-up that nobody hears worth a record. */
    static uint32_t changed = 1, unheard;
    SHOW(changed);
    SHOW(unheard);
    errno = 0;
    CHECK(futex(&changed, FUTEX_WAIT, 5, NULL, 0) == -1 && errno == EAGAIN);
    CHECK(futex(&unheard, FUTEX_WAKE, 1, NULL, 0) == 0);
    stop("woken");
}

/* Many words, one after the other. */
static void many(void)
{
    enum { WORDS = 10000 };
    static uint32_t words[WORDS];
    const struct timespec moment = {.tv_nsec = 1};
    for (int i = 0; i < WORDS; i++)
        CHECK(futex(&words[i], FUTEX_WAIT, 0, &moment, 0) == -1 && errno == ETIMEDOUT);
    show("first", (unsigned long)&words[0]);
    show("last", (unsigned long)&words[WORDS - 1]);
    stop("done");
}

static volatile int handled;
static void handler(int signal)
{
    (void)signal;
    uint32_t word = 0;
    int before = errno;
    const struct timespec moment = {.tv_nsec = 1};
    CHECK(futex(&word, FUTEX_WAKE, 1, NULL, 0) == 0);
    CHECK(futex(&word, FUTEX_WAIT, 0, &moment, 0) == -1 && errno == ETIMEDOUT);
    errno = before;
    handled++;
}

static void *waits_on(void *word)
{
    while (futex(word, FUTEX_WAIT, 0, NULL, 0) != 0)
        CHECK(errno == EINTR);
    return NULL;
}

static void *is_cancelled(void *word)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    futex(word, FUTEX_WAIT, 0, NULL, 0);
    return NULL;
}

static sigjmp_buf back;
static void leaves(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

/* A word that lies on a page of its own, which goes when it was woken. */
static void *waits_on_a_page(void *page)
{
    waits(page);
    munmap(page, 4096);
    return NULL;
}

static long clone_is_seen(void)
{
    /* Comes back twice, with another value each. */
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        /* Not recorded: libc has not heard of this process. */
        syscall(SYS_futex, &plain, FUTEX_WAKE, 1, NULL, NULL, 0);
        syscall(SYS_exit_group, 7);
    }
    return child;
}

static void attacks(void)
{
    int status;
    /* Six arguments, of any kind, arrive; errno and the result are the kernel's. */
    void *page = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && *(char *)page == 0);
    errno = 0;
    CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
    CHECK(syscall(100000) == -1 && errno == ENOSYS);
    CHECK(syscall(SYS_futex, &plain, 127, 0, NULL, NULL, 0) == -1 && errno == ENOSYS);
    /* Bad addresses are the kernel's to refuse. */
    CHECK(futex((uint32_t *)8, FUTEX_WAIT, 0, NULL, 0) == -1 && errno == EFAULT);
    CHECK(futex((uint32_t *)8, FUTEX_WAIT, 1, NULL, 0) == -1 && errno == EFAULT);
    CHECK(futex(&plain, FUTEX_WAIT, plain, (void *)8, 0) == -1 && errno == EFAULT);
    CHECK(syscall(449, (void *)8, 1, 0, NULL, 0) == -1);
    CHECK(syscall(455, (void *)8, 0L, 1L, 2, NULL, 0) == -1);
    CHECK(syscall(454, (void *)8, 1L, 1, 2) == -1);
    /* A word at the beginning of a page, with nothing in front of it. */
    pthread_t thread = start("page", waits_on_a_page, page);
    wake(page, 0);
    pthread_join(thread, NULL);
    /* A handler, in a wait and outside of one. */
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    static uint32_t word;
    thread = start("handles", waits_on, &word);
    while (handled < 2) {
        pthread_kill(thread, SIGUSR1);
        usleep(1000);
    }
    wake(&word, 0);
    pthread_join(thread, NULL);
    /* A cancelled thread, one that has left. */
    thread = start("cancelled", is_cancelled, &word);
    usleep(10000);
    void *answer;
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &answer) == 0);
    CHECK(answer == PTHREAD_CANCELED);
    action.sa_handler = leaves;
    sigaction(SIGALRM, &action, NULL);
    if (sigsetjmp(back, 1) == 0) {
        ualarm(10000, 0);
        futex(&word, FUTEX_WAIT, 0, NULL, 0);
    }
    /* Processes. */
    long child = clone_is_seen();
    CHECK(child > 0 && waitpid((pid_t)child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    child = vfork();
    if (child == 0) {
        syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
        syscall(SYS_exit_group, 9);
    }
    CHECK(waitpid((pid_t)child, &status, 0) == child && WEXITSTATUS(status) == 9);
    child = fork();
    if (child == 0) {
        const struct timespec moment = {.tv_nsec = 1};
        _exit(futex(&word, FUTEX_WAIT, 0, &moment, 0) == -1 && errno == ETIMEDOUT ? 11 : 1);
    }
    CHECK(waitpid((pid_t)child, &status, 0) == child && WEXITSTATUS(status) == 11);
    printf("all the same\n");
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "families";
    if (strcmp(what, "families") == 0)
        families();
    else if (strcmp(what, "many") == 0)
        many();
    else
        attacks();
    return 0;
}
