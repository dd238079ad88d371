/*
 * The mutex: 8 bytes, one owner, which alone releases it; not recursive. A thread
 * that has waited past a bound, some milliseconds, is handed it.
 *
 * All forms of taking it return at once if it is free. Whoever takes it next may
 * free its memory: the thread that releases does not touch it any more.
 */
#if defined(LKS_DEBUG) && !defined(LOCKSTEAD_CHECK_H)
#include "check.h" /* which includes this one */
#endif
#ifndef LOCKSTEAD_MUTEX_H
#define LOCKSTEAD_MUTEX_H

#include "base.h"
#include "low-half.h"

/* Zeroes: free. May not be copied or moved while anybody uses it. */
typedef struct LKS_TSA__(capability("mutex")) lks_mutex {
    uint64_t word__ __attribute__((aligned(8)));
} lks_mutex;
#define LKS_MUTEX_INIT LKS_ZEROES__

LKS_ASSERT__(mutex_size, sizeof(lks_mutex) == 8);
LKS_ASSERT__(mutex_align, __alignof__(lks_mutex) == 8);
LKS_ASSERT__(mutex_word, offsetof(lks_mutex, word__) == 0);

LKS_BEGIN_DECLS__

/* What the inline functions below call where they cannot go on. */
void lks_mutex_lock_slow(lks_mutex *mutex);
int lks_mutex_lock_how(lks_mutex *mutex, unsigned how, uint64_t argument);
int lks_mutex_trylock_slow(lks_mutex *mutex);
void lks_mutex_unlock_slow(lks_mutex *mutex);

/* Makes a free mutex. */
LKS_INLINE__ void lks_mutex_init(lks_mutex *mutex)
{
    __atomic_store_n(&mutex->word__, 0, __ATOMIC_RELAXED);
}

/* Ends a mutex that nobody holds or waits for. Only the checking build, and a
 * mutex with a name, need it. */
void lks_mutex_destroy(lks_mutex *mutex);

LKS_INLINE__ int lks_mutex_take__(lks_mutex *mutex)
{
    uint32_t me = lks_self__;
    if (LKS_LIKELY__(me != 0 && lks_take_low__(&mutex->word__, me))) {
        LKS_ACQUIRED__(mutex);
        return 1;
    }
    return 0;
}

LKS_INLINE__ int lks_mutex_take_how__(lks_mutex *mutex, unsigned how, uint64_t argument)
    LKS_TSA__(no_thread_safety_analysis)
{
    int result;
    if (lks_mutex_take__(mutex))
        return 0;
    result = lks_mutex_lock_how(mutex, how, argument);
    if (result == 0)
        LKS_ACQUIRED__(mutex);
    return result;
}

/* Takes the mutex, waiting as long as it takes. Aborts with a message, rather than
 * wait for ever, if the calling thread holds it already, or a thread that fork
 * has left behind in the parent process does. */
LKS_INLINE__ void lks_mutex_lock(lks_mutex *mutex) LKS_TSA__(acquire_capability(mutex))
    LKS_TSA__(no_thread_safety_analysis)
{
    if (LKS_UNLIKELY__(!lks_mutex_take__(mutex))) {
        lks_mutex_lock_slow(mutex);
        LKS_ACQUIRED__(mutex);
    }
}

/* Takes the mutex if it is free: 1, otherwise 0. */
LKS_NODISCARD__ LKS_INLINE__ int lks_mutex_trylock(lks_mutex *mutex)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    if (lks_mutex_take__(mutex))
        return 1;
    if (!lks_mutex_trylock_slow(mutex))
        return 0;
    LKS_ACQUIRED__(mutex);
    return 1;
}

/* Takes the mutex unless a signal handler runs on this thread while it sleeps for
 * it. 0, -EINTR, or as all forms below -EDEADLK if the caller holds it already and
 * -EOWNERDEAD if a thread does that fork has left behind in the parent process. */
LKS_NODISCARD__ LKS_INLINE__ int lks_mutex_lock_interruptible(lks_mutex *mutex)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_mutex_take_how__(mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Takes the mutex unless `token` is fired, before the call or while it waits: 0 or
 * -EINTR. Without a token only the death of the process ends the wait. */
LKS_NODISCARD__ LKS_INLINE__ int lks_mutex_lock_killable(lks_mutex *mutex, const lks_cancel *token)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_mutex_take_how__(mutex, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Takes the mutex, waiting so many nanoseconds at most: 0 or -ETIMEDOUT. */
LKS_NODISCARD__ LKS_INLINE__ int lks_mutex_lock_timeout(lks_mutex *mutex, uint64_t nanoseconds)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_mutex_take_how__(mutex, LKS_TIMEOUT__, nanoseconds);
}

/* Takes the mutex, waiting until this time of CLOCK_MONOTONIC at most: 0,
 * -ETIMEDOUT, or -EINVAL if it is no time. */
LKS_NODISCARD__ LKS_INLINE__ int lks_mutex_lock_until(lks_mutex *mutex,
                                                      const struct timespec *deadline)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_mutex_take_how__(mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* `lks_mutex_lock` of a mutex inside another one of its class, so many levels deep:
 * the checking build tells them apart by that. */
LKS_INLINE__ void lks_mutex_lock_nested(lks_mutex *mutex, unsigned subclass)
    LKS_TSA__(acquire_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)subclass;
    lks_mutex_lock(mutex);
}

/* `lks_mutex_lock_interruptible`, nested likewise. */
LKS_NODISCARD__ LKS_INLINE__ int lks_mutex_lock_interruptible_nested(lks_mutex *mutex,
                                                                     unsigned subclass)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    (void)subclass;
    return lks_mutex_take_how__(mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Releases the mutex, which the calling thread holds. */
LKS_INLINE__ void lks_mutex_unlock(lks_mutex *mutex) LKS_TSA__(release_capability(mutex))
    LKS_TSA__(no_thread_safety_analysis)
{
    LKS_RELEASING__(mutex);
    /* Once it is released the mutex may be gone, and nothing of it is touched. */
    if (LKS_UNLIKELY__(!lks_erase_low__(&mutex->word__)))
        lks_mutex_unlock_slow(mutex);
}

/* Tells whether anybody holds the mutex, at some moment during the call. */
LKS_INLINE__ int lks_mutex_is_locked(const lks_mutex *mutex)
{
    return (__atomic_load_n(&mutex->word__, __ATOMIC_RELAXED) & LKS_MAX_SLOTS__) != 0;
}

/* Tells whether the calling thread holds it. */
LKS_INLINE__ int lks_mutex_is_mine(const lks_mutex *mutex)
{
    uint32_t me = lks_self__;
    return me != 0 && (__atomic_load_n(&mutex->word__, __ATOMIC_RELAXED) & LKS_MAX_SLOTS__) == me;
}

/* Drops a reference, and takes the mutex if that was the last: then 1, with the
 * count at 0. Otherwise 0, and the mutex is not held. Aborts if the count is 0
 * already. The use: objects found through a table that the mutex guards. */
LKS_NODISCARD__ int lks_atomic_dec_and_mutex_lock(int *count, lks_mutex *mutex)
    LKS_TSA__(try_acquire_capability(1, mutex));

LKS_END_DECLS__

#endif
