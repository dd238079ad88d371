/* Each rule of the checking build that the fair mutex has, broken once; the test reads the messages. */
#include "expect.h"

static lks_fair_mutex mutex = LKS_FAIR_MUTEX_INIT, other = LKS_FAIR_MUTEX_INIT;

static void *release(void *unused)
{
    lks_fair_mutex_unlock(&mutex); /* WRONG THREAD */
    return unused;
}

static void *forward(void *unused)
{
    lks_fair_mutex_lock(&mutex);
    lks_fair_mutex_lock(&other); /* FORWARD */
    lks_fair_mutex_unlock(&other);
    lks_fair_mutex_unlock(&mutex);
    return unused;
}

static void *backward(void *unused)
{
    lks_fair_mutex_lock(&other);
    lks_mutex_lock(lks_mutex_of_fair(&mutex)); /* BACKWARD */
    lks_fair_mutex_unlock(&mutex);
    lks_fair_mutex_unlock(&other);
    return unused;
}

int main(int count, char **arguments)
{
    EXPECT(count == 2);
    const char *wrong = arguments[1];
    if (!strcmp(wrong, "null")) {
        lks_fair_mutex_lock(NULL); /* NULL */
    } else if (!strcmp(wrong, "null-try")) {
        EXPECT(!lks_fair_mutex_trylock(NULL)); /* NULL TRY */
    } else if (!strcmp(wrong, "destroyed")) {
        lks_fair_mutex_destroy(&mutex); /* DESTROYED HERE */
        lks_fair_mutex_lock(&mutex);    /* USED HERE */
    } else if (!strcmp(wrong, "thread")) {
        lks_fair_mutex_init(&mutex);
        lks_fair_mutex_lock(&mutex); /* TAKEN HERE */
        join(start(release, NULL));
        lks_fair_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "free")) {
        lks_fair_mutex_unlock(&mutex); /* FREE */
    } else if (!strcmp(wrong, "recursive")) {
        lks_mutex_lock(lks_mutex_of_fair(&mutex));                     /* FIRST */
        EXPECT(lks_fair_mutex_lock_timeout(&mutex, 1000) == -EDEADLK); /* SECOND */
        lks_fair_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "init")) {
        lks_fair_mutex_lock(&mutex);
        lks_fair_mutex_init(&mutex); /* HELD */
        lks_fair_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "destroy")) {
        lks_fair_mutex_lock(&mutex);
        lks_fair_mutex_destroy(&mutex); /* HELD TOO */
        lks_fair_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "kind")) {
        lks_fair_mutex_lock(&mutex);
        lks_semaphore_up((lks_semaphore *)(void *)&mutex); /* NO SEMAPHORE */
        lks_fair_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "condition")) {
        lks_cond cond = LKS_COND_INIT;
        EXPECT(lks_cond_wait_fair_timeout(&cond, &mutex, 1000) == -EINVAL); /* NOT HELD */
    } else {
        join(start(forward, NULL));
        join(start(backward, NULL));
    }
    return 0;
}
