/* Waits that could never end: each aborts, with a message that the test reads. */
#include "expect.h"
#include <sys/wait.h>

static lks_mutex mutex = LKS_MUTEX_INIT;

static lks_semaphore end = LKS_SEMAPHORE_INIT(0);

static void *take(void *unused)
{
    lks_mutex_lock(&mutex);
    lks_semaphore_down(&end);
    lks_mutex_unlock(&mutex);
    return unused;
}

static lks_ww_class class_of_left = LKS_WW_CLASS_INIT(LKS_WOUND_WAIT);
static lks_ww_mutex left = LKS_WW_MUTEX_INIT;
static lks_ww_ctx never_ends;

static void *leave(void *unused)
{
    EXPECT(lks_ww_ctx_init(&never_ends, &class_of_left) == 0);
    EXPECT(lks_ww_mutex_lock(&left, &never_ends) == 0);
    return unused;
}

int main(int count, char **arguments)
{
    EXPECT(count == 2);
    if (!strcmp(arguments[1], "recursive")) {
        lks_set_name(&mutex, "accounts");
        lks_mutex_lock(&mutex);
        lks_mutex_lock(&mutex);
    } else if (!strcmp(arguments[1], "fair")) {
        static lks_fair_mutex fair = LKS_FAIR_MUTEX_INIT;
        lks_set_name(&fair, "orders");
        lks_mutex_lock(lks_mutex_of_fair(&fair));
        lks_fair_mutex_lock(&fair);
    } else if (!strcmp(arguments[1], "lost")) {
        pthread_t thread = start(take, NULL);
        while (!lks_mutex_is_locked(&mutex))
            nap(1);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            EXPECT(lks_mutex_lock_timeout(&mutex, MILLISECONDS(60000)) == -EOWNERDEAD);
            lks_mutex_lock(&mutex);
            return 0;
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child);
        EXPECT(lks_semaphore_up(&end) == 0);
        join(thread);
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    } else if (!strcmp(arguments[1], "writer")) {
        lks_rwlock lock = LKS_RWLOCK_INIT;
        lks_rwlock_write(&lock);
        lks_rwlock_read(&lock);
    } else if (!strcmp(arguments[1], "slow")) {
        lks_ww_class class_of_both = LKS_WW_CLASS_INIT(LKS_WAIT_DIE);
        lks_ww_mutex locks[2] = {LKS_WW_MUTEX_INIT, LKS_WW_MUTEX_INIT};
        lks_ww_ctx ctx;
        EXPECT(lks_ww_ctx_init(&ctx, &class_of_both) == 0);
        EXPECT(lks_ww_mutex_lock(&locks[0], &ctx) == 0);
        lks_ww_mutex_lock_slow(&locks[1], &ctx);
    } else if (!strcmp(arguments[1], "ended")) {
        lks_ww_ctx ctx;
        join(start(leave, NULL));
        EXPECT(lks_ww_ctx_init(&ctx, &class_of_left) == 0);
        lks_ww_mutex_lock_slow(&left, &ctx);
    } else {
        int references = 0;
        EXPECT(lks_atomic_dec_and_mutex_lock(&references, &mutex) == 0);
    }
    return 0;
}
