/* Threads that acquire locks of all families a known number of times, in each
 * other's way. The program counts what is left to chance. */

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>
#include "stops.h"

enum { THREADS = 4, TIMES = 1000, CROWD = 300, ROUNDS = TIMES / 50, SHORT = 10 };

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, tried = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t timed = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t robust, inheriting, of_condition = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t of_short_lives = PTHREAD_MUTEX_INITIALIZER, crowd[CROWD];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static mtx_t c11;
static sem_t sem;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;

static unsigned long refused, timed_out, waits;
static int turn;

static void add(unsigned long *to, unsigned long what)
{
    __atomic_fetch_add(to, what, __ATOMIC_RELAXED);
}

/* Holds a lock for long enough to be in the way now and then. */
static void hold(int i)
{
    if (i % 64 == 0)
        sched_yield();
}

static void must(int answer)
{
    if (answer)
        abort();
}

__attribute__((noinline)) static void deeper(int i)
{
    char room[100];
    __asm__ volatile("" ::"r"(room) : "memory");
    must(pthread_mutex_lock(&plain));
    hold(i);
    must(pthread_mutex_unlock(&plain));
    __asm__ volatile("" ::"r"(room) : "memory");
}

static void one_of_each(int i)
{
    static const struct timespec past = {1, 0};
    must(pthread_mutex_lock(&plain));
    hold(i);
    must(pthread_mutex_unlock(&plain));
    deeper(i);
    while (pthread_mutex_trylock(&tried)) {
        add(&refused, 1);
        sched_yield();
    }
    hold(i);
    must(pthread_mutex_unlock(&tried));
    while (pthread_mutex_timedlock(&timed, &past)) {
        add(&timed_out, 1);
        sched_yield();
    }
    hold(i);
    must(pthread_mutex_unlock(&timed));
    must(pthread_mutex_lock(&recursive));
    must(pthread_mutex_lock(&recursive));
    hold(i);
    must(pthread_mutex_unlock(&recursive));
    must(pthread_mutex_trylock(&recursive));
    must(pthread_mutex_unlock(&recursive));
    must(pthread_mutex_unlock(&recursive));
    must(pthread_mutex_lock(&robust));
    must(pthread_mutex_lock(&inheriting));
    hold(i);
    must(pthread_mutex_unlock(&robust));
    must(pthread_mutex_unlock(&inheriting));
    must(pthread_rwlock_rdlock(&rwlock));
    hold(i);
    must(pthread_rwlock_unlock(&rwlock));
    must(pthread_rwlock_wrlock(&rwlock));
    hold(i);
    must(pthread_rwlock_unlock(&rwlock));
    must(pthread_spin_lock(&spin));
    hold(i);
    must(pthread_spin_unlock(&spin));
    must(mtx_lock(&c11));
    hold(i);
    must(mtx_unlock(&c11));
    must(sem_wait(&sem));
    hold(i);
    must(sem_post(&sem));
}

static void take_turn(int mine)
{
    must(pthread_mutex_lock(&of_condition));
    while (turn % THREADS != mine) {
        must(pthread_cond_wait(&cond, &of_condition));
        add(&waits, 1);
    }
    turn++;
    pthread_cond_broadcast(&cond);
    must(pthread_mutex_unlock(&of_condition));
}

static void *live_shortly(void *unused)
{
    (void)unused;
    must(pthread_mutex_lock(&of_short_lives));
    must(pthread_mutex_unlock(&of_short_lives));
    return NULL;
}

static void *work(void *argument)
{
    int mine = (int)(long)argument;
    for (int i = 0; i < TIMES; i++) {
        one_of_each(i);
        if (i % 50)
            continue;
        for (int j = 0; j < CROWD; j++) {
            must(pthread_mutex_lock(&crowd[j]));
            must(pthread_mutex_unlock(&crowd[j]));
        }
        take_turn(mine);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < SHORT; i++)
        must(pthread_join(start("short", live_shortly, NULL), NULL));
    return NULL;
}

static void init(pthread_mutex_t *mutex, int robustness, int protocol)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, robustness);
    pthread_mutexattr_setprotocol(&attr, protocol);
    must(pthread_mutex_init(mutex, &attr));
}

int main(void)
{
    pthread_t threads[THREADS];
    init(&robust, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    init(&inheriting, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    mtx_init(&c11, mtx_plain);
    sem_init(&sem, 0, 1);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        threads[i] = start("work", work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL));
    show("threads", THREADS), show("times", TIMES), show("rounds", ROUNDS);
    show("crowd", CROWD), show("short", SHORT);
    SHOW(plain), SHOW(tried), SHOW(timed), SHOW(recursive), SHOW(robust), SHOW(inheriting);
    SHOW(of_condition), SHOW(of_short_lives), show("crowd_0", (unsigned long)crowd);
    SHOW(rwlock), SHOW(spin), SHOW(c11), SHOW(sem), SHOW(cond), SHOW(barrier);
    show("refused", refused), show("timed_out", timed_out), show("waits", waits);
    stop("counted");
    return 0;
}
