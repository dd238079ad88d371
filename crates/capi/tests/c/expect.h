/* What the test programs share. */
#ifndef EXPECT_H
#define EXPECT_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

/* Whether a thread or a process sleeps in the kernel now; `stat` is the path of its status. */
static inline bool is_asleep(const char *stat)
{
    char text[512], *state;
    FILE *file = fopen(stat, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    state = strrchr(text, ')');
    return state && state[1] == ' ' && state[2] == 'S';
}

static inline void until_asleep(const char *stat)
{
    while (!is_asleep(stat))
        nap(1);
}

static int watched;

/* Called by a thread: what follows is the call in which another one waits until it sleeps. */
static inline void begins(void)
{
    __atomic_store_n(&watched, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static inline void until_it_sleeps(void)
{
    char path[64];
    int thread;
    while ((thread = __atomic_exchange_n(&watched, 0, __ATOMIC_ACQ_REL)) == 0)
        nap(1);
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    until_asleep(path);
}

enum { MOST_ASKERS = 8 };
static int askers[MOST_ASKERS], asked;

/* Called by a thread that is about to ask for what others have; returns its number here. */
static inline int asks(void)
{
    int number = __atomic_fetch_add(&asked, 1, __ATOMIC_ACQ_REL);
    EXPECT(number < MOST_ASKERS);
    __atomic_store_n(&askers[number], (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    return number;
}

/* Called by one that has asked, when nobody is to wait any more until it sleeps. */
static inline void has_asked(int number)
{
    __atomic_store_n(&askers[number], -1, __ATOMIC_RELEASE);
}

/* Waits until so many threads have asked, and all of them but the caller sleep that still ask. */
static inline void until_askers_sleep(int count)
{
    for (int i = 0; i < count; i++) {
        for (;;) {
            char path[64];
            int thread = __atomic_load_n(&askers[i], __ATOMIC_ACQUIRE);
            /* Read again each time: one that has asked may have ended, and sleeps no more. */
            if (thread == -1 || thread == (int)syscall(SYS_gettid))
                break;
            snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
            if (thread != 0 && is_asleep(path))
                break;
            nap(1);
        }
    }
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
