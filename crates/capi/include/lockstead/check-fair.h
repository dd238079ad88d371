/*
 * The calls of fair.h in the checking build: with the place of the caller. See check.h.
 * To the checks a fair mutex is a mutex, since calls of both kinds may be mixed.
 */
#ifndef LOCKSTEAD_CHECK_FAIR_H
#define LOCKSTEAD_CHECK_FAIR_H

#include "check.h"
#include "fair.h"

LKS_BEGIN_DECLS__

int lks_check_fair_lock(lks_fair_mutex *mutex, unsigned how, uint64_t argument, unsigned subclass,
                        LKS_AT__);
int lks_check_fair_trylock(lks_fair_mutex *mutex, LKS_AT__);
void lks_check_fair_unlock(lks_fair_mutex *mutex, LKS_AT__);
int lks_check_cond_wait_fair(lks_cond *cond, lks_fair_mutex *mutex, unsigned how,
                             uint64_t argument, LKS_AT__);

LKS_END_DECLS__

LKS_INLINE__ void lks_fair_mutex_init_dbg(lks_fair_mutex *mutex, const char *name, LKS_AT__)
{
    (void)lks_check_init(mutex, LKS_KIND_MUTEX__, 0, name, file, line);
}
#define lks_fair_mutex_init(mutex) lks_fair_mutex_init_dbg(mutex, #mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_fair_mutex_destroy_dbg(lks_fair_mutex *mutex, LKS_AT__)
{
    lks_check_destroy(mutex, LKS_KIND_MUTEX__, file, line);
}
#define lks_fair_mutex_destroy(mutex) lks_fair_mutex_destroy_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_fair_mutex_lock_dbg(lks_fair_mutex *mutex, LKS_AT__)
    LKS_TSA__(acquire_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_fair_lock(mutex, LKS_FOREVER__, 0, 0, file, line);
}
#define lks_fair_mutex_lock(mutex) lks_fair_mutex_lock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_fair_mutex_lock_nested_dbg(lks_fair_mutex *mutex, unsigned subclass, LKS_AT__)
    LKS_TSA__(acquire_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_fair_lock(mutex, LKS_FOREVER__, 0, subclass, file, line);
}
#define lks_fair_mutex_lock_nested(mutex, subclass) \
    lks_fair_mutex_lock_nested_dbg(mutex, subclass, __FILE__, __LINE__)

LKS_INLINE__ int lks_fair_mutex_trylock_dbg(lks_fair_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_fair_trylock(mutex, file, line);
}
#define lks_fair_mutex_trylock(mutex) lks_fair_mutex_trylock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_fair_mutex_lock_interruptible_dbg(lks_fair_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_fair_lock(mutex, LKS_INTERRUPTIBLE__, 0, 0, file, line);
}
#define lks_fair_mutex_lock_interruptible(mutex) \
    lks_fair_mutex_lock_interruptible_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_fair_mutex_lock_interruptible_nested_dbg(lks_fair_mutex *mutex,
                                                              unsigned subclass, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_fair_lock(mutex, LKS_INTERRUPTIBLE__, 0, subclass, file, line);
}
#define lks_fair_mutex_lock_interruptible_nested(mutex, subclass) \
    lks_fair_mutex_lock_interruptible_nested_dbg(mutex, subclass, __FILE__, __LINE__)

LKS_INLINE__ int lks_fair_mutex_lock_killable_dbg(lks_fair_mutex *mutex, const lks_cancel *token,
                                                  LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_fair_lock(mutex, LKS_KILLABLE__, LKS_ADDRESS__(token), 0, file, line);
}
#define lks_fair_mutex_lock_killable(mutex, token) \
    lks_fair_mutex_lock_killable_dbg(mutex, token, __FILE__, __LINE__)

LKS_INLINE__ int lks_fair_mutex_lock_timeout_dbg(lks_fair_mutex *mutex, uint64_t nanoseconds,
                                                 LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_fair_lock(mutex, LKS_TIMEOUT__, nanoseconds, 0, file, line);
}
#define lks_fair_mutex_lock_timeout(mutex, nanoseconds) \
    lks_fair_mutex_lock_timeout_dbg(mutex, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int lks_fair_mutex_lock_until_dbg(lks_fair_mutex *mutex,
                                               const struct timespec *deadline, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_fair_lock(mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline), 0, file, line);
}
#define lks_fair_mutex_lock_until(mutex, deadline) \
    lks_fair_mutex_lock_until_dbg(mutex, deadline, __FILE__, __LINE__)

LKS_INLINE__ void lks_fair_mutex_unlock_dbg(lks_fair_mutex *mutex, LKS_AT__)
    LKS_TSA__(release_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    lks_check_fair_unlock(mutex, file, line);
}
#define lks_fair_mutex_unlock(mutex) lks_fair_mutex_unlock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_cond_wait_fair_dbg(lks_cond *cond, lks_fair_mutex *mutex, LKS_AT__)
{
    (void)lks_check_cond_wait_fair(cond, mutex, LKS_FOREVER__, 0, file, line);
}
#define lks_cond_wait_fair(cond, mutex) lks_cond_wait_fair_dbg(cond, mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_cond_wait_fair_timeout_dbg(lks_cond *cond, lks_fair_mutex *mutex,
                                                uint64_t nanoseconds, LKS_AT__)
{
    return lks_check_cond_wait_fair(cond, mutex, LKS_TIMEOUT__, nanoseconds, file, line);
}
#define lks_cond_wait_fair_timeout(cond, mutex, nanoseconds) \
    lks_cond_wait_fair_timeout_dbg(cond, mutex, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int lks_cond_wait_fair_until_dbg(lks_cond *cond, lks_fair_mutex *mutex,
                                              const struct timespec *deadline, LKS_AT__)
{
    return lks_check_cond_wait_fair(cond, mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline), file, line);
}
#define lks_cond_wait_fair_until(cond, mutex, deadline) \
    lks_cond_wait_fair_until_dbg(cond, mutex, deadline, __FILE__, __LINE__)

LKS_INLINE__ int lks_cond_wait_fair_interruptible_dbg(lks_cond *cond, lks_fair_mutex *mutex,
                                                      LKS_AT__)
{
    return lks_check_cond_wait_fair(cond, mutex, LKS_INTERRUPTIBLE__, 0, file, line);
}
#define lks_cond_wait_fair_interruptible(cond, mutex) \
    lks_cond_wait_fair_interruptible_dbg(cond, mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_cond_wait_fair_killable_dbg(lks_cond *cond, lks_fair_mutex *mutex,
                                                 const lks_cancel *token, LKS_AT__)
{
    return lks_check_cond_wait_fair(cond, mutex, LKS_KILLABLE__, LKS_ADDRESS__(token), file, line);
}
#define lks_cond_wait_fair_killable(cond, mutex, token) \
    lks_cond_wait_fair_killable_dbg(cond, mutex, token, __FILE__, __LINE__)

#endif
