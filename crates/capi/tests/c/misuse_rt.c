/* Each rule of the checking build that real-time mutexes have, broken once. */
#include "expect.h"

static lks_rt_mutex mutex = LKS_RT_MUTEX_INIT, other = LKS_RT_MUTEX_INIT;
static lks_rt_recursive_mutex recursive = LKS_RT_RECURSIVE_MUTEX_INIT;

static void *release(void *unused)
{
    lks_rt_mutex_unlock(&mutex); /* WRONG THREAD */
    return unused;
}

static void *release_recursive(void *unused)
{
    lks_rt_recursive_mutex_unlock(&recursive); /* WRONG THREAD TOO */
    return unused;
}

static void *forward(void *unused)
{
    EXPECT(lks_rt_mutex_lock(&mutex) == 0);
    EXPECT(lks_rt_mutex_lock(&other) == 0); /* FORWARD */
    lks_rt_mutex_unlock(&other);
    lks_rt_mutex_unlock(&mutex);
    return unused;
}

static void *backward(void *unused)
{
    EXPECT(lks_rt_mutex_lock(&other) == 0);
    EXPECT(lks_rt_mutex_lock(&mutex) == 0); /* BACKWARD */
    lks_rt_mutex_unlock(&mutex);
    lks_rt_mutex_unlock(&other);
    return unused;
}

static void *fail(void *unused)
{
    lks_cancel token = LKS_CANCEL_INIT;
    struct timespec past = {0, 1};
    lks_cancel_fire(&token);
    EXPECT(!lks_rt_mutex_trylock(&mutex) && !lks_rt_recursive_mutex_trylock(&recursive));
    EXPECT(lks_rt_mutex_lock_timeout(&mutex, 1000) == -ETIMEDOUT);
    EXPECT(lks_rt_mutex_lock_until(&mutex, &past) == -ETIMEDOUT);
    EXPECT(lks_rt_mutex_lock_killable(&mutex, &token) == -EINTR);
    EXPECT(lks_rt_recursive_mutex_lock_timeout(&recursive, 1000) == -ETIMEDOUT);
    EXPECT(lks_rt_recursive_mutex_lock_until(&recursive, &past) == -ETIMEDOUT);
    EXPECT(lks_rt_recursive_mutex_lock_killable(&recursive, &token) == -EINTR);
    return unused;
}

/* Nothing wrong. */
static void well(void)
{
    lks_rt_mutex_init(&mutex);
    lks_rt_recursive_mutex_init(&recursive);
    for (int round = 0; round < 3; round++) {
        EXPECT(round == 1 ? lks_rt_mutex_trylock(&mutex)
                          : lks_rt_mutex_lock_interruptible(&mutex) == 0);
        EXPECT(lks_rt_recursive_mutex_lock(&recursive) == 0);
        EXPECT(lks_rt_recursive_mutex_trylock(&recursive));
        EXPECT(lks_rt_recursive_mutex_lock_interruptible(&recursive) == 0);
        join(start(fail, NULL));
        for (int release_it = 0; release_it < 3; release_it++)
            lks_rt_recursive_mutex_unlock(&recursive);
        lks_rt_mutex_unlock(&mutex);
    }
    lks_rt_mutex_destroy(&mutex);
    lks_rt_recursive_mutex_destroy(&recursive);
}

int main(int count, char **arguments)
{
    EXPECT(count == 2);
    const char *wrong = arguments[1];
    if (!strcmp(wrong, "well")) {
        well();
    } else if (!strcmp(wrong, "null")) {
        EXPECT(lks_rt_mutex_lock(NULL) == -EINVAL); /* NULL */
    } else if (!strcmp(wrong, "null-unlock")) {
        lks_rt_recursive_mutex_unlock(NULL); /* NULL UNLOCK */
    } else if (!strcmp(wrong, "null-init")) {
        lks_rt_mutex_init(NULL); /* NULL INIT */
    } else if (!strcmp(wrong, "destroyed")) {
        lks_rt_mutex_destroy(&mutex);           /* DESTROYED HERE */
        EXPECT(!lks_rt_mutex_trylock(&mutex)); /* USED HERE */
    } else if (!strcmp(wrong, "thread")) {
        EXPECT(lks_rt_mutex_lock(&mutex) == 0); /* TAKEN HERE */
        join(start(release, NULL));
        lks_rt_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "thread-recursive")) {
        EXPECT(lks_rt_recursive_mutex_lock(&recursive) == 0); /* TAKEN HERE TOO */
        EXPECT(lks_rt_recursive_mutex_lock(&recursive) == 0);
        join(start(release_recursive, NULL));
        lks_rt_recursive_mutex_unlock(&recursive);
        lks_rt_recursive_mutex_unlock(&recursive);
    } else if (!strcmp(wrong, "free")) {
        lks_rt_mutex_unlock(&mutex); /* FREE */
    } else if (!strcmp(wrong, "often")) {
        EXPECT(lks_rt_recursive_mutex_lock(&recursive) == 0);
        lks_rt_recursive_mutex_unlock(&recursive);
        lks_rt_recursive_mutex_unlock(&recursive); /* ONCE TOO OFTEN */
    } else if (!strcmp(wrong, "recursive")) {
        EXPECT(lks_rt_mutex_lock(&mutex) == 0);        /* FIRST */
        EXPECT(lks_rt_mutex_lock(&mutex) == -EDEADLK); /* SECOND */
        lks_rt_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "init")) {
        EXPECT(lks_rt_mutex_lock(&mutex) == 0);
        lks_rt_mutex_init(&mutex); /* HELD */
        lks_rt_mutex_unlock(&mutex);
    } else if (!strcmp(wrong, "destroy")) {
        EXPECT(lks_rt_recursive_mutex_lock(&recursive) == 0);
        lks_rt_recursive_mutex_destroy(&recursive); /* HELD TOO */
        lks_rt_recursive_mutex_unlock(&recursive);
    } else if (!strcmp(wrong, "kind")) {
        EXPECT(lks_rt_mutex_lock(&mutex) == 0);
        lks_rt_recursive_mutex_unlock((lks_rt_recursive_mutex *)(void *)&mutex); /* NO SUCH */
        lks_rt_mutex_unlock(&mutex);
    } else {
        join(start(forward, NULL));
        join(start(backward, NULL));
    }
    return 0;
}
