/*
 * The counting semaphore: 8 bytes, up to 1,048,575 permits, any thread may give
 * one back. The kernel's calls, and its results.
 */
#if defined(LKS_DEBUG) && !defined(LOCKSTEAD_CHECK_H)
#include "check.h" /* which includes this one */
#endif
#ifndef LOCKSTEAD_SEMAPHORE_H
#define LOCKSTEAD_SEMAPHORE_H

#include "base.h"

/* Zeroes: no free permit. May not be copied or moved while anybody uses it. */
typedef struct lks_semaphore {
    uint64_t word__ __attribute__((aligned(8)));
} lks_semaphore;
/* A semaphore with so many free permits, 1048575 at most. */
#ifdef __cplusplus
#define LKS_SEMAPHORE_INIT(permits) {(permits)}
#else
#define LKS_SEMAPHORE_INIT(permits) {.word__ = (permits)}
#endif
#define LKS_SEMAPHORE_MAX 1048575u

LKS_ASSERT__(semaphore_size, sizeof(lks_semaphore) == 8);
LKS_ASSERT__(semaphore_align, __alignof__(lks_semaphore) == 8);
LKS_ASSERT__(semaphore_word, offsetof(lks_semaphore, word__) == 0);

/* The word's low 20 bits are the permits; set, they are reserved for a hand-off waiter. */
#define LKS_SEMAPHORE_HANDOFF__ ((uint64_t)1 << 33)

LKS_BEGIN_DECLS__

int lks_semaphore_down_how(lks_semaphore *semaphore, unsigned how, uint64_t argument);
int lks_semaphore_down_trylock_slow(lks_semaphore *semaphore);
int lks_semaphore_up_slow(lks_semaphore *semaphore);

/* Makes a semaphore with so many free permits: 0, or -EINVAL if it cannot count them. */
LKS_INLINE__ int lks_semaphore_init(lks_semaphore *semaphore, uint32_t permits)
{
    if (permits > LKS_SEMAPHORE_MAX)
        return -EINVAL;
    __atomic_store_n(&semaphore->word__, permits, __ATOMIC_RELAXED);
    return 0;
}

/* Ends a semaphore that nobody uses. Only the checking build, and a semaphore with
 * a name, need it. */
void lks_semaphore_destroy(lks_semaphore *semaphore);

LKS_INLINE__ int lks_semaphore_take__(lks_semaphore *semaphore)
{
    /* First the guess of a semaphore that is used as a mutex: reading it before
     * costs as much as the exchange itself. */
    uint64_t seen = 1;
    int taken = __atomic_compare_exchange_n(&semaphore->word__, &seen, 0, 0, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED);
    if (LKS_UNLIKELY__(!taken) && (seen & LKS_MAX_SLOTS__) != 0
        && !(seen & LKS_SEMAPHORE_HANDOFF__))
        taken = __atomic_compare_exchange_n(&semaphore->word__, &seen, seen - 1, 0,
                                            __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    if (taken)
        LKS_ACQUIRED__(semaphore);
    return taken;
}

LKS_INLINE__ int lks_semaphore_take_how__(lks_semaphore *semaphore, unsigned how, uint64_t argument)
{
    int result;
    if (lks_semaphore_take__(semaphore))
        return 0;
    result = lks_semaphore_down_how(semaphore, how, argument);
    if (result == 0)
        LKS_ACQUIRED__(semaphore);
    return result;
}

/* Takes a permit, waiting as long as it takes. */
LKS_INLINE__ void lks_semaphore_down(lks_semaphore *semaphore)
{
    (void)lks_semaphore_take_how__(semaphore, LKS_FOREVER__, 0);
}

/* Takes a permit unless a signal handler runs on this thread while it sleeps for
 * one: 0 or -EINTR. */
LKS_NODISCARD__ LKS_INLINE__ int lks_semaphore_down_interruptible(lks_semaphore *semaphore)
{
    return lks_semaphore_take_how__(semaphore, LKS_INTERRUPTIBLE__, 0);
}

/* Takes a permit unless `token` is fired: 0 or -EINTR. Without a token only the
 * death of the process ends the wait. */
LKS_NODISCARD__ LKS_INLINE__ int lks_semaphore_down_killable(lks_semaphore *semaphore,
                                                             const lks_cancel *token)
{
    return lks_semaphore_take_how__(semaphore, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Takes a permit if one is free: 0, otherwise 1. (As in the kernel, and unlike
 * `lks_mutex_trylock`.) */
LKS_NODISCARD__ LKS_INLINE__ int lks_semaphore_down_trylock(lks_semaphore *semaphore)
{
    if (lks_semaphore_take__(semaphore))
        return 0;
    if (lks_semaphore_down_trylock_slow(semaphore))
        return 1;
    LKS_ACQUIRED__(semaphore);
    return 0;
}

/* Takes a permit, waiting so many nanoseconds at most: 0 or -ETIMEDOUT. */
LKS_NODISCARD__ LKS_INLINE__ int lks_semaphore_down_timeout(lks_semaphore *semaphore,
                                                            uint64_t nanoseconds)
{
    return lks_semaphore_take_how__(semaphore, LKS_TIMEOUT__, nanoseconds);
}

/* Takes a permit, waiting until this time of CLOCK_MONOTONIC at most: 0,
 * -ETIMEDOUT, or -EINVAL if it is no time. */
LKS_NODISCARD__ LKS_INLINE__ int lks_semaphore_down_until(lks_semaphore *semaphore,
                                                          const struct timespec *deadline)
{
    return lks_semaphore_take_how__(semaphore, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Gives a permit back, or adds one: 0, or -EOVERFLOW if it can count no more. */
LKS_INLINE__ int lks_semaphore_up(lks_semaphore *semaphore)
{
    uint64_t seen = 0;
    LKS_RELEASING__(semaphore);
    if (LKS_LIKELY__(__atomic_compare_exchange_n(&semaphore->word__, &seen, 1, 0, __ATOMIC_RELEASE,
                                                __ATOMIC_RELAXED)))
        return 0;
    if (seen < LKS_SEMAPHORE_MAX &&
        __atomic_compare_exchange_n(&semaphore->word__, &seen, seen + 1, 0, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED))
        return 0;
    LKS_RELEASING__(semaphore); /* see low-half.h */
    return lks_semaphore_up_slow(semaphore);
}

/* Returns the number of free permits, at some moment during the call. */
LKS_INLINE__ uint32_t lks_semaphore_permits(const lks_semaphore *semaphore)
{
    return (uint32_t)(__atomic_load_n(&semaphore->word__, __ATOMIC_RELAXED) & LKS_MAX_SLOTS__);
}

LKS_END_DECLS__

#endif
