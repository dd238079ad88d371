/*
 * Locks in memory that processes share, which survive their holders: a mutex, a
 * reader-writer lock, a counting semaphore, a condition variable.
 *
 * They may lie at any multiple of 8 in the root of a segment (shm.h); zeroes are a free
 * lock. A process that dies, at whichever instruction, leaves none locked, however many
 * it had: the next one gets it and is told, by -EOWNERDEAD. That one looks what was
 * left, puts it in order, and says so (`consistent`); what is released without that is
 * -ENOTRECOVERABLE from then on.
 *
 * The forms of waiting are those of lks_mutex. All of them, and what only tries, may
 * return besides
 *   -EDEADLK          the calling thread has it already (or a peer has written so)
 *   -EFAULT           not in a segment that this process has open
 *   -EUSERS, -EMFILE, -ENOMEM, -ENOSYS, -EBUSY, -E2BIG, -ENOLCK, or what the system says
 *                     the thread cannot take part: lks_shm_reason() says why
 * and nothing is held then. After fork the child holds nothing of what its parent does.
 *
 * Clang's -Wthread-safety is not told: it knows no acquisition with two ways to succeed.
 */
#ifndef LOCKSTEAD_SHARED_H
#define LOCKSTEAD_SHARED_H

#include "base.h"
#include "shared-mutex.h"
#include "shm.h"

/* Many readers or one writer. Zeroes: free. */
typedef struct lks_shared_rwlock {
    uint32_t word__ __attribute__((aligned(8)));
    uint32_t heir__;
} lks_shared_rwlock;

/* Units, of which a dead holder's are free again. Zeroes: without units. */
typedef struct lks_shared_semaphore {
    uint32_t word__ __attribute__((aligned(8)));
    uint32_t heir__;
    uint32_t total__;
    uint32_t free__;
    uint32_t more__[6];
} lks_shared_semaphore;

/* For a shared mutex of the same segment. Zeroes: nobody waits. */
typedef struct lks_shared_cond {
    uint32_t count__ __attribute__((aligned(8)));
    uint32_t spare__;
} lks_shared_cond;

LKS_ASSERT__(shared_rwlock_size, sizeof(lks_shared_rwlock) == 8);
LKS_ASSERT__(shared_semaphore_size, sizeof(lks_shared_semaphore) == 40);
LKS_ASSERT__(shared_semaphore_free, offsetof(lks_shared_semaphore, free__) == 12);
LKS_ASSERT__(shared_cond_size, sizeof(lks_shared_cond) == 8);

LKS_BEGIN_DECLS__

/* What the inline functions below call. */
int lks_shared_rwlock_read_how(lks_shared_rwlock *lock, unsigned how, uint64_t argument);
int lks_shared_rwlock_tryread_slow(lks_shared_rwlock *lock);
int lks_shared_rwlock_write_how(lks_shared_rwlock *lock, unsigned how, uint64_t argument);
int lks_shared_rwlock_trywrite_slow(lks_shared_rwlock *lock);
int lks_shared_rwlock_unlock_slow(lks_shared_rwlock *lock);
int lks_shared_semaphore_acquire_how(lks_shared_semaphore *semaphore, uint32_t units,
                                     unsigned how, uint64_t argument);
int lks_shared_semaphore_tryacquire_slow(lks_shared_semaphore *semaphore, uint32_t units);
int lks_shared_semaphore_release_slow(lks_shared_semaphore *semaphore, uint32_t units);
int lks_shared_semaphore_add_slow(lks_shared_semaphore *semaphore, uint32_t units);
int lks_shared_cond_wait_how(lks_shared_cond *cond, lks_shared_mutex *mutex, unsigned how,
                             uint64_t argument);
int lks_shared_cond_notify_slow(lks_shared_cond *cond, int all);

/* ---- the reader-writer lock ---- */

LKS_INLINE__ void lks_shared_rwlock_init(lks_shared_rwlock *lock)
{
    __atomic_store_n(&lock->heir__, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->word__, 0, __ATOMIC_RELEASE);
}

/* Takes the lock for reading. -EOWNERDEAD: a writer died, and the caller has the lock
 * alone, to repair what it left, although it asked to read. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_rwlock_read(lks_shared_rwlock *lock)
{
    return lks_shared_got__(lks_shared_rwlock_read_how(lock, LKS_FOREVER__, 0), lock);
}

/* Does for this lock what lks_shared_mutex_trylock does. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_rwlock_tryread(lks_shared_rwlock *lock)
{
    return lks_shared_tried__(lks_shared_rwlock_tryread_slow(lock), lock);
}

/* Does the same, and returns -EINTR if a signal handler ran on this thread while it
 * slept. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_rwlock_read_interruptible(lks_shared_rwlock *lock)
{
    return lks_shared_got__(lks_shared_rwlock_read_how(lock, LKS_INTERRUPTIBLE__, 0), lock);
}

/* Does the same, and returns -EINTR if the token was fired. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_rwlock_read_killable(lks_shared_rwlock *lock, const lks_cancel *token)
{
    return lks_shared_got__(lks_shared_rwlock_read_how(lock, LKS_KILLABLE__, LKS_ADDRESS__(token)),
                            lock);
}

/* Does the same, and returns -ETIMEDOUT when so many nanoseconds are over. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_rwlock_read_timeout(lks_shared_rwlock *lock, uint64_t nanoseconds)
{
    return lks_shared_got__(lks_shared_rwlock_read_how(lock, LKS_TIMEOUT__, nanoseconds), lock);
}

/* Does the same, and returns -ETIMEDOUT at this time of CLOCK_MONOTONIC, -EINVAL if it
 * is no time. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_rwlock_read_until(lks_shared_rwlock *lock, const struct timespec *deadline)
{
    return lks_shared_got__(lks_shared_rwlock_read_how(lock, LKS_UNTIL__, LKS_ADDRESS__(deadline)),
                            lock);
}

/* Takes the lock for writing. -EDEADLK also if the calling thread reads. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_rwlock_write(lks_shared_rwlock *lock)
{
    return lks_shared_got__(lks_shared_rwlock_write_how(lock, LKS_FOREVER__, 0), lock);
}

/* Does for this lock what lks_shared_mutex_trylock does. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_rwlock_trywrite(lks_shared_rwlock *lock)
{
    return lks_shared_tried__(lks_shared_rwlock_trywrite_slow(lock), lock);
}

/* Does the same, and returns -EINTR if a signal handler ran on this thread while it
 * slept. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_rwlock_write_interruptible(lks_shared_rwlock *lock)
{
    return lks_shared_got__(lks_shared_rwlock_write_how(lock, LKS_INTERRUPTIBLE__, 0), lock);
}

/* Does the same, and returns -EINTR if the token was fired. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_rwlock_write_killable(lks_shared_rwlock *lock, const lks_cancel *token)
{
    return lks_shared_got__(lks_shared_rwlock_write_how(lock, LKS_KILLABLE__, LKS_ADDRESS__(token)),
                            lock);
}

/* Does the same, and returns -ETIMEDOUT when so many nanoseconds are over. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_rwlock_write_timeout(lks_shared_rwlock *lock, uint64_t nanoseconds)
{
    return lks_shared_got__(lks_shared_rwlock_write_how(lock, LKS_TIMEOUT__, nanoseconds), lock);
}

/* Does the same, and returns -ETIMEDOUT at this time of CLOCK_MONOTONIC, -EINVAL if it
 * is no time. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_rwlock_write_until(lks_shared_rwlock *lock, const struct timespec *deadline)
{
    return lks_shared_got__(lks_shared_rwlock_write_how(lock, LKS_UNTIL__, LKS_ADDRESS__(deadline)),
                            lock);
}

/* Releases what the calling thread has of it, for reading or writing: 0, or -EPERM if that
 * is nothing. */
LKS_INLINE__ int lks_shared_rwlock_unlock(lks_shared_rwlock *lock)
{
    LKS_RELEASING__(lock);
    return lks_shared_rwlock_unlock_slow(lock);
}

/* Does for this lock what lks_shared_mutex_consistent does. */
int lks_shared_rwlock_consistent(lks_shared_rwlock *lock);

/* Does for this lock what lks_shared_mutex_is_inconsistent does. */
LKS_INLINE__ int lks_shared_rwlock_is_inconsistent(const lks_shared_rwlock *lock)
{
    return (__atomic_load_n(&lock->word__, __ATOMIC_RELAXED) & LKS_SHARED_INCONSISTENT__) != 0;
}

/* ---- the semaphore ----
 *
 * Units belong to the thread that has taken them, which gives them back or uses them up;
 * when it dies they are free again. So `release` is not for others: who brings units that
 * nobody had calls `add`. */

/* Makes a semaphore with so many units, all free. With `reports` not 0, who next takes
 * units is told how many the dead had. */
void lks_shared_semaphore_init(lks_shared_semaphore *semaphore, uint32_t units, int reports);

LKS_INLINE__ int lks_shared_semaphore_take__(lks_shared_semaphore *semaphore, uint32_t units,
                                             unsigned how, uint64_t argument)
{
    return lks_shared_got__(lks_shared_semaphore_acquire_how(semaphore, units, how, argument),
                            semaphore);
}

/* Takes units: 0, or how many the dead had, of which nobody else is told; negative as all
 * others, and -EAGAIN if the thread has units of as many semaphores as there are claims
 * (lks_shm_options). */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_semaphore_acquire(lks_shared_semaphore *semaphore,
                                                              uint32_t units)
{
    return lks_shared_semaphore_take__(semaphore, units, LKS_FOREVER__, 0);
}

/* Does the same if that needs no wait for units; otherwise -EBUSY. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_semaphore_tryacquire(lks_shared_semaphore *semaphore,
                                                                 uint32_t units)
{
    return lks_shared_got__(lks_shared_semaphore_tryacquire_slow(semaphore, units), semaphore);
}

/* Does the same, and returns -EINTR if a signal handler ran on this thread while it
 * slept. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_semaphore_acquire_interruptible(lks_shared_semaphore *semaphore, uint32_t units)
{
    return lks_shared_semaphore_take__(semaphore, units, LKS_INTERRUPTIBLE__, 0);
}

/* Does the same, and returns -EINTR if the token was fired. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_semaphore_acquire_killable(lks_shared_semaphore *semaphore, uint32_t units,
                                      const lks_cancel *token)
{
    return lks_shared_semaphore_take__(semaphore, units, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Does the same, and returns -ETIMEDOUT when so many nanoseconds are over. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_semaphore_acquire_timeout(lks_shared_semaphore *semaphore, uint32_t units,
                                     uint64_t nanoseconds)
{
    return lks_shared_semaphore_take__(semaphore, units, LKS_TIMEOUT__, nanoseconds);
}

/* Does the same, and returns -ETIMEDOUT at this time of CLOCK_MONOTONIC, -EINVAL if it
 * is no time. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_semaphore_acquire_until(lks_shared_semaphore *semaphore, uint32_t units,
                                   const struct timespec *deadline)
{
    return lks_shared_semaphore_take__(semaphore, units, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Gives units back: 0, or -EPERM if the calling thread has fewer. */
LKS_INLINE__ int lks_shared_semaphore_release(lks_shared_semaphore *semaphore, uint32_t units)
{
    LKS_RELEASING__(semaphore);
    return lks_shared_semaphore_release_slow(semaphore, units);
}

/* Uses units up, so that nobody gets them any more: 0, or -EPERM if the calling thread has
 * fewer. */
int lks_shared_semaphore_consume(lks_shared_semaphore *semaphore, uint32_t units);

/* Adds units that nobody had: 0, or -EOVERFLOW if there would be 2^32. */
LKS_INLINE__ int lks_shared_semaphore_add(lks_shared_semaphore *semaphore, uint32_t units)
{
    LKS_RELEASING__(semaphore);
    return lks_shared_semaphore_add_slow(semaphore, units);
}

/* Returns all units, and the free ones among them, at some moment during the call.
 * Those of the dead are counted as free when somebody wants them. */
LKS_INLINE__ uint32_t lks_shared_semaphore_total(const lks_shared_semaphore *semaphore)
{
    return __atomic_load_n(&semaphore->total__, __ATOMIC_RELAXED);
}

LKS_INLINE__ uint32_t lks_shared_semaphore_free(const lks_shared_semaphore *semaphore)
{
    return __atomic_load_n(&semaphore->free__, __ATOMIC_RELAXED);
}

/* ---- the condition variable ---- */

LKS_INLINE__ void lks_shared_cond_init(lks_shared_cond *cond)
{
    __atomic_store_n(&cond->count__, 0, __ATOMIC_RELAXED);
}

LKS_INLINE__ int lks_shared_cond_wait__(lks_shared_cond *cond, lks_shared_mutex *mutex,
                                        unsigned how, uint64_t argument)
{
    int result;
    LKS_RELEASING__(mutex);
    result = lks_shared_cond_wait_how(cond, mutex, how, argument);
    if (result != -ENOTRECOVERABLE && result != -EPERM && result != -EFAULT)
        LKS_ACQUIRED__(mutex);
    return result;
}

/* Releases the mutex, waits to be notified, and takes the mutex back: 0, also without
 * having been notified. -EOWNERDEAD: the mutex is taken back as one whose owner died
 * meanwhile. The mutex is not taken back after -ENOTRECOVERABLE, -EFAULT, and -EPERM: the
 * calling thread did not have it. */
LKS_NODISCARD__ LKS_INLINE__ int lks_shared_cond_wait(lks_shared_cond *cond,
                                                      lks_shared_mutex *mutex)
{
    return lks_shared_cond_wait__(cond, mutex, LKS_FOREVER__, 0);
}

/* Does the same, and returns -EINTR if a signal handler ran on this thread while it
 * slept. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_cond_wait_interruptible(lks_shared_cond *cond, lks_shared_mutex *mutex)
{
    return lks_shared_cond_wait__(cond, mutex, LKS_INTERRUPTIBLE__, 0);
}

/* Does the same, and returns -EINTR if the token was fired. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_cond_wait_killable(lks_shared_cond *cond, lks_shared_mutex *mutex,
                              const lks_cancel *token)
{
    return lks_shared_cond_wait__(cond, mutex, LKS_KILLABLE__, LKS_ADDRESS__(token));
}

/* Does the same, and returns -ETIMEDOUT when so many nanoseconds are over. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_cond_wait_timeout(lks_shared_cond *cond, lks_shared_mutex *mutex, uint64_t nanoseconds)
{
    return lks_shared_cond_wait__(cond, mutex, LKS_TIMEOUT__, nanoseconds);
}

/* Does the same, and returns -ETIMEDOUT at this time of CLOCK_MONOTONIC, -EINVAL if it
 * is no time. */
LKS_NODISCARD__ LKS_INLINE__ int
lks_shared_cond_wait_until(lks_shared_cond *cond, lks_shared_mutex *mutex,
                           const struct timespec *deadline)
{
    return lks_shared_cond_wait__(cond, mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline));
}

/* Wakes one waiter: 0. The caller may or may not have the mutex. */
LKS_INLINE__ int lks_shared_cond_notify_one(lks_shared_cond *cond)
{
    return lks_shared_cond_notify_slow(cond, 0);
}

/* Wakes all waiters: 0. */
LKS_INLINE__ int lks_shared_cond_notify_all(lks_shared_cond *cond)
{
    return lks_shared_cond_notify_slow(cond, 1);
}

LKS_END_DECLS__

#endif
