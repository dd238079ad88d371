/* The reader-writer lock: readers together, writers alone, each end of a wait. */
#include "expect.h"

enum { THREADS = 4, ROUNDS = 20000 };

static lks_rwlock lock = LKS_RWLOCK_INIT;
static long first, second;
static int ended;

static void *use(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 4 == 0) {
            lks_rwlock_write(&lock);
            first++;
            second++;
            if (i % 8 == 0) {
                lks_rwlock_downgrade(&lock);
                EXPECT(first == second);
                lks_rwlock_unread(&lock);
            } else {
                lks_rwlock_unwrite(&lock);
            }
        } else {
            if (i % 4 == 1)
                EXPECT(lks_rwlock_read_timeout(&lock, MILLISECONDS(60000)) == 0);
            else
                lks_rwlock_read(&lock);
            EXPECT(first == second);
            lks_rwlock_unread(&lock);
        }
    }
    return unused;
}

static void *interruptible(void *reads)
{
    int result = reads ? lks_rwlock_read_interruptible(&lock) : lks_rwlock_write_interruptible(&lock);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return (void *)(intptr_t)result;
}

static lks_cancel token = LKS_CANCEL_INIT;

static void *others(void *unused)
{
    struct timespec past = {0, 0};
    EXPECT(!lks_rwlock_tryread(&lock) && !lks_rwlock_trywrite(&lock));
    EXPECT(lks_rwlock_read_timeout(&lock, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_rwlock_write_timeout(&lock, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_rwlock_read_until(&lock, &past) == -ETIMEDOUT);
    EXPECT(lks_rwlock_write_until(&lock, &past) == -ETIMEDOUT);
    lks_cancel_fire(&token);
    EXPECT(lks_rwlock_read_killable(&lock, &token) == -EINTR);
    EXPECT(lks_rwlock_write_killable(&lock, &token) == -EINTR);
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(use, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    EXPECT(first == second && first == (long)THREADS * ROUNDS / 4);

    EXPECT(lks_rwlock_tryread(&lock) && lks_rwlock_tryread(&lock));
    EXPECT(!lks_rwlock_trywrite(&lock) && lks_rwlock_is_locked(&lock));
    lks_rwlock_unread(&lock);
    lks_rwlock_unread(&lock);
    EXPECT(!lks_rwlock_is_locked(&lock) && lks_rwlock_trywrite(&lock));
    EXPECT(lks_rwlock_write_timeout(&lock, 0) == -EDEADLK);
    EXPECT(lks_rwlock_read_interruptible(&lock) == -EDEADLK);
    join(start(others, NULL));
    for (int reads = 0; reads < 2; reads++) {
        ended = 0;
        pthread_t thread = start(interruptible, reads ? &lock : NULL);
        SIGNAL_UNTIL(thread, ended);
        EXPECT((intptr_t)join(thread) == -EINTR);
    }
    lks_rwlock_unwrite(&lock);
    lks_rwlock fresh;
    lks_rwlock_init(&fresh);
    EXPECT(!lks_rwlock_is_locked(&fresh));
    /* As if so many held it. */
    fresh.word__ = LKS_RWLOCK_SHARED__ | LKS_MAX_SLOTS__;
    EXPECT(!lks_rwlock_tryread(&fresh));
    EXPECT(lks_rwlock_read_timeout(&fresh, MILLISECONDS(60000)) == -EAGAIN);
    EXPECT(lks_rwlock_read_interruptible(&fresh) == -EAGAIN);
    lks_rwlock_unread(&fresh);
    EXPECT(lks_rwlock_read_interruptible(&fresh) == 0);
    fresh.word__ = 0;
    lks_rwlock_destroy(&fresh);
    return 0;
}
