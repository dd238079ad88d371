/* Each rule for wait/wound mutexes broken once, and of doing something once; the test
 * reads the messages. */
#include "expect.h"

static lks_ww_class red = LKS_WW_CLASS_INIT(LKS_WAIT_DIE);
static lks_ww_class blue = LKS_WW_CLASS_INIT(LKS_WAIT_DIE);
static lks_ww_mutex a = LKS_WW_MUTEX_INIT, b = LKS_WW_MUTEX_INIT, c = LKS_WW_MUTEX_INIT;
static lks_ww_ctx ctx, second;
static lks_once once = LKS_ONCE_INIT;
static lks_mutex mutex = LKS_MUTEX_INIT;
static int stage;

static void reach(int next)
{
    __atomic_store_n(&stage, next, __ATOMIC_RELEASE);
}

static void await(int wanted)
{
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) < wanted)
        nap(1);
}

static void begin(lks_ww_ctx *which)
{
    EXPECT(lks_ww_ctx_init(which, &red) == 0); /* BEGUN */
}

static void *unlocks(void *unused)
{
    lks_ww_mutex_unlock(&a); /* WRONG THREAD */
    return unused;
}

static void *uses(void *unused)
{
    EXPECT(lks_ww_mutex_lock(&b, &ctx) == -EINVAL); /* WRONG CONTEXT */
    return unused;
}

/* Older than who asks for it. */
static void *holds(void *unused)
{
    lks_ww_ctx older;
    begin(&older);
    EXPECT(lks_ww_mutex_lock(&c, &older) == 0);
    reach(1);
    await(2);
    lks_ww_mutex_unlock(&c);
    lks_ww_ctx_fini(&older);
    return unused;
}

/* `ctx` holds a and is told to back off from c. */
static pthread_t be_refused(void)
{
    pthread_t thread = start(holds, NULL);
    await(1);
    begin(&ctx);
    EXPECT(lks_ww_mutex_lock(&a, &ctx) == 0);
    EXPECT(lks_ww_mutex_lock(&c, &ctx) == -EDEADLK); /* REFUSED */
    return thread;
}

static void *forgets_lock(void *unused)
{
    begin(&second);
    EXPECT(lks_ww_mutex_lock(&b, &second) == 0); /* FORGOTTEN */
    return unused;
}

static void *forgets_context(void *unused)
{
    begin(&second);
    return unused;
}

static void *begins_once(void *unused)
{
    EXPECT(lks_once_begin(&once) == 1); /* TURN */
    reach(1);
    await(2);
    begins();
    lks_mutex_lock(&mutex); /* WAITS FOR THE MUTEX */
    lks_mutex_unlock(&mutex);
    lks_once_done(&once);
    return unused;
}

static void *ends_once(void *unused)
{
    lks_once_done(&once); /* NOT THEIRS */
    return unused;
}

static void of_contexts(const char *wrong)
{
    lks_ww_mutex *all[2] = {&a, &b};
    if (!strcmp(wrong, "unlock")) {
        begin(&ctx);
        EXPECT(lks_ww_mutex_lock(&a, &ctx) == 0); /* TAKEN */
        join(start(unlocks, NULL));
        lks_ww_mutex_unlock(&a);
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "free")) {
        lks_ww_mutex_unlock(&a); /* FREE */
    } else if (!strcmp(wrong, "class")) {
        begin(&ctx);
        EXPECT(lks_ww_mutex_lock(&a, &ctx) == 0); /* OF RED */
        lks_ww_mutex_unlock(&a);
        lks_ww_ctx_fini(&ctx);
        EXPECT(lks_ww_ctx_init(&ctx, &blue) == 0);        /* BLUE */
        EXPECT(lks_ww_mutex_lock(&a, &ctx) == -EINVAL); /* IN BLUE */
        EXPECT(lks_ww_mutex_trylock(&a, &ctx) == 0);
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "ended")) {
        begin(&ctx);
        lks_ww_ctx_fini(&ctx);                          /* ENDED */
        EXPECT(lks_ww_mutex_lock(&a, &ctx) == -EINVAL); /* AFTER THE END */
    } else if (!strcmp(wrong, "ended-twice")) {
        begin(&ctx);
        lks_ww_ctx_fini(&ctx);
        lks_ww_ctx_fini(&ctx); /* ENDED AGAIN */
    } else if (!strcmp(wrong, "never")) {
        EXPECT(lks_ww_mutex_lock(&a, &second) == -EINVAL); /* NEVER BEGUN */
    } else if (!strcmp(wrong, "thread")) {
        begin(&ctx);
        join(start(uses, NULL));
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "done")) {
        begin(&ctx);
        lks_ww_ctx_done(&ctx);                          /* DONE */
        EXPECT(lks_ww_mutex_lock(&a, &ctx) == -EINVAL); /* AFTER DONE */
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "done-twice")) {
        begin(&ctx);
        lks_ww_ctx_done(&ctx); /* DONE FIRST */
        lks_ww_ctx_done(&ctx); /* DONE AGAIN */
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "no-back-off")) {
        pthread_t thread = be_refused();
        EXPECT(lks_ww_mutex_lock(&b, &ctx) == -EINVAL); /* STILL HOLDS */
        lks_ww_mutex_unlock(&a);
        lks_ww_ctx_fini(&ctx);
        reach(2);
        join(thread);
    } else if (!strcmp(wrong, "slow-holding-refused")) {
        pthread_t thread = be_refused();
        EXPECT(lks_ww_mutex_lock_slow_interruptible(&c, &ctx) == -EINVAL); /* STILL HOLDS A */
        lks_ww_mutex_unlock(&a);
        lks_ww_ctx_fini(&ctx);
        reach(2);
        join(thread);
    } else if (!strcmp(wrong, "other-after-refusal")) {
        pthread_t thread = be_refused();
        lks_ww_mutex_unlock(&a);
        EXPECT(lks_ww_mutex_lock(&b, &ctx) == -EINVAL); /* ANOTHER FIRST */
        lks_ww_ctx_fini(&ctx);
        reach(2);
        join(thread);
    } else if (!strcmp(wrong, "slow-holding")) {
        begin(&ctx);
        EXPECT(lks_ww_mutex_lock(&a, &ctx) == 0);
        lks_ww_mutex_lock_slow(&b, &ctx); /* SLOW HOLDING */
        lks_ww_mutex_unlock(&a);
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "slow")) {
        begin(&ctx);
        lks_ww_mutex_lock_slow(&b, &ctx); /* SLOW FOR NOTHING */
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "alone")) {
        begin(&ctx);
        EXPECT(lks_ww_mutex_lock(&b, &ctx) == 0);
        lks_ww_mutex_unlock(&b);
        EXPECT(lks_ww_mutex_lock(&a, &ctx) == 0);
        EXPECT(lks_ww_mutex_lock(&b, NULL) == -EINVAL); /* ALONE */
        lks_ww_mutex_unlock(&a);
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "recursive")) {
        EXPECT(lks_ww_mutex_lock(&a, NULL) == 0);        /* FIRST */
        EXPECT(lks_ww_mutex_lock(&a, NULL) == -EINVAL); /* SECOND */
        lks_ww_mutex_unlock(&a);
    } else if (!strcmp(wrong, "two")) {
        begin(&ctx);
        EXPECT(lks_ww_ctx_init(&second, &red) == -EINVAL); /* TWO */
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "again")) {
        begin(&ctx);
        EXPECT(lks_ww_ctx_init(&ctx, &red) == -EINVAL); /* BEGUN AGAIN */
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "unreleased")) {
        begin(&ctx);
        lks_ww_lock_all(&ctx, all, 2); /* ALL */
        lks_ww_ctx_fini(&ctx);         /* UNRELEASED */
        lks_ww_unlock_all(all, 2);
        lks_ww_ctx_fini(&ctx);
    } else if (!strcmp(wrong, "destroyed")) {
        lks_ww_mutex_destroy(&a);                       /* DESTROYED */
        EXPECT(lks_ww_mutex_lock(&a, NULL) == -EINVAL); /* USED */
    } else if (!strcmp(wrong, "init")) {
        EXPECT(lks_ww_mutex_lock(&a, NULL) == 0); /* HELD */
        lks_ww_mutex_init(&a);                    /* INITIALISED */
        lks_ww_mutex_unlock(&a);
    } else if (!strcmp(wrong, "destroy")) {
        EXPECT(lks_ww_mutex_trylock(&a, NULL) == 1); /* TRIED */
        lks_ww_mutex_destroy(&a);                    /* DESTROYED HELD */
        lks_ww_mutex_unlock(&a);
    } else if (!strcmp(wrong, "kind")) {
        lks_mutex_lock(&mutex);
        EXPECT(lks_ww_mutex_trylock((lks_ww_mutex *)(void *)&mutex, NULL) == 0); /* NOT A WW */
        lks_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "null")) {
        EXPECT(lks_ww_mutex_lock(NULL, NULL) == -EINVAL); /* NULL */
    } else if (!strcmp(wrong, "null-context")) {
        EXPECT(lks_ww_ctx_init(NULL, &red) == -EINVAL); /* NULL CONTEXT */
    } else if (!strcmp(wrong, "null-class")) {
        EXPECT(lks_ww_ctx_init(&ctx, NULL) == -EINVAL); /* NULL CLASS */
    } else if (!strcmp(wrong, "exit-lock")) {
        join(start(forgets_lock, NULL));
    } else if (!strcmp(wrong, "exit-context")) {
        join(start(forgets_context, NULL));
    } else {
        EXPECT(!"a case");
    }
}

static void of_once(const char *wrong)
{
    if (!strcmp(wrong, "once-again")) {
        EXPECT(lks_once_begin(&once) == 1);        /* BEGUN ONCE */
        EXPECT(lks_once_begin(&once) == -EDEADLK); /* BEGUN TWICE */
        lks_once_done(&once);
    } else if (!strcmp(wrong, "once-other")) {
        EXPECT(lks_once_begin(&once) == 1); /* MINE */
        join(start(ends_once, NULL));
        lks_once_done(&once);
    } else if (!strcmp(wrong, "once-nobody")) {
        lks_once_failed(&once); /* NOBODY'S */
    } else if (!strcmp(wrong, "once-null")) {
        EXPECT(lks_once_begin_timeout(NULL, 1) == -EINVAL); /* NULL ONCE */
    } else {
        pthread_t thread;
        EXPECT(!strcmp(wrong, "once-cycle"));
        lks_mutex_lock(&mutex); /* MUTEX */
        thread = start(begins_once, NULL);
        await(1);
        reach(2);
        until_it_sleeps();
        /* As soon as the other waits too, whoever comes last says so. */
        EXPECT(lks_once_begin(&once) == 0); /* WAITS FOR THE TURN */
        lks_mutex_unlock(&mutex);
        join(thread);
    }
}

int main(int count, char **arguments)
{
    EXPECT(count == 2);
    if (!strncmp(arguments[1], "once", 4))
        of_once(arguments[1]);
    else
        of_contexts(arguments[1]);
    return 0;
}
