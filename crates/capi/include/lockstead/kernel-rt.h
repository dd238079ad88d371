/*
 * The part of `kernel.h` that is the kernel's linux/rtmutex.h.
 */
#ifndef LOCKSTEAD_KERNEL_H
#include "kernel.h" /* the token of killable waits; includes this one */
#endif
#ifndef LOCKSTEAD_KERNEL_RT_H
#define LOCKSTEAD_KERNEL_RT_H

#include "rt.h"

#include <stdio.h>
#include <stdlib.h>

struct LKS_TSA__(capability("rt_mutex")) rt_mutex {
    lks_rt_mutex lks__;
};
#define __RT_MUTEX_INITIALIZER(name) {LKS_RT_MUTEX_INIT}
#define DEFINE_RT_MUTEX(name) struct rt_mutex name = __RT_MUTEX_INITIALIZER(name)

LKS_INLINE__ void rt_mutex_init(struct rt_mutex *lock)
{
    lks_rt_mutex_init(&lock->lks__);
}

LKS_INLINE__ void rt_mutex_destroy(struct rt_mutex *lock)
{
    lks_rt_mutex_destroy(&lock->lks__);
}

/* Here it cannot fail: a wait that would never end ends the process. */
LKS_INLINE__ void lks_kernel_rt_got__(int result)
{
    if (LKS_LIKELY__(result == 0))
        return;
    fprintf(stderr, "lockstead: rt_mutex_lock: %s\n",
            result == -EDEADLK
                ? "this thread holds the mutex already, or waiting for it would close a cycle: it "
                  "would wait for itself for ever"
                : "the thread that held the mutex has ended: it can never be released");
    abort();
}

LKS_INLINE__ void rt_mutex_lock(struct rt_mutex *lock) LKS_TSA__(acquire_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_kernel_rt_got__(lks_rt_mutex_lock(&lock->lks__));
}

LKS_INLINE__ void rt_mutex_lock_nested(struct rt_mutex *lock, unsigned int subclass)
    LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)subclass;
    rt_mutex_lock(lock);
}

LKS_NODISCARD__ LKS_INLINE__ int rt_mutex_lock_interruptible(struct rt_mutex *lock)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rt_mutex_lock_interruptible(&lock->lks__);
}

LKS_NODISCARD__ LKS_INLINE__ int rt_mutex_lock_killable(struct rt_mutex *lock)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rt_mutex_lock_killable(&lock->lks__, lockstead_token__);
}

/* Returns 1 on success. */
LKS_NODISCARD__ LKS_INLINE__ int rt_mutex_trylock(struct rt_mutex *lock)
    LKS_TSA__(try_acquire_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_rt_mutex_trylock(&lock->lks__);
}

LKS_INLINE__ void rt_mutex_unlock(struct rt_mutex *lock) LKS_TSA__(release_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_rt_mutex_unlock(&lock->lks__);
}

LKS_INLINE__ int rt_mutex_is_locked(struct rt_mutex *lock)
{
    return lks_rt_mutex_is_locked(&lock->lks__);
}

#endif
