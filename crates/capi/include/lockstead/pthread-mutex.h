/*
 * The part of `pthread.h` that is about mutexes: 16 bytes, normal, recursive or
 * checked for errors.
 */
#ifndef LOCKSTEAD_PTHREAD_MUTEX_H
#define LOCKSTEAD_PTHREAD_MUTEX_H

#include "pthread-base.h"

#include "mutex.h"

typedef struct lks_pthread_mutex {
    lks_mutex lock__;
    uint32_t kind__;
    uint32_t depth__; /* of the holder, for itself: further times that it has locked it */
} lks_pthread_mutex;

/* A mutex of the last kind was refused when it was initialised. */
enum {
    LKS_PTHREAD_NORMAL__ = 0,
    LKS_PTHREAD_RECURSIVE__ = 1,
    LKS_PTHREAD_ERRORCHECK__ = 2,
    LKS_PTHREAD_REFUSED__ = 3
};
#define LKS_PTHREAD_MUTEX_OF__(kind) {LKS_MUTEX_INIT, kind, 0}

LKS_INLINE__ void lks_pthread_mutex_sound__(const lks_pthread_mutex *mutex)
{
    if (LKS_UNLIKELY__(mutex->kind__ >= LKS_PTHREAD_REFUSED__))
        lks_pthread_die__("a pthread_mutex_t is used that pthread_mutex_init refused, or did not "
                          "see: lockstead/pthread.h has no process-shared, robust, "
                          "priority-inheriting or priority-protected ones. Leave the files that "
                          "use it with the system's pthread.h");
}

/* ENOTSUP for what is not here. */
__attribute__((unused)) static int
lks_pthread_mutex_init__(lks_pthread_mutex *mutex,
                         const pthread_mutexattr_t *attributes LKS_AND_AT__)
{
    int result = 0, value = 0;
    uint32_t kind = LKS_PTHREAD_NORMAL__;
    if (attributes && pthread_mutexattr_getpshared(attributes, &value) == 0 &&
        value != PTHREAD_PROCESS_PRIVATE)
        result = ENOTSUP;
#ifdef LKS_PTHREAD_2008__
    if (attributes && pthread_mutexattr_getrobust(attributes, &value) == 0 &&
        value != PTHREAD_MUTEX_STALLED)
        result = ENOTSUP;
    if (attributes && pthread_mutexattr_getprotocol(attributes, &value) == 0 &&
        value != PTHREAD_PRIO_NONE)
        result = ENOTSUP;
    if (attributes && pthread_mutexattr_gettype(attributes, &value) == 0) {
        if (value == PTHREAD_MUTEX_RECURSIVE)
            kind = LKS_PTHREAD_RECURSIVE__;
        else if (value == PTHREAD_MUTEX_ERRORCHECK)
            kind = LKS_PTHREAD_ERRORCHECK__;
    }
#endif
#ifdef LKS_DEBUG
    lks_mutex_init_dbg(&mutex->lock__, NULL, file, line);
#else
    lks_mutex_init(&mutex->lock__);
#endif
    mutex->kind__ = kind;
    mutex->depth__ = 0;
    if (result != 0) {
        /* Who does not look at the result is told when it locks: never free. */
        mutex->lock__.word__ = LKS_MAX_SLOTS__;
        mutex->kind__ = LKS_PTHREAD_REFUSED__;
    }
    return result;
}

LKS_INLINE__ int lks_pthread_mutex_destroy__(lks_pthread_mutex *mutex LKS_AND_AT__)
{
    int refused = mutex->kind__ == LKS_PTHREAD_REFUSED__;
    int busy = !refused && lks_mutex_is_locked(&mutex->lock__);
#ifdef LKS_DEBUG
    lks_mutex_destroy_dbg(&mutex->lock__, file, line);
#else
    if (!busy)
        lks_mutex_destroy(&mutex->lock__);
#endif
    return busy ? EBUSY : 0;
}

/* What locking it means to a thread that may have it: 1 if it is not an error and there
 * is nothing left to do; otherwise 0, with an error if it is one. */
LKS_INLINE__ int lks_pthread_mutex_again__(lks_pthread_mutex *mutex, int *error)
{
    *error = 0;
    lks_pthread_mutex_sound__(mutex);
    if (mutex->kind__ == LKS_PTHREAD_NORMAL__ || !lks_mutex_is_mine(&mutex->lock__))
        return 0;
    if (mutex->kind__ == LKS_PTHREAD_ERRORCHECK__) {
        *error = EDEADLK;
        return 0;
    }
    if (mutex->depth__ == UINT32_MAX) {
        *error = EAGAIN;
        return 0;
    }
    mutex->depth__++;
    return 1;
}

__attribute__((cold, noinline, unused)) static int
lks_pthread_mutex_lock_slow__(lks_pthread_mutex *mutex LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    int error;
    if (lks_pthread_mutex_again__(mutex, &error) || error != 0)
        return error;
    LKS_ON__(lks_mutex_lock, &mutex->lock__);
    return 0;
}

/* A normal mutex that the caller has already: ends the program, with a message, where
 * it would hang. */
LKS_INLINE__ int lks_pthread_mutex_lock__(lks_pthread_mutex *mutex LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
#ifndef LKS_DEBUG
    if (LKS_LIKELY__(lks_mutex_take__(&mutex->lock__)))
        return 0;
#endif
    return lks_pthread_mutex_lock_slow__(mutex LKS_AND_PLACE__);
}

LKS_INLINE__ int lks_pthread_mutex_trylock__(lks_pthread_mutex *mutex LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    int error;
    if (LKS_ON__(lks_mutex_trylock, &mutex->lock__))
        return 0;
    if (lks_pthread_mutex_again__(mutex, &error))
        return 0;
    return error == EAGAIN ? EAGAIN : EBUSY;
}

LKS_INLINE__ int lks_pthread_mutex_unlock__(lks_pthread_mutex *mutex LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    if (LKS_UNLIKELY__(mutex->kind__ != LKS_PTHREAD_NORMAL__)) {
        lks_pthread_mutex_sound__(mutex);
        if (!lks_mutex_is_mine(&mutex->lock__))
            return EPERM;
        if (mutex->depth__ != 0) {
            mutex->depth__--;
            return 0;
        }
    }
    LKS_ON__(lks_mutex_unlock, &mutex->lock__);
    return 0;
}

#ifdef LKS_PTHREAD_2001__

__attribute__((unused)) static int
lks_pthread_mutex_clocklock__(lks_pthread_mutex *mutex, clockid_t clock,
                              const struct timespec *deadline LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    int error;
    uint64_t left;
    if (LKS_ON__(lks_mutex_trylock, &mutex->lock__) || lks_pthread_mutex_again__(mutex, &error))
        return 0;
    while (error == 0) {
        error = lks_pthread_left__(clock, deadline, &left);
        if (error == 0) {
            int result = LKS_ON__(lks_mutex_lock_timeout, &mutex->lock__, left);
            if (result == 0)
                return 0;
            error = result == -ETIMEDOUT ? 0 : -result;
        }
    }
    return error;
}

LKS_INLINE__ int lks_pthread_mutex_timedlock__(lks_pthread_mutex *mutex,
                                               const struct timespec *deadline LKS_AND_AT__)
{
    return lks_pthread_mutex_clocklock__(mutex, CLOCK_REALTIME, deadline LKS_AND_PLACE__);
}

#endif

/* What only the mutexes have that are not here. */
LKS_INLINE__ int lks_pthread_mutex_consistent__(lks_pthread_mutex *mutex)
{
    (void)mutex;
    return EINVAL;
}

LKS_INLINE__ int lks_pthread_mutex_getprioceiling__(const lks_pthread_mutex *mutex, int *ceiling)
{
    (void)mutex;
    (void)ceiling;
    return EINVAL;
}

LKS_INLINE__ int lks_pthread_mutex_setprioceiling__(lks_pthread_mutex *mutex, int ceiling,
                                                    int *before)
{
    (void)mutex;
    (void)ceiling;
    (void)before;
    return EINVAL;
}

#endif
