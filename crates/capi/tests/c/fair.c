/* The fair mutex: exclusion, turns, each way in which a wait can end, conditions, fork, and both kinds
 * of calls on one word. */
#include "expect.h"
#include <sys/wait.h>

enum { THREADS = 16, TURNS = 200, ITEMS = 5000 };

static lks_fair_mutex shared = LKS_FAIR_MUTEX_INIT;
static long counter;
static int short_of_turns = THREADS, ended;
static lks_cancel token = LKS_CANCEL_INIT;

/* Many more threads than processors: each goes on until all have had their turns, so that nobody finds
 * the mutex abandoned. */
static void *take_turns(void *number)
{
    long turns = 0;
    while (__atomic_load_n(&short_of_turns, __ATOMIC_RELAXED) > 0) {
        if ((turns + (intptr_t)number) % 3 == 0)
            EXPECT(lks_fair_mutex_lock_timeout(&shared, MILLISECONDS(60000)) == 0);
        else
            lks_fair_mutex_lock(&shared);
        counter++;
        lks_fair_mutex_unlock(&shared);
        if (++turns == TURNS)
            __atomic_fetch_sub(&short_of_turns, 1, __ATOMIC_RELAXED);
    }
    return (void *)(intptr_t)turns;
}

static void turns(void)
{
    pthread_t threads[THREADS];
    long made = 0;
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(take_turns, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        made += (intptr_t)join(threads[i]);
    EXPECT(counter == made && made >= (long)THREADS * TURNS);
}

/* Takes by one kind of call and releases by the other, in all four ways, beside others that do it in
 * another way at the same time. */
static void *mix(void *number)
{
    lks_mutex *plain = lks_mutex_of_fair(&shared);
    for (int round = 0; round < 10 * TURNS; round++) {
        int way = (round + (int)(intptr_t)number) % 5;
        if (way < 4 || !lks_fair_mutex_trylock(&shared)) {
            if (way % 2)
                lks_fair_mutex_lock(lks_fair_mutex_of(plain));
            else
                lks_mutex_lock(plain);
        }
        counter++;
        EXPECT(lks_mutex_is_mine(plain) && lks_fair_mutex_is_mine(&shared));
        if (way < 2)
            lks_fair_mutex_unlock(&shared);
        else
            lks_mutex_unlock(plain);
    }
    return number;
}

static void both_kinds(void)
{
    pthread_t threads[THREADS];
    counter = 0;
    EXPECT((void *)lks_mutex_of_fair(&shared) == (void *)&shared);
    EXPECT(lks_fair_mutex_of(lks_mutex_of_fair(&shared)) == &shared);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(mix, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    EXPECT(counter == 10L * THREADS * TURNS && shared.mutex__.word__ << 44 == 0);
}

/* Asks by the other kind of call than the holder's, and sleeps for it. */
static void *ask(void *fair)
{
    lks_mutex *plain = lks_mutex_of_fair(&shared);
    begins();
    if (fair)
        lks_fair_mutex_lock(&shared);
    else
        lks_mutex_lock(plain);
    counter++;
    if (fair)
        lks_mutex_unlock(plain);
    else
        lks_fair_mutex_unlock(&shared);
    return fair;
}

static void sleepers_of_the_other_kind(void)
{
    counter = 0;
    for (int round = 0; round < 40; round++) {
        void *fair = round % 2 ? &shared : NULL;
        pthread_t thread;
        if (fair)
            lks_mutex_lock(lks_mutex_of_fair(&shared));
        else
            lks_fair_mutex_lock(&shared);
        thread = start(ask, fair);
        until_it_sleeps();
        if (round % 4 < 2)
            lks_fair_mutex_unlock(&shared);
        else
            lks_mutex_unlock(lks_mutex_of_fair(&shared));
        join(thread);
    }
    EXPECT(counter == 40);
}

static void *interruptible(void *nested)
{
    int result = nested ? lks_fair_mutex_lock_interruptible_nested(&shared, 1)
                        : lks_fair_mutex_lock_interruptible(&shared);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return (void *)(intptr_t)result;
}

static void *killable(void *unused)
{
    (void)unused;
    begins();
    return (void *)(intptr_t)lks_fair_mutex_lock_killable(&shared, &token);
}

static void *try_until(void *unused)
{
    struct timespec time;
    EXPECT(!lks_fair_mutex_trylock(&shared) && !lks_fair_mutex_is_mine(&shared));
    EXPECT(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    EXPECT(lks_fair_mutex_lock_until(&shared, &time) == -ETIMEDOUT);
    EXPECT(lks_fair_mutex_lock_timeout(&shared, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_fair_mutex_lock_until(&shared, NULL) == -EINVAL);
    return unused;
}

static void ends_of_waits(void)
{
    lks_fair_mutex mutex;
    memset(&mutex, 0xa5, sizeof mutex);
    lks_fair_mutex_init(&mutex);
    EXPECT(!lks_fair_mutex_is_locked(&mutex));
    lks_fair_mutex_lock_nested(&mutex, 1);
    EXPECT(lks_fair_mutex_is_locked(&mutex) && lks_fair_mutex_is_mine(&mutex));
    EXPECT(!lks_fair_mutex_trylock(&mutex));
#ifndef LKS_DEBUG
    EXPECT(lks_fair_mutex_lock_timeout(&mutex, 0) == -EDEADLK);
    EXPECT(lks_fair_mutex_lock_interruptible(&mutex) == -EDEADLK);
    EXPECT(lks_mutex_lock_timeout(lks_mutex_of_fair(&mutex), 0) == -EDEADLK);
#endif
    lks_fair_mutex_unlock(&mutex);
    EXPECT(!lks_fair_mutex_is_mine(&mutex));
    lks_fair_mutex_destroy(&mutex);

    lks_fair_mutex_lock(&shared);
    join(start(try_until, NULL));
    for (int nested = 0; nested < 2; nested++) {
        ended = 0;
        pthread_t thread = start(interruptible, nested ? &shared : NULL);
        SIGNAL_UNTIL(thread, ended);
        EXPECT((intptr_t)join(thread) == -EINTR);
    }
    pthread_t thread = start(killable, NULL);
    until_it_sleeps();
    lks_cancel_fire(&token);
    EXPECT((intptr_t)join(thread) == -EINTR);
    lks_fair_mutex_unlock(&shared);
    EXPECT(lks_fair_mutex_lock_killable(&shared, NULL) == 0);
    lks_fair_mutex_unlock(&shared);
}

static lks_cond changed = LKS_COND_INIT;
static int filled, taken;

/* Half of the waits are by the mutex's other name. */
static void *consume(void *unused)
{
    for (int i = 0; i < ITEMS; i++) {
        lks_fair_mutex_lock(&shared);
        while (!filled) {
            if (i % 2)
                lks_cond_wait(&changed, lks_mutex_of_fair(&shared));
            else
                EXPECT(lks_cond_wait_fair_timeout(&changed, &shared, MILLISECONDS(60000)) == 0);
        }
        filled = 0;
        taken++;
        lks_cond_notify_all(&changed);
        lks_fair_mutex_unlock(&shared);
    }
    return unused;
}

static void *wait_interruptible(void *unused)
{
    int result;
    (void)unused;
    lks_fair_mutex_lock(&shared);
    do
        result = lks_cond_wait_fair_interruptible(&changed, &shared);
    while (result == 0);
    EXPECT(lks_fair_mutex_is_mine(&shared));
    lks_fair_mutex_unlock(&shared);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return (void *)(intptr_t)result;
}

static void conditions(void)
{
    pthread_t consumer = start(consume, NULL);
    for (int i = 0; i < ITEMS; i++) {
        lks_fair_mutex_lock(&shared);
        while (filled)
            lks_cond_wait_fair(&changed, &shared);
        filled = 1;
        lks_cond_notify_all(&changed);
        lks_fair_mutex_unlock(&shared);
    }
    join(consumer);
    EXPECT(taken == ITEMS && !filled);

    struct timespec past = {0, 0}, wrong = {0, -1};
    lks_fair_mutex_lock(&shared);
    EXPECT(lks_cond_wait_fair_timeout(&changed, &shared, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_cond_wait_fair_until(&changed, &shared, &past) == -ETIMEDOUT);
    EXPECT(lks_cond_wait_fair_until(&changed, &shared, &wrong) == -EINVAL);
    EXPECT(lks_cancel_is_fired(&token));
    EXPECT(lks_cond_wait_fair_killable(&changed, &shared, &token) == -EINTR);
    EXPECT(lks_fair_mutex_is_mine(&shared));
    lks_fair_mutex_unlock(&shared);
    ended = 0;
    pthread_t thread = start(wait_interruptible, NULL);
    SIGNAL_UNTIL(thread, ended);
    EXPECT((intptr_t)join(thread) == -EINTR);
}

static void *hold_across_a_fork(void *unused)
{
    lks_fair_mutex_lock(&shared);
    begins();
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
        nap(1);
    lks_fair_mutex_unlock(&shared);
    return unused;
}

/* In the child the holder is no more, and whoever asks is told. */
static void a_child(void)
{
    int status;
    ended = 0;
    pthread_t holder = start(hold_across_a_fork, NULL);
    until_it_sleeps();
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        int result = lks_fair_mutex_lock_timeout(&shared, MILLISECONDS(60000));
        _exit(result == -EOWNERDEAD && !lks_fair_mutex_trylock(&shared) ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    join(holder);
}

/* Drops references: the last one takes the mutex, which others may have meanwhile. */
static void *drop(void *references)
{
    if (!lks_atomic_dec_and_mutex_lock(references, lks_mutex_of_fair(&shared)))
        return NULL;
    EXPECT(lks_fair_mutex_is_mine(&shared));
    lks_fair_mutex_unlock(&shared);
    return references;
}

static void references_drop(void)
{
    pthread_t threads[4];
    int references = 4, last = 0;
    for (int i = 0; i < 4; i++)
        threads[i] = start(drop, &references);
    for (int i = 0; i < 4; i++)
        last += join(threads[i]) != NULL;
    EXPECT(last == 1 && references == 0);
}

int main(void)
{
    turns();
    both_kinds();
    sleepers_of_the_other_kind();
    ends_of_waits();
    conditions();
    a_child();
    references_drop();
    return 0;
}
