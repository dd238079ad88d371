/*
 * Mutexes for threads with real-time priorities: who waits lends the holder its
 * priority, along chains of locks too, and the first in the order of priorities is
 * next. 8 bytes; the recursive one 16.
 *
 * Under contention each release and each acquisition is a system call: for threads of
 * the ordinary class `lks_mutex` is the right one. Where the kernel or a filter refuses
 * the calls these exclude as well, without lending (`lks_rt_inherits`).
 *
 * A holder that has ended, or that fork has left behind in the parent process, is an
 * error, -EOWNERDEAD, of every later acquisition: what is guarded may be half changed,
 * and nobody has the mutex any more until it is initialised again.
 */
#if defined(LKS_DEBUG) && !defined(LOCKSTEAD_CHECK_RT_H)
#include "check-rt.h" /* which includes this one */
#endif
#ifndef LOCKSTEAD_RT_H
#define LOCKSTEAD_RT_H

#include "base.h"

/* Zeroes: free. May not be copied or moved while anybody uses it. */
typedef struct LKS_TSA__(capability("mutex")) lks_rt_mutex {
    uint64_t word__ __attribute__((aligned(8)));
} lks_rt_mutex;
#define LKS_RT_MUTEX_INIT LKS_ZEROES__

/* Does the same, and its holder may take it again. */
typedef struct LKS_TSA__(capability("mutex")) lks_rt_recursive_mutex {
    uint64_t word__ __attribute__((aligned(8)));
    uint32_t again__;
    uint32_t spare__;
} lks_rt_recursive_mutex;
#define LKS_RT_RECURSIVE_MUTEX_INIT LKS_ZEROES__

LKS_ASSERT__(rt_mutex_size, sizeof(lks_rt_mutex) == 8);
LKS_ASSERT__(rt_mutex_align, __alignof__(lks_rt_mutex) == 8);
LKS_ASSERT__(rt_recursive_mutex_size, sizeof(lks_rt_recursive_mutex) == 16);
LKS_ASSERT__(rt_recursive_mutex_again, offsetof(lks_rt_recursive_mutex, again__) == 8);

LKS_BEGIN_DECLS__

/* What the inline functions below call. */
int lks_rt_mutex_lock_how(lks_rt_mutex *mutex, unsigned how, uint64_t argument);
int lks_rt_mutex_trylock_slow(lks_rt_mutex *mutex);
void lks_rt_mutex_unlock_slow(lks_rt_mutex *mutex);
int lks_rt_recursive_mutex_lock_how(lks_rt_recursive_mutex *mutex, unsigned how,
                                    uint64_t argument);
int lks_rt_recursive_mutex_trylock_slow(lks_rt_recursive_mutex *mutex);
void lks_rt_recursive_mutex_unlock_slow(lks_rt_recursive_mutex *mutex);

/* Tells whether waiting lends priorities here: 1, otherwise 0. */
int lks_rt_inherits(void);

/* Makes a free mutex. */
LKS_INLINE__ void lks_rt_mutex_init(lks_rt_mutex *mutex)
{
    __atomic_store_n(&mutex->word__, 0, __ATOMIC_RELAXED);
}

/* Ends a mutex that nobody holds or waits for. Only the checking build, and a mutex with
 * a name, need it. */
void lks_rt_mutex_destroy(lks_rt_mutex *mutex);

LKS_INLINE__ int lks_rt_mutex_take_how__(lks_rt_mutex *mutex, unsigned how, uint64_t argument)
{
    int result = lks_rt_mutex_lock_how(mutex, how, argument);
    if (result == 0)
        LKS_ACQUIRED__(mutex);
    return result;
}

/* Takes the mutex, waiting as long as it takes: 0. Or, as all forms below, -EDEADLK if
 * the caller holds it already, or the holder waits, maybe over others, for a lock of the
 * caller's; and -EOWNERDEAD. A wait with a time or token goes on in such a cycle, for
 * that may open; it lends nothing there. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rt_mutex_lock(lks_rt_mutex *mutex)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rt_mutex_take_how__(mutex, LKS_FOREVER__, 0);
}

/* Takes the mutex if it is free: 1, otherwise 0. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rt_mutex_trylock(lks_rt_mutex *mutex)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    if (!lks_rt_mutex_trylock_slow(mutex))
        return 0;
    LKS_ACQUIRED__(mutex);
    return 1;
}

/* Takes the mutex unless a signal handler is to run on this thread while it waits: 0 or
 * -EINTR. The kernel resumes such waits after each handler; so signals are held off while
 * this one waits, and looked at every 5 ms, when the wait begins anew behind others of
 * the same priority. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rt_mutex_lock_interruptible(lks_rt_mutex *mutex)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rt_mutex_take_how__(mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Takes the mutex unless `token` is fired, before the call or while it waits, up to 5 ms
 * late: 0 or -EINTR. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rt_mutex_lock_killable(lks_rt_mutex *mutex,
                                                            const lks_cancel *token)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rt_mutex_take_how__(mutex, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Takes the mutex, waiting so many nanoseconds at most: 0 or -ETIMEDOUT. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rt_mutex_lock_timeout(lks_rt_mutex *mutex,
                                                           uint64_t nanoseconds)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rt_mutex_take_how__(mutex, LKS_TIMEOUT__, nanoseconds);
}

/* Takes the mutex, waiting until this time of CLOCK_MONOTONIC at most: 0, -ETIMEDOUT, or
 * -EINVAL if it is no time. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rt_mutex_lock_until(lks_rt_mutex *mutex,
                                                         const struct timespec *deadline)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rt_mutex_take_how__(mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Releases the mutex, which the calling thread holds. */
LKS_INLINE__ void lks_rt_mutex_unlock(lks_rt_mutex *mutex) LKS_TSA__(release_capability(mutex))
    LKS_TSA__(no_thread_safety_analysis)
{
    LKS_RELEASING__(mutex);
    lks_rt_mutex_unlock_slow(mutex);
}

/* Tells whether anybody holds the mutex, at some moment during the call. */
int lks_rt_mutex_is_locked(const lks_rt_mutex *mutex);

/* Tells whether the calling thread holds it. */
int lks_rt_mutex_is_mine(const lks_rt_mutex *mutex);

/* ---- the recursive one; as its namesakes above ---- */

LKS_INLINE__ void lks_rt_recursive_mutex_init(lks_rt_recursive_mutex *mutex)
{
    __atomic_store_n(&mutex->word__, 0, __ATOMIC_RELAXED);
    mutex->again__ = 0;
}

void lks_rt_recursive_mutex_destroy(lks_rt_recursive_mutex *mutex);

LKS_INLINE__ int lks_rt_recursive_mutex_take_how__(lks_rt_recursive_mutex *mutex, unsigned how,
                                                   uint64_t argument)
{
    int result = lks_rt_recursive_mutex_lock_how(mutex, how, argument);
    if (result == 0)
        LKS_ACQUIRED__(mutex);
    return result;
}

/* 0; -EDEADLK for a cycle, -EOWNERDEAD, or -EAGAIN if the caller has it 2^32 times. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rt_recursive_mutex_lock(lks_rt_recursive_mutex *mutex)
{
    return lks_rt_recursive_mutex_take_how__(mutex, LKS_FOREVER__, 0);
}

LKS_NODISCARD__ LKS_INLINE__ int lks_rt_recursive_mutex_trylock(lks_rt_recursive_mutex *mutex)
{
    if (!lks_rt_recursive_mutex_trylock_slow(mutex))
        return 0;
    LKS_ACQUIRED__(mutex);
    return 1;
}

LKS_NODISCARD__ LKS_INLINE__ int
lks_rt_recursive_mutex_lock_interruptible(lks_rt_recursive_mutex *mutex)
{
    return lks_rt_recursive_mutex_take_how__(mutex, LKS_INTERRUPTIBLE__, 0);
}

LKS_NODISCARD__ LKS_INLINE__ int
lks_rt_recursive_mutex_lock_killable(lks_rt_recursive_mutex *mutex, const lks_cancel *token)
{
    return lks_rt_recursive_mutex_take_how__(mutex, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

LKS_NODISCARD__ LKS_INLINE__ int
lks_rt_recursive_mutex_lock_timeout(lks_rt_recursive_mutex *mutex, uint64_t nanoseconds)
{
    return lks_rt_recursive_mutex_take_how__(mutex, LKS_TIMEOUT__, nanoseconds);
}

LKS_NODISCARD__ LKS_INLINE__ int
lks_rt_recursive_mutex_lock_until(lks_rt_recursive_mutex *mutex, const struct timespec *deadline)
{
    return lks_rt_recursive_mutex_take_how__(mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Releases it once; others get it when it was released as often as it was taken. */
LKS_INLINE__ void lks_rt_recursive_mutex_unlock(lks_rt_recursive_mutex *mutex)
{
    LKS_RELEASING__(mutex);
    lks_rt_recursive_mutex_unlock_slow(mutex);
}

int lks_rt_recursive_mutex_is_locked(const lks_rt_recursive_mutex *mutex);

/* Returns how often the calling thread has it. */
uint64_t lks_rt_recursive_mutex_depth(const lks_rt_recursive_mutex *mutex);

LKS_END_DECLS__

#endif
