/* The mutex: exclusion, and each way in which a wait can end. */
#include "expect.h"

enum { THREADS = 4, ROUNDS = 50000 };

static lks_mutex shared = LKS_MUTEX_INIT;
static long counter;
static int ended;

static void *count(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 3 == 0)
            while (!lks_mutex_trylock(&shared))
                ;
        else if (i % 3 == 1)
            EXPECT(lks_mutex_lock_timeout(&shared, MILLISECONDS(60000)) == 0);
        else
            lks_mutex_lock_nested(&shared, 1);
        counter++;
        lks_mutex_unlock(&shared);
    }
    return unused;
}

static void *interruptible(void *mutex)
{
    int result = lks_mutex_lock_interruptible(mutex);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return (void *)(intptr_t)result;
}

static void *interruptible_nested(void *mutex)
{
    int result = lks_mutex_lock_interruptible_nested(mutex, 2);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return (void *)(intptr_t)result;
}

static lks_cancel token = LKS_CANCEL_INIT;

static void *killable(void *mutex)
{
    begins();
    return (void *)(intptr_t)lks_mutex_lock_killable(mutex, &token);
}

static int references = 3;

static void *drop(void *mutex)
{
    if (lks_atomic_dec_and_mutex_lock(&references, mutex)) {
        EXPECT(references == 0);
        lks_mutex_unlock(mutex);
        return mutex;
    }
    return NULL;
}

static void exclusion(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(count, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    EXPECT(counter == (long)THREADS * ROUNDS);
}

static void ends_of_waits(void)
{
    lks_mutex mutex;
    memset(&mutex, 0xa5, sizeof mutex);
    lks_mutex_init(&mutex);
    EXPECT(!lks_mutex_is_locked(&mutex));
    lks_mutex_lock(&mutex);
    EXPECT(lks_mutex_is_locked(&mutex) && lks_mutex_is_mine(&mutex));
    EXPECT(!lks_mutex_trylock(&mutex));
    EXPECT(lks_mutex_lock_timeout(&mutex, 0) == -EDEADLK);
    EXPECT(lks_mutex_lock_interruptible(&mutex) == -EDEADLK);

    ended = 0;
    pthread_t thread = start(interruptible, &mutex);
    SIGNAL_UNTIL(thread, ended);
    EXPECT((intptr_t)join(thread) == -EINTR);
    ended = 0;
    thread = start(interruptible_nested, &mutex);
    SIGNAL_UNTIL(thread, ended);
    EXPECT((intptr_t)join(thread) == -EINTR);

    EXPECT(!lks_cancel_is_fired(&token));
    thread = start(killable, &mutex);
    until_it_sleeps();
    lks_cancel_fire(&token);
    EXPECT(lks_cancel_is_fired(&token));
    EXPECT((intptr_t)join(thread) == -EINTR);
    lks_mutex_unlock(&mutex);
    EXPECT(!lks_mutex_is_mine(&mutex));
    /* Fired, but there is nothing to wait for; and without a token. */
    EXPECT(lks_mutex_lock_killable(&mutex, &token) == 0);
    lks_mutex_unlock(&mutex);
    EXPECT(lks_mutex_lock_killable(&mutex, NULL) == 0);
    lks_mutex_unlock(&mutex);
    lks_mutex_destroy(&mutex);
}

static void *try_until(void *mutex)
{
    struct timespec time;
    EXPECT(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    EXPECT(lks_mutex_lock_until(mutex, &time) == -ETIMEDOUT);
    time.tv_nsec += 2000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    EXPECT(lks_mutex_lock_until(mutex, &time) == -ETIMEDOUT);
    struct timespec now;
    EXPECT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    EXPECT(now.tv_sec > time.tv_sec || (now.tv_sec == time.tv_sec && now.tv_nsec >= time.tv_nsec));
    time.tv_nsec = 1000000000;
    EXPECT(lks_mutex_lock_until(mutex, &time) == -EINVAL);
    EXPECT(lks_mutex_lock_until(mutex, NULL) == -EINVAL);
    time.tv_nsec = 0;
    time.tv_sec = -5;
    EXPECT(lks_mutex_lock_until(mutex, &time) == -ETIMEDOUT);
    EXPECT(lks_mutex_lock_timeout(mutex, MILLISECONDS(2)) == -ETIMEDOUT);
    return mutex;
}

static void references_drop(void)
{
    pthread_t threads[3];
    int last = 0;
    for (int i = 0; i < 3; i++)
        threads[i] = start(drop, &shared);
    for (int i = 0; i < 3; i++)
        last += join(threads[i]) != NULL;
    EXPECT(last == 1 && references == 0);
}

/* The compiler may have code like this in a section of its own, beside what the calls
 * put aside. */
__attribute__((cold, noinline)) static void in_cold_code(void)
{
    for (int i = 0; i < 3; i++) {
        lks_mutex_lock(&shared);
        lks_mutex_unlock(&shared);
    }
}

int main(void)
{
    in_cold_code();
    EXPECT(strcmp(lks_version(), LKS_VERSION_STRING) == 0);
    lks_prepare();
    exclusion();
    ends_of_waits();
    lks_mutex_lock(&shared);
    join(start(try_until, &shared));
    lks_mutex_unlock(&shared);
    references_drop();
    return 0;
}
