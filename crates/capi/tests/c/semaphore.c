/* The semaphore: as many as permits, from any thread to any, and each end of a wait. */
#include "expect.h"

enum { THREADS = 4, ROUNDS = 20000, PERMITS = 2 };

static lks_semaphore permits = LKS_SEMAPHORE_INIT(PERMITS);
static int inside, ended;

static void *use(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2)
            lks_semaphore_down(&permits);
        else
            while (lks_semaphore_down_trylock(&permits) != 0)
                ;
        EXPECT(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) <= PERMITS);
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        EXPECT(lks_semaphore_up(&permits) == 0);
    }
    return unused;
}

static void *interruptible(void *semaphore)
{
    int result = lks_semaphore_down_interruptible(semaphore);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return (void *)(intptr_t)result;
}

static lks_cancel token = LKS_CANCEL_INIT;

static void *killable(void *semaphore)
{
    begins();
    return (void *)(intptr_t)lks_semaphore_down_killable(semaphore, &token);
}

static void *give(void *semaphore)
{
    /* The main thread, which waits for it: as a thread, for an emulator of one process makes up the
     * status of the process, which never sleeps. */
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    until_asleep(path);
    EXPECT(lks_semaphore_up(semaphore) == 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(use, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    EXPECT(lks_semaphore_permits(&permits) == PERMITS);

    lks_semaphore semaphore;
    EXPECT(lks_semaphore_init(&semaphore, LKS_SEMAPHORE_MAX + 1) == -EINVAL);
    EXPECT(lks_semaphore_init(&semaphore, LKS_SEMAPHORE_MAX) == 0);
    EXPECT(lks_semaphore_up(&semaphore) == -EOVERFLOW);
    EXPECT(lks_semaphore_init(&semaphore, 0) == 0);
    EXPECT(lks_semaphore_down_trylock(&semaphore) == 1);
    EXPECT(lks_semaphore_down_timeout(&semaphore, MILLISECONDS(2)) == -ETIMEDOUT);
    struct timespec past = {0, 0};
    EXPECT(lks_semaphore_down_until(&semaphore, &past) == -ETIMEDOUT);

    pthread_t thread = start(interruptible, &semaphore);
    SIGNAL_UNTIL(thread, ended);
    EXPECT((intptr_t)join(thread) == -EINTR);
    thread = start(killable, &semaphore);
    until_it_sleeps();
    lks_cancel_fire(&token);
    EXPECT((intptr_t)join(thread) == -EINTR);

    thread = start(give, &semaphore);
    lks_semaphore_down(&semaphore);
    join(thread);
    EXPECT(lks_semaphore_permits(&semaphore) == 0);
    lks_semaphore_destroy(&semaphore);
    return 0;
}
