/*
 * The kernel's names for lockstead's locks, so that code written for the kernel
 * compiles in user space. Opt in by including it; it takes plain words as names.
 *
 * What differs: a killable wait ends with the process only, or by the token given
 * to `lockstead_kill_token`; a jiffy is 1/HZ second; there are no interrupts.
 */
#ifndef LOCKSTEAD_KERNEL_H
#define LOCKSTEAD_KERNEL_H

#include "cond.h"
#include "mutex.h"
#include "rwlock.h"
#include "semaphore.h"
#include "ww.h"

#ifndef HZ
#define HZ 1000
#endif
#define MAX_SCHEDULE_TIMEOUT ((long)(~0UL >> 1))

/* ---- what the calls below need of linux/atomic.h ---- */

typedef struct {
    int counter;
} atomic_t;
#define ATOMIC_INIT(value) {(value)}

LKS_INLINE__ int atomic_read(const atomic_t *count)
{
    return __atomic_load_n(&count->counter, __ATOMIC_RELAXED);
}

LKS_INLINE__ void atomic_set(atomic_t *count, int value)
{
    __atomic_store_n(&count->counter, value, __ATOMIC_RELAXED);
}

LKS_INLINE__ void atomic_inc(atomic_t *count)
{
    (void)__atomic_fetch_add(&count->counter, 1, __ATOMIC_RELAXED);
}

LKS_INLINE__ int atomic_dec_and_test(atomic_t *count)
{
    return __atomic_sub_fetch(&count->counter, 1, __ATOMIC_ACQ_REL) == 0;
}

/* ---- linux/mutex.h ---- */

struct LKS_TSA__(capability("mutex")) mutex {
    lks_mutex lks__;
};
#define __MUTEX_INITIALIZER(name) {LKS_MUTEX_INIT}
#define DEFINE_MUTEX(name) struct mutex name = __MUTEX_INITIALIZER(name)

LKS_INLINE__ void mutex_init(struct mutex *lock)
{
    lks_mutex_init(&lock->lks__);
}

LKS_INLINE__ void mutex_destroy(struct mutex *lock)
{
    lks_mutex_destroy(&lock->lks__);
}

LKS_INLINE__ void mutex_lock(struct mutex *lock) LKS_TSA__(acquire_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_mutex_lock(&lock->lks__);
}

LKS_INLINE__ void mutex_lock_nested(struct mutex *lock, unsigned int subclass)
    LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    lks_mutex_lock_nested(&lock->lks__, subclass);
}

LKS_NODISCARD__ LKS_INLINE__ int mutex_lock_interruptible(struct mutex *lock)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_mutex_lock_interruptible(&lock->lks__);
}

LKS_NODISCARD__ LKS_INLINE__ int mutex_lock_interruptible_nested(struct mutex *lock,
                                                                 unsigned int subclass)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_mutex_lock_interruptible_nested(&lock->lks__, subclass);
}

/* The token that ends this thread's killable waits; none at first. Weak: one for all
 * files of a program. */
__extension__ extern __thread const lks_cancel *lockstead_token__;
__extension__ __thread __attribute__((weak)) const lks_cancel *lockstead_token__;

LKS_INLINE__ void lockstead_kill_token(const lks_cancel *token)
{
    lockstead_token__ = token;
}

LKS_NODISCARD__ LKS_INLINE__ int mutex_lock_killable(struct mutex *lock)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_mutex_lock_killable(&lock->lks__, lockstead_token__);
}

LKS_NODISCARD__ LKS_INLINE__ int mutex_lock_killable_nested(struct mutex *lock,
                                                            unsigned int subclass)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)subclass;
    return lks_mutex_lock_killable(&lock->lks__, lockstead_token__);
}

/* Returns 1 on success. */
LKS_NODISCARD__ LKS_INLINE__ int mutex_trylock(struct mutex *lock)
    LKS_TSA__(try_acquire_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_mutex_trylock(&lock->lks__);
}

LKS_INLINE__ void mutex_unlock(struct mutex *lock) LKS_TSA__(release_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_mutex_unlock(&lock->lks__);
}

LKS_INLINE__ int mutex_is_locked(const struct mutex *lock)
{
    return lks_mutex_is_locked(&lock->lks__);
}

LKS_NODISCARD__ LKS_INLINE__ int atomic_dec_and_mutex_lock(atomic_t *count, struct mutex *lock)
    LKS_TSA__(try_acquire_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_atomic_dec_and_mutex_lock(&count->counter, &lock->lks__);
}

/* ---- linux/rwsem.h ---- */

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

#include "kernel-semaphore.h"
#include "kernel-ww.h"
#include "kernel-rt.h"
#ifdef LKS_DEBUG
#include "kernel-check.h"
#endif

#endif
