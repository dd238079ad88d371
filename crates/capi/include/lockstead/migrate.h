/*
 * From semaphores to mutexes, one lock at a time: `down`, `up` and their kin take
 * either, and the compiler chooses by the type of the argument. So a semaphore that is
 * used as a mutex becomes one by a change of its declaration; no call is touched.
 *
 *     calls                          with struct semaphore *,  with struct mutex *,
 *                                    lks_semaphore *           lks_mutex *
 *     down                           takes a permit            locks
 *     down_interruptible             0 or -EINTR               the same
 *     down_killable                  0 or -EINTR               the same
 *     down_timeout (jiffies)         0 or -ETIME               the same
 *     down_trylock                   0: has it, 1: has not     the same: 0 is success
 *     up                             gives one back            unlocks
 *     sema_init (1, 0)               so many permits           free, held by the caller
 *     init_MUTEX, init_MUTEX_LOCKED  1 permit, none            the same
 *
 * On a mutex the calls that can fail say -EDEADLK, too, if the caller has it already,
 * and -EOWNERDEAD if a thread has it that fork has left behind.
 *
 * With LKS_SEMAPHORES_ARE_MUTEXES defined for a whole program, `struct semaphore` is a
 * mutex everywhere; those that must stay semaphores are declared as `lks_semaphore`.
 *
 * Includes `kernel.h`. In C++ these are overloads; in C the compiler must know
 * _Generic, which gcc and clang do in C99 as well.
 */
#ifndef LOCKSTEAD_MIGRATE_H
#define LOCKSTEAD_MIGRATE_H

#include "kernel.h"

/* The functions by type: overloads in C++, which are what the program calls unless
 * that needs to know from where; names of their own in C. */
#ifdef __cplusplus
#define LKS_FOR__(verb, type) LKS_KERNEL_NAME__(verb)
#else
#define LKS_FOR__(verb, type) lks_##verb##_##type##__
#endif

/* ---- an lks_mutex ---- */

LKS_INLINE__ void LKS_FOR__(down, lks_mutex)(lks_mutex *lock LKS_AND_AT__)
    LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    LKS_ON__(lks_mutex_lock, lock);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_interruptible, lks_mutex)(
    lks_mutex *lock LKS_AND_AT__) LKS_TSA__(try_acquire_capability(0, lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_ON__(lks_mutex_lock_interruptible, lock);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_killable, lks_mutex)(lks_mutex *lock LKS_AND_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_ON__(lks_mutex_lock_killable, lock, lockstead_token__);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_timeout, lks_mutex)(lks_mutex *lock,
                                                                    long jiffies LKS_AND_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_jiffies_over__(LKS_ON__(lks_mutex_lock_timeout, lock, lks_jiffies__(jiffies)));
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_trylock, lks_mutex)(lks_mutex *lock LKS_AND_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return !LKS_ON__(lks_mutex_trylock, lock);
}

LKS_INLINE__ void LKS_FOR__(up, lks_mutex)(lks_mutex *lock LKS_AND_AT__)
    LKS_TSA__(release_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    LKS_ON__(lks_mutex_unlock, lock);
}

/* ---- a struct mutex, which is one ---- */

LKS_INLINE__ void LKS_FOR__(down, mutex)(struct mutex *lock LKS_AND_AT__)
    LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    LKS_FOR__(down, lks_mutex)(&lock->lks__ LKS_AND_PLACE__);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_interruptible, mutex)(
    struct mutex *lock LKS_AND_AT__) LKS_TSA__(try_acquire_capability(0, lock))
    LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_FOR__(down_interruptible, lks_mutex)(&lock->lks__ LKS_AND_PLACE__);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_killable, mutex)(struct mutex *lock LKS_AND_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_FOR__(down_killable, lks_mutex)(&lock->lks__ LKS_AND_PLACE__);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_timeout, mutex)(struct mutex *lock,
                                                                long jiffies LKS_AND_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_FOR__(down_timeout, lks_mutex)(&lock->lks__, jiffies LKS_AND_PLACE__);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_trylock, mutex)(struct mutex *lock LKS_AND_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_FOR__(down_trylock, lks_mutex)(&lock->lks__ LKS_AND_PLACE__);
}

LKS_INLINE__ void LKS_FOR__(up, mutex)(struct mutex *lock LKS_AND_AT__)
    LKS_TSA__(release_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    LKS_FOR__(up, lks_mutex)(&lock->lks__ LKS_AND_PLACE__);
}

/* ---- an lks_semaphore ---- */

LKS_INLINE__ void LKS_FOR__(down, lks_semaphore)(lks_semaphore *lock LKS_AND_AT__)
{
    LKS_ON__(lks_semaphore_down, lock);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_interruptible, lks_semaphore)(
    lks_semaphore *lock LKS_AND_AT__)
{
    return LKS_ON__(lks_semaphore_down_interruptible, lock);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_killable, lks_semaphore)(
    lks_semaphore *lock LKS_AND_AT__)
{
    return LKS_ON__(lks_semaphore_down_killable, lock, lockstead_token__);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_timeout, lks_semaphore)(lks_semaphore *lock,
                                                                        long jiffies LKS_AND_AT__)
{
    return lks_jiffies_over__(LKS_ON__(lks_semaphore_down_timeout, lock, lks_jiffies__(jiffies)));
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_FOR__(down_trylock, lks_semaphore)(
    lks_semaphore *lock LKS_AND_AT__)
{
    return LKS_ON__(lks_semaphore_down_trylock, lock);
}

LKS_INLINE__ void LKS_FOR__(up, lks_semaphore)(lks_semaphore *lock LKS_AND_AT__)
{
    (void)LKS_ON__(lks_semaphore_up, lock);
}

/* ---- the choice ---- */

#ifdef __cplusplus

LKS_INLINE__ void lks_sema_init__(lks_mutex *lock, int count, const char *name, const char *file,
                                  unsigned line)
{
    lks_sema_init_mutex__(lock, count, name, file, line);
}
LKS_INLINE__ void lks_sema_init__(struct mutex *lock, int count, const char *name,
                                  const char *file, unsigned line)
{
    lks_sema_init_mutex__(&lock->lks__, count, name, file, line);
}
LKS_INLINE__ void lks_sema_init__(lks_semaphore *lock, int count, const char *name,
                                  const char *file, unsigned line)
{
    lks_sema_init_semaphore__(lock, count, name, file, line);
}
LKS_INLINE__ void lks_sema_init__(struct semaphore *lock, int count, const char *name,
                                  const char *file, unsigned line)
{
    lks_sema_init_kernel_semaphore__(lock, count, name, file, line);
}
#undef sema_init
#define sema_init(lock, count) lks_sema_init__(lock, count, #lock, __FILE__, __LINE__)

#else

LKS_INLINE__ void lks_sema_init_kernel_mutex__(struct mutex *lock, int count, const char *name,
                                               const char *file, unsigned line)
{
    lks_sema_init_mutex__(&lock->lks__, count, name, file, line);
}
#undef sema_init
#define sema_init(lock, count)                                                     \
    (__extension__ _Generic((lock), struct semaphore *                             \
                            : lks_sema_init_kernel_semaphore__, lks_semaphore *    \
                            : lks_sema_init_semaphore__, struct mutex *            \
                            : lks_sema_init_kernel_mutex__, lks_mutex *            \
                            : lks_sema_init_mutex__)(lock, count, #lock, __FILE__, __LINE__))

#undef down
#undef down_interruptible
#undef down_killable
#undef down_timeout
#undef down_trylock
#undef up
#define LKS_CHOOSE__(lock, verb, of_semaphore)                  \
    __extension__ _Generic((lock), struct semaphore *           \
                           : of_semaphore, lks_semaphore *      \
                           : lks_##verb##_lks_semaphore__, struct mutex * \
                           : lks_##verb##_mutex__, lks_mutex *  \
                           : lks_##verb##_lks_mutex__)
#ifdef LKS_DEBUG
#define LKS_MIGRATE__(verb, lock, ...) \
    (LKS_CHOOSE__(lock, verb, lks_kernel_##verb##__)(__VA_ARGS__, __FILE__, __LINE__))
#else
#define LKS_MIGRATE__(verb, lock, ...) (LKS_CHOOSE__(lock, verb, (verb))(__VA_ARGS__))
#endif
#define down(lock) LKS_MIGRATE__(down, lock, lock)
#define down_interruptible(lock) LKS_MIGRATE__(down_interruptible, lock, lock)
#define down_killable(lock) LKS_MIGRATE__(down_killable, lock, lock)
#define down_timeout(lock, jiffies) LKS_MIGRATE__(down_timeout, lock, lock, jiffies)
#define down_trylock(lock) LKS_MIGRATE__(down_trylock, lock, lock)
#define up(lock) LKS_MIGRATE__(up, lock, lock)

#endif

/* ---- names that the kernel had when it counted on semaphores alone ---- */

#define init_MUTEX(lock) sema_init(lock, 1)
#define init_MUTEX_LOCKED(lock) sema_init(lock, 0)
#define DECLARE_MUTEX(name) DEFINE_SEMAPHORE(name, 1)
/* Nobody could hold a mutex that is made before the program runs: with all semaphores
 * mutexes, this is refused. */
#define DECLARE_MUTEX_LOCKED(name) DEFINE_SEMAPHORE(name, 0)

#endif
