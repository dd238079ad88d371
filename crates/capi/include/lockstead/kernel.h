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

#include <stdio.h>

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

/* ---- what they need of linux/refcount.h ---- */

/* Saturates: a count that went wrong stays high, and what it counts is never freed. */
typedef struct refcount_struct {
    atomic_t refs;
} refcount_t;
#define REFCOUNT_INIT(value) {ATOMIC_INIT(value)}
#define REFCOUNT_MAX 0x7fffffff
#define REFCOUNT_SATURATED (-0x40000000)

LKS_INLINE__ unsigned int refcount_read(const refcount_t *count)
{
    return (unsigned int)atomic_read(&count->refs);
}

LKS_INLINE__ void refcount_set(refcount_t *count, int value)
{
    atomic_set(&count->refs, value);
}

/* Says what went wrong with a count, which stays where it is from now on. */
__attribute__((cold, unused)) static void lks_refcount_saturates__(refcount_t *count,
                                                                   const char *what)
{
    atomic_set(&count->refs, REFCOUNT_SATURATED);
    fprintf(stderr, "lockstead: refcount_t at %p: %s; it stays high, and what it counts is not "
                    "freed\n", (void *)count, what);
}

/* Adds a reference unless there is none: 1, otherwise 0. */
LKS_NODISCARD__ LKS_INLINE__ int refcount_inc_not_zero(refcount_t *count)
{
    int seen = atomic_read(&count->refs);
    while (seen > 0 && seen != REFCOUNT_MAX)
        if (__atomic_compare_exchange_n(&count->refs.counter, &seen, seen + 1, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return 1;
    if (seen == REFCOUNT_MAX)
        lks_refcount_saturates__(count, "one reference more than it can count");
    return seen != 0;
}

LKS_INLINE__ void refcount_inc(refcount_t *count)
{
    if (LKS_UNLIKELY__(!refcount_inc_not_zero(count)))
        lks_refcount_saturates__(count, "a reference was added to what had none any more");
}

LKS_NODISCARD__ LKS_INLINE__ int refcount_dec_and_test(refcount_t *count)
{
    int seen = atomic_read(&count->refs);
    while (seen > 0)
        if (__atomic_compare_exchange_n(&count->refs.counter, &seen, seen - 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return seen == 1;
    if (seen == 0)
        lks_refcount_saturates__(count, "a reference was dropped more than once");
    return 0;
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

/* The kernel's counts the wait as one for a device. */
LKS_INLINE__ void mutex_lock_io(struct mutex *lock) LKS_TSA__(acquire_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    mutex_lock(lock);
}

LKS_INLINE__ void mutex_lock_io_nested(struct mutex *lock, unsigned int subclass)
    LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    mutex_lock_nested(lock, subclass);
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

/* As above; a count that has saturated stays so. */
LKS_NODISCARD__ LKS_INLINE__ int refcount_dec_and_mutex_lock(refcount_t *count, struct mutex *lock)
    LKS_TSA__(try_acquire_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return atomic_read(&count->refs) >= 0 && atomic_dec_and_mutex_lock(&count->refs, lock);
}

/* Inside another lock that keeps apart all who take several of this kind: any of the
 * kernel's locks, or a context. */
#define LKS_NEST__(nest_lock) ((void)&(nest_lock)->lks__)
#define mutex_lock_nest_lock(lock, nest_lock) (LKS_NEST__(nest_lock), mutex_lock(lock))
#define mutex_lock_killable_nest_lock(lock, nest_lock) \
    (LKS_NEST__(nest_lock), mutex_lock_killable(lock))
#define mutex_trylock_nest_lock(lock, nest_lock) (LKS_NEST__(nest_lock), mutex_trylock(lock))

#include "kernel-rwsem.h"
#include "kernel-semaphore.h"
#include "kernel-ww.h"
#include "kernel-rt.h"
#include "kernel-completion.h"
#include "kernel-lockdep.h"
#ifdef LKS_DEBUG
#include "kernel-check.h"
#endif
#include "kernel-guard.h"

#endif
