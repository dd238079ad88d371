/*
 * The calls of `kernel.h` in the checking build: with the place of the caller, where
 * the inline functions would say that of the header.
 */
#ifndef LOCKSTEAD_KERNEL_CHECK_H
#define LOCKSTEAD_KERNEL_CHECK_H

#include "check.h"
#include "kernel.h"

/* Forms that only the kernel has. */
LKS_NODISCARD__ LKS_INLINE__ int lks_mutex_lock_killable_nested_dbg(lks_mutex *mutex,
                                                                    const lks_cancel *token,
                                                                    unsigned subclass, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_mutex_lock(mutex, LKS_KILLABLE__, LKS_ADDRESS__(token), subclass, file, line);
}

LKS_INLINE__ void lks_rwlock_read_nested_dbg(lks_rwlock *lock, int subclass, LKS_AT__)
    LKS_TSA__(acquire_shared_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_rwlock_lock_nested(lock, 1, LKS_FOREVER__, 0, (unsigned)subclass, file, line);
}

LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_read_killable_nested_dbg(lks_rwlock *lock,
                                                                     const lks_cancel *token,
                                                                     int subclass, LKS_AT__)
    LKS_TSA__(try_acquire_shared_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock_nested(lock, 1, LKS_KILLABLE__, LKS_ADDRESS__(token),
                                        (unsigned)subclass, file, line);
}

LKS_INLINE__ void lks_rwlock_write_nested_dbg(lks_rwlock *lock, int subclass, LKS_AT__)
    LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_rwlock_lock_nested(lock, 0, LKS_FOREVER__, 0, (unsigned)subclass, file, line);
}

LKS_NODISCARD__ LKS_INLINE__ int lks_rwlock_write_killable_nested_dbg(lks_rwlock *lock,
                                                                      const lks_cancel *token,
                                                                      int subclass, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock_nested(lock, 0, LKS_KILLABLE__, LKS_ADDRESS__(token),
                                        (unsigned)subclass, file, line);
}

LKS_NODISCARD__ LKS_INLINE__ int lks_refcount_dec_and_lock_dbg(refcount_t *count,
                                                               lks_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return atomic_read(&count->refs) >= 0 &&
           lks_check_dec_and_lock(&count->refs.counter, mutex, file, line);
}

#define LKS_KERNEL__(call, lock) call##_dbg(&(lock)->lks__, __FILE__, __LINE__)

#define mutex_init(lock) lks_mutex_init_dbg(&(lock)->lks__, #lock, __FILE__, __LINE__)
#define mutex_destroy(lock) LKS_KERNEL__(lks_mutex_destroy, lock)
#define mutex_lock(lock) LKS_KERNEL__(lks_mutex_lock, lock)
#define mutex_lock_nested(lock, subclass) \
    lks_mutex_lock_nested_dbg(&(lock)->lks__, subclass, __FILE__, __LINE__)
#define mutex_lock_interruptible(lock) LKS_KERNEL__(lks_mutex_lock_interruptible, lock)
#define mutex_lock_killable(lock) \
    lks_mutex_lock_killable_dbg(&(lock)->lks__, lockstead_token__, __FILE__, __LINE__)
#define mutex_lock_interruptible_nested(lock, subclass) \
    lks_mutex_lock_interruptible_nested_dbg(&(lock)->lks__, subclass, __FILE__, __LINE__)
#define mutex_lock_killable_nested(lock, subclass)                                      \
    lks_mutex_lock_killable_nested_dbg(&(lock)->lks__, lockstead_token__, subclass, __FILE__, \
                                       __LINE__)
#define mutex_lock_io(lock) mutex_lock(lock)
#define mutex_lock_io_nested(lock, subclass) mutex_lock_nested(lock, subclass)
#define refcount_dec_and_mutex_lock(count, lock) \
    lks_refcount_dec_and_lock_dbg(count, &(lock)->lks__, __FILE__, __LINE__)
#define atomic_dec_and_mutex_lock(count, lock)                                         \
    lks_atomic_dec_and_mutex_lock_dbg(&(count)->counter, &(lock)->lks__, __FILE__, __LINE__)
#define mutex_trylock(lock) LKS_KERNEL__(lks_mutex_trylock, lock)
#define mutex_unlock(lock) LKS_KERNEL__(lks_mutex_unlock, lock)

#define LKS_RWSEM_KILLABLE__(call, sem) \
    call##_dbg(&(sem)->lks__, lockstead_token__, __FILE__, __LINE__)
#define LKS_RWSEM_KILLABLE_NESTED__(call, sem, subclass) \
    call##_dbg(&(sem)->lks__, lockstead_token__, subclass, __FILE__, __LINE__)
#define init_rwsem(sem) lks_rwlock_init_dbg(&(sem)->lks__, #sem, __FILE__, __LINE__)
#define down_read(sem) LKS_KERNEL__(lks_rwlock_read, sem)
#define down_read_nested(sem, subclass) \
    lks_rwlock_read_nested_dbg(&(sem)->lks__, subclass, __FILE__, __LINE__)
#define down_read_interruptible(sem) LKS_KERNEL__(lks_rwlock_read_interruptible, sem)
#define down_read_killable(sem) LKS_RWSEM_KILLABLE__(lks_rwlock_read_killable, sem)
#define down_read_killable_nested(sem, subclass) \
    LKS_RWSEM_KILLABLE_NESTED__(lks_rwlock_read_killable_nested, sem, subclass)
#define down_read_trylock(sem) LKS_KERNEL__(lks_rwlock_tryread, sem)
#define up_read(sem) LKS_KERNEL__(lks_rwlock_unread, sem)
#define down_write(sem) LKS_KERNEL__(lks_rwlock_write, sem)
#define down_write_nested(sem, subclass) \
    lks_rwlock_write_nested_dbg(&(sem)->lks__, subclass, __FILE__, __LINE__)
#define down_write_killable(sem) LKS_RWSEM_KILLABLE__(lks_rwlock_write_killable, sem)
#define down_write_killable_nested(sem, subclass) \
    LKS_RWSEM_KILLABLE_NESTED__(lks_rwlock_write_killable_nested, sem, subclass)
#define down_write_trylock(sem) LKS_KERNEL__(lks_rwlock_trywrite, sem)
#define up_write(sem) LKS_KERNEL__(lks_rwlock_unwrite, sem)
#define downgrade_write(sem) LKS_KERNEL__(lks_rwlock_downgrade, sem)

#define rt_mutex_init(lock) lks_rt_mutex_init_dbg(&(lock)->lks__, #lock, __FILE__, __LINE__)
#define rt_mutex_destroy(lock) LKS_KERNEL__(lks_rt_mutex_destroy, lock)
#define rt_mutex_lock(lock) lks_kernel_rt_got__(LKS_KERNEL__(lks_rt_mutex_lock, lock))
#define rt_mutex_lock_nested(lock, subclass) ((void)(subclass), rt_mutex_lock(lock))
#define rt_mutex_lock_interruptible(lock) LKS_KERNEL__(lks_rt_mutex_lock_interruptible, lock)
#define rt_mutex_lock_killable(lock) \
    lks_rt_mutex_lock_killable_dbg(&(lock)->lks__, lockstead_token__, __FILE__, __LINE__)
#define rt_mutex_trylock(lock) LKS_KERNEL__(lks_rt_mutex_trylock, lock)
#define rt_mutex_unlock(lock) LKS_KERNEL__(lks_rt_mutex_unlock, lock)

#define LKS_KERNEL_IN__(call, lock, ctx) \
    call##_dbg(&(lock)->lks__, lks_kernel_ctx__(ctx), __FILE__, __LINE__)
#define ww_mutex_init(lock, class_of_it)                                           \
    lks_ww_mutex_init_of_class_dbg(&(lock)->lks__, &(class_of_it)->lks__, #lock, __FILE__, \
                                   __LINE__)
#define ww_acquire_init(ctx, class_of_locks)                                        \
    lks_kernel_ctx_begun__(lks_ww_ctx_init_dbg(&(ctx)->lks__, &(class_of_locks)->lks__, \
                                               __FILE__, __LINE__))
#define ww_acquire_done(ctx) LKS_KERNEL__(lks_ww_ctx_done, ctx)
#define ww_acquire_fini(ctx) LKS_KERNEL__(lks_ww_ctx_fini, ctx)
#define ww_mutex_lock(lock, ctx) LKS_KERNEL_IN__(lks_ww_mutex_lock, lock, ctx)
#define ww_mutex_lock_interruptible(lock, ctx) \
    LKS_KERNEL_IN__(lks_ww_mutex_lock_interruptible, lock, ctx)
#define ww_mutex_lock_slow(lock, ctx) LKS_KERNEL_IN__(lks_ww_mutex_lock_slow, lock, ctx)
#define ww_mutex_lock_slow_interruptible(lock, ctx) \
    LKS_KERNEL_IN__(lks_ww_mutex_lock_slow_interruptible, lock, ctx)
#define ww_mutex_trylock(lock, ctx) LKS_KERNEL_IN__(lks_ww_mutex_trylock, lock, ctx)
#define ww_mutex_unlock(lock) LKS_KERNEL__(lks_ww_mutex_unlock, lock)
#define ww_mutex_destroy(lock) LKS_KERNEL__(lks_ww_mutex_destroy, lock)

#endif
