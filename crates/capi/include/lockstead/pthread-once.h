/*
 * The part of `pthread.h` that is about doing something once: 4 bytes.
 */
#ifndef LOCKSTEAD_PTHREAD_ONCE_H
#define LOCKSTEAD_PTHREAD_ONCE_H

#include "pthread-base.h"

#include "once.h"

typedef struct lks_pthread_once {
    lks_once once__;
} lks_pthread_once;

__attribute__((unused)) static void lks_pthread_once_failed__(void *once)
{
    lks_once_failed((lks_once *)once);
}

/* Leaves it to the next if the routine is left by cancellation or an exception. */
__attribute__((cold, noinline, unused)) static void lks_pthread_once_run__(lks_once *once,
                                                                          void (*routine)(void))
{
#ifdef __cplusplus
    struct Turn {
        lks_once *once;
        bool done;
        ~Turn()
        {
            if (done)
                lks_once_done(once);
            else
                lks_once_failed(once);
        }
    } turn = {once, false};
    routine();
    turn.done = true;
#else
    pthread_cleanup_push(lks_pthread_once_failed__, once);
    routine();
    pthread_cleanup_pop(0);
    lks_once_done(once);
#endif
}

LKS_INLINE__ int lks_pthread_once_call__(lks_pthread_once *once, void (*routine)(void))
{
    int turn = lks_once_begin(&once->once__);
    if (LKS_UNLIKELY__(turn > 0))
        lks_pthread_once_run__(&once->once__, routine);
    else if (LKS_UNLIKELY__(turn < 0))
        lks_pthread_die__(turn == -EDEADLK
                              ? "pthread_once: called by its own routine: it would wait for itself "
                                "for ever"
                              : "pthread_once: the thread that ran the routine was left behind by "
                                "fork in the parent process");
    return 0;
}

#endif
