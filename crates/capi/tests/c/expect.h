/* What the test programs share. */
#ifndef EXPECT_H
#define EXPECT_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lockstead.h>

#define EXPECT(condition)                                                       \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

#define MILLISECONDS(count) ((uint64_t)(count) * 1000000u)

static inline void nap(unsigned milliseconds)
{
    struct timespec time;
    time.tv_sec = milliseconds / 1000;
    time.tv_nsec = (long)(milliseconds % 1000) * 1000000;
    nanosleep(&time, NULL);
}

static inline pthread_t start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, run, argument) == 0);
    return thread;
}

static inline void *join(pthread_t thread)
{
    void *result;
    EXPECT(pthread_join(thread, &result) == 0);
    return result;
}

static inline void nothing(int signal)
{
    (void)signal;
}

/* Until it asked, the thread may not sleep yet: send the signal again. */
#define SIGNAL_UNTIL(thread, done)                          \
    do {                                                    \
        struct sigaction action;                            \
        memset(&action, 0, sizeof action);                  \
        action.sa_handler = nothing;                        \
        EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);     \
        while (!__atomic_load_n(&(done), __ATOMIC_ACQUIRE)) { \
            pthread_kill(thread, SIGUSR1);                  \
            nap(1);                                         \
        }                                                   \
    } while (0)

#endif
