/* Shared locks among the threads of one process. */
#include "bank.h"

static lks_shm_segment *segment;
static struct bank *bank;
static int done, result;

static void *count(void *unused)
{
    struct account *account = &bank->accounts[1];
    for (int round = 0; round < 20000; round++) {
        EXPECT(lks_shared_mutex_lock(&account->lock) == 0);
        account->balance++;
        EXPECT(lks_shared_mutex_unlock(&account->lock) == 0);
        if (round % 16 == 0) {
            EXPECT(lks_shared_rwlock_write(&bank->rates.lock) == 0);
            bank->rates.of[0]++;
            bank->rates.of[1]++;
        } else {
            EXPECT(lks_shared_rwlock_read(&bank->rates.lock) == 0);
            EXPECT(bank->rates.of[0] == bank->rates.of[1]);
        }
        EXPECT(lks_shared_rwlock_unlock(&bank->rates.lock) == 0);
    }
    return unused;
}

static void *others(void *unused)
{
    struct timespec past = {0, 1}, none = {0, -1};
    lks_shared_mutex *mutex = &bank->accounts[0].lock;
    lks_shared_rwlock *rates = &bank->rates.lock;
    lks_cancel token = LKS_CANCEL_INIT;
    lks_cancel_fire(&token);
    EXPECT(lks_shared_mutex_trylock(mutex) == 0 && !lks_shared_mutex_is_mine(mutex));
    EXPECT(lks_shared_mutex_lock_timeout(mutex, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_shared_mutex_lock_until(mutex, &past) == -ETIMEDOUT);
    EXPECT(lks_shared_mutex_lock_until(mutex, &none) == -EINVAL);
    EXPECT(lks_shared_mutex_lock_killable(mutex, &token) == -EINTR);
    EXPECT(lks_shared_mutex_unlock(mutex) == -EPERM);
    EXPECT(lks_shared_mutex_consistent(mutex) == -EPERM);
    EXPECT(lks_shared_cond_wait(&bank->changed, mutex) == -EPERM);
    EXPECT(lks_shared_rwlock_tryread(rates) == 0 && lks_shared_rwlock_trywrite(rates) == 0);
    EXPECT(lks_shared_rwlock_read_timeout(rates, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_shared_rwlock_read_until(rates, &past) == -ETIMEDOUT);
    EXPECT(lks_shared_rwlock_read_killable(rates, &token) == -EINTR);
    EXPECT(lks_shared_rwlock_write_timeout(rates, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_shared_rwlock_write_until(rates, &past) == -ETIMEDOUT);
    EXPECT(lks_shared_rwlock_write_killable(rates, &token) == -EINTR);
    EXPECT(lks_shared_rwlock_unlock(rates) == -EPERM);
    EXPECT(lks_shared_semaphore_tryacquire(&bank->clerks, 1) == -EBUSY);
    EXPECT(lks_shared_semaphore_acquire_timeout(&bank->clerks, 1, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_shared_semaphore_acquire_until(&bank->clerks, 1, &past) == -ETIMEDOUT);
    EXPECT(lks_shared_semaphore_acquire_killable(&bank->clerks, 1, &token) == -EINTR);
    EXPECT(lks_shared_semaphore_release(&bank->clerks, 1) == -EPERM);
    return unused;
}

static void *interrupted(void *which)
{
    switch (*(int *)which) {
    case 0:
        result = lks_shared_mutex_lock_interruptible(&bank->accounts[0].lock);
        break;
    case 1:
        result = lks_shared_rwlock_read_interruptible(&bank->rates.lock);
        break;
    case 2:
        result = lks_shared_rwlock_write_interruptible(&bank->rates.lock);
        break;
    case 3:
        result = lks_shared_semaphore_acquire_interruptible(&bank->clerks, 1);
        break;
    default:
        EXPECT(lks_shared_mutex_lock(&bank->accounts[2].lock) == 0);
        result = lks_shared_cond_wait_interruptible(&bank->changed, &bank->accounts[2].lock);
        EXPECT(lks_shared_mutex_unlock(&bank->accounts[2].lock) == 0);
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void forms(void)
{
    lks_shared_mutex *mutex = &bank->accounts[0].lock;
    EXPECT(lks_shared_mutex_lock(mutex) == 0 && lks_shared_mutex_is_mine(mutex));
    EXPECT(lks_shared_mutex_is_locked(mutex) && !lks_shared_mutex_is_inconsistent(mutex));
    EXPECT(lks_shared_mutex_lock(mutex) == -EDEADLK);
    EXPECT(lks_shared_mutex_trylock(mutex) == -EDEADLK);
    EXPECT(lks_shared_rwlock_write(&bank->rates.lock) == 0);
    EXPECT(lks_shared_rwlock_read(&bank->rates.lock) == -EDEADLK);
    EXPECT(lks_shared_semaphore_acquire(&bank->clerks, 1) == 0);
    EXPECT(lks_shared_semaphore_acquire(&bank->clerks, 2) == 0);
    EXPECT(lks_shared_semaphore_free(&bank->clerks) == 0);
    EXPECT(lks_shm_leave(segment) == -EBUSY && lks_shm_close(segment) == -EBUSY);
    EXPECT(strstr(lks_shm_reason(), "holds locks"));
    join(start(others, NULL));
    for (int which = 0; which < 5; which++) {
        done = 0;
        pthread_t thread = start(interrupted, &which);
        SIGNAL_UNTIL(thread, done);
        join(thread);
        EXPECT(result == -EINTR);
    }
    EXPECT(lks_shared_semaphore_release(&bank->clerks, 4) == -EPERM);
    EXPECT(lks_shared_semaphore_release(&bank->clerks, 1) == 0);
    EXPECT(lks_shared_semaphore_consume(&bank->clerks, 1) == 0);
    EXPECT(lks_shared_semaphore_total(&bank->clerks) == 2);
    EXPECT(lks_shared_semaphore_add(&bank->clerks, UINT32_MAX) == -EOVERFLOW);
    EXPECT(lks_shared_semaphore_add(&bank->clerks, 1) == 0);
    EXPECT(lks_shared_semaphore_tryacquire(&bank->clerks, 2) == 0);
    EXPECT(lks_shared_semaphore_release(&bank->clerks, 3) == 0);
    EXPECT(lks_shared_semaphore_release(&bank->clerks, 1) == -EPERM);
    EXPECT(lks_shared_rwlock_unlock(&bank->rates.lock) == 0);
    EXPECT(lks_shared_rwlock_read_interruptible(&bank->rates.lock) == 0);
    EXPECT(lks_shared_rwlock_write(&bank->rates.lock) == -EDEADLK);
    EXPECT(lks_shared_rwlock_unlock(&bank->rates.lock) == 0);
    EXPECT(lks_shared_mutex_unlock(mutex) == 0);
    EXPECT(lks_shared_mutex_unlock(mutex) == -EPERM);
    EXPECT(lks_shared_mutex_trylock(mutex) == 1);
    EXPECT(lks_shared_mutex_unlock(mutex) == 0);
}

static void *wait_for(void *stage)
{
    struct account *account = &bank->accounts[3];
    int number = asks();
    EXPECT(lks_shared_mutex_lock(&account->lock) == 0);
    while (account->balance < *(int64_t *)stage)
        EXPECT(lks_shared_cond_wait(&bank->changed, &account->lock) == 0);
    has_asked(number);
    EXPECT(lks_shared_mutex_unlock(&account->lock) == 0);
    return NULL;
}

static void conditions(void)
{
    struct account *account = &bank->accounts[3];
    struct timespec past = {0, 1};
    lks_cancel token = LKS_CANCEL_INIT;
    int64_t stages[4] = {1, 2, 3, 3};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = start(wait_for, &stages[i]);
    for (int stage = 1; stage <= 3; stage++) {
        until_askers_sleep(4);
        EXPECT(lks_shared_mutex_lock(&account->lock) == 0);
        account->balance = stage;
        EXPECT(lks_shared_cond_notify_all(&bank->changed) == 0);
        EXPECT(lks_shared_mutex_unlock(&account->lock) == 0);
    }
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    EXPECT(lks_shared_cond_notify_one(&bank->changed) == 0);
    EXPECT(lks_shared_mutex_lock(&account->lock) == 0);
    lks_cancel_fire(&token);
    int ended;
    while ((ended = lks_shared_cond_wait_timeout(&bank->changed, &account->lock, 1000)) == 0)
        ;
    EXPECT(ended == -ETIMEDOUT);
    EXPECT(lks_shared_cond_wait_until(&bank->changed, &account->lock, &past) == -ETIMEDOUT);
    EXPECT(lks_shared_cond_wait_killable(&bank->changed, &account->lock, &token) == -EINTR);
    EXPECT(lks_shared_mutex_unlock(&account->lock) == 0);
}

/* What is not a lock of a segment is said to be none. */
static void elsewhere(void)
{
    static lks_shared_mutex mutex;
    static lks_shared_rwlock lock;
    static lks_shared_semaphore semaphore;
    static lks_shared_cond cond;
    EXPECT(lks_shared_mutex_lock(&mutex) == -EFAULT && lks_shared_mutex_lock(NULL) == -EFAULT);
    EXPECT(strstr(lks_shm_reason(), "segment"));
    EXPECT(lks_shared_mutex_trylock(NULL) == -EFAULT && lks_shared_mutex_unlock(NULL) == -EPERM);
    EXPECT(lks_shared_mutex_consistent(NULL) == -EPERM && !lks_shared_mutex_is_mine(NULL));
    EXPECT(lks_shared_rwlock_read(&lock) == -EFAULT && lks_shared_rwlock_write(NULL) == -EFAULT);
    EXPECT(lks_shared_rwlock_tryread(NULL) == -EFAULT && lks_shared_rwlock_unlock(NULL) == -EPERM);
    EXPECT(lks_shared_rwlock_trywrite(NULL) == -EFAULT);
    EXPECT(lks_shared_rwlock_consistent(NULL) == -EPERM);
    EXPECT(lks_shared_semaphore_acquire(&semaphore, 1) == -EFAULT);
    EXPECT(lks_shared_semaphore_tryacquire(NULL, 1) == -EFAULT);
    EXPECT(lks_shared_semaphore_release(NULL, 1) == -EPERM);
    EXPECT(lks_shared_semaphore_consume(NULL, 1) == -EPERM);
    EXPECT(lks_shared_semaphore_add(NULL, 1) == -EFAULT);
    EXPECT(lks_shared_cond_notify_one(NULL) == -EFAULT);
    EXPECT(lks_shared_cond_wait(NULL, &bank->accounts[0].lock) == -EFAULT);
    EXPECT(lks_shared_mutex_lock(&bank->accounts[0].lock) == 0);
    EXPECT(lks_shared_cond_wait_timeout(&cond, &bank->accounts[0].lock, 1000) == -EFAULT);
    EXPECT(!lks_shared_mutex_is_mine(&bank->accounts[0].lock));
}

/* Without claims readers are alone, and there are no semaphores. */
static void without_claims(void)
{
    static const lks_shm_type bytes = LKS_SHM_BYTES(4096);
    lks_shm_options options = LKS_SHM_OPTIONS_INIT;
    lks_shm_segment *small;
    options.claims = 0;
    options.participants = 1;
    OPENED(lks_shm_memfd(&small, "small", &bytes, &options));
    lks_shared_rwlock *lock = (lks_shared_rwlock *)lks_shm_root(small);
    lks_shared_semaphore *semaphore = (lks_shared_semaphore *)(lock + 1);
    EXPECT(lks_shared_rwlock_read(lock) == 0 && lks_shared_rwlock_tryread(lock) < 0);
    EXPECT(lks_shared_rwlock_unlock(lock) == 0);
    EXPECT(lks_shared_semaphore_acquire(semaphore, 1) == -EAGAIN);
    EXPECT(lks_shm_close(small) == 0);
}

int main(void)
{
    pthread_t threads[4];
    segment = new_bank();
    bank = (struct bank *)lks_shm_root(segment);
    EXPECT(lks_shm_size(segment) == sizeof *bank && bank->accounts[7].balance == 77);
    for (int i = 0; i < 4; i++)
        threads[i] = start(count, NULL);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    EXPECT(bank->accounts[1].balance == 80000);
    forms();
    conditions();
    elsewhere();
    without_claims();
    EXPECT(lks_shm_leave(segment) == 0 && lks_shm_close(segment) == 0);
    EXPECT(lks_shm_close(NULL) == 0);
    return 0;
}
