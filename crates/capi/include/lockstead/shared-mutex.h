/*
 * The mutex of shared.h: in memory that processes share, and survives its owner. What is
 * said there of results holds here.
 */
#ifndef LOCKSTEAD_SHARED_MUTEX_H
#define LOCKSTEAD_SHARED_MUTEX_H

#include "base.h"

/* One owner, which alone releases it; not recursive. Zeroes: free. */
typedef struct lks_shared_mutex {
    uint32_t word__ __attribute__((aligned(8)));
    uint32_t heir__;
} lks_shared_mutex;

LKS_ASSERT__(shared_mutex_size, sizeof(lks_shared_mutex) == 8);
LKS_ASSERT__(shared_mutex_align, __alignof__(lks_shared_mutex) == 8);

/* In a lock's word: what a dead owner left was not declared consistent; who has it. */
#define LKS_SHARED_INCONSISTENT__ 0x40000000u
#define LKS_SHARED_OWNER__ 0x0fffffffu
#define LKS_SHARED_LOST__ 0xffffffffu

/* The calling thread in a segment: the addresses it is about, the thread's name there,
 * 0: none, and how many locks it has. */
typedef struct lks_member__ {
    uint64_t base;
    uint64_t length;
    uint32_t me;
    uint32_t held;
} lks_member__;
LKS_ASSERT__(member_me, offsetof(lks_member__, me) == 16);
LKS_ASSERT__(member_held, offsetof(lks_member__, held) == 20);

LKS_BEGIN_DECLS__

/* In the segment that it used last; null: to be asked of the library. */
__extension__ extern __thread lks_member__ *lks_here__ __attribute__((tls_model("initial-exec")));

/* What the inline functions below call. */
int lks_shared_mutex_lock_how(lks_shared_mutex *mutex, unsigned how, uint64_t argument);
int lks_shared_mutex_trylock_slow(lks_shared_mutex *mutex);
int lks_shared_mutex_unlock_slow(lks_shared_mutex *mutex);

/* Passes a result on; tells a thread sanitizer of an acquisition. */
LKS_INLINE__ int lks_shared_got__(int result, void *lock)
{
    (void)lock;
    if (result >= 0 || result == -EOWNERDEAD)
        LKS_ACQUIRED__(lock);
    return result;
}

/* The same of what says 1 for success. */
LKS_INLINE__ int lks_shared_tried__(int result, void *lock)
{
    (void)lock;
    if (result > 0 || result == -EOWNERDEAD)
        LKS_ACQUIRED__(lock);
    return result;
}

/* The record of the calling thread for a lock at this address; null: call. */
LKS_INLINE__ lks_member__ *lks_shared_here__(const void *lock)
{
    lks_member__ *here = lks_here__;
    if (LKS_LIKELY__(here != NULL &&
                     LKS_ADDRESS__(lock) - __atomic_load_n(&here->base, __ATOMIC_RELAXED) <
                         __atomic_load_n(&here->length, __ATOMIC_RELAXED)))
        return here;
    return NULL;
}

LKS_INLINE__ int lks_shared_mutex_take__(lks_shared_mutex *mutex)
{
    lks_member__ *here = lks_shared_here__(mutex);
    uint32_t idle = 0, me;
    if (LKS_UNLIKELY__(here == NULL))
        return 0;
    me = __atomic_load_n(&here->me, __ATOMIC_RELAXED);
    /* Release: that the thread has its slot, before its name (SHR-1). */
    if (LKS_UNLIKELY__(me == 0 || !__atomic_compare_exchange_n(&mutex->word__, &idle, me, 0,
                                                              __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)))
        return 0;
    /* The thread's alone: signal handlers give back what they take. */
    __atomic_store_n(&here->held, __atomic_load_n(&here->held, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
    LKS_ACQUIRED__(mutex);
    return 1;
}

LKS_INLINE__ int lks_shared_mutex_take_how__(lks_shared_mutex *mutex, unsigned how,
                                             uint64_t argument)
{
    if (LKS_LIKELY__(lks_shared_mutex_take__(mutex)))
        return 0;
    return lks_shared_got__(lks_shared_mutex_lock_how(mutex, how, argument), mutex);
}

/* Makes a free mutex where there was something else before. Fresh memory of a segment
 * needs no such call. */
LKS_INLINE__ void lks_shared_mutex_init(lks_shared_mutex *mutex)
{
    __atomic_store_n(&mutex->heir__, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mutex->word__, 0, __ATOMIC_RELEASE);
}

/* Takes the mutex, waiting as long as it takes: 0; -EOWNERDEAD: the caller has it, and
 * its last owner died; -ENOTRECOVERABLE: nobody has it, and nobody will. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_mutex_lock(lks_shared_mutex *mutex)
{
    return lks_shared_mutex_take_how__(mutex, LKS_FOREVER__, 0);
}

/* Takes the mutex if that needs no wait: 1; 0: somebody has it; or an error, of which
 * -EOWNERDEAD means that the caller has it. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_mutex_trylock(lks_shared_mutex *mutex)
{
    if (lks_shared_mutex_take__(mutex))
        return 1;
    return lks_shared_tried__(lks_shared_mutex_trylock_slow(mutex), mutex);
}

/* Does the same, and returns -EINTR if a signal handler ran on this thread while it
 * slept. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_mutex_lock_interruptible(lks_shared_mutex *mutex)
{
    return lks_shared_mutex_take_how__(mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Does the same, and returns -EINTR if the token was fired. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_mutex_lock_killable(lks_shared_mutex *mutex, const lks_cancel *token)
{
    return lks_shared_mutex_take_how__(mutex, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Does the same, and returns -ETIMEDOUT when so many nanoseconds are over. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_mutex_lock_timeout(lks_shared_mutex *mutex, uint64_t nanoseconds)
{
    return lks_shared_mutex_take_how__(mutex, LKS_TIMEOUT__, nanoseconds);
}

/* Does the same, and returns -ETIMEDOUT at this time of CLOCK_MONOTONIC, -EINVAL if it
 * is no time. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_mutex_lock_until(lks_shared_mutex *mutex, const struct timespec *deadline)
{
    return lks_shared_mutex_take_how__(mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Releases the mutex: 0, or -EPERM if the calling thread does not have it. */
LKS_INLINE__ int lks_shared_mutex_unlock(lks_shared_mutex *mutex)
{
    lks_member__ *here = lks_shared_here__(mutex);
    LKS_RELEASING__(mutex);
    if (LKS_LIKELY__(here != NULL)) {
        uint32_t me = __atomic_load_n(&here->me, __ATOMIC_RELAXED);
        if (LKS_LIKELY__(me != 0 && __atomic_compare_exchange_n(&mutex->word__, &me, 0, 0,
                                                               __ATOMIC_RELEASE,
                                                               __ATOMIC_RELAXED))) {
            __atomic_store_n(&here->held, __atomic_load_n(&here->held, __ATOMIC_RELAXED) - 1,
                             __ATOMIC_RELAXED);
            return 0;
        }
    }
    return lks_shared_mutex_unlock_slow(mutex);
}

/* Says, after -EOWNERDEAD, that what the mutex guards is in order again. 0, or -EPERM
 * if the calling thread does not have it. */
int lks_shared_mutex_consistent(lks_shared_mutex *mutex);

/* Tells whether a dead owner's work was not declared consistent, also since it is
 * lost: what -EOWNERDEAD said, once more. */
LKS_INLINE__ int lks_shared_mutex_is_inconsistent(const lks_shared_mutex *mutex)
{
    return (__atomic_load_n(&mutex->word__, __ATOMIC_RELAXED) & LKS_SHARED_INCONSISTENT__) != 0;
}

/* Tells whether anybody has it, dead or alive, at some moment during the call. */
LKS_INLINE__ int lks_shared_mutex_is_locked(const lks_shared_mutex *mutex)
{
    uint32_t word = __atomic_load_n(&mutex->word__, __ATOMIC_RELAXED);
    return word != LKS_SHARED_LOST__ && (word & LKS_SHARED_OWNER__) != 0;
}

/* Tells whether the calling thread has it. */
int lks_shared_mutex_is_mine(const lks_shared_mutex *mutex);

LKS_END_DECLS__

#endif
