/*
 * The checking build of the wait/wound mutex: the rules that the kernel checks, too.
 * Included by `ww.h`.
 */
#ifndef LOCKSTEAD_WW_H
#include "ww.h" /* which includes this one, in its midst */
#endif
#ifndef LOCKSTEAD_CHECK_WW_H
#define LOCKSTEAD_CHECK_WW_H

#include "check.h"

LKS_BEGIN_DECLS__

void lks_check_ww_class(lks_ww_mutex *mutex, lks_ww_class *class_of_it, LKS_AT__);
int lks_check_ww_begin(lks_ww_ctx *ctx, lks_ww_class *class_of_locks, LKS_AT__);
void lks_check_ww_done(lks_ww_ctx *ctx, LKS_AT__);
void lks_check_ww_end(lks_ww_ctx *ctx, LKS_AT__);
int lks_check_ww_lock(lks_ww_mutex *mutex, lks_ww_ctx *ctx, unsigned how, int slow, LKS_AT__);
int lks_check_ww_trylock(lks_ww_mutex *mutex, lks_ww_ctx *ctx, LKS_AT__);
void lks_check_ww_unlock(lks_ww_mutex *mutex, LKS_AT__);

LKS_END_DECLS__

/* Of this class; of that of the first context that takes it, if this is null. */
LKS_INLINE__ void lks_ww_mutex_init_of_class_dbg(lks_ww_mutex *mutex, lks_ww_class *class_of_it,
                                                 const char *name, LKS_AT__)
{
    if (lks_check_init(mutex, LKS_KIND_WW__, 0, name, file, line) == 0)
        lks_check_ww_class(mutex, class_of_it, file, line);
}

LKS_INLINE__ void lks_ww_mutex_init_dbg(lks_ww_mutex *mutex, const char *name, LKS_AT__)
{
    lks_ww_mutex_init_of_class_dbg(mutex, NULL, name, file, line);
}
#define lks_ww_mutex_init(mutex) lks_ww_mutex_init_dbg(mutex, #mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_ww_mutex_destroy_dbg(lks_ww_mutex *mutex, LKS_AT__)
{
    lks_check_destroy(mutex, LKS_KIND_WW__, file, line);
}
#define lks_ww_mutex_destroy(mutex) \
    lks_ww_mutex_destroy_dbg(mutex, __FILE__, __LINE__)

LKS_NODISCARD__ LKS_INLINE__ int lks_ww_ctx_init_dbg(lks_ww_ctx *ctx,
                                                     lks_ww_class *class_of_locks, LKS_AT__)
{
    return lks_check_ww_begin(ctx, class_of_locks, file, line);
}
#define lks_ww_ctx_init(ctx, class_of_locks) \
    lks_ww_ctx_init_dbg(ctx, class_of_locks, __FILE__, __LINE__)

LKS_INLINE__ void lks_ww_ctx_done_dbg(lks_ww_ctx *ctx, LKS_AT__)
{
    lks_check_ww_done(ctx, file, line);
}
#define lks_ww_ctx_done(ctx) \
    lks_ww_ctx_done_dbg(ctx, __FILE__, __LINE__)

LKS_INLINE__ void lks_ww_ctx_fini_dbg(lks_ww_ctx *ctx, LKS_AT__)
{
    lks_check_ww_end(ctx, file, line);
}
#define lks_ww_ctx_fini(ctx) \
    lks_ww_ctx_fini_dbg(ctx, __FILE__, __LINE__)

LKS_NODISCARD__ LKS_INLINE__ int lks_ww_mutex_lock_dbg(lks_ww_mutex *mutex, lks_ww_ctx *ctx,
                                                       LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_ww_lock(mutex, ctx, LKS_FOREVER__, 0, file, line);
}
#define lks_ww_mutex_lock(mutex, ctx) \
    lks_ww_mutex_lock_dbg(mutex, ctx, __FILE__, __LINE__)

LKS_NODISCARD__ LKS_INLINE__ int lks_ww_mutex_lock_interruptible_dbg(lks_ww_mutex *mutex,
                                                                     lks_ww_ctx *ctx, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_ww_lock(mutex, ctx, LKS_INTERRUPTIBLE__, 0, file, line);
}
#define lks_ww_mutex_lock_interruptible(mutex, ctx) \
    lks_ww_mutex_lock_interruptible_dbg(mutex, ctx, __FILE__, __LINE__)

LKS_INLINE__ void lks_ww_mutex_lock_slow_dbg(lks_ww_mutex *mutex, lks_ww_ctx *ctx, LKS_AT__)
    LKS_TSA__(acquire_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_ww_lock(mutex, ctx, LKS_FOREVER__, 1, file, line);
}
#define lks_ww_mutex_lock_slow(mutex, ctx) \
    lks_ww_mutex_lock_slow_dbg(mutex, ctx, __FILE__, __LINE__)

LKS_NODISCARD__ LKS_INLINE__ int lks_ww_mutex_lock_slow_interruptible_dbg(lks_ww_mutex *mutex,
                                                                          lks_ww_ctx *ctx,
                                                                          LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_ww_lock(mutex, ctx, LKS_INTERRUPTIBLE__, 1, file, line);
}
#define lks_ww_mutex_lock_slow_interruptible(mutex, ctx) \
    lks_ww_mutex_lock_slow_interruptible_dbg(mutex, ctx, __FILE__, __LINE__)

LKS_NODISCARD__ LKS_INLINE__ int lks_ww_mutex_trylock_dbg(lks_ww_mutex *mutex, lks_ww_ctx *ctx,
                                                          LKS_AT__)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_ww_trylock(mutex, ctx, file, line);
}
#define lks_ww_mutex_trylock(mutex, ctx) \
    lks_ww_mutex_trylock_dbg(mutex, ctx, __FILE__, __LINE__)

LKS_INLINE__ void lks_ww_mutex_unlock_dbg(lks_ww_mutex *mutex, LKS_AT__)
    LKS_TSA__(release_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    lks_check_ww_unlock(mutex, file, line);
}
#define lks_ww_mutex_unlock(mutex) \
    lks_ww_mutex_unlock_dbg(mutex, __FILE__, __LINE__)

#endif
