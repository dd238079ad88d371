/*
 * The part of `pthread.h` that is about condition variables: 16 bytes.
 *
 * One may be destroyed as soon as its last waiters have been woken, by whoever woke
 * them, as POSIX has it: a waiter that has not gone to sleep yet may still look at the
 * memory once. It goes on unless it finds there the number that it has seen before;
 * so each initialisation begins with another one.
 */
#ifndef LOCKSTEAD_PTHREAD_COND_H
#define LOCKSTEAD_PTHREAD_COND_H

#include "pthread-mutex.h"

#include "cond.h"

typedef struct lks_pthread_cond {
    lks_cond cond__;
    int32_t clock__;
} lks_pthread_cond;
#define LKS_PTHREAD_COND_INIT__ {LKS_COND_INIT, 0}

/* Initialisations so far, of all files. */
extern uint32_t lks_pthread_conds__ __attribute__((visibility("default")));
__attribute__((weak)) uint32_t lks_pthread_conds__;

__attribute__((unused)) static int
lks_pthread_cond_init__(lks_pthread_cond *cond, const pthread_condattr_t *attributes LKS_AND_AT__)
{
    uint32_t number = __atomic_add_fetch(&lks_pthread_conds__, 1, __ATOMIC_RELAXED);
    int value;
    cond->clock__ = 0;
#ifdef LKS_DEBUG
    (void)lks_check_init(&cond->cond__, LKS_KIND_COND__, 0, NULL, file, line);
#endif
    /* Far from the numbers that the one before counted through; nobody waits. */
    __atomic_store_n(&cond->cond__.word__, (uint32_t)(number * 0x9e3779b1u), __ATOMIC_RELAXED);
    if (!attributes)
        return 0;
    if (pthread_condattr_getpshared(attributes, &value) == 0 && value != PTHREAD_PROCESS_PRIVATE)
        return ENOTSUP;
#ifdef LKS_PTHREAD_2001__
    {
        clockid_t clock;
        if (pthread_condattr_getclock(attributes, &clock) == 0)
            cond->clock__ = (int32_t)clock;
    }
#endif
    return 0;
}

LKS_INLINE__ int lks_pthread_cond_destroy__(lks_pthread_cond *cond LKS_AND_AT__)
{
    LKS_ON__(lks_cond_destroy, &cond->cond__);
    return 0;
}

LKS_INLINE__ int lks_pthread_cond_signal__(lks_pthread_cond *cond LKS_AND_AT__)
{
    LKS_ON__(lks_cond_notify_one, &cond->cond__);
    return 0;
}

LKS_INLINE__ int lks_pthread_cond_broadcast__(lks_pthread_cond *cond LKS_AND_AT__)
{
    LKS_ON__(lks_cond_notify_all, &cond->cond__);
    return 0;
}

/* Tells whether the caller may wait with this mutex: 0 or EPERM. A recursive one is
 * released as a whole, `depth` says how much of it there is to come back. */
LKS_INLINE__ int lks_pthread_cond_begin__(lks_pthread_mutex *mutex, uint32_t *depth)
{
    lks_pthread_mutex_sound__(mutex);
    if (mutex->kind__ != LKS_PTHREAD_NORMAL__ && !lks_mutex_is_mine(&mutex->lock__))
        return EPERM;
    /* A thread that is cancelled already does not go to sleep. */
    pthread_testcancel();
    *depth = mutex->depth__;
    mutex->depth__ = 0;
    return 0;
}

LKS_INLINE__ void lks_pthread_cond_end__(lks_pthread_mutex *mutex, uint32_t depth)
{
    mutex->depth__ = depth;
    pthread_testcancel();
}

__attribute__((unused)) static int lks_pthread_cond_wait__(lks_pthread_cond *cond,
                                                           lks_pthread_mutex *mutex LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    uint32_t depth;
    int error = lks_pthread_cond_begin__(mutex, &depth);
    if (error != 0)
        return error;
    LKS_ON__(lks_cond_wait, &cond->cond__, &mutex->lock__);
    lks_pthread_cond_end__(mutex, depth);
    return 0;
}

#ifdef LKS_PTHREAD_2001__

__attribute__((unused)) static int
lks_pthread_cond_clockwait__(lks_pthread_cond *cond, lks_pthread_mutex *mutex, clockid_t clock,
                             const struct timespec *deadline LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    uint32_t depth;
    uint64_t left;
    int error = lks_pthread_left__(clock, deadline, &left);
    if (error == EINVAL)
        return EINVAL;
    error = lks_pthread_cond_begin__(mutex, &depth);
    if (error != 0)
        return error;
    /* With no time left, too: others get the mutex in between. */
    if (LKS_ON__(lks_cond_wait_timeout, &cond->cond__, &mutex->lock__, left) == -ETIMEDOUT)
        /* If the clock was set back: a return for no reason. */
        error = lks_pthread_left__(clock, deadline, &left);
    lks_pthread_cond_end__(mutex, depth);
    return error;
}

LKS_INLINE__ int lks_pthread_cond_timedwait__(lks_pthread_cond *cond, lks_pthread_mutex *mutex,
                                              const struct timespec *deadline LKS_AND_AT__)
{
    return lks_pthread_cond_clockwait__(cond, mutex, (clockid_t)cond->clock__,
                                        deadline LKS_AND_PLACE__);
}

#endif

#endif
