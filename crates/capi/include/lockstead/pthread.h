/*
 * The locks of POSIX threads, in files that include this instead of <pthread.h>, or
 * that are compiled with -include lockstead/pthread.h: pthread_mutex_t, pthread_cond_t,
 * pthread_rwlock_t and pthread_once_t become lockstead's, and so do their calls. Link
 * with -llockstead. Everything else of <pthread.h> stays as it is: threads, keys,
 * attributes, barriers, spin locks.
 *
 * - All files that share a lock must include this. The types are other types than the
 *   system's: a lock that is handed to a library which was not built with this is an
 *   error to the compiler (in C as far as the library's header comes before this one,
 *   in C++ otherwise to the linker). In C++ the standard library keeps the system's.
 * - pthread_mutex_init, pthread_cond_init and pthread_rwlock_init refuse by ENOTSUP
 *   what lockstead has not: process-shared, robust, priority-inheriting and -protected
 *   locks. A mutex that was refused and is used nevertheless ends the program.
 * - A thread that locks a normal mutex again, which would hang, ends the program with a
 *   message.
 * - Waits for a condition look for cancellation before and after, but pthread_cancel
 *   does not end them: calling it is a warning, unless LKS_PTHREAD_CANCEL is defined.
 * - Deadlines on CLOCK_REALTIME that the clock is set past are noticed late.
 *
 * With LKS_DEBUG defined, too, the checks of `check.h` come with it.
 */
#include "pthread-base.h"
#ifndef LOCKSTEAD_PTHREAD_H
#define LOCKSTEAD_PTHREAD_H

#include "pthread-cond.h"
#include "pthread-mutex.h"
#include "pthread-once.h"
#include "pthread-rwlock.h"

#ifndef LKS_PTHREAD_CANCEL
#if defined(__has_attribute)
#if __has_attribute(warning)
__attribute__((warning("pthread_cancel does not end a wait for one of lockstead's conditions; "
                       "define LKS_PTHREAD_CANCEL if that is all right")))
#endif
#endif
int lks_pthread_cancel__(pthread_t thread) __asm__("pthread_cancel");
#define pthread_cancel lks_pthread_cancel__
#endif

#undef PTHREAD_MUTEX_INITIALIZER
#undef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#undef PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP
#undef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#undef PTHREAD_COND_INITIALIZER
#undef PTHREAD_ONCE_INIT
#define PTHREAD_MUTEX_INITIALIZER LKS_PTHREAD_MUTEX_OF__(LKS_PTHREAD_NORMAL__)
#define PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP LKS_PTHREAD_MUTEX_OF__(LKS_PTHREAD_RECURSIVE__)
#define PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP LKS_PTHREAD_MUTEX_OF__(LKS_PTHREAD_ERRORCHECK__)
#define PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP PTHREAD_MUTEX_INITIALIZER
#define PTHREAD_COND_INITIALIZER LKS_PTHREAD_COND_INIT__
#define PTHREAD_ONCE_INIT {LKS_ONCE_INIT}

#define pthread_mutex_t lks_pthread_mutex
#define pthread_cond_t lks_pthread_cond
#define pthread_once_t lks_pthread_once

#define pthread_mutex_consistent lks_pthread_mutex_consistent__
#define pthread_mutex_getprioceiling lks_pthread_mutex_getprioceiling__
#define pthread_mutex_setprioceiling lks_pthread_mutex_setprioceiling__
#define pthread_once lks_pthread_once_call__

#ifndef LKS_DEBUG

#define pthread_mutex_init lks_pthread_mutex_init__
#define pthread_mutex_destroy lks_pthread_mutex_destroy__
#define pthread_mutex_lock lks_pthread_mutex_lock__
#define pthread_mutex_trylock lks_pthread_mutex_trylock__
#define pthread_mutex_timedlock lks_pthread_mutex_timedlock__
#define pthread_mutex_clocklock lks_pthread_mutex_clocklock__
#define pthread_mutex_unlock lks_pthread_mutex_unlock__
#define pthread_cond_init lks_pthread_cond_init__
#define pthread_cond_destroy lks_pthread_cond_destroy__
#define pthread_cond_signal lks_pthread_cond_signal__
#define pthread_cond_broadcast lks_pthread_cond_broadcast__
#define pthread_cond_wait lks_pthread_cond_wait__
#define pthread_cond_timedwait lks_pthread_cond_timedwait__
#define pthread_cond_clockwait lks_pthread_cond_clockwait__

#else

/* With the place of the call. */
#define LKS_PTHREAD_HERE__(call, ...) lks_pthread_##call##__(__VA_ARGS__, __FILE__, __LINE__)
#define pthread_mutex_init(...) LKS_PTHREAD_HERE__(mutex_init, __VA_ARGS__)
#define pthread_mutex_destroy(...) LKS_PTHREAD_HERE__(mutex_destroy, __VA_ARGS__)
#define pthread_mutex_lock(...) LKS_PTHREAD_HERE__(mutex_lock, __VA_ARGS__)
#define pthread_mutex_trylock(...) LKS_PTHREAD_HERE__(mutex_trylock, __VA_ARGS__)
#define pthread_mutex_timedlock(...) LKS_PTHREAD_HERE__(mutex_timedlock, __VA_ARGS__)
#define pthread_mutex_clocklock(...) LKS_PTHREAD_HERE__(mutex_clocklock, __VA_ARGS__)
#define pthread_mutex_unlock(...) LKS_PTHREAD_HERE__(mutex_unlock, __VA_ARGS__)
#define pthread_cond_init(...) LKS_PTHREAD_HERE__(cond_init, __VA_ARGS__)
#define pthread_cond_destroy(...) LKS_PTHREAD_HERE__(cond_destroy, __VA_ARGS__)
#define pthread_cond_signal(...) LKS_PTHREAD_HERE__(cond_signal, __VA_ARGS__)
#define pthread_cond_broadcast(...) LKS_PTHREAD_HERE__(cond_broadcast, __VA_ARGS__)
#define pthread_cond_wait(...) LKS_PTHREAD_HERE__(cond_wait, __VA_ARGS__)
#define pthread_cond_timedwait(...) LKS_PTHREAD_HERE__(cond_timedwait, __VA_ARGS__)
#define pthread_cond_clockwait(...) LKS_PTHREAD_HERE__(cond_clockwait, __VA_ARGS__)

#endif

#ifdef LKS_PTHREAD_2001__

#undef PTHREAD_RWLOCK_INITIALIZER
#undef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#define PTHREAD_RWLOCK_INITIALIZER LKS_PTHREAD_RWLOCK_INIT__
#define PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP LKS_PTHREAD_RWLOCK_INIT__
#define pthread_rwlock_t lks_pthread_rwlock

#ifndef LKS_DEBUG
#define pthread_rwlock_init lks_pthread_rwlock_init__
#define pthread_rwlock_destroy lks_pthread_rwlock_destroy__
#define pthread_rwlock_rdlock lks_pthread_rwlock_rdlock__
#define pthread_rwlock_tryrdlock lks_pthread_rwlock_tryrdlock__
#define pthread_rwlock_timedrdlock lks_pthread_rwlock_timedrdlock__
#define pthread_rwlock_clockrdlock lks_pthread_rwlock_clockrdlock__
#define pthread_rwlock_wrlock lks_pthread_rwlock_wrlock__
#define pthread_rwlock_trywrlock lks_pthread_rwlock_trywrlock__
#define pthread_rwlock_timedwrlock lks_pthread_rwlock_timedwrlock__
#define pthread_rwlock_clockwrlock lks_pthread_rwlock_clockwrlock__
#define pthread_rwlock_unlock lks_pthread_rwlock_unlock__
#else
#define pthread_rwlock_init(...) LKS_PTHREAD_HERE__(rwlock_init, __VA_ARGS__)
#define pthread_rwlock_destroy(...) LKS_PTHREAD_HERE__(rwlock_destroy, __VA_ARGS__)
#define pthread_rwlock_rdlock(...) LKS_PTHREAD_HERE__(rwlock_rdlock, __VA_ARGS__)
#define pthread_rwlock_tryrdlock(...) LKS_PTHREAD_HERE__(rwlock_tryrdlock, __VA_ARGS__)
#define pthread_rwlock_timedrdlock(...) LKS_PTHREAD_HERE__(rwlock_timedrdlock, __VA_ARGS__)
#define pthread_rwlock_clockrdlock(...) LKS_PTHREAD_HERE__(rwlock_clockrdlock, __VA_ARGS__)
#define pthread_rwlock_wrlock(...) LKS_PTHREAD_HERE__(rwlock_wrlock, __VA_ARGS__)
#define pthread_rwlock_trywrlock(...) LKS_PTHREAD_HERE__(rwlock_trywrlock, __VA_ARGS__)
#define pthread_rwlock_timedwrlock(...) LKS_PTHREAD_HERE__(rwlock_timedwrlock, __VA_ARGS__)
#define pthread_rwlock_clockwrlock(...) LKS_PTHREAD_HERE__(rwlock_clockwrlock, __VA_ARGS__)
#define pthread_rwlock_unlock(...) LKS_PTHREAD_HERE__(rwlock_unlock, __VA_ARGS__)
#endif

#endif

/* C takes another type's address with a warning; here that is a lock of a library that
 * was not built with this. */
#ifndef __cplusplus
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#endif

#endif
