/*
 * The condition variable: 8 bytes, used with a mutex. A wait may end for no
 * reason: look at the condition again.
 */
#if defined(LKS_DEBUG) && !defined(LOCKSTEAD_CHECK_H)
#include "check.h" /* which includes this one */
#endif
#ifndef LOCKSTEAD_COND_H
#define LOCKSTEAD_COND_H

#include "mutex.h"

/* Zeroes: nobody waits. May not be copied or moved while anybody uses it. */
typedef struct lks_cond {
    uint64_t word__ __attribute__((aligned(8)));
} lks_cond;
#define LKS_COND_INIT LKS_ZEROES__

LKS_ASSERT__(cond_size, sizeof(lks_cond) == 8);
LKS_ASSERT__(cond_align, __alignof__(lks_cond) == 8);
LKS_ASSERT__(cond_word, offsetof(lks_cond, word__) == 0);

LKS_BEGIN_DECLS__

int lks_cond_wait_how(lks_cond *cond, lks_mutex *mutex, unsigned how, uint64_t argument);
/* Waits as `how` says, and so many nanoseconds at most; leaves in `left` how many are left. */
int lks_cond_wait_within_how(lks_cond *cond, lks_mutex *mutex, unsigned how, uint64_t argument,
                             uint64_t *left);
void lks_cond_notify_slow(lks_cond *cond, int all);

/* Makes a condition variable that nobody waits for. */
LKS_INLINE__ void lks_cond_init(lks_cond *cond)
{
    __atomic_store_n(&cond->word__, 0, __ATOMIC_RELAXED);
}

/* Ends one that nobody uses. Only one with a name, and the checking build, need it. */
void lks_cond_destroy(lks_cond *cond);

LKS_INLINE__ int lks_cond_sleep__(lks_cond *cond, lks_mutex *mutex, unsigned how, uint64_t argument)
{
    int result;
    LKS_RELEASING__(mutex);
    result = lks_cond_wait_how(cond, mutex, how, argument);
    LKS_ACQUIRED__(mutex);
    return result;
}

/* Releases the mutex, which the caller holds, sleeps until notified, and takes it
 * again. */
LKS_INLINE__ void lks_cond_wait(lks_cond *cond, lks_mutex *mutex)
    LKS_TSA__(requires_capability(mutex))
{
    (void)lks_cond_sleep__(cond, mutex, LKS_FOREVER__, 0);
}

/* Does the same, for so many nanoseconds at most: 0 or -ETIMEDOUT, with the mutex. */
LKS_INLINE__ int lks_cond_wait_timeout(lks_cond *cond, lks_mutex *mutex, uint64_t nanoseconds)
    LKS_TSA__(requires_capability(mutex))
{
    return lks_cond_sleep__(cond, mutex, LKS_TIMEOUT__, nanoseconds);
}

/* Does the same, until this time of CLOCK_MONOTONIC at most: 0 or -ETIMEDOUT, with the
 * mutex; -EINVAL at once if it is no time. */
LKS_INLINE__ int lks_cond_wait_until(lks_cond *cond, lks_mutex *mutex,
                                     const struct timespec *deadline)
    LKS_TSA__(requires_capability(mutex))
{
    return lks_cond_sleep__(cond, mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Does the same, unless a signal handler runs on this thread while it sleeps: 0 or
 * -EINTR, with the mutex. */
LKS_INLINE__ int lks_cond_wait_interruptible(lks_cond *cond, lks_mutex *mutex)
    LKS_TSA__(requires_capability(mutex))
{
    return lks_cond_sleep__(cond, mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Does the same, unless `token` is fired: 0 or -EINTR, with the mutex. */
LKS_INLINE__ int lks_cond_wait_killable(lks_cond *cond, lks_mutex *mutex, const lks_cancel *token)
    LKS_TSA__(requires_capability(mutex))
{
    return lks_cond_sleep__(cond, mutex, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Wakes one waiter, with or without the mutex held. */
LKS_INLINE__ void lks_cond_notify_one(lks_cond *cond)
{
    if (__atomic_load_n(&cond->word__, __ATOMIC_RELAXED) >> 32)
        lks_cond_notify_slow(cond, 0);
}

/* Wakes all waiters. */
LKS_INLINE__ void lks_cond_notify_all(lks_cond *cond)
{
    if (__atomic_load_n(&cond->word__, __ATOMIC_RELAXED) >> 32)
        lks_cond_notify_slow(cond, 1);
}

LKS_END_DECLS__

#endif
