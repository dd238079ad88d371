/*
 * What all of lockstead's headers share: versions, how a wait may end, the
 * calling thread's number, and the few words that differ between compilers.
 *
 * Names that end in two underscores are for the headers alone.
 */
#ifndef LOCKSTEAD_BASE_H
#define LOCKSTEAD_BASE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

struct timespec;

#if !defined(__linux__) || !defined(__LP64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "lockstead is for Linux on 64-bit little-endian processors"
#endif
#if !defined(__GNUC__)
#error "lockstead.h needs gcc, clang, or a compiler that has their __atomic builtins"
#endif

#define LKS_VERSION_MAJOR 0
#define LKS_VERSION_MINOR 1
#define LKS_VERSION_PATCH 0
#define LKS_VERSION_STRING "0.1.0"

#ifdef __cplusplus
#define LKS_BEGIN_DECLS__ extern "C" {
#define LKS_END_DECLS__ }
#define LKS_ZEROES__ {}
#else
#define LKS_BEGIN_DECLS__
#define LKS_END_DECLS__
#define LKS_ZEROES__ {0}
#endif

/* Holds in C99 and in each C++ alike; `name` makes the message. */
#define LKS_ASSERT__(name, condition) \
    typedef char lks_assert_##name##__[(condition) ? 1 : -1] __attribute__((unused))

#define LKS_LIKELY__(condition) __builtin_expect(!!(condition), 1)
#define LKS_UNLIKELY__(condition) __builtin_expect(!!(condition), 0)
#define LKS_NODISCARD__ __attribute__((warn_unused_result))
#define LKS_NONNULL__ __attribute__((nonnull))
#define LKS_INLINE__ static __inline__ __attribute__((always_inline, unused))

/* Clang's -Wthread-safety; nothing elsewhere. */
#if defined(__clang__)
#define LKS_TSA__(attribute) __attribute__((attribute))
#else
#define LKS_TSA__(attribute)
#endif

/* Tells a thread sanitizer, which does not see into the library, what a lock
 * orders. In programs that are not built with one this is nothing. */
#if defined(__SANITIZE_THREAD__)
#define LKS_TSAN__ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LKS_TSAN__ 1
#endif
#endif
#ifdef LKS_TSAN__
LKS_BEGIN_DECLS__
void __tsan_acquire(void *);
void __tsan_release(void *);
LKS_END_DECLS__
#define LKS_ACQUIRED__(lock) __tsan_acquire((void *)(lock))
#define LKS_RELEASING__(lock) __tsan_release((void *)(lock))
#else
#define LKS_ACQUIRED__(lock) ((void)0)
#define LKS_RELEASING__(lock) ((void)0)
#endif

/* Sanitizers see atomic builtins, and not what is written in assembly. */
#if defined(LKS_TSAN__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_HWADDRESS__)
#define LKS_SANITIZED__ 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(hwaddress_sanitizer)
#define LKS_SANITIZED__ 1
#endif
#endif

/* Threads that may use locks at the same time, and permits of a semaphore. */
#define LKS_MAX_SLOTS__ 0xfffffu

/* A switch that ends the waits it was given to, now and later: what the fatal
 * signal is to the kernel's `killable` calls. Zeroes: not fired. */
typedef struct lks_cancel {
    uint32_t fired__;
} lks_cancel;
#define LKS_CANCEL_INIT LKS_ZEROES__

/* How a wait may end besides its being granted; with each, what its argument
 * means. */
enum lks_how__ {
    LKS_FOREVER__ = 0,       /* 0 */
    LKS_INTERRUPTIBLE__ = 1, /* 0 */
    LKS_KILLABLE__ = 2,      /* the address of an lks_cancel, or 0 */
    LKS_TIMEOUT__ = 3,       /* nanoseconds from now */
    LKS_UNTIL__ = 4          /* the address of a struct timespec, CLOCK_MONOTONIC */
};

/* For functions of headers that stand between the program and a call: in the checking
 * build they take its place along. */
#ifdef LKS_DEBUG
#define LKS_AND_AT__ , const char *file, unsigned line
#define LKS_AND_PLACE__ , file, line
#define LKS_ON__(call, ...) call##_dbg(__VA_ARGS__, file, line)
#else
#define LKS_AND_AT__
#define LKS_AND_PLACE__
#define LKS_ON__(call, ...) call(__VA_ARGS__)
#endif

#define LKS_ADDRESS__(pointer) ((uint64_t)(uintptr_t)(pointer))

LKS_BEGIN_DECLS__

/* The calling thread's number, 0 before its first lock operation. Written by the
 * library alone. */
__extension__ extern __thread uint32_t lks_self__ __attribute__((tls_model("initial-exec")));

/* The library's version, as LKS_VERSION_STRING of its own headers. */
const char *lks_version(void);

/* Does beforehand what a thread's first lock operation would do: a thread key, a fork
 * handler, counting the processors. Optional; for programs that enter a system call
 * filter. */
void lks_prepare(void);

/* Gives a lock a name for messages, or takes it away with a null pointer. Names
 * are copied. Destroying a lock takes its name away. */
void lks_set_name(const volatile void *lock, const char *name);

/* Fires a token, for good. From any thread, and from a signal handler. */
void lks_cancel_fire(lks_cancel *token);

/* Tells whether a token was fired. */
LKS_INLINE__ int lks_cancel_is_fired(const lks_cancel *token)
{
    return __atomic_load_n(&token->fired__, __ATOMIC_RELAXED) != 0;
}

LKS_END_DECLS__

LKS_ASSERT__(cancel_size, sizeof(lks_cancel) == 4);

#endif
