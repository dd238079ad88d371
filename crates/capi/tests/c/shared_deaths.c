/* Processes that are killed while they have shared locks. */
#include "bank.h"
#include <sys/wait.h>

static lks_shm_segment *segment;
static struct bank *bank;

static void reach(uint32_t stage)
{
    __atomic_store_n(&bank->stage, stage, __ATOMIC_RELEASE);
}

static void await_stage(uint32_t stage)
{
    for (int round = 0; __atomic_load_n(&bank->stage, __ATOMIC_ACQUIRE) != stage; round++) {
        EXPECT(round < 30000);
        nap(1);
    }
}

/* Has a child do this, and kills it when it is done. */
static void die_after(void (*work)(void))
{
    reach(0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        work();
        reach(1);
        for (;;)
            pause();
    }
    await_stage(1);
    int status;
    EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status));
}

static void take_all(void)
{
    for (int i = 0; i < ACCOUNTS; i++) {
        EXPECT(lks_shared_mutex_lock(&bank->accounts[i].lock) == 0);
        bank->accounts[i].balance = -1;
    }
}

static void take_one(void)
{
    EXPECT(lks_shared_mutex_lock(&bank->accounts[0].lock) == 0);
}

static void take_others(void)
{
    EXPECT(lks_shared_rwlock_write(&bank->rates.lock) == 0);
    bank->rates.of[0]++;
    EXPECT(lks_shared_semaphore_acquire(&bank->clerks, 1) == 0);
    EXPECT(lks_shared_semaphore_acquire(&bank->clerks, 1) == 0);
}

static void take_only_to_read(void)
{
    EXPECT(lks_shared_rwlock_read(&bank->rates.lock) == 0);
}

static void *wait_for_one(void *unused)
{
    begins();
    EXPECT(lks_shared_mutex_lock(&bank->accounts[0].lock) == -EOWNERDEAD);
    EXPECT(lks_shared_mutex_consistent(&bank->accounts[0].lock) == 0);
    EXPECT(lks_shared_mutex_unlock(&bank->accounts[0].lock) == 0);
    return unused;
}

int main(void)
{
    struct account *accounts;
    segment = new_bank();
    bank = (struct bank *)lks_shm_root(segment);
    accounts = bank->accounts;

    /* A thousand, by each way of asking. */
    die_after(take_all);
    for (int i = 0; i < ACCOUNTS; i++) {
        lks_shared_mutex *mutex = &accounts[i].lock;
        int got = i % 3 == 0   ? lks_shared_mutex_trylock(mutex)
                  : i % 3 == 1 ? lks_shared_mutex_lock_timeout(mutex, MILLISECONDS(60000))
                               : lks_shared_mutex_lock(mutex);
        EXPECT(got == -EOWNERDEAD && lks_shared_mutex_is_inconsistent(mutex));
        EXPECT(lks_shared_mutex_is_mine(mutex) && accounts[i].balance == -1);
        accounts[i].balance = 0;
        EXPECT(lks_shared_mutex_consistent(mutex) == 0);
        EXPECT(!lks_shared_mutex_is_inconsistent(mutex));
        EXPECT(lks_shared_mutex_unlock(mutex) == 0);
    }
    for (int i = 0; i < ACCOUNTS; i++) {
        EXPECT(lks_shared_mutex_lock(&accounts[i].lock) == 0);
        EXPECT(lks_shared_mutex_unlock(&accounts[i].lock) == 0);
    }

    /* Who waits is told of it. */
    reach(0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        take_one();
        reach(1);
        for (;;)
            pause();
    }
    await_stage(1);
    pthread_t waiter = start(wait_for_one, NULL);
    until_it_sleeps();
    EXPECT(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    join(waiter);

    /* What is not put in order is of no use any more. */
    die_after(take_one);
    EXPECT(lks_shared_mutex_lock(&accounts[0].lock) == -EOWNERDEAD);
    EXPECT(lks_shared_mutex_unlock(&accounts[0].lock) == 0);
    EXPECT(lks_shared_mutex_lock(&accounts[0].lock) == -ENOTRECOVERABLE);
    EXPECT(lks_shared_mutex_trylock(&accounts[0].lock) == -ENOTRECOVERABLE);
    EXPECT(lks_shared_mutex_lock_timeout(&accounts[0].lock, 1000) == -ENOTRECOVERABLE);
    EXPECT(!lks_shared_mutex_is_locked(&accounts[0].lock));
    lks_shared_mutex_init(&accounts[0].lock);
    EXPECT(lks_shared_mutex_lock(&accounts[0].lock) == 0);

    /* A forked child has nothing of what its parent has. */
    child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        EXPECT(lks_shared_mutex_unlock(&accounts[0].lock) == -EPERM);
        EXPECT(lks_shared_mutex_trylock(&accounts[0].lock) == 0);
        EXPECT(lks_shared_mutex_unlock(&accounts[0].lock) == -EPERM);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(lks_shared_mutex_unlock(&accounts[0].lock) == 0);

    /* The other locks: a reader repairs alone, and units come back. */
    die_after(take_others);
    EXPECT(lks_shared_rwlock_read(&bank->rates.lock) == -EOWNERDEAD);
    EXPECT(lks_shared_rwlock_is_inconsistent(&bank->rates.lock));
    bank->rates.of[1] = bank->rates.of[0];
    EXPECT(lks_shared_rwlock_consistent(&bank->rates.lock) == 0);
    EXPECT(lks_shared_rwlock_unlock(&bank->rates.lock) == 0);
    EXPECT(lks_shared_semaphore_acquire(&bank->clerks, 3) == 2);
    EXPECT(lks_shared_semaphore_release(&bank->clerks, 3) == 0);
    EXPECT(lks_shared_semaphore_acquire(&bank->clerks, 3) == 0);
    EXPECT(lks_shared_semaphore_release(&bank->clerks, 3) == 0);
    die_after(take_only_to_read);
    EXPECT(lks_shared_rwlock_write(&bank->rates.lock) == 0);
    EXPECT(lks_shared_rwlock_unlock(&bank->rates.lock) == 0);
    die_after(take_others);
    EXPECT(lks_shared_rwlock_trywrite(&bank->rates.lock) == -EOWNERDEAD);
    EXPECT(lks_shared_rwlock_unlock(&bank->rates.lock) == 0);
    EXPECT(lks_shared_rwlock_tryread(&bank->rates.lock) == -ENOTRECOVERABLE);
    EXPECT(lks_shared_rwlock_write(&bank->rates.lock) == -ENOTRECOVERABLE);
    lks_shared_rwlock_init(&bank->rates.lock);
    EXPECT(lks_shared_rwlock_write_timeout(&bank->rates.lock, 1000) == 0);
    EXPECT(lks_shared_rwlock_unlock(&bank->rates.lock) == 0);

    EXPECT(lks_shm_close(segment) == 0);
    return 0;
}
