/*
 * What code with the kernel's locks says of them: the part of `kernel.h` that is of the
 * kernel's linux/lockdep.h, and `might_sleep`.
 *
 * The checking build looks at the assertions, by the calling thread, and gives locks
 * their classes. Otherwise nothing is asked, as in a kernel without lockdep.
 */
#ifndef LOCKSTEAD_KERNEL_H
#include "kernel.h" /* which includes this one */
#endif
#ifndef LOCKSTEAD_KERNEL_LOCKDEP_H
#define LOCKSTEAD_KERNEL_LOCKDEP_H

/* Its address names a class of locks, of which one is as good as the other. */
struct lock_class_key {
    char lks__;
};

LKS_INLINE__ void lockdep_register_key(struct lock_class_key *key)
{
    (void)key;
}

LKS_INLINE__ void lockdep_unregister_key(struct lock_class_key *key)
{
    (void)key;
}

#ifdef LKS_DEBUG

LKS_BEGIN_DECLS__

/* How a lock is held, for the assertions. */
enum lks_held__ { LKS_NOT_HELD__, LKS_HELD__, LKS_HELD_READ__, LKS_HELD_WRITE__ };

int lks_check_is_held(const void *lock);
void lks_check_assert(const void *lock, unsigned how, const char *file, unsigned line);
void lks_check_class(const void *lock, const void *key);

LKS_END_DECLS__

#define LKS_ASSERT_HELD__(lock, how) lks_check_assert(&(lock)->lks__, how, __FILE__, __LINE__)
#define LKS_SET_CLASS__(lock, key) lks_check_class(&(lock)->lks__, (key))
#define lockdep_is_held(lock) lks_check_is_held(&(lock)->lks__)

#else

#define LKS_ASSERT_HELD__(lock, how) ((void)&(lock)->lks__)
#define LKS_SET_CLASS__(lock, key) ((void)&(lock)->lks__, (void)(key))
#define lockdep_is_held(lock) ((void)&(lock)->lks__, 1)

#endif

/* By the calling thread: at all, for reading, for writing. */
#define lockdep_assert_held(lock) LKS_ASSERT_HELD__(lock, LKS_HELD__)
#define lockdep_assert_held_read(lock) LKS_ASSERT_HELD__(lock, LKS_HELD_READ__)
#define lockdep_assert_held_write(lock) LKS_ASSERT_HELD__(lock, LKS_HELD_WRITE__)
#define lockdep_assert_held_once(lock) lockdep_assert_held(lock)
#define lockdep_assert_not_held(lock) LKS_ASSERT_HELD__(lock, LKS_NOT_HELD__)

/* After the lock is initialised, and before it is used. */
#define lockdep_set_class(lock, key) LKS_SET_CLASS__(lock, key)
#define lockdep_set_class_and_name(lock, key, name) ((void)(name), lockdep_set_class(lock, key))

/* Initialises a mutex of the class of a key, with a name. */
#define __mutex_init(lock, name, key) \
    (LKS_MUTEX_INIT_NAMED__(lock, name), lockdep_set_class(lock, key))
#define mutex_init_with_key(lock, key) __mutex_init(lock, #lock, key)
#define __init_rwsem(sem, name, key) \
    (LKS_RWSEM_INIT_NAMED__(sem, name), lockdep_set_class(sem, key))
#ifdef LKS_DEBUG
#define LKS_MUTEX_INIT_NAMED__(lock, name) \
    lks_mutex_init_dbg(&(lock)->lks__, name, __FILE__, __LINE__)
#define LKS_RWSEM_INIT_NAMED__(sem, name) \
    lks_rwlock_init_dbg(&(sem)->lks__, name, __FILE__, __LINE__)
#else
#define LKS_MUTEX_INIT_NAMED__(lock, name) ((void)(name), mutex_init(lock))
#define LKS_RWSEM_INIT_NAMED__(sem, name) ((void)(name), init_rwsem(sem))
#endif

/* Here every thread may sleep wherever it is. */
#define might_sleep() ((void)0)
#define might_sleep_if(condition) ((void)(condition))

#endif
