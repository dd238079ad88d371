/*
 * The calls of rt.h in the checking build: with the place of the caller. See check.h.
 */
#ifndef LOCKSTEAD_CHECK_RT_H
#define LOCKSTEAD_CHECK_RT_H

#include "check.h"
#include "rt.h"

LKS_BEGIN_DECLS__

/* `again`: of the recursive one. */
void lks_check_rt_init(void *mutex, int again, const char *name, LKS_AT__);
void lks_check_rt_destroy(void *mutex, int again, LKS_AT__);
int lks_check_rt_lock(void *mutex, int again, unsigned how, uint64_t argument, LKS_AT__);
int lks_check_rt_trylock(void *mutex, int again, LKS_AT__);
void lks_check_rt_unlock(void *mutex, int again, LKS_AT__);

LKS_END_DECLS__

LKS_INLINE__ void lks_rt_mutex_init_dbg(lks_rt_mutex *mutex, const char *name, LKS_AT__)
{
    lks_check_rt_init(mutex, 0, name, file, line);
}
#define lks_rt_mutex_init(mutex) lks_rt_mutex_init_dbg(mutex, #mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_rt_mutex_destroy_dbg(lks_rt_mutex *mutex, LKS_AT__)
{
    lks_check_rt_destroy(mutex, 0, file, line);
}
#define lks_rt_mutex_destroy(mutex) lks_rt_mutex_destroy_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_mutex_lock_dbg(lks_rt_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rt_lock(mutex, 0, LKS_FOREVER__, 0, file, line);
}
#define lks_rt_mutex_lock(mutex) lks_rt_mutex_lock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_mutex_lock_interruptible_dbg(lks_rt_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rt_lock(mutex, 0, LKS_INTERRUPTIBLE__, 0, file, line);
}
#define lks_rt_mutex_lock_interruptible(mutex) \
    lks_rt_mutex_lock_interruptible_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_mutex_lock_killable_dbg(lks_rt_mutex *mutex, const lks_cancel *token,
                                                LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rt_lock(mutex, 0, LKS_KILLABLE__, LKS_ADDRESS__(token), file, line);
}
#define lks_rt_mutex_lock_killable(mutex, token) \
    lks_rt_mutex_lock_killable_dbg(mutex, token, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_mutex_lock_timeout_dbg(lks_rt_mutex *mutex, uint64_t nanoseconds, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rt_lock(mutex, 0, LKS_TIMEOUT__, nanoseconds, file, line);
}
#define lks_rt_mutex_lock_timeout(mutex, nanoseconds) \
    lks_rt_mutex_lock_timeout_dbg(mutex, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_mutex_lock_until_dbg(lks_rt_mutex *mutex, const struct timespec *deadline,
                                             LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rt_lock(mutex, 0, LKS_UNTIL__, LKS_ADDRESS__(deadline), file, line);
}
#define lks_rt_mutex_lock_until(mutex, deadline) \
    lks_rt_mutex_lock_until_dbg(mutex, deadline, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_mutex_trylock_dbg(lks_rt_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rt_trylock(mutex, 0, file, line);
}
#define lks_rt_mutex_trylock(mutex) lks_rt_mutex_trylock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_rt_mutex_unlock_dbg(lks_rt_mutex *mutex, LKS_AT__)
    LKS_TSA__(release_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    lks_check_rt_unlock(mutex, 0, file, line);
}
#define lks_rt_mutex_unlock(mutex) lks_rt_mutex_unlock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_rt_recursive_mutex_init_dbg(lks_rt_recursive_mutex *mutex, const char *name,
                                                  LKS_AT__)
{
    lks_check_rt_init(mutex, 1, name, file, line);
}
#define lks_rt_recursive_mutex_init(mutex) \
    lks_rt_recursive_mutex_init_dbg(mutex, #mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_rt_recursive_mutex_destroy_dbg(lks_rt_recursive_mutex *mutex, LKS_AT__)
{
    lks_check_rt_destroy(mutex, 1, file, line);
}
#define lks_rt_recursive_mutex_destroy(mutex) \
    lks_rt_recursive_mutex_destroy_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_recursive_mutex_lock_dbg(lks_rt_recursive_mutex *mutex, LKS_AT__)
{
    return lks_check_rt_lock(mutex, 1, LKS_FOREVER__, 0, file, line);
}
#define lks_rt_recursive_mutex_lock(mutex) \
    lks_rt_recursive_mutex_lock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_recursive_mutex_lock_interruptible_dbg(lks_rt_recursive_mutex *mutex,
                                                               LKS_AT__)
{
    return lks_check_rt_lock(mutex, 1, LKS_INTERRUPTIBLE__, 0, file, line);
}
#define lks_rt_recursive_mutex_lock_interruptible(mutex) \
    lks_rt_recursive_mutex_lock_interruptible_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int
lks_rt_recursive_mutex_lock_killable_dbg(lks_rt_recursive_mutex *mutex, const lks_cancel *token,
                                         LKS_AT__)
{
    return lks_check_rt_lock(mutex, 1, LKS_KILLABLE__, LKS_ADDRESS__(token), file, line);
}
#define lks_rt_recursive_mutex_lock_killable(mutex, token) \
    lks_rt_recursive_mutex_lock_killable_dbg(mutex, token, __FILE__, __LINE__)

LKS_INLINE__ int
lks_rt_recursive_mutex_lock_timeout_dbg(lks_rt_recursive_mutex *mutex, uint64_t nanoseconds,
                                        LKS_AT__)
{
    return lks_check_rt_lock(mutex, 1, LKS_TIMEOUT__, nanoseconds, file, line);
}
#define lks_rt_recursive_mutex_lock_timeout(mutex, nanoseconds) \
    lks_rt_recursive_mutex_lock_timeout_dbg(mutex, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int
lks_rt_recursive_mutex_lock_until_dbg(lks_rt_recursive_mutex *mutex,
                                      const struct timespec *deadline,
                                      LKS_AT__)
{
    return lks_check_rt_lock(mutex, 1, LKS_UNTIL__, LKS_ADDRESS__(deadline), file, line);
}
#define lks_rt_recursive_mutex_lock_until(mutex, deadline) \
    lks_rt_recursive_mutex_lock_until_dbg(mutex, deadline, __FILE__, __LINE__)

LKS_INLINE__ int lks_rt_recursive_mutex_trylock_dbg(lks_rt_recursive_mutex *mutex, LKS_AT__)
{
    return lks_check_rt_trylock(mutex, 1, file, line);
}
#define lks_rt_recursive_mutex_trylock(mutex) \
    lks_rt_recursive_mutex_trylock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_rt_recursive_mutex_unlock_dbg(lks_rt_recursive_mutex *mutex, LKS_AT__)
{
    lks_check_rt_unlock(mutex, 1, file, line);
}
#define lks_rt_recursive_mutex_unlock(mutex) \
    lks_rt_recursive_mutex_unlock_dbg(mutex, __FILE__, __LINE__)
#endif
