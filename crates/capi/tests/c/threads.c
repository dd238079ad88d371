/*
 * A thread that ends takes locks in its last destructors, after the library has
 * forgotten it: its number must not be the next thread's by then.
 */
#include "expect.h"

static lks_mutex mutex = LKS_MUTEX_INIT;
static pthread_key_t early, late;
static int rounds, stage;

static void reach(int next)
{
    __atomic_store_n(&stage, next, __ATOMIC_RELEASE);
}

static void await(int wanted)
{
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != wanted)
        nap(1);
}

static void at_end(void *value)
{
    if (value == &late) {
        /* The library has forgotten this thread. Another one begins, and has the mutex. */
        reach(1);
        await(2);
        begins();
    }
    lks_mutex_lock(&mutex);
    EXPECT(lks_mutex_is_mine(&mutex));
    rounds++;
    lks_mutex_unlock(&mutex);
    /* Destructors run again, up to four times. */
    if (value == &early)
        EXPECT(pthread_setspecific(late, &late) == 0);
}

static void *use(void *unused)
{
    lks_mutex_lock(&mutex);
    lks_mutex_unlock(&mutex);
    EXPECT(pthread_setspecific(early, &early) == 0);
    return unused;
}

static void *hold(void *unused)
{
    EXPECT(lks_mutex_lock_timeout(&mutex, MILLISECONDS(60000)) == 0);
    reach(2);
    until_it_sleeps();
    EXPECT(lks_mutex_is_mine(&mutex));
    lks_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    EXPECT(pthread_key_create(&early, at_end) == 0);
    /* The library's key lies between the two. */
    lks_prepare();
    EXPECT(pthread_key_create(&late, at_end) == 0);
    for (int i = 0; i < 100; i++) {
        pthread_t user = start(use, NULL), holder;
        await(1);
        holder = start(hold, NULL);
        join(user);
        join(holder);
    }
    EXPECT(rounds == 200);
    return 0;
}
