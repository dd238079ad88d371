/* Locks taken in order, in all the ways that leave edges or must not. */

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include "state.h"
#include "stops.h"

enum { MANY = 4096, ROUNDS = 3, DEEP = 200 };

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t tried_in = PTHREAD_MUTEX_INITIALIZER, after_try = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, gated_a = PTHREAD_MUTEX_INITIALIZER,
                       gated_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t by_many_a = PTHREAD_MUTEX_INITIALIZER, by_many_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lone_a = PTHREAD_MUTEX_INITIALIZER, lone_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive, within = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t hand[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                  PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_mutex_t under_readers = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_mutex_t many_outer = PTHREAD_MUTEX_INITIALIZER, many[MANY];
static pthread_mutex_t deep[DEEP];
static pthread_mutex_t signalled_out = PTHREAD_MUTEX_INITIALIZER,
                       signalled_in = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t waited = PTHREAD_MUTEX_INITIALIZER, beside = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t reborn_a, reborn_b;
static pthread_mutex_t contended_a = PTHREAD_MUTEX_INITIALIZER,
                       contended_b = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void take(pthread_mutex_t *lock)
{
    if (pthread_mutex_lock(lock))
        abort();
    __asm__ volatile("");
}

__attribute__((noinline)) static void give(pthread_mutex_t *lock)
{
    if (pthread_mutex_unlock(lock))
        abort();
    __asm__ volatile("");
}

__attribute__((noinline)) static void nest(pthread_mutex_t *first, pthread_mutex_t *second)
{
    take(first);
    take(second);
    give(second);
    give(first);
}

static void *nest_many(void *unused)
{
    for (int i = 0; i < 100; i++)
        nest(&by_many_a, &by_many_b);
    return unused;
}

static void handler(int signal)
{
    (void)signal;
    nest(&signalled_in, &within);
}

static void *hold_contended(void *unused)
{
    take(&contended_b);
    stop("contended");
    /* The first thread waits for it: until the lock is held, it only tries. */
    while (state_of(getpid()) != 'S')
        sched_yield();
    give(&contended_b);
    return unused;
}

static void one_thread(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < MANY; i++)
        pthread_mutex_init(&many[i], NULL);
    for (int i = 0; i < DEEP; i++)
        pthread_mutex_init(&deep[i], NULL);

    for (int i = 0; i < 1000; i++)
        nest(&outer, &inner);

    take(&outer);
    if (pthread_mutex_trylock(&tried_in))
        abort();
    take(&after_try);
    give(&after_try);
    give(&tried_in);
    give(&outer);

    /* First under a gate, then without, then under it again. */
    for (int i = 0; i < 3; i++) {
        if (i != 1)
            take(&gate);
        nest(&gated_a, &gated_b);
        if (i != 1)
            give(&gate);
    }

    take(&recursive);
    take(&within);
    take(&recursive);
    give(&recursive);
    give(&within);
    give(&recursive);

    /* Hand over hand, in a cycle that is not closed. */
    for (int round = 0; round < ROUNDS; round++) {
        take(&hand[0]);
        for (int i = 1; i < 4; i++) {
            take(&hand[i]);
            give(&hand[i - 1]);
        }
        give(&hand[3]);
    }

    pthread_rwlock_rdlock(&readers);
    pthread_rwlock_rdlock(&writers);
    take(&under_readers);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    give(&under_readers);
    pthread_rwlock_unlock(&writers);
    pthread_rwlock_unlock(&readers);
    pthread_rwlock_wrlock(&readers);
    nest(&under_readers, &within);
    pthread_rwlock_unlock(&readers);

    for (int round = 0; round < ROUNDS; round++) {
        take(&many_outer);
        for (int i = 0; i < MANY; i++) {
            take(&many[i]);
            give(&many[i]);
        }
        give(&many_outer);
    }

    for (int i = 0; i < DEEP; i++)
        take(&deep[i]);
    for (int i = 0; i < DEEP; i++)
        give(&deep[i]);

    /* A lock that was destroyed and initialised again is another one. */
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&reborn_a, NULL);
        pthread_mutex_init(&reborn_b, NULL);
        for (int j = 0; j < 10; j++)
            nest(&reborn_a, &reborn_b);
        pthread_mutex_destroy(&reborn_b);
        pthread_mutex_destroy(&reborn_a);
    }
}

int main(void)
{
    SHOW(outer), SHOW(inner), SHOW(tried_in), SHOW(after_try), SHOW(gate), SHOW(gated_a);
    SHOW(gated_b), SHOW(by_many_a), SHOW(by_many_b), SHOW(lone_a), SHOW(lone_b), SHOW(recursive);
    SHOW(within), SHOW(hand), SHOW(readers), SHOW(writers), SHOW(under_readers), SHOW(spin);
    SHOW(many_outer), SHOW(many), SHOW(deep), SHOW(signalled_out), SHOW(signalled_in);
    SHOW(waited), SHOW(beside), SHOW(reborn_a), SHOW(reborn_b), SHOW(contended_a);
    SHOW(contended_b);
    one_thread();
    nest(&lone_a, &lone_b);
    stop("one thread");

    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        threads[i] = start("worker", nest_many, NULL);
    nest(&lone_a, &lone_b);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);

    /* All others have ended: alone once more. */
    nest(&lone_b, &lone_a);

    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, NULL);
    take(&signalled_out);
    raise(SIGUSR1);
    give(&signalled_out);

    /* Waits on a condition with a lock taken after the mutex that is given back. */
    take(&waited);
    take(&beside);
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    pthread_cond_timedwait(&cond, &waited, &soon);
    give(&beside);
    give(&waited);
    stop("several threads");

    pthread_t other = start("holder", hold_contended, NULL);
    while (!pthread_mutex_trylock(&contended_b))
        give(&contended_b);
    take(&contended_a);
    take(&contended_b);
    give(&contended_b);
    give(&contended_a);
    pthread_join(other, NULL);
    stop("the end");
    return 0;
}
