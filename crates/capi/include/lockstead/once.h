/*
 * Doing something once: 4 bytes, one load when it is done.
 */
#ifndef LOCKSTEAD_ONCE_H
#define LOCKSTEAD_ONCE_H

#include "base.h"

/* Zeroes: not done yet. */
typedef struct lks_once {
    uint32_t word__;
} lks_once;
#define LKS_ONCE_INIT LKS_ZEROES__

LKS_ASSERT__(once_size, sizeof(lks_once) == 4);
LKS_ASSERT__(once_align, __alignof__(lks_once) == 4);
LKS_ASSERT__(once_word, offsetof(lks_once, word__) == 0);

#define LKS_ONCE_DONE__ ((uint32_t)1 << 21)

LKS_BEGIN_DECLS__

int lks_once_begin_slow(lks_once *once, unsigned how, uint64_t argument);
void lks_once_end_slow(lks_once *once, int done);

/* Tells whether it is done: then what it has written can be read. */
LKS_INLINE__ int lks_once_is_done(lks_once *once)
{
    int done = __atomic_load_n(&once->word__, __ATOMIC_ACQUIRE) == LKS_ONCE_DONE__;
    if (done)
        LKS_ACQUIRED__(once);
    return done;
}

/* Asks to do it: 1 if the caller is to do it now, and then to say by
 * `lks_once_done` or `lks_once_failed` how that went; 0 if it is done, perhaps after
 * waiting for who was at it. Somebody who failed leaves it to the next. -EDEADLK to
 * who is at it itself; -EOWNERDEAD if who was at it was left behind by fork. */
LKS_NODISCARD__ LKS_INLINE__ int lks_once_begin(lks_once *once)
{
    int result;
    if (LKS_LIKELY__(lks_once_is_done(once)))
        return 0;
    result = lks_once_begin_slow(once, LKS_FOREVER__, 0);
    if (result >= 0)
        LKS_ACQUIRED__(once);
    return result;
}

/* Does the same, waiting so many nanoseconds at most: -ETIMEDOUT. */
LKS_NODISCARD__ LKS_INLINE__ int lks_once_begin_timeout(lks_once *once, uint64_t nanoseconds)
{
    int result;
    if (LKS_LIKELY__(lks_once_is_done(once)))
        return 0;
    result = lks_once_begin_slow(once, LKS_TIMEOUT__, nanoseconds);
    if (result >= 0)
        LKS_ACQUIRED__(once);
    return result;
}

/* Says that it is done, by the caller, whose turn it was. */
LKS_INLINE__ void lks_once_done(lks_once *once)
{
    LKS_RELEASING__(once);
    lks_once_end_slow(once, 1);
}

/* Says that the caller, whose turn it was, could not do it. */
LKS_INLINE__ void lks_once_failed(lks_once *once)
{
    LKS_RELEASING__(once);
    lks_once_end_slow(once, 0);
}

#ifdef LKS_DEBUG
LKS_END_DECLS__
#include "check-once.h"
LKS_BEGIN_DECLS__
#define lks_once_call lks_once_call_dbg
#endif

/* Calls `make(argument)` unless that was done, and waits if another thread is at
 * it: 0, -EDEADLK, -EOWNERDEAD. */
LKS_INLINE__ int lks_once_call(lks_once *once, void (*make)(void *), void *argument LKS_AND_AT__)
{
    int turn = LKS_ON__(lks_once_begin, once);
    if (LKS_LIKELY__(turn <= 0))
        return turn;
    make(argument);
    LKS_ON__(lks_once_done, once);
    return 0;
}

#ifdef LKS_DEBUG
#undef lks_once_call
#define lks_once_call(once, make, argument) \
    lks_once_call_dbg(once, make, argument, __FILE__, __LINE__)
#endif

LKS_END_DECLS__

#endif
