/*
 * The part of `kernel.h` that is the kernel's linux/semaphore.h.
 *
 * With LKS_SEMAPHORES_ARE_MUTEXES defined, `struct semaphore` is a mutex inside:
 * only for programs whose semaphores all have one permit, which the thread gives
 * back that took it. `lks_semaphore` stays what it is. All files of a program that
 * share a `struct semaphore` must agree.
 */
#ifndef LOCKSTEAD_KERNEL_H
#include "kernel.h" /* the token of killable waits; includes this one */
#endif
#ifndef LOCKSTEAD_KERNEL_SEMAPHORE_H
#define LOCKSTEAD_KERNEL_SEMAPHORE_H

#ifdef LKS_DEBUG
#include "check.h"
#endif

#include <stdio.h>
#include <stdlib.h>

/* In the checking build the functions have names of their own and know who calls
 * them; the kernel's names are macros. */
#ifdef LKS_DEBUG
#define LKS_KERNEL_NAME__(verb) lks_kernel_##verb##__
#else
#define LKS_KERNEL_NAME__(verb) verb
#endif

/* A jiffy is 1/HZ second. */
LKS_INLINE__ uint64_t lks_jiffies__(long jiffies)
{
    uint64_t time = jiffies < 0 ? 0 : (uint64_t)jiffies;
    return time >= UINT64_MAX / 1000000000u ? UINT64_MAX : time * 1000000000u / HZ;
}

/* The kernel's name for a time that is over. */
LKS_INLINE__ int lks_jiffies_over__(int result)
{
    return result == -ETIMEDOUT ? -ETIME : result;
}

/* A mutex cannot begin with any other count than 1, free, or 0, held by the caller:
 * where the compiler knows the count it refuses, otherwise the program ends. */
#define LKS_REFUSES__ 0
#if defined(__has_attribute)
#if __has_attribute(error)
#undef LKS_REFUSES__
#define LKS_REFUSES__ 1
__attribute__((error("a mutex cannot begin with this count: make it an lks_semaphore")))
#endif
#endif
void lks_a_mutex_cannot_begin_with_this_count__(void);

__attribute__((cold, noreturn, unused)) static void lks_no_such_mutex__(const char *file,
                                                                       unsigned line, int count)
{
    fprintf(stderr,
            "lockstead: %s:%u: sema_init: a mutex cannot begin with the count %d: 1 is free, 0 "
            "is held by the caller. Make it an lks_semaphore\n",
            file, line, count);
    abort();
}

#ifdef LKS_DEBUG
#define LKS_INIT_OF__(type) lks_##type##_init_dbg
#define LKS_INIT_AT__ , name, file, line
#else
#define LKS_INIT_OF__(type) lks_##type##_init
#define LKS_INIT_AT__
#endif

LKS_INLINE__ void lks_sema_init_mutex__(lks_mutex *mutex, int count, const char *name,
                                        const char *file, unsigned line)
    LKS_TSA__(no_thread_safety_analysis)
{
    (void)name;
    if (count != 0 && count != 1) {
        if (LKS_REFUSES__ && __builtin_constant_p(count))
            lks_a_mutex_cannot_begin_with_this_count__();
        lks_no_such_mutex__(file, line, count);
    }
    LKS_INIT_OF__(mutex)(mutex LKS_INIT_AT__);
    if (count == 0)
        LKS_ON__(lks_mutex_lock, mutex);
}

LKS_INLINE__ void lks_sema_init_semaphore__(lks_semaphore *semaphore, int count, const char *name,
                                            const char *file, unsigned line)
{
    (void)name;
    (void)file;
    (void)line;
    /* One that it cannot count leaves none: the kernel's has no way to say so either. */
    if (count < 0 || LKS_INIT_OF__(semaphore)(semaphore, (uint32_t)count LKS_INIT_AT__) != 0)
        (void)LKS_INIT_OF__(semaphore)(semaphore, 0 LKS_INIT_AT__);
}

#ifdef __cplusplus
#define LKS_STATIC_ASSERT__(condition, message) static_assert(condition, message)
#else
#define LKS_STATIC_ASSERT__(condition, message) \
    __extension__ _Static_assert(condition, message)
#endif

#ifdef LKS_SEMAPHORES_ARE_MUTEXES

struct LKS_TSA__(capability("mutex")) semaphore {
    lks_mutex lks__;
};
#define __SEMAPHORE_INITIALIZER(name, count) {LKS_MUTEX_INIT}
#define LKS_DEFINE_SEMAPHORE__(name, count, ...)                     \
    struct semaphore name = __SEMAPHORE_INITIALIZER(name, count); \
    LKS_STATIC_ASSERT__((count) == 1, "a semaphore that is a mutex begins with the count 1: " \
                                      "make this one an lks_semaphore")
#define LKS_SEMAPHORE_TSA__(attribute) LKS_TSA__(attribute)
#define LKS_SEMAPHORE_ON__(of_semaphore, of_mutex, ...) LKS_ON__(of_mutex, __VA_ARGS__)

#else

struct semaphore {
    lks_semaphore lks__;
};
#define __SEMAPHORE_INITIALIZER(name, count) {LKS_SEMAPHORE_INIT(count)}
#define LKS_DEFINE_SEMAPHORE__(name, count, ...) \
    struct semaphore name = __SEMAPHORE_INITIALIZER(name, count)
#define LKS_SEMAPHORE_TSA__(attribute)
#define LKS_SEMAPHORE_ON__(of_semaphore, of_mutex, ...) LKS_ON__(of_semaphore, __VA_ARGS__)

#endif

/* A name and a count, or as before Linux 6.4 the name alone: one permit. */
#define DEFINE_SEMAPHORE(...) LKS_DEFINE_SEMAPHORE__(__VA_ARGS__, 1, )

LKS_INLINE__ void LKS_KERNEL_NAME__(down)(struct semaphore *sem LKS_AND_AT__)
    LKS_SEMAPHORE_TSA__(acquire_capability(sem)) LKS_TSA__(no_thread_safety_analysis)
{
    LKS_SEMAPHORE_ON__(lks_semaphore_down, lks_mutex_lock, &sem->lks__);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_KERNEL_NAME__(down_interruptible)(
    struct semaphore *sem LKS_AND_AT__) LKS_SEMAPHORE_TSA__(try_acquire_capability(0, sem))
    LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_SEMAPHORE_ON__(lks_semaphore_down_interruptible, lks_mutex_lock_interruptible,
                              &sem->lks__);
}

LKS_NODISCARD__ LKS_INLINE__ int LKS_KERNEL_NAME__(down_killable)(
    struct semaphore *sem LKS_AND_AT__) LKS_SEMAPHORE_TSA__(try_acquire_capability(0, sem))
    LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_SEMAPHORE_ON__(lks_semaphore_down_killable, lks_mutex_lock_killable, &sem->lks__,
                              lockstead_token__);
}

/* Returns 0 on success. */
LKS_NODISCARD__ LKS_INLINE__ int LKS_KERNEL_NAME__(down_trylock)(
    struct semaphore *sem LKS_AND_AT__) LKS_SEMAPHORE_TSA__(try_acquire_capability(0, sem))
    LKS_TSA__(no_thread_safety_analysis)
{
#ifdef LKS_SEMAPHORES_ARE_MUTEXES
    return !LKS_ON__(lks_mutex_trylock, &sem->lks__);
#else
    return LKS_ON__(lks_semaphore_down_trylock, &sem->lks__);
#endif
}

/* Returns 0 or -ETIME. */
LKS_NODISCARD__ LKS_INLINE__ int LKS_KERNEL_NAME__(down_timeout)(
    struct semaphore *sem, long jiffies LKS_AND_AT__)
    LKS_SEMAPHORE_TSA__(try_acquire_capability(0, sem)) LKS_TSA__(no_thread_safety_analysis)
{
    return lks_jiffies_over__(LKS_SEMAPHORE_ON__(lks_semaphore_down_timeout,
                                                 lks_mutex_lock_timeout, &sem->lks__,
                                                 lks_jiffies__(jiffies)));
}

LKS_INLINE__ void LKS_KERNEL_NAME__(up)(struct semaphore *sem LKS_AND_AT__)
    LKS_SEMAPHORE_TSA__(release_capability(sem)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)LKS_SEMAPHORE_ON__(lks_semaphore_up, lks_mutex_unlock, &sem->lks__);
}

LKS_INLINE__ void lks_sema_init_kernel_semaphore__(struct semaphore *sem, int count,
                                                   const char *name, const char *file,
                                                   unsigned line)
{
#ifdef LKS_SEMAPHORES_ARE_MUTEXES
    lks_sema_init_mutex__(&sem->lks__, count, name, file, line);
#else
    lks_sema_init_semaphore__(&sem->lks__, count, name, file, line);
#endif
}
#define sema_init(sem, count) \
    lks_sema_init_kernel_semaphore__(sem, count, #sem, __FILE__, __LINE__)

#ifdef LKS_DEBUG
#define down(sem) lks_kernel_down__(sem, __FILE__, __LINE__)
#define down_interruptible(sem) lks_kernel_down_interruptible__(sem, __FILE__, __LINE__)
#define down_killable(sem) lks_kernel_down_killable__(sem, __FILE__, __LINE__)
#define down_trylock(sem) lks_kernel_down_trylock__(sem, __FILE__, __LINE__)
#define down_timeout(sem, jiffies) lks_kernel_down_timeout__(sem, jiffies, __FILE__, __LINE__)
#define up(sem) lks_kernel_up__(sem, __FILE__, __LINE__)
#endif

#endif
