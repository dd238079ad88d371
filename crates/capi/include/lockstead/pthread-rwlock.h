/*
 * The part of `pthread.h` that is about reader-writer locks: 24 bytes.
 *
 * A thread that reads may read again, as programs expect. lockstead's lock would make
 * it wait behind a writer, which waits for it: so a thread notes what it reads, and
 * where it would have to wait counts further times by itself. It can note so many locks
 * at a time. A lock that is initialised again is another one, by its stamp: what was noted
 * of the one before, by whichever thread, is not its. Where 1048575 read, the calls return EAGAIN to others; a call that waits
 * while the lock fills up aborts with a message.
 */
#ifndef LOCKSTEAD_PTHREAD_RWLOCK_H
#define LOCKSTEAD_PTHREAD_RWLOCK_H

#include "pthread-base.h"

#ifdef LKS_PTHREAD_2001__

#include "rwlock.h"

typedef struct lks_pthread_rwlock {
    lks_rwlock lock__;
    uint64_t stamp__; /* 0 until it is noted */
} lks_pthread_rwlock;
#define LKS_PTHREAD_RWLOCK_INIT__ {LKS_RWLOCK_INIT, 0}

#define LKS_PTHREAD_READS__ 16

struct lks_pthread_reads__ {
    uint32_t count;
    struct {
        lks_pthread_rwlock *lock;
        uint64_t stamp; /* of the lock when it was noted */
        uint32_t holds; /* of the lock */
        uint32_t times; /* beside those */
    } of[LKS_PTHREAD_READS__];
};
/* Of the calling thread; the same for all files. */
__extension__ extern __thread struct lks_pthread_reads__ lks_pthread_mine__
    __attribute__((visibility("default")));
__extension__ __attribute__((weak)) __thread struct lks_pthread_reads__ lks_pthread_mine__;
/* The last stamp of a lock; the same for all files. */
extern uint64_t lks_pthread_stamp__ __attribute__((visibility("default")));
__attribute__((weak)) uint64_t lks_pthread_stamp__;

/* Takes a note out. */
LKS_INLINE__ void lks_pthread_forget__(uint32_t at)
{
    lks_pthread_mine__.of[at] = lks_pthread_mine__.of[--lks_pthread_mine__.count];
}

/* The note of this lock; the count of all if there is none. */
LKS_INLINE__ uint32_t lks_pthread_note__(const lks_pthread_rwlock *lock)
{
    uint32_t at = 0, count = lks_pthread_mine__.count;
    while (at < count && lks_pthread_mine__.of[at].lock != lock)
        at++;
    if (at < count && LKS_UNLIKELY__(lks_pthread_mine__.of[at].stamp !=
                                    __atomic_load_n(&lock->stamp__, __ATOMIC_RELAXED))) {
        /* Of a lock that was here before. */
        lks_pthread_forget__(at);
        at = count - 1;
    }
    return at;
}

/* The stamp of a lock, which gets one if it has none. */
LKS_INLINE__ uint64_t lks_pthread_stamped__(lks_pthread_rwlock *lock)
{
    uint64_t seen = __atomic_load_n(&lock->stamp__, __ATOMIC_RELAXED), fresh;
    if (LKS_LIKELY__(seen != 0))
        return seen;
    fresh = __atomic_add_fetch(&lks_pthread_stamp__, 1, __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n(&lock->stamp__, &seen, fresh, 0, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED)
               ? fresh
               : seen;
}

LKS_INLINE__ void lks_pthread_has_read__(lks_pthread_rwlock *lock)
{
    uint32_t at = lks_pthread_note__(lock);
    if (at == LKS_PTHREAD_READS__)
        return;
    if (at == lks_pthread_mine__.count) {
        lks_pthread_mine__.count = at + 1;
        lks_pthread_mine__.of[at].lock = lock;
        lks_pthread_mine__.of[at].stamp = lks_pthread_stamped__(lock);
        lks_pthread_mine__.of[at].holds = 0;
        lks_pthread_mine__.of[at].times = 0;
    }
    lks_pthread_mine__.of[at].holds++;
}

/* Tells whether the release of a lock that is read is one of a hold. */
LKS_INLINE__ int lks_pthread_releases__(const lks_pthread_rwlock *lock)
{
    uint32_t at = lks_pthread_note__(lock);
    if (at == lks_pthread_mine__.count)
        return 1;
    if (lks_pthread_mine__.of[at].times != 0) {
        lks_pthread_mine__.of[at].times--;
        return 0;
    }
    if (--lks_pthread_mine__.of[at].holds == 0)
        lks_pthread_forget__(at);
    return 1;
}

LKS_INLINE__ uint64_t lks_pthread_rwlock_word__(const lks_pthread_rwlock *lock)
{
    return __atomic_load_n(&lock->lock__.word__, __ATOMIC_RELAXED);
}

LKS_INLINE__ int lks_pthread_rwlock_writes__(const lks_pthread_rwlock *lock)
{
    uint64_t word = lks_pthread_rwlock_word__(lock);
    return !(word & LKS_RWLOCK_SHARED__) && lks_self__ != 0 &&
           (word & LKS_MAX_SLOTS__) == lks_self__;
}

/* Tells whether as many read as the lock can count. */
LKS_INLINE__ int lks_pthread_rwlock_is_full__(const lks_pthread_rwlock *lock)
{
    uint64_t word = lks_pthread_rwlock_word__(lock);
    return (word & LKS_RWLOCK_SHARED__) && (word & LKS_MAX_SLOTS__) == LKS_MAX_SLOTS__;
}

/* Tells whether the caller reads already: then once more, whoever waits. */
LKS_INLINE__ int lks_pthread_reads_again__(const lks_pthread_rwlock *lock)
{
    uint32_t at = lks_pthread_note__(lock);
    uint64_t word = lks_pthread_rwlock_word__(lock);
    if (at == lks_pthread_mine__.count || !(word & LKS_RWLOCK_SHARED__) ||
        !(word & LKS_MAX_SLOTS__))
        return 0;
    lks_pthread_mine__.of[at].times++;
    return 1;
}

/* Which side is preferred makes no difference: neither starves. */
__attribute__((unused)) static int
lks_pthread_rwlock_init__(lks_pthread_rwlock *lock,
                          const pthread_rwlockattr_t *attributes LKS_AND_AT__)
{
    int value;
#ifdef LKS_DEBUG
    /* Where that is refused, the lock and its readers stay. */
    if (lks_check_init(&lock->lock__, LKS_KIND_RWLOCK__, 0, NULL, file, line) == 0)
#else
    lks_rwlock_init(&lock->lock__);
#endif
        __atomic_store_n(&lock->stamp__, 0, __ATOMIC_RELAXED);
    if (attributes && pthread_rwlockattr_getpshared(attributes, &value) == 0 &&
        value != PTHREAD_PROCESS_PRIVATE)
        return ENOTSUP;
    return 0;
}

LKS_INLINE__ int lks_pthread_rwlock_destroy__(lks_pthread_rwlock *lock LKS_AND_AT__)
{
    int busy = lks_rwlock_is_locked(&lock->lock__);
#ifdef LKS_DEBUG
    lks_rwlock_destroy_dbg(&lock->lock__, file, line);
#else
    if (!busy)
        lks_rwlock_destroy(&lock->lock__);
#endif
    return busy ? EBUSY : 0;
}

LKS_INLINE__ int lks_pthread_rwlock_tryrdlock__(lks_pthread_rwlock *lock LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    if (LKS_ON__(lks_rwlock_tryread, &lock->lock__)) {
        lks_pthread_has_read__(lock);
        return 0;
    }
    if (lks_pthread_reads_again__(lock))
        return 0;
    return lks_pthread_rwlock_is_full__(lock) ? EAGAIN : EBUSY;
}

LKS_INLINE__ int lks_pthread_rwlock_rdlock__(lks_pthread_rwlock *lock LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
#ifdef LKS_DEBUG
    /* The first time is checked as one that may wait. */
    int at_once = lks_pthread_note__(lock) != lks_pthread_mine__.count;
#else
    int at_once = 1;
#endif
    if (at_once && LKS_LIKELY__(lks_pthread_rwlock_tryrdlock__(lock LKS_AND_PLACE__) == 0))
        return 0;
    if (lks_pthread_rwlock_writes__(lock))
        return EDEADLK;
    if (LKS_UNLIKELY__(lks_pthread_rwlock_is_full__(lock)))
        return EAGAIN;
    LKS_ON__(lks_rwlock_read, &lock->lock__);
    lks_pthread_has_read__(lock);
    return 0;
}

LKS_INLINE__ int lks_pthread_rwlock_wrlock__(lks_pthread_rwlock *lock LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    if (LKS_UNLIKELY__(lks_pthread_rwlock_writes__(lock) ||
                       lks_pthread_note__(lock) != lks_pthread_mine__.count))
        return EDEADLK;
    LKS_ON__(lks_rwlock_write, &lock->lock__);
    return 0;
}

LKS_INLINE__ int lks_pthread_rwlock_trywrlock__(lks_pthread_rwlock *lock LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_ON__(lks_rwlock_trywrite, &lock->lock__) ? 0 : EBUSY;
}

LKS_INLINE__ int lks_pthread_rwlock_unlock__(lks_pthread_rwlock *lock LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    /* While the caller has it in one way nobody has it in the other. */
    if (!(lks_pthread_rwlock_word__(lock) & LKS_RWLOCK_SHARED__))
        LKS_ON__(lks_rwlock_unwrite, &lock->lock__);
    else if (lks_pthread_releases__(lock))
        LKS_ON__(lks_rwlock_unread, &lock->lock__);
    return 0;
}

__attribute__((unused)) static int
lks_pthread_rwlock_clockrdlock__(lks_pthread_rwlock *lock, clockid_t clock,
                                 const struct timespec *deadline LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    int error = lks_pthread_rwlock_tryrdlock__(lock LKS_AND_PLACE__);
    uint64_t left;
    if (error == 0)
        return 0;
    for (;;) {
        int result;
        error = lks_pthread_left__(clock, deadline, &left);
        if (error != 0)
            return error;
        result = LKS_ON__(lks_rwlock_read_timeout, &lock->lock__, left);
        if (result == 0) {
            lks_pthread_has_read__(lock);
            return 0;
        }
        if (result != -ETIMEDOUT)
            return -result;
    }
}

__attribute__((unused)) static int
lks_pthread_rwlock_clockwrlock__(lks_pthread_rwlock *lock, clockid_t clock,
                                 const struct timespec *deadline LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    uint64_t left;
    if (lks_pthread_rwlock_trywrlock__(lock LKS_AND_PLACE__) == 0)
        return 0;
    if (lks_pthread_note__(lock) != lks_pthread_mine__.count)
        return EDEADLK;
    for (;;) {
        int result, error = lks_pthread_left__(clock, deadline, &left);
        if (error != 0)
            return error;
        result = LKS_ON__(lks_rwlock_write_timeout, &lock->lock__, left);
        if (result != -ETIMEDOUT)
            return -result;
    }
}

LKS_INLINE__ int lks_pthread_rwlock_timedrdlock__(lks_pthread_rwlock *lock,
                                                  const struct timespec *deadline LKS_AND_AT__)
{
    return lks_pthread_rwlock_clockrdlock__(lock, CLOCK_REALTIME, deadline LKS_AND_PLACE__);
}

LKS_INLINE__ int lks_pthread_rwlock_timedwrlock__(lks_pthread_rwlock *lock,
                                                  const struct timespec *deadline LKS_AND_AT__)
{
    return lks_pthread_rwlock_clockwrlock__(lock, CLOCK_REALTIME, deadline LKS_AND_PLACE__);
}

#endif

#endif
