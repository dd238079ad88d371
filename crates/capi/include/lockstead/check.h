/*
 * The checking build: with LKS_DEBUG defined, each call of a lock goes to
 * `liblockstead-check`, with its file and line. The types are the same, so that only
 * the calls differ: those of mutex, semaphore, reader-writer lock and condition variable
 * are here.
 *
 * A misuse is reported to standard error, with the place of this call and of the
 * earlier one that makes it one, and ends the process; with LOCKSTEAD_CHECK=warn in
 * the environment only where it could not go on. So are threads that wait for each
 * other. An order of locks that can deadlock is reported and does not end it.
 */
#ifndef LOCKSTEAD_CHECK_H
#define LOCKSTEAD_CHECK_H

#include "cond.h"
#include "mutex.h"
#include "rwlock.h"
#include "semaphore.h"

LKS_BEGIN_DECLS__

#define LKS_AT__ const char *file, unsigned line

/* `kind`: what the address is of. */
enum lks_kind__ {
    LKS_KIND_MUTEX__,
    LKS_KIND_SEMAPHORE__,
    LKS_KIND_RWLOCK__,
    LKS_KIND_COND__,
    LKS_KIND_ONCE__,
    LKS_KIND_WW__
};

int lks_check_init(void *lock, unsigned kind, uint32_t permits, const char *name, LKS_AT__);
void lks_check_destroy(void *lock, unsigned kind, LKS_AT__);
int lks_check_mutex_lock(lks_mutex *mutex, unsigned how, uint64_t argument, unsigned subclass,
                         LKS_AT__);
int lks_check_mutex_trylock(lks_mutex *mutex, LKS_AT__);
void lks_check_mutex_unlock(lks_mutex *mutex, LKS_AT__);
int lks_check_dec_and_lock(int *count, lks_mutex *mutex, LKS_AT__);
int lks_check_semaphore_down(lks_semaphore *semaphore, unsigned how, uint64_t argument, LKS_AT__);
int lks_check_semaphore_trylock(lks_semaphore *semaphore, LKS_AT__);
int lks_check_semaphore_up(lks_semaphore *semaphore, LKS_AT__);
int lks_check_rwlock_lock(lks_rwlock *lock, int reads, unsigned how, uint64_t argument, LKS_AT__);
int lks_check_rwlock_lock_nested(lks_rwlock *lock, int reads, unsigned how, uint64_t argument,
                                 unsigned subclass, LKS_AT__);
int lks_check_rwlock_trylock(lks_rwlock *lock, int reads, LKS_AT__);
void lks_check_rwlock_unlock(lks_rwlock *lock, int reads, LKS_AT__);
void lks_check_rwlock_downgrade(lks_rwlock *lock, LKS_AT__);
int lks_check_cond_wait(lks_cond *cond, lks_mutex *mutex, unsigned how, uint64_t argument,
                        LKS_AT__);
void lks_check_cond_notify(lks_cond *cond, int all, LKS_AT__);

LKS_END_DECLS__

LKS_INLINE__ void lks_mutex_init_dbg(lks_mutex *mutex, const char *name, LKS_AT__)
{
    (void)lks_check_init(mutex, LKS_KIND_MUTEX__, 0, name, file, line);
}
#define lks_mutex_init(mutex) lks_mutex_init_dbg(mutex, #mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_mutex_destroy_dbg(lks_mutex *mutex, LKS_AT__)
{
    lks_check_destroy(mutex, LKS_KIND_MUTEX__, file, line);
}
#define lks_mutex_destroy(mutex) \
    lks_mutex_destroy_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_mutex_lock_dbg(lks_mutex *mutex, LKS_AT__)
    LKS_TSA__(acquire_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_mutex_lock(mutex, LKS_FOREVER__, 0, 0, file, line);
}
#define lks_mutex_lock(mutex) \
    lks_mutex_lock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ void lks_mutex_lock_nested_dbg(lks_mutex *mutex, unsigned subclass, LKS_AT__)
    LKS_TSA__(acquire_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_mutex_lock(mutex, LKS_FOREVER__, 0, subclass, file, line);
}
#define lks_mutex_lock_nested(mutex, subclass) \
    lks_mutex_lock_nested_dbg(mutex, subclass, __FILE__, __LINE__)

LKS_INLINE__ int lks_mutex_trylock_dbg(lks_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_mutex_trylock(mutex, file, line);
}
#define lks_mutex_trylock(mutex) \
    lks_mutex_trylock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_mutex_lock_interruptible_dbg(lks_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_mutex_lock(mutex, LKS_INTERRUPTIBLE__, 0, 0, file, line);
}
#define lks_mutex_lock_interruptible(mutex) \
    lks_mutex_lock_interruptible_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_mutex_lock_interruptible_nested_dbg(lks_mutex *mutex, unsigned subclass,
                                                         LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_mutex_lock(mutex, LKS_INTERRUPTIBLE__, 0, subclass, file, line);
}
#define lks_mutex_lock_interruptible_nested(mutex, subclass) \
    lks_mutex_lock_interruptible_nested_dbg(mutex, subclass, __FILE__, __LINE__)

LKS_INLINE__ int lks_mutex_lock_killable_dbg(lks_mutex *mutex, const lks_cancel *token, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_mutex_lock(mutex, LKS_KILLABLE__, LKS_ADDRESS__(token), 0, file, line);
}
#define lks_mutex_lock_killable(mutex, token) \
    lks_mutex_lock_killable_dbg(mutex, token, __FILE__, __LINE__)

LKS_INLINE__ int lks_mutex_lock_timeout_dbg(lks_mutex *mutex, uint64_t nanoseconds, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_mutex_lock(mutex, LKS_TIMEOUT__, nanoseconds, 0, file, line);
}
#define lks_mutex_lock_timeout(mutex, nanoseconds) \
    lks_mutex_lock_timeout_dbg(mutex, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int lks_mutex_lock_until_dbg(lks_mutex *mutex, const struct timespec *deadline,
                                          LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_mutex_lock(mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline), 0, file, line);
}
#define lks_mutex_lock_until(mutex, deadline) \
    lks_mutex_lock_until_dbg(mutex, deadline, __FILE__, __LINE__)

LKS_INLINE__ void lks_mutex_unlock_dbg(lks_mutex *mutex, LKS_AT__)
    LKS_TSA__(release_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    lks_check_mutex_unlock(mutex, file, line);
}
#define lks_mutex_unlock(mutex) \
    lks_mutex_unlock_dbg(mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_atomic_dec_and_mutex_lock_dbg(int *count, lks_mutex *mutex, LKS_AT__)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_dec_and_lock(count, mutex, file, line);
}
#define lks_atomic_dec_and_mutex_lock(count, mutex) \
    lks_atomic_dec_and_mutex_lock_dbg(count, mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_semaphore_init_dbg(lks_semaphore *semaphore, uint32_t permits,
                                        const char *name,
                                        LKS_AT__)
{
    return lks_check_init(semaphore, LKS_KIND_SEMAPHORE__, permits, name, file, line);
}
#define lks_semaphore_init(semaphore, permits) \
    lks_semaphore_init_dbg(semaphore, permits, #semaphore, __FILE__, __LINE__)

LKS_INLINE__ void lks_semaphore_destroy_dbg(lks_semaphore *semaphore, LKS_AT__)
{
    lks_check_destroy(semaphore, LKS_KIND_SEMAPHORE__, file, line);
}
#define lks_semaphore_destroy(semaphore) \
    lks_semaphore_destroy_dbg(semaphore, __FILE__, __LINE__)

LKS_INLINE__ void lks_semaphore_down_dbg(lks_semaphore *semaphore, LKS_AT__)
{
    (void)lks_check_semaphore_down(semaphore, LKS_FOREVER__, 0, file, line);
}
#define lks_semaphore_down(semaphore) \
    lks_semaphore_down_dbg(semaphore, __FILE__, __LINE__)

LKS_INLINE__ int lks_semaphore_down_interruptible_dbg(lks_semaphore *semaphore, LKS_AT__)
{
    return lks_check_semaphore_down(semaphore, LKS_INTERRUPTIBLE__, 0, file, line);
}
#define lks_semaphore_down_interruptible(semaphore) \
    lks_semaphore_down_interruptible_dbg(semaphore, __FILE__, __LINE__)

LKS_INLINE__ int lks_semaphore_down_killable_dbg(lks_semaphore *semaphore,
                                                 const lks_cancel *token, LKS_AT__)
{
    return lks_check_semaphore_down(semaphore, LKS_KILLABLE__, LKS_ADDRESS__(token), file, line);
}
#define lks_semaphore_down_killable(semaphore, token) \
    lks_semaphore_down_killable_dbg(semaphore, token, __FILE__, __LINE__)

LKS_INLINE__ int lks_semaphore_down_trylock_dbg(lks_semaphore *semaphore, LKS_AT__)
{
    return lks_check_semaphore_trylock(semaphore, file, line);
}
#define lks_semaphore_down_trylock(semaphore) \
    lks_semaphore_down_trylock_dbg(semaphore, __FILE__, __LINE__)

LKS_INLINE__ int lks_semaphore_down_timeout_dbg(lks_semaphore *semaphore, uint64_t nanoseconds,
                                                LKS_AT__)
{
    return lks_check_semaphore_down(semaphore, LKS_TIMEOUT__, nanoseconds, file, line);
}
#define lks_semaphore_down_timeout(semaphore, nanoseconds) \
    lks_semaphore_down_timeout_dbg(semaphore, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int lks_semaphore_down_until_dbg(lks_semaphore *semaphore,
                                              const struct timespec *deadline, LKS_AT__)
{
    return lks_check_semaphore_down(semaphore, LKS_UNTIL__, LKS_ADDRESS__(deadline), file, line);
}
#define lks_semaphore_down_until(semaphore, deadline) \
    lks_semaphore_down_until_dbg(semaphore, deadline, __FILE__, __LINE__)

LKS_INLINE__ int lks_semaphore_up_dbg(lks_semaphore *semaphore, LKS_AT__)
{
    return lks_check_semaphore_up(semaphore, file, line);
}
#define lks_semaphore_up(semaphore) \
    lks_semaphore_up_dbg(semaphore, __FILE__, __LINE__)

LKS_INLINE__ void lks_rwlock_init_dbg(lks_rwlock *lock, const char *name, LKS_AT__)
{
    (void)lks_check_init(lock, LKS_KIND_RWLOCK__, 0, name, file, line);
}
#define lks_rwlock_init(lock) lks_rwlock_init_dbg(lock, #lock, __FILE__, __LINE__)

LKS_INLINE__ void lks_rwlock_destroy_dbg(lks_rwlock *lock, LKS_AT__)
{
    lks_check_destroy(lock, LKS_KIND_RWLOCK__, file, line);
}
#define lks_rwlock_destroy(lock) \
    lks_rwlock_destroy_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ void lks_rwlock_read_dbg(lks_rwlock *lock, LKS_AT__)
    LKS_TSA__(acquire_shared_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_rwlock_lock(lock, 1, LKS_FOREVER__, 0, file, line);
}
#define lks_rwlock_read(lock) \
    lks_rwlock_read_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_tryread_dbg(lks_rwlock *lock, LKS_AT__)
    LKS_TSA__(try_acquire_shared_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_trylock(lock, 1, file, line);
}
#define lks_rwlock_tryread(lock) \
    lks_rwlock_tryread_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_read_interruptible_dbg(lks_rwlock *lock, LKS_AT__)
    LKS_TSA__(try_acquire_shared_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock(lock, 1, LKS_INTERRUPTIBLE__, 0, file, line);
}
#define lks_rwlock_read_interruptible(lock) \
    lks_rwlock_read_interruptible_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_read_killable_dbg(lks_rwlock *lock, const lks_cancel *token, LKS_AT__)
    LKS_TSA__(try_acquire_shared_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock(lock, 1, LKS_KILLABLE__, LKS_ADDRESS__(token), file, line);
}
#define lks_rwlock_read_killable(lock, token) \
    lks_rwlock_read_killable_dbg(lock, token, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_read_timeout_dbg(lks_rwlock *lock, uint64_t nanoseconds, LKS_AT__)
    LKS_TSA__(try_acquire_shared_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock(lock, 1, LKS_TIMEOUT__, nanoseconds, file, line);
}
#define lks_rwlock_read_timeout(lock, nanoseconds) \
    lks_rwlock_read_timeout_dbg(lock, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_read_until_dbg(lks_rwlock *lock, const struct timespec *deadline,
                                           LKS_AT__)
    LKS_TSA__(try_acquire_shared_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock(lock, 1, LKS_UNTIL__, LKS_ADDRESS__(deadline), file, line);
}
#define lks_rwlock_read_until(lock, deadline) \
    lks_rwlock_read_until_dbg(lock, deadline, __FILE__, __LINE__)

LKS_INLINE__ void lks_rwlock_unread_dbg(lks_rwlock *lock, LKS_AT__)
    LKS_TSA__(release_shared_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    lks_check_rwlock_unlock(lock, 1, file, line);
}
#define lks_rwlock_unread(lock) \
    lks_rwlock_unread_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ void lks_rwlock_write_dbg(lks_rwlock *lock, LKS_AT__)
    LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_check_rwlock_lock(lock, 0, LKS_FOREVER__, 0, file, line);
}
#define lks_rwlock_write(lock) \
    lks_rwlock_write_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_trywrite_dbg(lks_rwlock *lock, LKS_AT__)
    LKS_TSA__(try_acquire_capability(1, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_trylock(lock, 0, file, line);
}
#define lks_rwlock_trywrite(lock) \
    lks_rwlock_trywrite_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_write_interruptible_dbg(lks_rwlock *lock, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock(lock, 0, LKS_INTERRUPTIBLE__, 0, file, line);
}
#define lks_rwlock_write_interruptible(lock) \
    lks_rwlock_write_interruptible_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_write_killable_dbg(lks_rwlock *lock, const lks_cancel *token, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock(lock, 0, LKS_KILLABLE__, LKS_ADDRESS__(token), file, line);
}
#define lks_rwlock_write_killable(lock, token) \
    lks_rwlock_write_killable_dbg(lock, token, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_write_timeout_dbg(lks_rwlock *lock, uint64_t nanoseconds, LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock(lock, 0, LKS_TIMEOUT__, nanoseconds, file, line);
}
#define lks_rwlock_write_timeout(lock, nanoseconds) \
    lks_rwlock_write_timeout_dbg(lock, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int lks_rwlock_write_until_dbg(lks_rwlock *lock, const struct timespec *deadline,
                                            LKS_AT__)
    LKS_TSA__(try_acquire_capability(0, lock)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_check_rwlock_lock(lock, 0, LKS_UNTIL__, LKS_ADDRESS__(deadline), file, line);
}
#define lks_rwlock_write_until(lock, deadline) \
    lks_rwlock_write_until_dbg(lock, deadline, __FILE__, __LINE__)

LKS_INLINE__ void lks_rwlock_unwrite_dbg(lks_rwlock *lock, LKS_AT__)
    LKS_TSA__(release_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
{
    lks_check_rwlock_unlock(lock, 0, file, line);
}
#define lks_rwlock_unwrite(lock) \
    lks_rwlock_unwrite_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ void lks_rwlock_downgrade_dbg(lks_rwlock *lock, LKS_AT__)
{
    lks_check_rwlock_downgrade(lock, file, line);
}
#define lks_rwlock_downgrade(lock) \
    lks_rwlock_downgrade_dbg(lock, __FILE__, __LINE__)

LKS_INLINE__ void lks_cond_init_dbg(lks_cond *cond, const char *name, LKS_AT__)
{
    (void)lks_check_init(cond, LKS_KIND_COND__, 0, name, file, line);
}
#define lks_cond_init(cond) lks_cond_init_dbg(cond, #cond, __FILE__, __LINE__)

LKS_INLINE__ void lks_cond_destroy_dbg(lks_cond *cond, LKS_AT__)
{
    lks_check_destroy(cond, LKS_KIND_COND__, file, line);
}
#define lks_cond_destroy(cond) \
    lks_cond_destroy_dbg(cond, __FILE__, __LINE__)

LKS_INLINE__ void lks_cond_notify_one_dbg(lks_cond *cond, LKS_AT__)
{
    lks_check_cond_notify(cond, 0, file, line);
}
#define lks_cond_notify_one(cond) \
    lks_cond_notify_one_dbg(cond, __FILE__, __LINE__)

LKS_INLINE__ void lks_cond_notify_all_dbg(lks_cond *cond, LKS_AT__)
{
    lks_check_cond_notify(cond, 1, file, line);
}
#define lks_cond_notify_all(cond) \
    lks_cond_notify_all_dbg(cond, __FILE__, __LINE__)

LKS_INLINE__ void lks_cond_wait_dbg(lks_cond *cond, lks_mutex *mutex, LKS_AT__)
{
    (void)lks_check_cond_wait(cond, mutex, LKS_FOREVER__, 0, file, line);
}
#define lks_cond_wait(cond, mutex) \
    lks_cond_wait_dbg(cond, mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_cond_wait_timeout_dbg(lks_cond *cond, lks_mutex *mutex,
                                           uint64_t nanoseconds, LKS_AT__)
{
    return lks_check_cond_wait(cond, mutex, LKS_TIMEOUT__, nanoseconds, file, line);
}
#define lks_cond_wait_timeout(cond, mutex, nanoseconds) \
    lks_cond_wait_timeout_dbg(cond, mutex, nanoseconds, __FILE__, __LINE__)

LKS_INLINE__ int lks_cond_wait_until_dbg(lks_cond *cond, lks_mutex *mutex,
                                         const struct timespec *deadline, LKS_AT__)
{
    return lks_check_cond_wait(cond, mutex, LKS_UNTIL__, LKS_ADDRESS__(deadline), file, line);
}
#define lks_cond_wait_until(cond, mutex, deadline) \
    lks_cond_wait_until_dbg(cond, mutex, deadline, __FILE__, __LINE__)

LKS_INLINE__ int lks_cond_wait_interruptible_dbg(lks_cond *cond, lks_mutex *mutex, LKS_AT__)
{
    return lks_check_cond_wait(cond, mutex, LKS_INTERRUPTIBLE__, 0, file, line);
}
#define lks_cond_wait_interruptible(cond, mutex) \
    lks_cond_wait_interruptible_dbg(cond, mutex, __FILE__, __LINE__)

LKS_INLINE__ int lks_cond_wait_killable_dbg(lks_cond *cond, lks_mutex *mutex,
                                            const lks_cancel *token, LKS_AT__)
{
    return lks_check_cond_wait(cond, mutex, LKS_KILLABLE__, LKS_ADDRESS__(token), file, line);
}
#define lks_cond_wait_killable(cond, mutex, token) \
    lks_cond_wait_killable_dbg(cond, mutex, token, __FILE__, __LINE__)

#endif
