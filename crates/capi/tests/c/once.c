/* Once: one does it, the others wait and see what was done. */
#include "expect.h"

enum { THREADS = 4 };

static lks_once once = LKS_ONCE_INIT, failing = LKS_ONCE_INIT;
static int calls, made;

static void make(void *argument)
{
    calls++;
    until_askers_sleep(THREADS);
    made = *(int *)argument;
}

static void *use(void *argument)
{
    asks();
    EXPECT(lks_once_call(&once, make, argument) == 0);
    EXPECT(made == 7);
    return NULL;
}

static void *fail_first(void *turns)
{
    int number = asks(), turn = lks_once_begin(&failing);
    EXPECT(turn >= 0);
    if (turn) {
        until_askers_sleep(2 * THREADS);
        has_asked(number);
        if (__atomic_add_fetch((int *)turns, 1, __ATOMIC_SEQ_CST) < 3)
            lks_once_failed(&failing);
        else
            lks_once_done(&failing);
    }
    return NULL;
}

static void *too_late(void *which)
{
    EXPECT(lks_once_begin_timeout(which, MILLISECONDS(2)) == -ETIMEDOUT);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int seven = 7, turns = 0;
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(use, &seven);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    EXPECT(calls == 1 && lks_once_is_done(&once));
    EXPECT(lks_once_begin_timeout(&once, 0) == 0);
    for (int i = 0; i < THREADS; i++)
        has_asked(i);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(fail_first, &turns);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    EXPECT(turns == 3 && lks_once_is_done(&failing));
    lks_once own = LKS_ONCE_INIT;
    EXPECT(lks_once_begin(&own) == 1 && lks_once_begin(&own) == -EDEADLK);
    join(start(too_late, &own));
    lks_once_done(&own);
    EXPECT(lks_once_begin(&own) == 0);
    return 0;
}
