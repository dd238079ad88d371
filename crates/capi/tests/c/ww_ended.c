/* Threads that end with wait/wound mutexes, in a context or alone: an error for who wants one of these. */
#include "expect.h"

static lks_ww_class kind;
static lks_ww_mutex lock, other;
static lks_semaphore taken, end;

/* Whether the thread that ends has taken the lock without a context. */
static int alone;

static void *leaves(void *waits)
{
    /* Not on the stack, which is gone before what is in it. */
    static lks_ww_ctx contexts[2];
    lks_ww_ctx *ctx = &contexts[waits != NULL];
    if (!alone)
        EXPECT(lks_ww_ctx_init(ctx, &kind) == 0);
    EXPECT(lks_ww_mutex_lock(&lock, alone ? NULL : ctx) == 0);
    EXPECT(lks_semaphore_up(&taken) == 0);
    if (waits)
        lks_semaphore_down(&end);
    return NULL;
}

/* In a context that begins now, and holds another lock or not. */
static void asks_in_a_context(int holds)
{
    lks_ww_ctx ctx;
    EXPECT(lks_ww_ctx_init(&ctx, &kind) == 0);
    if (holds)
        EXPECT(lks_ww_mutex_lock(&other, &ctx) == 0);
    EXPECT(lks_ww_mutex_lock(&lock, &ctx) == -EOWNERDEAD);
    EXPECT(lks_ww_mutex_lock_interruptible(&lock, &ctx) == -EOWNERDEAD);
    EXPECT(lks_ww_mutex_trylock(&lock, &ctx) == 0);
    if (holds)
        lks_ww_mutex_unlock(&other);
    else
        EXPECT(lks_ww_mutex_lock_slow_interruptible(&lock, &ctx) == -EOWNERDEAD);
    lks_ww_ctx_fini(&ctx);
}

/* Also by a thread that came after the end: it is not taken for the holder. */
static void *asks_for_it(void *unused)
{
    lks_ww_mutex *both[2];
    lks_ww_ctx ctx;
    asks_in_a_context(0);
    asks_in_a_context(1);
    EXPECT(lks_ww_mutex_lock(&lock, NULL) == -EOWNERDEAD);
    EXPECT(lks_ww_mutex_lock_interruptible(&lock, NULL) == -EOWNERDEAD);
    EXPECT(lks_ww_mutex_trylock(&lock, NULL) == 0 && lks_ww_mutex_is_locked(&lock));
    both[0] = &other;
    both[1] = &lock;
    EXPECT(lks_ww_ctx_init(&ctx, &kind) == 0);
    EXPECT(lks_ww_lock_all(&ctx, both, 2) == -EOWNERDEAD && !lks_ww_mutex_is_locked(&other));
    lks_ww_ctx_fini(&ctx);
    return unused;
}

/* One that holds another lock and is younger backs off in wait-die, and does not sleep. */
static void *sleeps_in_a_context(void *unused)
{
    lks_ww_ctx ctx;
    int number;
    EXPECT(lks_ww_ctx_init(&ctx, &kind) == 0);
    number = asks();
    EXPECT(lks_ww_mutex_lock(&lock, &ctx) == -EOWNERDEAD);
    has_asked(number);
    lks_ww_ctx_fini(&ctx);
    return unused;
}

static void *sleeps_alone(void *unused)
{
    int number = asks();
    EXPECT(lks_ww_mutex_lock(&lock, NULL) == -EOWNERDEAD);
    has_asked(number);
    return unused;
}

int main(void)
{
    pthread_t sleepers[3], leaver;
    int way, i;
    for (way = 0; way < 4; way++) {
        lks_ww_class of_scheme = LKS_WW_CLASS_INIT((uint8_t)(way & 1));
        kind = of_scheme;
        alone = way & 2;
        lks_ww_mutex_init(&lock);
        join(start(leaves, NULL));
        lks_semaphore_down(&taken);
        asks_for_it(NULL);
        join(start(asks_for_it, NULL));

        lks_ww_mutex_init(&lock);
        leaver = start(leaves, &end);
        lks_semaphore_down(&taken);
        asked = 0;
        memset(askers, 0, sizeof askers);
        for (i = 0; i < 3; i++)
            sleepers[i] = start(i < 2 ? sleeps_in_a_context : sleeps_alone, NULL);
        until_askers_sleep(3);
        EXPECT(lks_semaphore_up(&end) == 0);
        join(leaver);
        for (i = 0; i < 3; i++)
            join(sleepers[i]);
        join(start(asks_for_it, NULL));
    }
    return 0;
}
