/* The wait/wound mutex: random subsets in random order, by both schemes. */
#include "expect.h"

enum { LOCKS = 12, THREADS = 4, ROUNDS = 3000 };

static lks_ww_class classes[2] = {LKS_WW_CLASS_INIT(LKS_WAIT_DIE), LKS_WW_CLASS_INIT(LKS_WOUND_WAIT)};
static lks_ww_mutex locks[LOCKS];
static long values[LOCKS];

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

static void *move(void *argument)
{
    lks_ww_class *which = argument;
    unsigned seed = (unsigned)(uintptr_t)&which + (unsigned)time(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        lks_ww_mutex *mine[5];
        size_t count = 2 + next(&seed) % 4;
        for (size_t i = 0; i < count; i++)
            mine[i] = &locks[next(&seed) % LOCKS];
        lks_ww_ctx ctx;
        EXPECT(lks_ww_ctx_init(&ctx, which) == 0);
        lks_ww_lock_all(&ctx, mine, count);
        lks_ww_ctx_done(&ctx);
        values[mine[0] - locks]++;
        values[mine[count - 1] - locks]--;
        lks_ww_unlock_all(mine, count);
        EXPECT(ctx.acquired__ == 0);
        lks_ww_ctx_fini(&ctx);
    }
    return NULL;
}

static void *refused(void *argument)
{
    /* Younger than the context that holds the first: it must not wait for it. */
    lks_ww_ctx *older = argument, ctx;
    EXPECT(lks_ww_ctx_init(&ctx, &classes[LKS_WAIT_DIE]) == 0);
    EXPECT(lks_ww_mutex_lock(&locks[1], &ctx) == 0);
    EXPECT(!lks_ww_mutex_trylock(&locks[0], &ctx));
    EXPECT(lks_ww_mutex_lock(&locks[0], &ctx) == -EDEADLK);
    lks_ww_mutex_unlock(&locks[1]);
    lks_ww_ctx_fini(&ctx);
    return older;
}

static lks_semaphore busy = LKS_SEMAPHORE_INIT(0), over = LKS_SEMAPHORE_INIT(0);

/* Holds the locks 1 and then 2, the latter until somebody sleeps for it. */
static void *others(void *unused)
{
    EXPECT(lks_ww_mutex_lock(&locks[1], NULL) == 0);
    EXPECT(lks_semaphore_up(&busy) == 0);
    lks_semaphore_down(&over);
    lks_ww_mutex_unlock(&locks[1]);
    EXPECT(lks_ww_mutex_lock(&locks[2], NULL) == 0);
    EXPECT(lks_semaphore_up(&busy) == 0);
    until_it_sleeps();
    lks_ww_mutex_unlock(&locks[2]);
    return unused;
}

/* Wounded, it backs off, and is not refused once more for the same wound. */
static void *wounded(void *holds)
{
    lks_ww_ctx ctx;
    pthread_t thread = start(others, NULL);
    lks_semaphore_down(&busy);
    EXPECT(lks_ww_ctx_init(&ctx, &classes[LKS_WOUND_WAIT]) == 0);
    EXPECT(lks_ww_mutex_lock(&locks[0], &ctx) == 0);
    EXPECT(lks_semaphore_up(holds) == 0);
    EXPECT(lks_ww_mutex_lock(&locks[1], &ctx) == -EDEADLK);
    lks_ww_mutex_unlock(&locks[0]);
    EXPECT(lks_semaphore_up(&over) == 0);
    lks_semaphore_down(&busy);
    lks_ww_mutex_lock_slow(&locks[1], &ctx);
    begins();
    EXPECT(lks_ww_mutex_lock(&locks[2], &ctx) == 0);
    lks_ww_mutex_unlock(&locks[2]);
    lks_ww_mutex_unlock(&locks[1]);
    lks_ww_ctx_fini(&ctx);
    join(thread);
    return NULL;
}

static void wounds(void)
{
    lks_ww_ctx older;
    lks_semaphore holds = LKS_SEMAPHORE_INIT(0);
    EXPECT(lks_ww_ctx_init(&older, &classes[LKS_WOUND_WAIT]) == 0);
    pthread_t thread = start(wounded, &holds);
    lks_semaphore_down(&holds);
    EXPECT(lks_ww_mutex_lock(&locks[0], &older) == 0);
    lks_ww_mutex_unlock(&locks[0]);
    lks_ww_ctx_fini(&older);
    join(thread);
}

int main(void)
{
    wounds();
    for (int scheme = 0; scheme < 2; scheme++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            threads[i] = start(move, &classes[scheme]);
        for (int i = 0; i < THREADS; i++)
            join(threads[i]);
        long sum = 0;
        for (int i = 0; i < LOCKS; i++) {
            EXPECT(!lks_ww_mutex_is_locked(&locks[i]));
            sum += values[i];
        }
        EXPECT(sum == 0);
    }
    lks_ww_ctx ctx, more[4];
    EXPECT(lks_ww_ctx_init(&ctx, &classes[LKS_WAIT_DIE]) == 0);
    EXPECT(lks_ww_mutex_lock(&locks[0], &ctx) == 0);
    EXPECT(lks_ww_mutex_lock(&locks[0], &ctx) == -EALREADY);
    EXPECT(lks_ww_mutex_trylock(&locks[2], &ctx) && ctx.acquired__ == 2);
    EXPECT(lks_ww_mutex_lock_interruptible(&locks[3], NULL) == 0);
    join(start(refused, &ctx));
    lks_ww_mutex_unlock(&locks[3]);
    lks_ww_mutex_unlock(&locks[2]);
    lks_ww_mutex_unlock(&locks[0]);
    EXPECT(lks_ww_mutex_lock_slow_interruptible(&locks[1], &ctx) == 0);
    lks_ww_mutex_unlock(&locks[1]);
    for (int i = 0; i < 3; i++)
        EXPECT(lks_ww_ctx_init(&more[i], &classes[LKS_WAIT_DIE]) == 0);
    EXPECT(lks_ww_ctx_init(&more[3], &classes[LKS_WAIT_DIE]) == -EBUSY);
    for (int i = 0; i < 3; i++)
        lks_ww_ctx_fini(&more[i]);
    lks_ww_ctx_fini(&ctx);
    lks_ww_mutex_init(&locks[0]);
    lks_ww_mutex_destroy(&locks[0]);
    return 0;
}
