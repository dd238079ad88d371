/*
 * The part of `kernel.h` that is the kernel's linux/rwsem.h.
 */
#ifndef LOCKSTEAD_KERNEL_H
#include "kernel.h" /* the token of killable waits; includes this one */
#endif
#ifndef LOCKSTEAD_KERNEL_RWSEM_H
#define LOCKSTEAD_KERNEL_RWSEM_H

#include "rwlock.h"

#include <stdio.h>

struct LKS_TSA__(capability("rw_semaphore")) rw_semaphore {
    lks_rwlock lks__;
};
#define __RWSEM_INITIALIZER(name) {LKS_RWLOCK_INIT}
#define DECLARE_RWSEM(name) struct rw_semaphore name = __RWSEM_INITIALIZER(name)

LKS_INLINE__ void init_rwsem(struct rw_semaphore *sem)
{
    lks_rwlock_init(&sem->lks__);
}

LKS_INLINE__ void down_read(struct rw_semaphore *sem) LKS_TSA__(acquire_shared_capability(sem))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_rwlock_read(&sem->lks__);
}

LKS_NODISCARD__ LKS_INLINE__ int down_read_interruptible(struct rw_semaphore *sem)
    LKS_TSA__(try_acquire_shared_capability(0, sem)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rwlock_read_interruptible(&sem->lks__);
}

LKS_NODISCARD__ LKS_INLINE__ int down_read_killable(struct rw_semaphore *sem)
    LKS_TSA__(try_acquire_shared_capability(0, sem)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rwlock_read_killable(&sem->lks__, lockstead_token__);
}

LKS_NODISCARD__ LKS_INLINE__ int down_read_trylock(struct rw_semaphore *sem)
    LKS_TSA__(try_acquire_shared_capability(1, sem)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rwlock_tryread(&sem->lks__);
}

LKS_INLINE__ void up_read(struct rw_semaphore *sem) LKS_TSA__(release_shared_capability(sem))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_rwlock_unread(&sem->lks__);
}

LKS_INLINE__ void down_write(struct rw_semaphore *sem) LKS_TSA__(acquire_capability(sem))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_rwlock_write(&sem->lks__);
}

LKS_NODISCARD__ LKS_INLINE__ int down_write_killable(struct rw_semaphore *sem)
    LKS_TSA__(try_acquire_capability(0, sem)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rwlock_write_killable(&sem->lks__, lockstead_token__);
}

LKS_NODISCARD__ LKS_INLINE__ int down_write_trylock(struct rw_semaphore *sem)
    LKS_TSA__(try_acquire_capability(1, sem)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rwlock_trywrite(&sem->lks__);
}

LKS_INLINE__ void up_write(struct rw_semaphore *sem) LKS_TSA__(release_capability(sem))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_rwlock_unwrite(&sem->lks__);
}

LKS_INLINE__ void downgrade_write(struct rw_semaphore *sem) LKS_TSA__(no_thread_safety_analysis)
{
    lks_rwlock_downgrade(&sem->lks__);
}

LKS_INLINE__ int rwsem_is_locked(const struct rw_semaphore *sem)
{
    return lks_rwlock_is_locked(&sem->lks__);
}

/* Tells whether anybody sleeps for it. */
LKS_INLINE__ int rwsem_is_contended(const struct rw_semaphore *sem)
{
    return lks_rwlock_is_contended(&sem->lks__);
}

/* ---- nested, in another lock, and for another thread ---- */

LKS_INLINE__ void down_read_nested(struct rw_semaphore *sem, int subclass)
    LKS_TSA__(acquire_shared_capability(sem)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)subclass;
    down_read(sem);
}

LKS_NODISCARD__ LKS_INLINE__ int down_read_killable_nested(struct rw_semaphore *sem, int subclass)
    LKS_TSA__(try_acquire_shared_capability(0, sem)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)subclass;
    return down_read_killable(sem);
}

LKS_INLINE__ void down_write_nested(struct rw_semaphore *sem, int subclass)
    LKS_TSA__(acquire_capability(sem)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)subclass;
    down_write(sem);
}

LKS_NODISCARD__ LKS_INLINE__ int down_write_killable_nested(struct rw_semaphore *sem, int subclass)
    LKS_TSA__(try_acquire_capability(0, sem)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)subclass;
    return down_write_killable(sem);
}

#define down_write_nest_lock(sem, nest_lock) (LKS_NEST__(nest_lock), down_write(sem))

/* A hold for reading that another thread may release: the checking build does not look
 * for it with the thread. The names in parentheses are the functions, where others are
 * macros. */
LKS_INLINE__ void down_read_non_owner(struct rw_semaphore *sem)
    LKS_TSA__(no_thread_safety_analysis)
{
    (lks_rwlock_read)(&sem->lks__);
}

LKS_INLINE__ void up_read_non_owner(struct rw_semaphore *sem) LKS_TSA__(no_thread_safety_analysis)
{
    (lks_rwlock_unread)(&sem->lks__);
}

/* ---- assertions, which print and go on ---- */

__attribute__((cold, unused)) static void lks_rwsem_not_held__(const struct rw_semaphore *sem,
                                                               const char *how, const char *file,
                                                               unsigned line)
{
    fprintf(stderr, "lockstead: %s:%u: nobody %s the rw_semaphore at %p, which the code here "
                    "relies on\n", file, line, how, (const void *)sem);
}

LKS_INLINE__ void lks_rwsem_assert__(const struct rw_semaphore *sem, int writes, const char *file,
                                     unsigned line)
{
    uint64_t word = __atomic_load_n(&sem->lks__.word__, __ATOMIC_RELAXED);
    if (LKS_UNLIKELY__(!(word & LKS_MAX_SLOTS__) || (writes && (word & LKS_RWLOCK_SHARED__))))
        lks_rwsem_not_held__(sem, writes ? "writes under" : "holds", file, line);
}

/* By anybody. */
#define rwsem_assert_held_nolockdep(sem) lks_rwsem_assert__(sem, 0, __FILE__, __LINE__)
#define rwsem_assert_held_write_nolockdep(sem) lks_rwsem_assert__(sem, 1, __FILE__, __LINE__)
/* By anybody; in the checking build by the calling thread. */
#ifdef LKS_DEBUG
#define rwsem_assert_held(sem) lockdep_assert_held(sem)
#define rwsem_assert_held_write(sem) lockdep_assert_held_write(sem)
#else
#define rwsem_assert_held(sem) rwsem_assert_held_nolockdep(sem)
#define rwsem_assert_held_write(sem) rwsem_assert_held_write_nolockdep(sem)
#endif

#endif
