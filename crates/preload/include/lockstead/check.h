/* Words to `lockstead run --check`. Without it they do nothing, and a program that
 * uses them needs no library. */
#ifndef LOCKSTEAD_CHECK_H
#define LOCKSTEAD_CHECK_H

#ifdef __cplusplus
extern "C" {
#endif

/* There while the program runs under `lockstead run --check`, else null. */
extern void lockstead_handoff(void *lock) __attribute__((__weak__));

/* This lock is handed from thread to thread on purpose: others than the one that
 * has locked it may unlock it, and its order among other locks means nothing. To
 * be said once, at any time before; of what lies in memory that was freed since,
 * again. */
static inline __attribute__((__unused__)) void lockstead_hand_off(void *lock)
{
    if (lockstead_handoff)
        lockstead_handoff(lock);
}

#ifdef __cplusplus
}
#endif

#endif
