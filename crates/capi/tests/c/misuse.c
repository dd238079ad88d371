/* Each rule of the checking build, broken once; the test reads the messages. */
#include "expect.h"

static lks_mutex mutex = LKS_MUTEX_INIT, other = LKS_MUTEX_INIT;
static lks_rwlock lock = LKS_RWLOCK_INIT;

static void *release(void *unused)
{
    lks_mutex_unlock(&mutex); /* WRONG THREAD */
    return unused;
}

static void *forward(void *unused)
{
    lks_mutex_lock(&mutex);
    lks_mutex_lock(&other); /* FORWARD */
    lks_mutex_unlock(&other);
    lks_mutex_unlock(&mutex);
    return unused;
}

static void *backward(void *unused)
{
    lks_mutex_lock(&other);
    lks_mutex_lock(&mutex); /* BACKWARD */
    lks_mutex_unlock(&mutex);
    lks_mutex_unlock(&other);
    return unused;
}

int main(int count, char **arguments)
{
    EXPECT(count == 2);
    const char *wrong = arguments[1];
    if (!strcmp(wrong, "null")) {
        lks_mutex_lock(NULL); /* NULL */
    } else if (!strcmp(wrong, "null-semaphore")) {
        lks_semaphore_down(NULL); /* NULL SEMAPHORE */
    } else if (!strcmp(wrong, "null-condition")) {
        lks_mutex_lock(&mutex);
        lks_cond_wait(NULL, &mutex); /* NULL CONDITION */
    } else if (!strcmp(wrong, "destroyed")) {
        lks_mutex_destroy(&mutex); /* DESTROYED HERE */
        lks_mutex_lock(&mutex);    /* USED HERE */
    } else if (!strcmp(wrong, "thread")) {
        lks_mutex_init(&mutex);
        lks_mutex_lock(&mutex); /* TAKEN HERE */
        join(start(release, NULL));
    } else if (!strcmp(wrong, "free")) {
        lks_mutex_unlock(&mutex); /* FREE */
    } else if (!strcmp(wrong, "recursive")) {
        lks_mutex_lock(&mutex);                      /* FIRST */
        EXPECT(lks_mutex_lock_timeout(&mutex, 1000) == -EDEADLK); /* SECOND */
    } else if (!strcmp(wrong, "reader")) {
        lks_rwlock_read(&lock);
        lks_rwlock_unwrite(&lock); /* NOT A WRITER */
    } else if (!strcmp(wrong, "init")) {
        lks_mutex_lock(&mutex);
        lks_mutex_init(&mutex); /* HELD */
    } else if (!strcmp(wrong, "destroy")) {
        lks_mutex_lock(&mutex);
        lks_mutex_destroy(&mutex); /* HELD TOO */
    } else if (!strcmp(wrong, "kind")) {
        lks_mutex_lock(&mutex);
        lks_semaphore_up((lks_semaphore *)(void *)&mutex); /* NO SEMAPHORE */
    } else if (!strcmp(wrong, "condition")) {
        lks_cond cond = LKS_COND_INIT;
        EXPECT(lks_cond_wait_timeout(&cond, &mutex, 1000) == -EINVAL); /* NOT HELD */
    } else {
        join(start(forward, NULL));
        join(start(backward, NULL));
    }
    return 0;
}
