/* Locks of all families: held, waited for, acquired many times. The test looks
 * at each stop what the library has made of it. */

#include <errno.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>
#include "stops.h"

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t recursive, checking, robust, inheriting, shared, tried;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_spinlock_t spin;
static mtx_t c11;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, monotonic;
static pthread_cond_t clocked = PTHREAD_COND_INITIALIZER;
static cnd_t c11_cond;
static sem_t sem;
static pthread_barrier_t barrier;

static void init(pthread_mutex_t *mutex, int type, int of_process, int robustness, int protocol)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, type);
    pthread_mutexattr_setpshared(&attr, of_process);
    pthread_mutexattr_setrobust(&attr, robustness);
    pthread_mutexattr_setprotocol(&attr, protocol);
    if (pthread_mutex_init(mutex, &attr))
        abort();
}

static void initialise(void)
{
    enum { NO = PTHREAD_PROCESS_PRIVATE, STALLED = PTHREAD_MUTEX_STALLED };
    init(&recursive, PTHREAD_MUTEX_RECURSIVE, NO, STALLED, PTHREAD_PRIO_NONE);
    init(&checking, PTHREAD_MUTEX_ERRORCHECK, NO, STALLED, PTHREAD_PRIO_NONE);
    init(&robust, PTHREAD_MUTEX_NORMAL, NO, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    init(&inheriting, PTHREAD_MUTEX_NORMAL, NO, STALLED, PTHREAD_PRIO_INHERIT);
    init(&shared, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED, STALLED, PTHREAD_PRIO_NONE);
    init(&tried, PTHREAD_MUTEX_NORMAL, NO, STALLED, PTHREAD_PRIO_NONE);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    mtx_init(&c11, mtx_timed | mtx_recursive);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&monotonic, &attr);
    cnd_init(&c11_cond);
    sem_init(&sem, 0, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    SHOW(plain), SHOW(adaptive), SHOW(recursive), SHOW(checking), SHOW(robust);
    SHOW(inheriting), SHOW(shared), SHOW(tried), SHOW(readers), SHOW(writers), SHOW(spin);
    SHOW(c11), SHOW(cond), SHOW(monotonic), SHOW(clocked), SHOW(c11_cond), SHOW(sem), SHOW(barrier);
}

/* Holding. */
static pthread_mutex_t *const mutexes[] = {&plain,  &adaptive,   &recursive, &recursive,
                                           &checking, &robust, &inheriting, &shared};
enum { MUTEXES = sizeof mutexes / sizeof *mutexes };

static void acquire_all(void)
{
    for (int i = 0; i < MUTEXES; i++)
        pthread_mutex_lock(mutexes[i]);
    pthread_mutex_trylock(&tried);
    mtx_lock(&c11);
    pthread_rwlock_rdlock(&readers);
    pthread_rwlock_rdlock(&readers);
    pthread_rwlock_wrlock(&writers);
    pthread_spin_lock(&spin);
}

static void release_all(void)
{
    /* Not in the opposite order. */
    for (int i = 0; i < MUTEXES; i++)
        pthread_mutex_unlock(mutexes[i]);
    pthread_rwlock_unlock(&readers);
    pthread_mutex_unlock(&tried);
    pthread_rwlock_unlock(&readers);
    pthread_rwlock_unlock(&writers);
    mtx_unlock(&c11);
    pthread_spin_unlock(&spin);
}

/* What libc refuses, whatever time one has. */
static void be_refused(void)
{
    static const struct timespec none = {1, 1000000000};
    pthread_mutex_lock(&checking);
    if (pthread_mutex_lock(&checking) != EDEADLK)
        abort();
    if (pthread_cond_timedwait(&cond, &plain, &none) != EINVAL)
        abort();
    pthread_mutex_unlock(&checking);
    pthread_rwlock_wrlock(&readers);
    if (pthread_rwlock_rdlock(&readers) != EDEADLK)
        abort();
    pthread_rwlock_unlock(&readers);
}

/* Waiting: a thread for each way, named like it. */
static struct timespec far(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 1000;
    return time;
}

static struct timespec real, mono;
static pthread_t sleeper;
static sem_t wake;
static int woken, ways;

#define WAY(name, ...)                      \
    static void *name(void *unused)         \
    {                                       \
        (void)unused;                       \
        __VA_ARGS__;                        \
        return NULL;                        \
    }

WAY(mutex, pthread_mutex_lock(&plain), pthread_mutex_unlock(&plain))
WAY(mutex_timed, pthread_mutex_timedlock(&recursive, &real), pthread_mutex_unlock(&recursive))
WAY(mutex_clock, pthread_mutex_clocklock(&checking, CLOCK_MONOTONIC, &mono),
    pthread_mutex_unlock(&checking))
WAY(mutex_robust, pthread_mutex_lock(&robust), pthread_mutex_unlock(&robust))
WAY(mutex_inherit, pthread_mutex_lock(&inheriting), pthread_mutex_unlock(&inheriting))
WAY(writing, pthread_rwlock_wrlock(&readers), pthread_rwlock_unlock(&readers))
WAY(write_timed, pthread_rwlock_timedwrlock(&writers, &real), pthread_rwlock_unlock(&writers))
WAY(reading, pthread_rwlock_rdlock(&writers), pthread_rwlock_unlock(&writers))
WAY(read_clock, pthread_rwlock_clockrdlock(&writers, CLOCK_MONOTONIC, &mono),
    pthread_rwlock_unlock(&writers))
WAY(spinning, pthread_spin_lock(&spin), pthread_spin_unlock(&spin))
WAY(c11_mutex, mtx_lock(&c11), mtx_unlock(&c11))
WAY(c11_timed, mtx_timedlock(&c11, &real), mtx_unlock(&c11))
WAY(semaphore, sem_wait(&sem))
WAY(semaphore_timed, sem_timedwait(&sem, &real))
WAY(semaphore_clock, sem_clockwait(&sem, CLOCK_MONOTONIC, &mono))
WAY(at_barrier, pthread_barrier_wait(&barrier))
WAY(joining, pthread_join(sleeper, NULL))
WAY(asleep, sem_wait(&wake))

/* Mutexes of their own, which nobody else wants. */
static pthread_mutex_t given[4];
static mtx_t c11_given;

#define CONDITION(name, lock, unlock, ...)      \
    static void *name(void *unused)             \
    {                                           \
        (void)unused;                           \
        lock;                                   \
        while (!__atomic_load_n(&woken, __ATOMIC_RELAXED)) \
            __VA_ARGS__;                        \
        unlock;                                 \
        return NULL;                            \
    }

CONDITION(condition, pthread_mutex_lock(&given[0]), pthread_mutex_unlock(&given[0]),
          pthread_cond_wait(&cond, &given[0]))
CONDITION(cond_timed, pthread_mutex_lock(&given[1]), pthread_mutex_unlock(&given[1]),
          pthread_cond_timedwait(&monotonic, &given[1], &mono))
CONDITION(cond_clock, pthread_mutex_lock(&given[2]), pthread_mutex_unlock(&given[2]),
          pthread_cond_clockwait(&clocked, &given[2], CLOCK_REALTIME, &real))
CONDITION(c11_condition, mtx_lock(&c11_given), mtx_unlock(&c11_given),
          cnd_wait(&c11_cond, &c11_given))

static pthread_t waiters[32];
#define WAIT(way) waiters[ways++] = start(#way, way, NULL)

static void wait_for_all(void)
{
    acquire_all();
    show("given", (unsigned long)given), SHOW(c11_given);
    mtx_init(&c11_given, mtx_plain);
    real = far(CLOCK_REALTIME), mono = far(CLOCK_MONOTONIC);
    sem_init(&wake, 0, 0);
    sleeper = start("asleep", asleep, NULL);
    show("sleeper", sleeper);
    WAIT(mutex), WAIT(mutex_timed), WAIT(mutex_clock), WAIT(mutex_robust), WAIT(mutex_inherit);
    WAIT(writing), WAIT(write_timed), WAIT(reading), WAIT(read_clock), WAIT(spinning);
    WAIT(c11_mutex), WAIT(c11_timed);
    WAIT(semaphore), WAIT(semaphore_timed), WAIT(semaphore_clock), WAIT(at_barrier), WAIT(joining);
    WAIT(condition), WAIT(cond_timed), WAIT(cond_clock), WAIT(c11_condition);
    stop("waiting");
    release_all();
    sem_post(&sem), sem_post(&sem), sem_post(&sem), sem_post(&wake);
    pthread_barrier_wait(&barrier);
    __atomic_store_n(&woken, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&given[i]);
        pthread_cond_broadcast(&cond), pthread_cond_broadcast(&monotonic);
        pthread_cond_broadcast(&clocked);
        pthread_mutex_unlock(&given[i]);
    }
    mtx_lock(&c11_given);
    cnd_broadcast(&c11_cond);
    mtx_unlock(&c11_given);
    for (int i = 0; i < ways; i++)
        pthread_join(waiters[i], NULL);
    stop("woken");
}

int main(void)
{
    initialise();
    acquire_all();
    stop("held");
    release_all();
    be_refused();
    stop("released");
    wait_for_all();
    return 0;
}
