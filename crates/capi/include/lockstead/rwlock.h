/*
 * The reader-writer lock: 16 bytes, many readers or one writer. Neither side
 * starves. Reading again on a thread that reads may wait for ever: a writer may
 * have been promised the lock in between. It counts to 1048575 readers. No process
 * has so many threads: where a call finds as many, some were never released, so that
 * it would wait for ever, and it returns an error or aborts.
 */
#if defined(LKS_DEBUG) && !defined(LOCKSTEAD_CHECK_H)
#include "check.h" /* which includes this one */
#endif
#ifndef LOCKSTEAD_RWLOCK_H
#define LOCKSTEAD_RWLOCK_H

#include "mutex.h"

/* Zeroes: free. May not be copied or moved while anybody uses it. */
typedef struct LKS_TSA__(capability("rwlock")) lks_rwlock {
    uint64_t word__ __attribute__((aligned(8)));
    uint64_t room__;
} lks_rwlock;
#define LKS_RWLOCK_INIT LKS_ZEROES__

LKS_ASSERT__(rwlock_size, sizeof(lks_rwlock) == 16);
LKS_ASSERT__(rwlock_align, __alignof__(lks_rwlock) == 8);
LKS_ASSERT__(rwlock_word, offsetof(lks_rwlock, word__) == 0);
LKS_ASSERT__(rwlock_room, offsetof(lks_rwlock, room__) == 8);

/* In the word: the subject counts readers; some of them may sleep; promised to somebody;
 * the slot of the first that sleeps in the waiting room. */
#define LKS_RWLOCK_SHARED__ ((uint64_t)1 << 20)
#define LKS_RWLOCK_ASLEEP__ ((uint64_t)1 << 21)
#define LKS_RWLOCK_PROMISED__ ((uint64_t)1 << 22)
#define LKS_RWLOCK_NEXT__ ((uint64_t)LKS_MAX_SLOTS__ << 32)

LKS_BEGIN_DECLS__

void lks_rwlock_read_slow(lks_rwlock *lock);
int lks_rwlock_read_how(lks_rwlock *lock, unsigned how, uint64_t argument);
void lks_rwlock_unread_slow(lks_rwlock *lock);
void lks_rwlock_write_slow(lks_rwlock *lock);
int lks_rwlock_write_how(lks_rwlock *lock, unsigned how, uint64_t argument);
int lks_rwlock_trywrite_slow(lks_rwlock *lock);
void lks_rwlock_unwrite_slow(lks_rwlock *lock);
void lks_rwlock_downgrade_slow(lks_rwlock *lock);

/* Makes a free lock. */
LKS_INLINE__ void lks_rwlock_init(lks_rwlock *lock)
{
    __atomic_store_n(&lock->word__, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->room__, 0, __ATOMIC_RELAXED);
}

/* Ends a lock that nobody uses. Only the checking build, and a lock with a name,
 * need it. */
void lks_rwlock_destroy(lks_rwlock *lock);

LKS_INLINE__ int lks_rwlock_take_shared__(lks_rwlock *lock)
{
    uint64_t seen = __atomic_load_n(&lock->word__, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t subject = seen & LKS_MAX_SLOTS__;
        int room = subject == 0 || ((seen & LKS_RWLOCK_SHARED__) && subject < LKS_MAX_SLOTS__);
        if (!room || (seen & LKS_RWLOCK_PROMISED__))
            return 0;
        if (__atomic_compare_exchange_n(&lock->word__, &seen, (seen | LKS_RWLOCK_SHARED__) + 1, 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            LKS_ACQUIRED__(lock);
            return 1;
        }
    }
}

LKS_INLINE__ int lks_rwlock_take__(lks_rwlock *lock)
{
    uint32_t me = lks_self__;
    uint64_t idle = 0;
    if (LKS_LIKELY__(me != 0 && __atomic_compare_exchange_n(&lock->word__, &idle, (uint64_t)me, 0,
                                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))) {
        LKS_ACQUIRED__(lock);
        return 1;
    }
    return 0;
}

LKS_INLINE__ int lks_rwlock_take_shared_how__(lks_rwlock *lock, unsigned how, uint64_t argument)
{
    int result;
    if (lks_rwlock_take_shared__(lock))
        return 0;
    result = lks_rwlock_read_how(lock, how, argument);
    if (result == 0)
        LKS_ACQUIRED__(lock);
    return result;
}

LKS_INLINE__ int lks_rwlock_take_how__(lks_rwlock *lock, unsigned how, uint64_t argument)
{
    int result;
    if (lks_rwlock_take__(lock))
        return 0;
    result = lks_rwlock_write_how(lock, how, argument);
    if (result == 0)
        LKS_ACQUIRED__(lock);
    return result;
}

/* Takes the lock for reading, waiting as long as it takes. Aborts with a message
 * if the calling thread writes, a thread that fork has left behind does, or
 * 1048575 read. */
LKS_INLINE__ void lks_rwlock_read(lks_rwlock *lock) LKS_TSA__(acquire_shared_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    if (LKS_UNLIKELY__(!lks_rwlock_take_shared__(lock))) {
        lks_rwlock_read_slow(lock);
        LKS_ACQUIRED__(lock);
    }
}

/* Takes the lock for reading if that needs no waiting: 1, otherwise 0. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_tryread(lks_rwlock *lock)
    LKS_TSA__(try_acquire_shared_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rwlock_take_shared__(lock);
}

/* Takes it for reading unless a signal handler runs on this thread while it sleeps:
 * 0, -EINTR, or as all forms below -EDEADLK if the caller writes, -EOWNERDEAD if
 * a thread does that fork has left behind, and -EAGAIN if 1048575 read. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_read_interruptible(lks_rwlock *lock)
    LKS_TSA__(try_acquire_shared_capability(0, lock))
{
    return lks_rwlock_take_shared_how__(lock, LKS_INTERRUPTIBLE__, 0);
}

/* Takes it for reading unless `token` is fired: 0 or -EINTR. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_read_killable(lks_rwlock *lock, const lks_cancel *token)
    LKS_TSA__(try_acquire_shared_capability(0, lock))
{
    return lks_rwlock_take_shared_how__(lock, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Takes it for reading, waiting so many nanoseconds at most: 0 or -ETIMEDOUT. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_read_timeout(lks_rwlock *lock, uint64_t nanoseconds)
    LKS_TSA__(try_acquire_shared_capability(0, lock))
{
    return lks_rwlock_take_shared_how__(lock, LKS_TIMEOUT__, nanoseconds);
}

/* Takes it for reading, waiting until this time of CLOCK_MONOTONIC at most. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_read_until(lks_rwlock *lock,
                                                       const struct timespec *deadline)
    LKS_TSA__(try_acquire_shared_capability(0, lock))
{
    return lks_rwlock_take_shared_how__(lock, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Takes the lock for writing, waiting as long as it takes. Aborts as
 * `lks_rwlock_read` does. */
LKS_INLINE__ void lks_rwlock_write(lks_rwlock *lock) LKS_TSA__(acquire_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    if (LKS_UNLIKELY__(!lks_rwlock_take__(lock))) {
        lks_rwlock_write_slow(lock);
        LKS_ACQUIRED__(lock);
    }
}

/* Takes the lock for writing if that needs no waiting: 1, otherwise 0. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_trywrite(lks_rwlock *lock)
    LKS_TSA__(try_acquire_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    if (lks_rwlock_take__(lock))
        return 1;
    if (!lks_rwlock_trywrite_slow(lock))
        return 0;
    LKS_ACQUIRED__(lock);
    return 1;
}

/* Takes it for writing unless a signal handler runs on this thread while it sleeps:
 * 0, -EINTR, -EDEADLK, -EOWNERDEAD. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_write_interruptible(lks_rwlock *lock)
    LKS_TSA__(try_acquire_capability(0, lock))
{
    return lks_rwlock_take_how__(lock, LKS_INTERRUPTIBLE__, 0);
}

/* Takes it for writing unless `token` is fired: 0 or -EINTR. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_write_killable(lks_rwlock *lock,
                                                           const lks_cancel *token)
    LKS_TSA__(try_acquire_capability(0, lock))
{
    return lks_rwlock_take_how__(lock, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Takes it for writing, waiting so many nanoseconds at most: 0 or -ETIMEDOUT. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_write_timeout(lks_rwlock *lock, uint64_t nanoseconds)
    LKS_TSA__(try_acquire_capability(0, lock))
{
    return lks_rwlock_take_how__(lock, LKS_TIMEOUT__, nanoseconds);
}

/* Takes it for writing, waiting until this time of CLOCK_MONOTONIC at most. */
LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_write_until(lks_rwlock *lock,
                                                        const struct timespec *deadline)
    LKS_TSA__(try_acquire_capability(0, lock))
{
    return lks_rwlock_take_how__(lock, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Releases a hold for reading. */
LKS_INLINE__ void lks_rwlock_unread(lks_rwlock *lock) LKS_TSA__(release_shared_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    LKS_RELEASING__(lock);
    lks_rwlock_unread_slow(lock);
}

/* Releases the hold for writing. */
LKS_INLINE__ void lks_rwlock_unwrite(lks_rwlock *lock) LKS_TSA__(release_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    uint64_t mine = lks_self__;
    LKS_RELEASING__(lock);
    if (LKS_UNLIKELY__(!__atomic_compare_exchange_n(&lock->word__, &mine, 0, 0, __ATOMIC_RELEASE,
                                                   __ATOMIC_RELAXED))) {
        LKS_RELEASING__(lock); /* see low-half.h */
        lks_rwlock_unwrite_slow(lock);
    }
}

/* Turns the hold for writing into one for reading, with no writer in between. */
LKS_INLINE__ void lks_rwlock_downgrade(lks_rwlock *lock) LKS_TSA__(no_thread_safety_analysis)
{
    LKS_RELEASING__(lock);
    lks_rwlock_downgrade_slow(lock);
}

/* Tells whether anybody holds the lock, at some moment during the call. */
LKS_INLINE__ int lks_rwlock_is_locked(const lks_rwlock *lock)
{
    return (__atomic_load_n(&lock->word__, __ATOMIC_RELAXED) & LKS_MAX_SLOTS__) != 0;
}

/* Tells whether anybody sleeps for the lock, at some moment during the call. One that
 * still spins for it is not seen. */
LKS_INLINE__ int lks_rwlock_is_contended(const lks_rwlock *lock)
{
    return (__atomic_load_n(&lock->word__, __ATOMIC_RELAXED) &
            (LKS_RWLOCK_ASLEEP__ | LKS_RWLOCK_NEXT__)) != 0;
}

LKS_END_DECLS__

#endif
