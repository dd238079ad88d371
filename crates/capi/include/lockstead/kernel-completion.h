/*
 * The part of `kernel.h` that is the kernel's linux/completion.h.
 *
 * A count behind a mutex, and a condition. Who completes does all of it with the mutex
 * held, and whoever waited comes back with the mutex: so it may be on the stack of the
 * one that waits, which may leave as soon as its wait has ended. Where a wait ends by a
 * signal or by its token the result is the kernel's -ERESTARTSYS.
 *
 * A signal handler may not complete what its thread may be at. The checking build does
 * not look at completions: they have no owner.
 */
#ifndef LOCKSTEAD_KERNEL_H
#include "kernel.h" /* the token of killable waits, and jiffies; includes this one */
#endif
#ifndef LOCKSTEAD_KERNEL_COMPLETION_H
#define LOCKSTEAD_KERNEL_COMPLETION_H

#include "cond.h"
#include "mutex.h"

#include <limits.h>

#ifndef ERESTARTSYS
#define ERESTARTSYS 512
#endif

/* Zeroes: not done, and nobody waits. */
struct completion {
    lks_mutex mutex__;
    lks_cond changed__;
    unsigned int done__; /* so often; UINT_MAX: for all who come */
};
#define COMPLETION_INITIALIZER(name) {LKS_MUTEX_INIT, LKS_COND_INIT, 0}
#define DECLARE_COMPLETION(name) struct completion name = COMPLETION_INITIALIZER(name)
#define COMPLETION_INITIALIZER_ONSTACK(name) COMPLETION_INITIALIZER(name)
#define DECLARE_COMPLETION_ONSTACK(name) DECLARE_COMPLETION(name)
/* With a map for lockdep, which has none here. */
#define COMPLETION_INITIALIZER_ONSTACK_MAP(name, map) COMPLETION_INITIALIZER(name)
#define DECLARE_COMPLETION_ONSTACK_MAP(name, map) DECLARE_COMPLETION(name)
#define init_completion_map(completion, map) init_completion(completion)

/* In the checking build the calls of the inner locks are macros, which have no place in
 * the program to tell of: the names in parentheses are the functions. */

LKS_INLINE__ void init_completion(struct completion *completion)
{
    (lks_mutex_init)(&completion->mutex__);
    (lks_cond_init)(&completion->changed__);
    __atomic_store_n(&completion->done__, 0, __ATOMIC_RELAXED);
}

/* Makes one that is done, for any number of times, one that is not. Nobody may wait. */
LKS_INLINE__ void reinit_completion(struct completion *completion)
{
    __atomic_store_n(&completion->done__, 0, __ATOMIC_RELAXED);
}

LKS_INLINE__ unsigned int lks_completion_done__(const struct completion *completion)
{
    return __atomic_load_n(&completion->done__, __ATOMIC_RELAXED);
}

/* With the mutex: takes one off, unless it is done for all. */
LKS_INLINE__ void lks_completion_take__(struct completion *completion)
{
    unsigned int done = lks_completion_done__(completion);
    if (done != UINT_MAX)
        __atomic_store_n(&completion->done__, done - 1, __ATOMIC_RELAXED);
}

/* Waits as `how` says, and while nanoseconds are left if `left` is not null. Returns 0 or
 * what ended the wait. */
__attribute__((unused)) static int lks_completion_wait__(struct completion *completion,
                                                         unsigned how, uint64_t argument,
                                                         uint64_t *left)
    LKS_TSA__(no_thread_safety_analysis)
{
    int result = 0;
    (lks_mutex_lock)(&completion->mutex__);
    while (result == 0 && lks_completion_done__(completion) == 0) {
        LKS_RELEASING__(&completion->mutex__);
        result = left ? lks_cond_wait_within_how(&completion->changed__, &completion->mutex__, how,
                                                 argument, left)
                      : lks_cond_wait_how(&completion->changed__, &completion->mutex__, how,
                                          argument);
        LKS_ACQUIRED__(&completion->mutex__);
    }
    if (lks_completion_done__(completion) != 0) {
        /* Whatever else has ended the wait: nobody else was told of this one. */
        lks_completion_take__(completion);
        result = 0;
    }
    (lks_mutex_unlock)(&completion->mutex__);
    return result;
}

/* The same for a wait of so many jiffies at most: what is left of them, at least 1; 0 if
 * they are over; or a negative error. */
__attribute__((unused)) static long lks_completion_wait_jiffies__(struct completion *completion,
                                                                  unsigned how, uint64_t argument,
                                                                  unsigned long jiffies)
{
    const uint64_t second = 1000000000u;
    uint64_t left = lks_jiffies__((long)jiffies);
    /* Too many for nanoseconds: as long as it takes. */
    const int endless = left == UINT64_MAX;
    int result = lks_completion_wait__(completion, how, argument, endless ? NULL : &left);
    if (result == -ETIMEDOUT)
        return 0;
    if (result != 0)
        return -ERESTARTSYS;
    if (endless)
        return (long)jiffies;
    left = left / second * HZ + (left % second * HZ + second - 1) / second;
    return left == 0 ? 1 : (long)left;
}

LKS_INLINE__ void wait_for_completion(struct completion *completion)
{
    (void)lks_completion_wait__(completion, LKS_FOREVER__, 0, NULL);
}

/* The kernel's counts the wait as one for a device. */
LKS_INLINE__ void wait_for_completion_io(struct completion *completion)
{
    wait_for_completion(completion);
}

/* Returns 0 or -ERESTARTSYS. */
LKS_NODISCARD__ LKS_INLINE__ int wait_for_completion_interruptible(struct completion *completion)
{
    return lks_completion_wait__(completion, LKS_INTERRUPTIBLE__, 0, NULL) == 0 ? 0 : -ERESTARTSYS;
}

/* Returns 0 or -ERESTARTSYS. */
LKS_NODISCARD__ LKS_INLINE__ int wait_for_completion_killable(struct completion *completion)
{
    return lks_completion_wait__(completion, LKS_KILLABLE__, LKS_ADDRESS__(lockstead_token__),
                                 NULL) == 0
               ? 0
               : -ERESTARTSYS;
}

/* Returns the jiffies that are left, at least 1, or 0. */
LKS_INLINE__ unsigned long wait_for_completion_timeout(struct completion *completion,
                                                       unsigned long jiffies)
{
    return (unsigned long)lks_completion_wait_jiffies__(completion, LKS_FOREVER__, 0, jiffies);
}

LKS_INLINE__ unsigned long wait_for_completion_io_timeout(struct completion *completion,
                                                          unsigned long jiffies)
{
    return wait_for_completion_timeout(completion, jiffies);
}

/* Returns the jiffies that are left, at least 1, or 0, or -ERESTARTSYS. */
LKS_INLINE__ long wait_for_completion_interruptible_timeout(struct completion *completion,
                                                            unsigned long jiffies)
{
    return lks_completion_wait_jiffies__(completion, LKS_INTERRUPTIBLE__, 0, jiffies);
}

/* Returns the jiffies that are left, at least 1, or 0, or -ERESTARTSYS. */
LKS_INLINE__ long wait_for_completion_killable_timeout(struct completion *completion,
                                                       unsigned long jiffies)
{
    return lks_completion_wait_jiffies__(completion, LKS_KILLABLE__,
                                         LKS_ADDRESS__(lockstead_token__), jiffies);
}

/* Takes one off if it is done, without waiting: 1, otherwise 0. */
LKS_INLINE__ int try_wait_for_completion(struct completion *completion)
    LKS_TSA__(no_thread_safety_analysis)
{
    int done;
    if (lks_completion_done__(completion) == 0)
        return 0;
    (lks_mutex_lock)(&completion->mutex__);
    done = lks_completion_done__(completion) != 0;
    if (done)
        lks_completion_take__(completion);
    (lks_mutex_unlock)(&completion->mutex__);
    return done;
}

/* Tells whether it is done. If it is, who completed it is not at it any more. */
LKS_INLINE__ int completion_done(struct completion *completion)
    LKS_TSA__(no_thread_safety_analysis)
{
    if (lks_completion_done__(completion) == 0)
        return 0;
    (lks_mutex_lock)(&completion->mutex__);
    (lks_mutex_unlock)(&completion->mutex__);
    return 1;
}

LKS_INLINE__ void lks_complete__(struct completion *completion, int all)
    LKS_TSA__(no_thread_safety_analysis)
{
    unsigned int done;
    (lks_mutex_lock)(&completion->mutex__);
    done = lks_completion_done__(completion);
    if (done != UINT_MAX)
        __atomic_store_n(&completion->done__, all ? UINT_MAX : done + 1, __ATOMIC_RELAXED);
    /* Before the mutex is released: then it may be gone. */
    if (all)
        (lks_cond_notify_all)(&completion->changed__);
    else
        (lks_cond_notify_one)(&completion->changed__);
    (lks_mutex_unlock)(&completion->mutex__);
}

/* Lets one go that waits, or the next that comes. */
LKS_INLINE__ void complete(struct completion *completion)
{
    lks_complete__(completion, 0);
}

/* The kernel's asks for the waiter's processor to be this one. */
LKS_INLINE__ void complete_on_current_cpu(struct completion *completion)
{
    complete(completion);
}

/* Lets all go that wait and that will, until `reinit_completion`. */
LKS_INLINE__ void complete_all(struct completion *completion)
{
    lks_complete__(completion, 1);
}

#endif
