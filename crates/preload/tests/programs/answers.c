/* Calls the functions of locks in the cases in which the answer is not plain. */

#include "answers.h"

static struct timespec never;

static void *try_mutex(void *mutex)
{
    struct timespec real = soon(CLOCK_REALTIME), mono = soon(CLOCK_MONOTONIC);
    SAY(pthread_mutex_trylock(mutex));
    SAY(pthread_mutex_timedlock(mutex, &past));
    SAY(pthread_mutex_timedlock(mutex, &real));
    SAY(pthread_mutex_timedlock(mutex, &bad));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &mono));
    SAY(pthread_mutex_clocklock(mutex, CLOCK_BOOTTIME, &past));
    SAY(pthread_mutex_unlock(mutex));
    return NULL;
}

static void *die_holding(void *mutex)
{
    SAY(pthread_mutex_lock(mutex));
    return NULL;
}

static void *lock_and_say(void *mutex)
{
    int taken;
    SAY(taken = pthread_mutex_timedlock(mutex, &past));
    if (taken == 0)
        SAY(pthread_mutex_unlock(mutex));
    SAY(taken = pthread_mutex_lock(mutex));
    if (taken == 0)
        SAY(pthread_mutex_unlock(mutex));
    return NULL;
}

static void mutexes(void)
{
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    for (unsigned i = 0; i < 4; i++) {
        pthread_mutexattr_t attr;
        pthread_mutex_t mutex;
        pthread_mutexattr_init(&attr);
        pthread_mutexattr_settype(&attr, types[i]);
        SAY(pthread_mutex_init(&mutex, &attr));
        SAY(pthread_mutex_timedlock(&mutex, &bad));
        SAY(pthread_mutex_trylock(&mutex));
        if (types[i] == PTHREAD_MUTEX_RECURSIVE)
            SAY(pthread_mutex_unlock(&mutex));
        if (types[i] == PTHREAD_MUTEX_ERRORCHECK) {
            SAY(pthread_mutex_lock(&mutex));
            SAY(pthread_mutex_timedlock(&mutex, &never));
            SAY(pthread_mutex_destroy(&mutex));
        }
        if (types[i] != PTHREAD_MUTEX_NORMAL && types[i] != PTHREAD_MUTEX_ADAPTIVE_NP)
            elsewhere(try_mutex, &mutex);
        SAY(pthread_mutex_unlock(&mutex));
        if (types[i] == PTHREAD_MUTEX_ERRORCHECK)
            SAY(pthread_mutex_unlock(&mutex));
        SAY(pthread_mutex_clocklock(&mutex, CLOCK_BOOTTIME, &past));
        SAY(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &worse));
        SAY(pthread_mutex_unlock(&mutex));
        SAY(pthread_mutex_destroy(&mutex));
    }
    for (int consistent = 0; consistent < 2; consistent++) {
        pthread_mutexattr_t attr;
        pthread_mutex_t mutex;
        pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
        pthread_mutexattr_init(&attr);
        pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
        SAY(pthread_mutex_init(&mutex, &attr));
        elsewhere(die_holding, &mutex);
        SAY(pthread_mutex_lock(&mutex));
        if (consistent)
            SAY(pthread_mutex_consistent(&mutex));
        SAY(pthread_cond_timedwait(&cond, &mutex, &past));
        SAY(pthread_mutex_unlock(&mutex));
        /* Not with trylock: glibc's leaves a mutex locked that is not recoverable. */
        SAY(pthread_mutex_lock(&mutex));
        SAY(pthread_mutex_timedlock(&mutex, &past));
        SAY(pthread_mutex_unlock(&mutex));
        elsewhere(lock_and_say, &mutex);
        SAY(pthread_mutex_destroy(&mutex));
    }
}

static void *lock_then_unlock(void *mutex)
{
    SAY(pthread_mutex_lock(mutex));
    SAY(pthread_mutex_unlock(mutex));
    return NULL;
}

/* Priorities: of waiters, which the kernel keeps, and of the lock itself, for
 * which a right is needed that tests may not have. */
static void mutexes_with_protocols(void)
{
    static const int protocols[] = {PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT};
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK};
    for (unsigned i = 0; i < 12; i++) {
        pthread_mutexattr_t attr;
        pthread_mutex_t mutex;
        pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
        int old = -1, protocol = protocols[i / 6], type = types[i % 3];
        pthread_mutexattr_init(&attr);
        pthread_mutexattr_settype(&attr, type);
        SAY(pthread_mutexattr_setprotocol(&attr, protocol));
        if (i / 3 % 2)
            pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
        SAY(pthread_mutex_init(&mutex, &attr));
        SAY(pthread_mutex_getprioceiling(&mutex, &old));
        SAY(pthread_mutex_setprioceiling(&mutex, 1, &old));
        SAY(old);
        SAY(pthread_mutex_consistent(&mutex));
        int taken;
        SAY(taken = pthread_mutex_lock(&mutex));
        if (taken != 0) {
            SAY(pthread_mutex_trylock(&mutex));
            SAY(pthread_mutex_timedlock(&mutex, &past));
            SAY(pthread_mutex_destroy(&mutex));
            continue;
        }
        SAY(pthread_mutex_trylock(&mutex));
        if (type != PTHREAD_MUTEX_NORMAL)
            SAY(pthread_mutex_lock(&mutex));
        SAY(pthread_cond_timedwait(&cond, &mutex, &past));
        elsewhere(try_mutex, &mutex);
        SAY(pthread_mutex_unlock(&mutex));
        if (type == PTHREAD_MUTEX_RECURSIVE) {
            SAY(pthread_mutex_unlock(&mutex));
            SAY(pthread_mutex_unlock(&mutex));
        }
        SAY(pthread_mutex_unlock(&mutex));
        elsewhere(lock_then_unlock, &mutex);
        SAY(pthread_mutex_destroy(&mutex));
    }
}

static void odd_mutexes(void)
{
    static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t none;
    memset(&none, 0, sizeof none);
    none.__data.__kind = 0x0c;
    SAY(pthread_mutex_lock(&recursive));
    SAY(pthread_mutex_lock(&recursive));
    SAY(pthread_mutex_unlock(&recursive));
    SAY(pthread_mutex_unlock(&recursive));
    SAY(pthread_mutex_unlock(&recursive));
    SAY(pthread_mutex_lock(&adaptive));
    SAY(pthread_mutex_trylock(&adaptive));
    SAY(pthread_mutex_destroy(&adaptive));
    SAY(pthread_mutex_unlock(&adaptive));
    SAY(pthread_mutex_destroy(&adaptive));
    SAY(pthread_mutex_lock(&adaptive));
    /* A kind that there is not. */
    SAY(pthread_mutex_lock(&none));
    SAY(pthread_mutex_trylock(&none));
    SAY(pthread_mutex_timedlock(&none, &past));
    SAY(pthread_mutex_unlock(&none));
    SAY(pthread_mutex_consistent(&none));
}

/* The functions that programs of before 2003 are linked with; on aarch64, which is younger, the only ones. */
#ifdef __aarch64__
#define OLDEST "GLIBC_2.17"
#else
#define OLDEST "GLIBC_2.2.5"
#endif
#define OLD(name) __asm__(".symver old_" #name "," #name "@" OLDEST)
OLD(pthread_cond_init);
OLD(pthread_cond_wait);
OLD(pthread_cond_timedwait);
OLD(pthread_cond_signal);
OLD(pthread_cond_broadcast);
OLD(pthread_cond_destroy);
int old_pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int old_pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int old_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int old_pthread_cond_signal(pthread_cond_t *);
int old_pthread_cond_broadcast(pthread_cond_t *);
int old_pthread_cond_destroy(pthread_cond_t *);

static pthread_mutex_t old_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t old_cond;
static int turn;

static void *take_turns(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&old_mutex);
    for (int i = 0; i < 50; i++) {
        while (turn % 2 == 0)
            old_pthread_cond_wait(&old_cond, &old_mutex);
        turn++;
        old_pthread_cond_broadcast(&old_cond);
    }
    pthread_mutex_unlock(&old_mutex);
    return NULL;
}

static void old_conditions(void)
{
    SAY(old_pthread_cond_init(&old_cond, NULL));
    SAY(old_pthread_cond_signal(&old_cond));
    pthread_mutex_lock(&old_mutex);
    SAY(old_pthread_cond_timedwait(&old_cond, &old_mutex, &past));
    SAY(old_pthread_cond_timedwait(&old_cond, &old_mutex, &bad));
    pthread_t other = start(take_turns, NULL);
    for (int i = 0; i < 50; i++) {
        while (turn % 2 == 1)
            old_pthread_cond_wait(&old_cond, &old_mutex);
        turn++;
        old_pthread_cond_signal(&old_cond);
    }
    SAY(pthread_mutex_unlock(&old_mutex));
    SAY(pthread_join(other, NULL));
    SAY(turn);
    SAY(old_pthread_cond_destroy(&old_cond));
}

static void conditions(void)
{
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_condattr_t attr;
    pthread_cond_t cond;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (int monotonic = 0; monotonic < 2; monotonic++) {
        SAY(pthread_cond_init(&cond, monotonic ? &attr : NULL));
        SAY(pthread_cond_signal(&cond));
        SAY(pthread_cond_broadcast(&cond));
        SAY(pthread_cond_wait(&cond, &mutex));
        pthread_mutex_lock(&mutex);
        struct timespec time = soon(monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME);
        struct timespec mono = soon(CLOCK_MONOTONIC);
        SAY(pthread_cond_timedwait(&cond, &mutex, &past));
        SAY(pthread_cond_timedwait(&cond, &mutex, &time));
        SAY(pthread_cond_timedwait(&cond, &mutex, &bad));
        SAY(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &mono));
        SAY(pthread_cond_clockwait(&cond, &mutex, CLOCK_BOOTTIME, &past));
        SAY(pthread_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &worse));
        SAY(pthread_mutex_unlock(&mutex));
        SAY(pthread_cond_destroy(&cond));
    }
}

static void *try_rwlock(void *lock)
{
    struct timespec real = soon(CLOCK_REALTIME), mono = soon(CLOCK_MONOTONIC);
    SAY(pthread_rwlock_tryrdlock(lock));
    SAY(pthread_rwlock_trywrlock(lock));
    SAY(pthread_rwlock_timedwrlock(lock, &past));
    SAY(pthread_rwlock_timedwrlock(lock, &real));
    SAY(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &mono));
    SAY(pthread_rwlock_timedwrlock(lock, &bad));
    return NULL;
}

static void rwlocks(void)
{
    pthread_rwlock_t lock;
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    for (int kind = PTHREAD_RWLOCK_PREFER_READER_NP;
         kind <= PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP; kind++) {
        pthread_rwlockattr_setkind_np(&attr, kind);
        SAY(pthread_rwlock_init(&lock, &attr));
        /* A bad time is refused though the lock is free. */
        SAY(pthread_rwlock_timedrdlock(&lock, &bad));
        SAY(pthread_rwlock_timedwrlock(&lock, &worse));
        SAY(pthread_rwlock_clockrdlock(&lock, CLOCK_BOOTTIME, &past));
        SAY(pthread_rwlock_clockwrlock(&lock, CLOCK_REALTIME, &bad));
        SAY(pthread_rwlock_rdlock(&lock));
        SAY(pthread_rwlock_rdlock(&lock));
        SAY(pthread_rwlock_trywrlock(&lock));
        SAY(pthread_rwlock_timedwrlock(&lock, &past));
        elsewhere(try_rwlock, &lock);
        SAY(pthread_rwlock_unlock(&lock));
        SAY(pthread_rwlock_unlock(&lock));
        SAY(pthread_rwlock_unlock(&lock));
        SAY(pthread_rwlock_wrlock(&lock));
        SAY(pthread_rwlock_wrlock(&lock));
        SAY(pthread_rwlock_rdlock(&lock));
        SAY(pthread_rwlock_timedrdlock(&lock, &past));
        SAY(pthread_rwlock_tryrdlock(&lock));
        elsewhere(try_rwlock, &lock);
        SAY(pthread_rwlock_unlock(&lock));
        SAY(pthread_rwlock_timedrdlock(&lock, &past));
        SAY(pthread_rwlock_unlock(&lock));
        SAY(pthread_rwlock_destroy(&lock));
    }
}

static void spins_and_barriers(void)
{
    pthread_spinlock_t spin;
    SAY(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    SAY(pthread_spin_lock(&spin));
    SAY(pthread_spin_trylock(&spin));
    SAY(pthread_spin_unlock(&spin));
    SAY(pthread_spin_trylock(&spin));
    SAY(pthread_spin_unlock(&spin));
    SAY(pthread_spin_destroy(&spin));
    pthread_barrier_t barrier;
    SAY(pthread_barrier_init(&barrier, NULL, 0));
    SAY(pthread_barrier_init(&barrier, NULL, 1));
    SAY(pthread_barrier_wait(&barrier));
    SAY(pthread_barrier_wait(&barrier));
    SAY(pthread_barrier_destroy(&barrier));
}

static void interrupt(int signal)
{
    (void)signal;
}

static void semaphores(void)
{
    sem_t sem;
    int value = -1;
    SAY(sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1));
    SAY(sem_init(&sem, 0, 2));
    SAY(sem_timedwait(&sem, &bad));
    SAY(sem_clockwait(&sem, CLOCK_BOOTTIME, &past));
    SAY(sem_timedwait(&sem, &past));
    SAY(sem_wait(&sem));
    struct timespec real = soon(CLOCK_REALTIME), mono = soon(CLOCK_MONOTONIC);
    SAY(sem_trywait(&sem));
    SAY(sem_timedwait(&sem, &past));
    SAY(sem_timedwait(&sem, &real));
    SAY(sem_timedwait(&sem, &worse));
    SAY(sem_clockwait(&sem, CLOCK_MONOTONIC, &mono));
    SAY(sem_clockwait(&sem, CLOCK_MONOTONIC, &bad));
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {.it_interval = {0, 5000}, .it_value = {0, 5000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    SAY(sem_wait(&sem));
    never = (struct timespec){.tv_sec = LONG_MAX};
    SAY(sem_timedwait(&sem, &never));
    never.tv_sec = 0;
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    SAY(sem_post(&sem));
    SAY(sem_getvalue(&sem, &value));
    SAY(value);
    SAY(sem_clockwait(&sem, CLOCK_REALTIME, &past));
    SAY(sem_destroy(&sem));

    char name[64];
    snprintf(name, sizeof name, "/lockstead-answers-%d", (int)getpid());
    SAY(sem_open(name, 0) == SEM_FAILED);
    sem_t *first = sem_open(name, O_CREAT | O_EXCL, 0600, 1u);
    SAY(first == SEM_FAILED);
    SAY(sem_open(name, O_CREAT | O_EXCL, 0600, 1u) == SEM_FAILED);
    sem_t *second = sem_open(name, 0);
    SAY(second == first);
    SAY(sem_wait(second));
    SAY(sem_trywait(first));
    SAY(sem_close(first));
    SAY(sem_post(second));
    SAY(sem_close(second));
    SAY(sem_close(&sem));
    SAY(sem_unlink(name));
    SAY(sem_unlink(name));
}

static int c11_routine(void *mutex)
{
    struct timespec real = soon(CLOCK_REALTIME);
    SAY(mtx_trylock(mutex));
    SAY(mtx_timedlock(mutex, &past));
    SAY(mtx_timedlock(mutex, &real));
    return -3;
}

static void c11(void)
{
    mtx_t mutex;
    cnd_t cond;
    thrd_t thread;
    int result = 0;
    SAY(mtx_init(&mutex, 99));
    SAY(mtx_init(&mutex, mtx_timed));
    SAY(mtx_lock(&mutex));
    /* Said when the thread has said all that it has to say. */
    int created = thrd_create(&thread, c11_routine, &mutex);
    SAY(thrd_join(thread, &result));
    SAY(created);
    SAY(result);
    created = thrd_create(&thread, c11_routine, &mutex);
    SAY(thrd_join(thread, NULL));
    SAY(created);
    SAY(cnd_init(&cond));
    SAY(cnd_timedwait(&cond, &mutex, &past));
    SAY(cnd_timedwait(&cond, &mutex, &bad));
    SAY(cnd_signal(&cond));
    SAY(cnd_broadcast(&cond));
    cnd_destroy(&cond);
    SAY(mtx_unlock(&mutex));
    SAY(mtx_timedlock(&mutex, &bad));
    SAY(mtx_unlock(&mutex));
    mtx_destroy(&mutex);
    SAY(mtx_init(&mutex, mtx_plain | mtx_recursive));
    SAY(mtx_lock(&mutex));
    SAY(mtx_trylock(&mutex));
    SAY(mtx_unlock(&mutex));
    SAY(mtx_unlock(&mutex));
    SAY(mtx_unlock(&mutex));
    mtx_destroy(&mutex);
    SAY(thrd_join(thrd_current(), NULL));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    mutexes();
    mutexes_with_protocols();
    odd_mutexes();
    conditions();
    old_conditions();
    rwlocks();
    spins_and_barriers();
    semaphores();
    c11();
    return 0;
}
