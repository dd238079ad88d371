/*
 * The fair mutex: the mutex for those who serve requests. Its longest waits are
 * short, at some cost in work per processor time. 8 bytes.
 *
 * It is an `lks_mutex`, word for word, with the same inline lock and unlock where
 * nobody else wants it. Threads that have to wait behave otherwise: they give their
 * processor up to others some times before they sleep, and a thread for whose locks
 * others wait gives it up once it has kept it for 25 microseconds, be it that it holds
 * another lock. A thread that has waited for 0.3 ms, and 0.1 ms for each thread that
 * sleeps for a lock, is handed the mutex at the next release; of an `lks_mutex` it is
 * 3 ms and 0.5 ms. What the scheduler adds comes on top.
 *
 * To be preferred where threads outnumber processors and the longest wait counts; for
 * the most work per second, or per second of a processor, `lks_mutex` is the right
 * one. docs/frontier.md has figures of both.
 */
#if defined(LKS_DEBUG) && !defined(LOCKSTEAD_CHECK_FAIR_H)
#include "check-fair.h" /* which includes this one */
#endif
#ifndef LOCKSTEAD_FAIR_H
#define LOCKSTEAD_FAIR_H

#include "cond.h"
#include "mutex.h"

/* Zeroes: free. May not be copied or moved while anybody uses it. */
typedef struct LKS_TSA__(capability("mutex")) lks_fair_mutex {
    lks_mutex mutex__;
} lks_fair_mutex;
#define LKS_FAIR_MUTEX_INIT {LKS_MUTEX_INIT}

LKS_ASSERT__(fair_mutex_size, sizeof(lks_fair_mutex) == sizeof(lks_mutex));
LKS_ASSERT__(fair_mutex_align, __alignof__(lks_fair_mutex) == __alignof__(lks_mutex));
LKS_ASSERT__(fair_mutex_mutex, offsetof(lks_fair_mutex, mutex__) == 0);

LKS_BEGIN_DECLS__

/* What the inline functions below call where they cannot go on. */
void lks_fair_mutex_lock_slow(lks_fair_mutex *mutex);
int lks_fair_mutex_lock_how(lks_fair_mutex *mutex, unsigned how, uint64_t argument);
void lks_fair_mutex_unlock_slow(lks_fair_mutex *mutex);
int lks_cond_wait_fair_how(lks_cond *cond, lks_fair_mutex *mutex, unsigned how,
                           uint64_t argument);

/* Makes a free mutex. */
LKS_INLINE__ void lks_fair_mutex_init(lks_fair_mutex *mutex)
{
    __atomic_store_n(&mutex->mutex__.word__, 0, __ATOMIC_RELAXED);
}

/* Ends a mutex that nobody holds or waits for. Only the checking build, and a
 * mutex with a name, need it. */
void lks_fair_mutex_destroy(lks_fair_mutex *mutex);

/* The same mutex as an `lks_mutex`, and the other way round: at any time, held or not,
 * also while others use it, and at no cost. Calls of both kinds may be mixed, and one
 * may release what the other has taken. Each wait then has the bound of its own kind,
 * and the short ones come first: waits are short only as far as releases are fair. */
LKS_INLINE__ lks_mutex *lks_mutex_of_fair(lks_fair_mutex *mutex) LKS_TSA__(lock_returned(mutex))
{
    return &mutex->mutex__;
}

LKS_INLINE__ lks_fair_mutex *lks_fair_mutex_of(lks_mutex *mutex) LKS_TSA__(lock_returned(mutex))
{
    return (lks_fair_mutex *)(void *)mutex;
}

LKS_INLINE__ int lks_fair_mutex_take_how__(lks_fair_mutex *mutex, unsigned how, uint64_t argument)
    LKS_TSA__(no_thread_safety_analysis)
{
    int result;
    if (lks_mutex_take__(&mutex->mutex__))
        return 0;
    result = lks_fair_mutex_lock_how(mutex, how, argument);
    if (result == 0)
        LKS_ACQUIRED__(mutex);
    return result;
}

/* Takes the mutex, waiting as long as it takes. Aborts with a message, rather than
 * wait for ever, if the calling thread holds it already, or a thread that fork
 * has left behind in the parent process does. */
LKS_INLINE__ void lks_fair_mutex_lock(lks_fair_mutex *mutex) LKS_TSA__(acquire_capability(mutex))
    LKS_TSA__(no_thread_safety_analysis)
{
    if (LKS_UNLIKELY__(!lks_mutex_take__(&mutex->mutex__))) {
        lks_fair_mutex_lock_slow(mutex);
        LKS_ACQUIRED__(mutex);
    }
}

/* Takes the mutex if it is free: 1, otherwise 0. */
LKS_NODISCARD__ LKS_INLINE__ int lks_fair_mutex_trylock(lks_fair_mutex *mutex)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    if (lks_mutex_take__(&mutex->mutex__))
        return 1;
    if (!lks_mutex_trylock_slow(&mutex->mutex__))
        return 0;
    LKS_ACQUIRED__(mutex);
    return 1;
}

/* Takes the mutex unless a signal handler runs on this thread while it sleeps for
 * it. 0, -EINTR, or as all forms below -EDEADLK if the caller holds it already and
 * -EOWNERDEAD if a thread does that fork has left behind in the parent process. */
LKS_NODISCARD__ LKS_INLINE__ int lks_fair_mutex_lock_interruptible(lks_fair_mutex *mutex)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_fair_mutex_take_how__(mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Takes the mutex unless `token` is fired, before the call or while it waits: 0 or
 * -EINTR. Without a token only the death of the process ends the wait. */
LKS_NODISCARD__ LKS_INLINE__ int lks_fair_mutex_lock_killable(lks_fair_mutex *mutex,
                                                              const lks_cancel *token)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_fair_mutex_take_how__(mutex, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Takes the mutex, waiting so many nanoseconds at most: 0 or -ETIMEDOUT. */
LKS_NODISCARD__ LKS_INLINE__ int lks_fair_mutex_lock_timeout(lks_fair_mutex *mutex,
                                                             uint64_t nanoseconds)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_fair_mutex_take_how__(mutex, LKS_TIMEOUT__, nanoseconds);
}

/* Takes the mutex, waiting until this time of CLOCK_MONOTONIC at most: 0,
 * -ETIMEDOUT, or -EINVAL if it is no time. */
LKS_NODISCARD__ LKS_INLINE__ int lks_fair_mutex_lock_until(lks_fair_mutex *mutex,
                                                           const struct timespec *deadline)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_fair_mutex_take_how__(mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* `lks_fair_mutex_lock` of a mutex inside another one of its class, so many levels
 * deep: the checking build tells them apart by that. */
LKS_INLINE__ void lks_fair_mutex_lock_nested(lks_fair_mutex *mutex, unsigned subclass)
    LKS_TSA__(acquire_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)subclass;
    lks_fair_mutex_lock(mutex);
}

/* `lks_fair_mutex_lock_interruptible`, nested likewise. */
LKS_NODISCARD__ LKS_INLINE__ int lks_fair_mutex_lock_interruptible_nested(lks_fair_mutex *mutex,
                                                                          unsigned subclass)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    (void)subclass;
    return lks_fair_mutex_take_how__(mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Releases the mutex, which the calling thread holds. */
LKS_INLINE__ void lks_fair_mutex_unlock(lks_fair_mutex *mutex) LKS_TSA__(release_capability(mutex))
    LKS_TSA__(no_thread_safety_analysis)
{
    LKS_RELEASING__(mutex);
    /* Once it is released the mutex may be gone, and nothing of it is touched. */
    if (LKS_UNLIKELY__(!lks_erase_low__(&mutex->mutex__.word__)))
        lks_fair_mutex_unlock_slow(mutex);
}

/* Tells whether anybody holds the mutex, at some moment during the call. */
LKS_INLINE__ int lks_fair_mutex_is_locked(const lks_fair_mutex *mutex)
{
    return lks_mutex_is_locked(&mutex->mutex__);
}

/* Tells whether the calling thread holds it. */
LKS_INLINE__ int lks_fair_mutex_is_mine(const lks_fair_mutex *mutex)
{
    return lks_mutex_is_mine(&mutex->mutex__);
}

LKS_INLINE__ int lks_cond_sleep_fair__(lks_cond *cond, lks_fair_mutex *mutex, unsigned how,
                                       uint64_t argument)
{
    int result;
    LKS_RELEASING__(mutex);
    result = lks_cond_wait_fair_how(cond, mutex, how, argument);
    LKS_ACQUIRED__(mutex);
    return result;
}

/* `lks_cond_wait` with a fair mutex: releases it, sleeps until notified, and takes it
 * again. One condition variable may be used with a mutex by both names. */
LKS_INLINE__ void lks_cond_wait_fair(lks_cond *cond, lks_fair_mutex *mutex)
    LKS_TSA__(requires_capability(mutex))
{
    (void)lks_cond_sleep_fair__(cond, mutex, LKS_FOREVER__, 0);
}

/* Does the same, for so many nanoseconds at most: 0 or -ETIMEDOUT, with the mutex. */
LKS_INLINE__ int lks_cond_wait_fair_timeout(lks_cond *cond, lks_fair_mutex *mutex,
                                            uint64_t nanoseconds)
    LKS_TSA__(requires_capability(mutex))
{
    return lks_cond_sleep_fair__(cond, mutex, LKS_TIMEOUT__, nanoseconds);
}

/* Does the same, until this time of CLOCK_MONOTONIC at most: 0 or -ETIMEDOUT, with the
 * mutex; -EINVAL at once if it is no time. */
LKS_INLINE__ int lks_cond_wait_fair_until(lks_cond *cond, lks_fair_mutex *mutex,
                                          const struct timespec *deadline)
    LKS_TSA__(requires_capability(mutex))
{
    return lks_cond_sleep_fair__(cond, mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Does the same, unless a signal handler runs on this thread while it sleeps: 0 or
 * -EINTR, with the mutex. */
LKS_INLINE__ int lks_cond_wait_fair_interruptible(lks_cond *cond, lks_fair_mutex *mutex)
    LKS_TSA__(requires_capability(mutex))
{
    return lks_cond_sleep_fair__(cond, mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Does the same, unless `token` is fired: 0 or -EINTR, with the mutex. */
LKS_INLINE__ int lks_cond_wait_fair_killable(lks_cond *cond, lks_fair_mutex *mutex,
                                             const lks_cancel *token)
    LKS_TSA__(requires_capability(mutex))
{
    return lks_cond_sleep_fair__(cond, mutex, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

LKS_END_DECLS__

#endif
