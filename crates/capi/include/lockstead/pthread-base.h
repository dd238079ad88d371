/*
 * What the parts of `pthread.h` share: the system's headers, included before any name
 * of theirs means something else, and times.
 */
/* As the first header of a file, given by -include: what the file would define itself
 * to see all of the system's headers comes too late. */
#if !defined(_FEATURES_H) && !defined(__STRICT_ANSI__) && !defined(_GNU_SOURCE) && \
    !defined(_POSIX_C_SOURCE) && !defined(_XOPEN_SOURCE)
#define _GNU_SOURCE 1
#include <errno.h>
#undef _GNU_SOURCE
#undef _DEFAULT_SOURCE
#endif
#ifndef LOCKSTEAD_PTHREAD_BASE_H
#define LOCKSTEAD_PTHREAD_BASE_H

#include "base.h"
#ifdef LKS_DEBUG
#include "check.h"
#endif

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* All of the standard library that has the system's types in it: it stays with them,
 * since its compiled half has. */
#ifdef __cplusplus
#include <condition_variable>
#include <mutex>
#include <thread>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif
#if __cplusplus >= 202002L
#include <semaphore>
#endif
#if defined(__GLIBCXX__)
#include <ext/concurrence.h>
#endif
#endif

/* What the file has asked to see of the system's header. */
#if !defined(__GLIBC__) || defined(__USE_XOPEN2K)
#define LKS_PTHREAD_2001__ 1
#endif
#if !defined(__GLIBC__) || defined(__USE_XOPEN2K8)
#define LKS_PTHREAD_2008__ 1
#endif

__attribute__((cold, noreturn, unused)) static void lks_pthread_die__(const char *words)
{
    fprintf(stderr, "lockstead: %s\n", words);
    abort();
}

#ifdef LKS_PTHREAD_2001__

/* What is left until then: 0, ETIMEDOUT if nothing is, EINVAL if it is no time. A
 * clock that is set meanwhile is noticed when what is left now has passed. */
__attribute__((unused)) static int lks_pthread_left__(clockid_t clock,
                                                      const struct timespec *deadline,
                                                      uint64_t *left)
{
    struct timespec now;
    uint64_t seconds;
    *left = 0;
    if (deadline->tv_nsec < 0 || deadline->tv_nsec >= 1000000000L ||
        (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) || clock_gettime(clock, &now) != 0)
        return EINVAL;
    if (deadline->tv_sec < now.tv_sec ||
        (deadline->tv_sec == now.tv_sec && deadline->tv_nsec <= now.tv_nsec))
        return ETIMEDOUT;
    seconds = (uint64_t)deadline->tv_sec - (uint64_t)now.tv_sec;
    /* Asked again when that is over. */
    if (seconds > 1000000000u)
        seconds = 1000000000u;
    *left = seconds * 1000000000u + (uint64_t)deadline->tv_nsec - (uint64_t)now.tv_nsec;
    return 0;
}

#endif

#endif
