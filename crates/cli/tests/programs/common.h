/* What the programs under `lockstead run` share. They synchronise by plain
 * atomics where the tests are not about it, so that a report shows only what a
 * test is about. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Ends the program, loudly, if a call that must succeed does not. */
#define must(call)                                                          \
    do {                                                                    \
        int answer = (call);                                                \
        if (answer != 0) {                                                  \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, answer); \
            _exit(99);                                                      \
        }                                                                   \
    } while (0)

static inline void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

/* Until `count` has reached `n`. */
static inline void await(atomic_int *count, int n)
{
    while (atomic_load(count) < n)
        nap(1);
}

/* Everybody of `n` comes, then all go on. */
static inline void meet(atomic_int *count, int n)
{
    atomic_fetch_add(count, 1);
    await(count, n);
}

/* A thread that has its name from the beginning: it inherits its creator's. */
static inline pthread_t start(void *(*body)(void *), void *argument, const char *name)
{
    char mine[16];
    pthread_t thread;
    must(pthread_getname_np(pthread_self(), mine, sizeof mine));
    must(pthread_setname_np(pthread_self(), name));
    must(pthread_create(&thread, NULL, body, argument));
    must(pthread_setname_np(pthread_self(), mine));
    /* As programs do it; it may be over by now. */
    int named = pthread_setname_np(thread, name);
    must(named == ENOENT || named == ESRCH ? 0 : named);
    return thread;
}

/* For threads that the tests are not about, and for the first one. */
static inline void sleep_for_ever(void)
{
    for (;;)
        pause();
}
