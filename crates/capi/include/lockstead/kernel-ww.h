/*
 * The part of `kernel.h` that is the kernel's linux/ww_mutex.h.
 */
#ifndef LOCKSTEAD_KERNEL_WW_H
#define LOCKSTEAD_KERNEL_WW_H

#include "ww.h"

#include <stdio.h>
#include <stdlib.h>

struct ww_class {
    lks_ww_class lks__;
};
struct ww_acquire_ctx {
    lks_ww_ctx lks__;
};
struct LKS_TSA__(capability("ww_mutex")) ww_mutex {
    lks_ww_mutex lks__;
};
/* Wait-die, and wound-wait. */
#define __WW_CLASS_INITIALIZER(name, is_wait_die) \
    {LKS_WW_CLASS_INIT((is_wait_die) ? LKS_WAIT_DIE : LKS_WOUND_WAIT)}
#define DEFINE_WD_CLASS(name) struct ww_class name = __WW_CLASS_INITIALIZER(name, 1)
#define DEFINE_WW_CLASS(name) struct ww_class name = __WW_CLASS_INITIALIZER(name, 0)
#define __WW_MUTEX_INITIALIZER(name, class_of_it) {LKS_WW_MUTEX_INIT}
#define DEFINE_WW_MUTEX(name, class_of_it) \
    struct ww_mutex name = __WW_MUTEX_INITIALIZER(name, class_of_it)

LKS_INLINE__ void ww_mutex_init(struct ww_mutex *lock, struct ww_class *class_of_it)
{
    (void)class_of_it;
    lks_ww_mutex_init(&lock->lks__);
}

/* Here it cannot fail: a thread's fifth context ends the process. What the checking
 * build refuses it has reported, and does so at each use. */
LKS_INLINE__ void lks_kernel_ctx_begun__(int result)
{
    if (LKS_LIKELY__(result != -EBUSY))
        return;
    fprintf(stderr, "lockstead: ww_acquire_init: this thread has four contexts already, as many as "
                    "it can have at a time: end one by ww_acquire_fini before the next begins\n");
    abort();
}

LKS_INLINE__ void ww_acquire_init(struct ww_acquire_ctx *ctx, struct ww_class *class_of_locks)
{
    lks_kernel_ctx_begun__(lks_ww_ctx_init(&ctx->lks__, &class_of_locks->lks__));
}

LKS_INLINE__ void ww_acquire_done(struct ww_acquire_ctx *ctx)
{
    lks_ww_ctx_done(&ctx->lks__);
}

LKS_INLINE__ void ww_acquire_fini(struct ww_acquire_ctx *ctx)
{
    lks_ww_ctx_fini(&ctx->lks__);
}

LKS_INLINE__ lks_ww_ctx *lks_kernel_ctx__(struct ww_acquire_ctx *ctx)
{
    return ctx ? &ctx->lks__ : NULL;
}

LKS_NODISCARD__ LKS_INLINE__ int ww_mutex_lock(struct ww_mutex *lock, struct ww_acquire_ctx *ctx)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_ww_mutex_lock(&lock->lks__, lks_kernel_ctx__(ctx));
}

LKS_NODISCARD__ LKS_INLINE__ int ww_mutex_lock_interruptible(struct ww_mutex *lock,
                                                             struct ww_acquire_ctx *ctx)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_ww_mutex_lock_interruptible(&lock->lks__, lks_kernel_ctx__(ctx));
}

LKS_INLINE__ void ww_mutex_lock_slow(struct ww_mutex *lock, struct ww_acquire_ctx *ctx)
    LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    lks_ww_mutex_lock_slow(&lock->lks__, lks_kernel_ctx__(ctx));
}

LKS_NODISCARD__ LKS_INLINE__ int ww_mutex_lock_slow_interruptible(struct ww_mutex *lock,
                                                                  struct ww_acquire_ctx *ctx)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_ww_mutex_lock_slow_interruptible(&lock->lks__, lks_kernel_ctx__(ctx));
}

/* Returns 1 on success. */
LKS_NODISCARD__ LKS_INLINE__ int ww_mutex_trylock(struct ww_mutex *lock,
                                                  struct ww_acquire_ctx *ctx)
    LKS_TSA__(try_acquire_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_ww_mutex_trylock(&lock->lks__, lks_kernel_ctx__(ctx));
}

LKS_INLINE__ void ww_mutex_unlock(struct ww_mutex *lock) LKS_TSA__(release_capability(lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_ww_mutex_unlock(&lock->lks__);
}

LKS_INLINE__ void ww_mutex_destroy(struct ww_mutex *lock)
{
    lks_ww_mutex_destroy(&lock->lks__);
}

LKS_INLINE__ int ww_mutex_is_locked(struct ww_mutex *lock)
{
    return lks_ww_mutex_is_locked(&lock->lks__);
}

#endif
