/* The condition variable: a bounded queue, and each end of a wait. */
#include "expect.h"

enum { ROOM = 8, ITEMS = 20000, PRODUCERS = 2 };

static lks_mutex mutex = LKS_MUTEX_INIT;
static lks_cond not_empty = LKS_COND_INIT, not_full = LKS_COND_INIT;
static int queue[ROOM], used, ended;
static long sum;

static void *produce(void *unused)
{
    for (int i = 1; i <= ITEMS; i++) {
        lks_mutex_lock(&mutex);
        while (used == ROOM)
            lks_cond_wait(&not_full, &mutex);
        queue[used++] = i;
        lks_cond_notify_one(&not_empty);
        lks_mutex_unlock(&mutex);
    }
    return unused;
}

static void *consume(void *unused)
{
    for (int i = 0; i < ITEMS; i++) {
        lks_mutex_lock(&mutex);
        while (used == 0)
            EXPECT(lks_cond_wait_timeout(&not_empty, &mutex, MILLISECONDS(60000)) == 0);
        sum += queue[--used];
        lks_cond_notify_all(&not_full);
        lks_mutex_unlock(&mutex);
    }
    return unused;
}

static void *interruptible(void *unused)
{
    int result;
    (void)unused;
    lks_mutex_lock(&mutex);
    do
        result = lks_cond_wait_interruptible(&not_empty, &mutex);
    while (result == 0);
    EXPECT(lks_mutex_is_mine(&mutex));
    lks_mutex_unlock(&mutex);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return (void *)(intptr_t)result;
}

static lks_cancel token = LKS_CANCEL_INIT;

static void *killable(void *unused)
{
    int result;
    (void)unused;
    lks_mutex_lock(&mutex);
    begins();
    do
        result = lks_cond_wait_killable(&not_empty, &mutex, &token);
    while (result == 0);
    lks_mutex_unlock(&mutex);
    return (void *)(intptr_t)result;
}

int main(void)
{
    pthread_t threads[2 * PRODUCERS];
    for (int i = 0; i < 2 * PRODUCERS; i++)
        threads[i] = start(i % 2 ? produce : consume, NULL);
    for (int i = 0; i < 2 * PRODUCERS; i++)
        join(threads[i]);
    EXPECT(used == 0 && sum == (long)PRODUCERS * ITEMS * (ITEMS + 1) / 2);

    pthread_t thread = start(interruptible, NULL);
    SIGNAL_UNTIL(thread, ended);
    EXPECT((intptr_t)join(thread) == -EINTR);
    thread = start(killable, NULL);
    until_it_sleeps();
    lks_cancel_fire(&token);
    EXPECT((intptr_t)join(thread) == -EINTR);

    lks_mutex_lock(&mutex);
    EXPECT(lks_cond_wait_timeout(&not_empty, &mutex, MILLISECONDS(2)) == -ETIMEDOUT);
    struct timespec past = {0, 0}, wrong = {0, -1};
    EXPECT(lks_cond_wait_until(&not_empty, &mutex, &past) == -ETIMEDOUT);
    EXPECT(lks_cond_wait_until(&not_empty, &mutex, &wrong) == -EINVAL);
    EXPECT(lks_mutex_is_mine(&mutex));
    lks_mutex_unlock(&mutex);
    lks_cond cond;
    lks_cond_init(&cond);
    lks_cond_notify_all(&cond);
    lks_cond_destroy(&cond);
    return 0;
}
