/* What the locks of pthread.h return, case by case. */
#include <lockstead/pthread.h>

#include "expect.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int stage;

static void reach(int next)
{
    __atomic_store_n(&stage, next, __ATOMIC_RELEASE);
}

static void await(int wanted)
{
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) < wanted)
        nap(1);
}

static struct timespec after(clockid_t clock, long milliseconds)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += milliseconds * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static const struct timespec no_time = {0, -1};

/* By a thread that has not what it asks for. */
static void *refused(void *argument)
{
    pthread_mutex_t *held = (pthread_mutex_t *)argument;
    struct timespec soon = after(CLOCK_REALTIME, 2);
    EXPECT(pthread_mutex_trylock(held) == EBUSY);
    EXPECT(pthread_mutex_timedlock(held, &soon) == ETIMEDOUT);
    EXPECT(pthread_mutex_timedlock(held, &no_time) == EINVAL);
#ifdef __USE_GNU
    soon = after(CLOCK_MONOTONIC, 2);
    EXPECT(pthread_mutex_clocklock(held, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
    EXPECT(pthread_mutex_clocklock(held, CLOCK_THREAD_CPUTIME_ID, &soon) == EINVAL);
#endif
    EXPECT(pthread_mutex_destroy(held) == EBUSY);
    return NULL;
}

static void *not_the_owner(void *argument)
{
    EXPECT(pthread_mutex_unlock((pthread_mutex_t *)argument) == EPERM);
    return NULL;
}

static void mutexes(void)
{
    static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    struct timespec soon = after(CLOCK_REALTIME, 2);
    int round;
    EXPECT(pthread_mutex_lock(&mutex) == 0);
    EXPECT(pthread_mutex_trylock(&mutex) == EBUSY);
    join(start(refused, &mutex));
    EXPECT(pthread_mutex_unlock(&mutex) == 0);
    EXPECT(pthread_mutex_timedlock(&mutex, &no_time) == 0);
    EXPECT(pthread_mutex_unlock(&mutex) == 0);

    for (round = 0; round < 2; round++) {
        EXPECT(pthread_mutex_lock(&recursive) == 0);
        EXPECT(pthread_mutex_trylock(&recursive) == 0);
        EXPECT(pthread_mutex_timedlock(&recursive, &soon) == 0);
        join(start(not_the_owner, &recursive));
        join(start(refused, &recursive));
        EXPECT(pthread_mutex_unlock(&recursive) == 0);
        EXPECT(pthread_mutex_unlock(&recursive) == 0);
        join(start(refused, &recursive));
        EXPECT(pthread_mutex_unlock(&recursive) == 0);
        EXPECT(pthread_mutex_unlock(&recursive) == EPERM);
    }

    EXPECT(pthread_mutex_lock(&checked) == 0);
    EXPECT(pthread_mutex_lock(&checked) == EDEADLK);
    EXPECT(pthread_mutex_trylock(&checked) == EBUSY);
    EXPECT(pthread_mutex_timedlock(&checked, &soon) == EDEADLK);
    join(start(not_the_owner, &checked));
    EXPECT(pthread_mutex_unlock(&checked) == 0);
    EXPECT(pthread_mutex_unlock(&checked) == EPERM);
    EXPECT(pthread_cond_wait(&cond, &checked) == EPERM);
    EXPECT(pthread_mutex_destroy(&checked) == 0);
}

static void refusals(void)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t local;
    pthread_condattr_t condattr;
    pthread_cond_t local_cond;
    pthread_rwlockattr_t rwlockattr;
    pthread_rwlock_t local_lock;
    EXPECT(pthread_mutexattr_init(&attr) == 0);
    EXPECT(pthread_mutex_init(&local, &attr) == 0);
    EXPECT(pthread_mutex_destroy(&local) == 0);
    EXPECT(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    EXPECT(pthread_mutex_init(&local, &attr) == ENOTSUP);
    EXPECT(pthread_mutex_destroy(&local) == 0);
    EXPECT(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_PRIVATE) == 0);
    EXPECT(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
    EXPECT(pthread_mutex_init(&local, &attr) == ENOTSUP);
    EXPECT(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED) == 0);
    EXPECT(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0);
    EXPECT(pthread_mutex_init(&local, &attr) == ENOTSUP);
    EXPECT(pthread_mutex_consistent(&local) == EINVAL);
    EXPECT(pthread_mutexattr_destroy(&attr) == 0);
    EXPECT(pthread_condattr_init(&condattr) == 0);
    EXPECT(pthread_condattr_setpshared(&condattr, PTHREAD_PROCESS_SHARED) == 0);
    EXPECT(pthread_cond_init(&local_cond, &condattr) == ENOTSUP);
    EXPECT(pthread_condattr_destroy(&condattr) == 0);
    EXPECT(pthread_rwlockattr_init(&rwlockattr) == 0);
    EXPECT(pthread_rwlockattr_setpshared(&rwlockattr, PTHREAD_PROCESS_SHARED) == 0);
    EXPECT(pthread_rwlock_init(&local_lock, &rwlockattr) == ENOTSUP);
    EXPECT(pthread_rwlockattr_destroy(&rwlockattr) == 0);
}

static void *signals(void *argument)
{
    pthread_mutex_t *which = (pthread_mutex_t *)argument;
    EXPECT(pthread_mutex_lock(which) == 0);
    reach(1);
    EXPECT(pthread_cond_broadcast(&cond) == 0);
    EXPECT(pthread_mutex_unlock(which) == 0);
    return NULL;
}

static void conditions(void)
{
    pthread_mutex_t recursive;
    pthread_mutexattr_t attr;
    pthread_condattr_t condattr;
    pthread_cond_t monotonic;
    struct timespec soon = after(CLOCK_REALTIME, 2), later;
    pthread_t thread;
    EXPECT(pthread_mutex_lock(&mutex) == 0);
    EXPECT(pthread_cond_timedwait(&cond, &mutex, &no_time) == EINVAL);
    while (pthread_cond_timedwait(&cond, &mutex, &soon) != ETIMEDOUT)
        ;
    later = after(CLOCK_REALTIME, 0);
    EXPECT(later.tv_sec > soon.tv_sec ||
           (later.tv_sec == soon.tv_sec && later.tv_nsec >= soon.tv_nsec));
    EXPECT(pthread_condattr_init(&condattr) == 0);
    EXPECT(pthread_condattr_setclock(&condattr, CLOCK_MONOTONIC) == 0);
    EXPECT(pthread_cond_init(&monotonic, &condattr) == 0);
    EXPECT(pthread_condattr_destroy(&condattr) == 0);
    soon = after(CLOCK_MONOTONIC, 2);
    while (pthread_cond_timedwait(&monotonic, &mutex, &soon) != ETIMEDOUT)
        ;
#ifdef __USE_GNU
    while (pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &soon) != ETIMEDOUT)
        ;
#endif
    EXPECT(pthread_cond_destroy(&monotonic) == 0);
    EXPECT(pthread_mutex_unlock(&mutex) == 0);

    /* Of a recursive mutex the wait releases all. */
    EXPECT(pthread_mutexattr_init(&attr) == 0);
    EXPECT(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) == 0);
    EXPECT(pthread_mutex_init(&recursive, &attr) == 0);
    EXPECT(pthread_mutexattr_destroy(&attr) == 0);
    EXPECT(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_lock(&recursive) == 0);
    thread = start(signals, &recursive);
    while (stage == 0)
        EXPECT(pthread_cond_wait(&cond, &recursive) == 0);
    join(thread);
    EXPECT(pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0);
    EXPECT(pthread_mutex_unlock(&recursive) == EPERM);
    EXPECT(pthread_mutex_destroy(&recursive) == 0);
}

static void *writes(void *unused)
{
    struct timespec soon = after(CLOCK_REALTIME, 2);
    EXPECT(pthread_rwlock_trywrlock(&lock) == EBUSY);
    EXPECT(pthread_rwlock_timedwrlock(&lock, &soon) == ETIMEDOUT);
    EXPECT(pthread_rwlock_destroy(&lock) == EBUSY);
    reach(3);
    EXPECT(pthread_rwlock_wrlock(&lock) == 0);
    EXPECT(pthread_rwlock_wrlock(&lock) == EDEADLK);
    EXPECT(pthread_rwlock_rdlock(&lock) == EDEADLK);
    EXPECT(pthread_rwlock_unlock(&lock) == 0);
    return unused;
}

static void *reads(void *unused)
{
    struct timespec soon = after(CLOCK_REALTIME, 2);
    EXPECT(pthread_rwlock_tryrdlock(&lock) == EBUSY);
    EXPECT(pthread_rwlock_timedrdlock(&lock, &soon) == ETIMEDOUT);
    EXPECT(pthread_rwlock_timedrdlock(&lock, &no_time) == EINVAL);
    return unused;
}

/* A reader that comes anew: is it refused? */
static void *tries(void *refused)
{
    int error = pthread_rwlock_tryrdlock(&lock);
    EXPECT(error == 0 || error == EBUSY);
    if (error == 0)
        EXPECT(pthread_rwlock_unlock(&lock) == 0);
    *(int *)refused = error == EBUSY;
    return NULL;
}

static void readers(void)
{
    pthread_rwlock_t many[20];
    pthread_t writer;
    int i, held = 1, refused = 0;
    EXPECT(pthread_rwlock_rdlock(&lock) == 0);
    writer = start(writes, NULL);
    await(3);
    /* Again, though a writer waits, and still when it is promised the lock and others are refused. */
    for (i = 0; i < 3; i += refused) {
        EXPECT(pthread_rwlock_rdlock(&lock) == 0 && pthread_rwlock_tryrdlock(&lock) == 0);
        EXPECT(pthread_rwlock_unlock(&lock) == 0);
        held++;
        nap(1);
        join(start(tries, &refused));
    }
    EXPECT(pthread_rwlock_wrlock(&lock) == EDEADLK);
    for (i = 0; i < held; i++)
        EXPECT(pthread_rwlock_unlock(&lock) == 0);
    join(writer);
    EXPECT(pthread_rwlock_wrlock(&lock) == 0);
    join(start(reads, NULL));
    EXPECT(pthread_rwlock_unlock(&lock) == 0);
    /* More than a thread can note. */
    for (i = 0; i < 20; i++) {
        EXPECT(pthread_rwlock_init(&many[i], NULL) == 0);
        EXPECT(pthread_rwlock_rdlock(&many[i]) == 0);
    }
    for (i = 0; i < 20; i++) {
        EXPECT(pthread_rwlock_unlock(&many[i]) == 0);
        EXPECT(pthread_rwlock_trywrlock(&many[i]) == 0 && pthread_rwlock_unlock(&many[i]) == 0);
        EXPECT(pthread_rwlock_destroy(&many[i]) == 0);
    }
    /* As if as many read as the lock can count. */
    EXPECT(pthread_rwlock_init(&many[0], NULL) == 0);
    many[0].lock__.word__ = LKS_RWLOCK_SHARED__ | LKS_MAX_SLOTS__;
    EXPECT(pthread_rwlock_rdlock(&many[0]) == EAGAIN);
    EXPECT(pthread_rwlock_tryrdlock(&many[0]) == EAGAIN);
    EXPECT(pthread_rwlock_trywrlock(&many[0]) == EBUSY);
    many[0].lock__.word__ = 0;
    EXPECT(pthread_rwlock_destroy(&many[0]) == 0);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int times;

static void leaves(void)
{
    if (times++ == 0)
        pthread_exit(NULL);
}

static void *calls(void *unused)
{
    EXPECT(pthread_once(&once, leaves) == 0);
    return unused;
}

static void unlock(void *held)
{
    EXPECT(pthread_mutex_unlock((pthread_mutex_t *)held) == 0);
    reach(5);
}

/* Waits with a cancellation that came before, or until one comes. */
static void *waits(void *cancelled)
{
    EXPECT(pthread_mutex_lock(&mutex) == 0);
    pthread_cleanup_push(unlock, &mutex);
    reach(4);
    /* No point of cancellation. */
    while (cancelled && !__atomic_load_n((int *)cancelled, __ATOMIC_ACQUIRE))
        ;
    begins();
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static void cancellation(int before)
{
    int cancelled = 0;
    reach(0);
    pthread_t waiter = start(waits, before ? &cancelled : NULL);
    await(4);
    if (!before)
        until_it_sleeps();
    EXPECT(pthread_cancel(waiter) == 0);
    __atomic_store_n(&cancelled, 1, __ATOMIC_RELEASE);
    /* One that sleeps already notices when it is woken. */
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != 5) {
        EXPECT(pthread_cond_broadcast(&cond) == 0);
        nap(1);
    }
    EXPECT(join(waiter) == PTHREAD_CANCELED);
}

/* ---- a reader-writer lock that is initialised again ---- */

enum again { BY_CALL, BY_INITIALISER, BY_CLEARING, AGAINS };

static void initialise_again(int how)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;
    if (how == BY_CALL)
        EXPECT(pthread_rwlock_init(&lock, NULL) == 0);
    else if (how == BY_INITIALISER)
        lock = fresh;
    else
        memset(&lock, 0, sizeof lock);
}

/* A thread that has read the one before does not hold this one. */
static void *read_before(void *unused)
{
    EXPECT(pthread_rwlock_rdlock(&lock) == 0 && pthread_rwlock_rdlock(&lock) == 0);
    reach(1);
    await(2);
    EXPECT(pthread_rwlock_wrlock(&lock) == 0);
    EXPECT(pthread_rwlock_rdlock(&lock) == EDEADLK);
    EXPECT(pthread_rwlock_unlock(&lock) == 0);
    EXPECT(pthread_rwlock_rdlock(&lock) == 0);
    EXPECT(pthread_rwlock_wrlock(&lock) == EDEADLK);
    EXPECT(pthread_rwlock_unlock(&lock) == 0);
    EXPECT(pthread_rwlock_trywrlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0);
    return unused;
}

static void initialised_again(void)
{
    int how;
    for (how = 0; how < AGAINS; how++) {
        pthread_t reader;
        __atomic_store_n(&stage, 0, __ATOMIC_RELEASE);
        reader = start(read_before, NULL);
        await(1);
        /* This thread has read it as well. */
        EXPECT(pthread_rwlock_rdlock(&lock) == 0);
        initialise_again(how);
        EXPECT(pthread_rwlock_wrlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0);
        reach(2);
        join(reader);
        /* It is free: what was held of the one before is not in the way. */
        EXPECT(pthread_rwlock_trywrlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0);
    }
}

int main(int count, char **arguments)
{
    if (count > 1 && !strcmp(arguments[1], "again")) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_lock(&mutex);
    } else if (count > 1 && !strcmp(arguments[1], "refused")) {
        pthread_mutexattr_t attr;
        pthread_mutexattr_init(&attr);
        pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&mutex, &attr);
        pthread_mutex_lock(&mutex);
    }
    if (count > 1 && !strcmp(arguments[1], "held")) {
        /* The checking build refuses to initialise it, and then it is read still. */
        EXPECT(pthread_rwlock_rdlock(&lock) == 0); /* READ HERE */
        EXPECT(pthread_rwlock_init(&lock, NULL) == 0); /* INITIALISED HERE */
        return pthread_rwlock_wrlock(&lock) == EDEADLK ? 3 : 0;
    }
    if (count > 1)
        return 0;
    mutexes();
    refusals();
    conditions();
    readers();
    initialised_again();
    join(start(calls, NULL));
    join(start(calls, NULL));
    join(start(calls, NULL));
    EXPECT(times == 2);
    cancellation(0);
    cancellation(1);
    return 0;
}
