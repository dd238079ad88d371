/*
 * Holds that end with their scope: the part of `kernel.h` that is of the kernel's
 * linux/cleanup.h, with the names that its locks' headers give it.
 *
 *     guard(mutex)(&lock);                        until the end of the block
 *     scoped_guard(mutex, &lock) { ... }          for this block
 *     scoped_cond_guard(mutex_intr, return -EINTR, &lock) { ... }
 *     ACQUIRE(mutex_intr, held)(&lock);           held, if ACQUIRE_ERR says 0
 *     if (ACQUIRE_ERR(mutex_intr, &held)) ...
 *
 * For C, by the attribute `cleanup` of gcc and clang. C++ has std::lock_guard, and
 * programs in it call their own things `guard`.
 */
#ifndef LOCKSTEAD_KERNEL_H
#include "kernel.h" /* which includes this one */
#endif
#ifndef LOCKSTEAD_KERNEL_GUARD_H
#define LOCKSTEAD_KERNEL_GUARD_H

#ifndef __cplusplus

/* The checking build notes where the guard stands: its end is no place in the program. */
#ifdef LKS_DEBUG
#define LKS_GUARD_PLACE__ \
    const char *file;     \
    unsigned line;
#define LKS_GUARD_NOTE__ , file, line
#define LKS_GUARD_HERE__ , __FILE__, __LINE__
#define LKS_GUARD_AT__(guard)       \
    const char *file = guard->file; \
    unsigned line = guard->line;
#else
#define LKS_GUARD_PLACE__
#define LKS_GUARD_NOTE__
#define LKS_GUARD_HERE__
#define LKS_GUARD_AT__(guard)
#endif

/* A kind of guard: what it holds, whether it may not get it, by which calls on `lock`.
 * `take` is 0 or a negative errno. */
#define LKS_GUARD_KIND__(name, type, may_fail, take, give)                                  \
    enum { lks_guard_##name##_may_fail__ = may_fail };                                     \
    typedef struct {                                                                       \
        type *lock;                                                                        \
        int error;                                                                         \
        LKS_GUARD_PLACE__                                                                  \
    } lks_guard_##name##__;                                                                \
    LKS_INLINE__ lks_guard_##name##__ lks_guard_##name##_take__(type *lock LKS_AND_AT__)   \
        LKS_TSA__(no_thread_safety_analysis)                                               \
    {                                                                                      \
        const int error = (take);                                                          \
        const lks_guard_##name##__ guard = {lock, error LKS_GUARD_NOTE__};                 \
        return guard;                                                                      \
    }                                                                                      \
    LKS_INLINE__ void lks_guard_##name##_give__(lks_guard_##name##__ *guard)               \
        LKS_TSA__(no_thread_safety_analysis)                                               \
    {                                                                                      \
        if (!lks_guard_##name##_may_fail__ || guard->error == 0) {                         \
            type *lock = guard->lock;                                                      \
            LKS_GUARD_AT__(guard)                                                          \
            give;                                                                          \
        }                                                                                  \
    }

#define LKS_GUARD_TRIED__(taken) ((taken) ? 0 : -EBUSY)

LKS_GUARD_KIND__(mutex, struct mutex, 0, (LKS_ON__(lks_mutex_lock, &lock->lks__), 0),
                 LKS_ON__(lks_mutex_unlock, &lock->lks__))
LKS_GUARD_KIND__(mutex_try, struct mutex, 1,
                 LKS_GUARD_TRIED__(LKS_ON__(lks_mutex_trylock, &lock->lks__)),
                 LKS_ON__(lks_mutex_unlock, &lock->lks__))
LKS_GUARD_KIND__(mutex_intr, struct mutex, 1, LKS_ON__(lks_mutex_lock_interruptible, &lock->lks__),
                 LKS_ON__(lks_mutex_unlock, &lock->lks__))
LKS_GUARD_KIND__(mutex_kill, struct mutex, 1,
                 LKS_ON__(lks_mutex_lock_killable, &lock->lks__, lockstead_token__),
                 LKS_ON__(lks_mutex_unlock, &lock->lks__))
LKS_GUARD_KIND__(rwsem_read, struct rw_semaphore, 0,
                 (LKS_ON__(lks_rwlock_read, &lock->lks__), 0),
                 LKS_ON__(lks_rwlock_unread, &lock->lks__))
LKS_GUARD_KIND__(rwsem_read_try, struct rw_semaphore, 1,
                 LKS_GUARD_TRIED__(LKS_ON__(lks_rwlock_tryread, &lock->lks__)),
                 LKS_ON__(lks_rwlock_unread, &lock->lks__))
LKS_GUARD_KIND__(rwsem_read_intr, struct rw_semaphore, 1,
                 LKS_ON__(lks_rwlock_read_interruptible, &lock->lks__),
                 LKS_ON__(lks_rwlock_unread, &lock->lks__))
LKS_GUARD_KIND__(rwsem_write, struct rw_semaphore, 0,
                 (LKS_ON__(lks_rwlock_write, &lock->lks__), 0),
                 LKS_ON__(lks_rwlock_unwrite, &lock->lks__))
LKS_GUARD_KIND__(rwsem_write_try, struct rw_semaphore, 1,
                 LKS_GUARD_TRIED__(LKS_ON__(lks_rwlock_trywrite, &lock->lks__)),
                 LKS_ON__(lks_rwlock_unwrite, &lock->lks__))
LKS_GUARD_KIND__(rwsem_write_kill, struct rw_semaphore, 1,
                 LKS_ON__(lks_rwlock_write_killable, &lock->lks__, lockstead_token__),
                 LKS_ON__(lks_rwlock_unwrite, &lock->lks__))

/* What stands behind `guard(mutex)` in a file is its argument: the last name here is that
 * of a macro that takes it, since it must see the place of the call. */
#define lks_guard_on_mutex__(lock) lks_guard_mutex_take__((lock)LKS_GUARD_HERE__)
#define lks_guard_on_mutex_try__(lock) lks_guard_mutex_try_take__((lock)LKS_GUARD_HERE__)
#define lks_guard_on_mutex_intr__(lock) lks_guard_mutex_intr_take__((lock)LKS_GUARD_HERE__)
#define lks_guard_on_mutex_kill__(lock) lks_guard_mutex_kill_take__((lock)LKS_GUARD_HERE__)
#define lks_guard_on_rwsem_read__(sem) lks_guard_rwsem_read_take__((sem)LKS_GUARD_HERE__)
#define lks_guard_on_rwsem_read_try__(sem) lks_guard_rwsem_read_try_take__((sem)LKS_GUARD_HERE__)
#define lks_guard_on_rwsem_read_intr__(sem) lks_guard_rwsem_read_intr_take__((sem)LKS_GUARD_HERE__)
#define lks_guard_on_rwsem_write__(sem) lks_guard_rwsem_write_take__((sem)LKS_GUARD_HERE__)
#define lks_guard_on_rwsem_write_try__(sem) \
    lks_guard_rwsem_write_try_take__((sem)LKS_GUARD_HERE__)
#define lks_guard_on_rwsem_write_kill__(sem) \
    lks_guard_rwsem_write_kill_take__((sem)LKS_GUARD_HERE__)

/* Pasted once `mutex`, say, has had its chance to be a macro of the program's. */
#define LKS_JOIN__(a, b) LKS_JOINED__(a, b)
#define LKS_JOINED__(a, b) a##b

/* A variable that is given up when its scope ends, and what gives it its value. */
#define LKS_GUARD_VARIABLE__(name, variable)                                          \
    lks_guard_##name##__ variable __attribute__((unused, cleanup(lks_guard_##name##_give__))) = \
        lks_guard_on_##name##__

#define guard(name) LKS_GUARD_VARIABLE__(name, LKS_JOIN__(lks_guard_, __COUNTER__))
#define ACQUIRE(name, variable) LKS_GUARD_VARIABLE__(name, variable)
#define ACQUIRE_ERR(name, variable) ((variable)->error)

/* The block is the branch of an `if`, which leaves the loop by its other branch: so the
 * compiler sees that it is run once at most, and a `break` in it leaves it. */
#define LKS_SCOPED__(name, otherwise, label, ...)                                         \
    for (LKS_GUARD_VARIABLE__(name, lks_scope__)(__VA_ARGS__);; __extension__({ goto label; })) \
        if (lks_guard_##name##_may_fail__ && lks_scope__.error != 0) {                    \
            otherwise;                                                                    \
        label:                                                                            \
            __attribute__((unused));                                                      \
            break;                                                                        \
        } else

#define scoped_guard(name, ...) \
    LKS_SCOPED__(name, (void)0, LKS_JOIN__(lks_scope_end_, __COUNTER__), __VA_ARGS__)
#define scoped_cond_guard(name, otherwise, ...) \
    LKS_SCOPED__(name, otherwise, LKS_JOIN__(lks_scope_end_, __COUNTER__), __VA_ARGS__)

#endif

#endif
