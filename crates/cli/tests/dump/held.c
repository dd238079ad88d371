/* `held WHAT`: a program whose locks are held and waited for in every way. It
 * writes its id; then it changes no more. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t quiet = PTHREAD_MUTEX_INITIALIZER, wanted = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER, front = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t gate;
static sem_t permits;
static pthread_mutex_t *heaped;
static pthread_t keeper;
static atomic_int holding, both;

static void rest(void)
{
    for (;;)
        pause();
}

static void await(atomic_int *count, int n)
{
    while (atomic_load(count) < n)
        usleep(1000);
}

static void *keeps(void *unused)
{
    pthread_mutex_lock(&quiet);
    pthread_mutex_lock(&wanted);
    pthread_mutex_lock(heaped);
    pthread_spin_lock(&spin);
    atomic_fetch_add(&holding, 1);
    rest();
    return unused;
}

static void *reads(void *unused)
{
    pthread_rwlock_rdlock(&table);
    atomic_fetch_add(&holding, 1);
    rest();
    return unused;
}

static void *writes(void *unused)
{
    pthread_rwlock_wrlock(&table);
    return unused;
}

static void *wants(void *unused)
{
    pthread_mutex_lock(&wanted);
    return unused;
}

static void *wants_for_a_while(void *unused)
{
    struct timespec then;
    clock_gettime(CLOCK_REALTIME, &then);
    then.tv_sec += 3600;
    pthread_mutex_timedlock(&wanted, &then);
    return unused;
}

static void *spins(void *unused)
{
    pthread_spin_lock(&spin);
    return unused;
}

static void *waits_sem(void *unused)
{
    sem_wait(&permits);
    return unused;
}

/* As with a semaphore by which another thread says that something has happened. */
static void *waits_for_signal(void *unused)
{
    sem_wait(&permits);
    sem_wait(&permits);
    return unused;
}

static void *waits_cond(void *unused)
{
    pthread_mutex_lock(&guard);
    pthread_cond_wait(&ready, &guard);
    return unused;
}

static void *waits_barrier(void *unused)
{
    pthread_barrier_wait(&gate);
    return unused;
}

static void *joins(void *unused)
{
    pthread_join(keeper, NULL);
    return unused;
}

static void *idles(void *unused)
{
    rest();
    return unused;
}

static void *front_then_heaped(void *unused)
{
    pthread_mutex_lock(&front);
    atomic_fetch_add(&both, 1);
    await(&both, 2);
    pthread_mutex_lock(heaped);
    return unused;
}

static void *heaped_then_front(void *unused)
{
    pthread_mutex_lock(heaped);
    atomic_fetch_add(&both, 1);
    await(&both, 2);
    pthread_mutex_lock(&front);
    return unused;
}

static void *leaves(void *unused)
{
    /* Not before it has its name. */
    await(&both, 1);
    pthread_mutex_lock(&wanted);
    return unused;
}

/* Two locks, always in the same order. */
static void *takes_both(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&front);
        pthread_mutex_lock(heaped);
        pthread_mutex_unlock(heaped);
        pthread_mutex_unlock(&front);
    }
    return unused;
}

static pthread_t start(void *(*body)(void *), const char *name)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0 || pthread_setname_np(thread, name) != 0)
        abort();
    return thread;
}

static pthread_mutex_t *make(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_t *mutex = malloc(sizeof *mutex);
    pthread_mutex_init(mutex, &kind);
    return mutex;
}

int main(int count, char **argument)
{
    const char *what = count > 1 ? argument[1] : "";
    heaped = make();
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&gate, NULL, 2);
    sem_init(&permits, 0, strcmp(what, "signal") == 0);
    if (strcmp(what, "secret") == 0)
        prctl(PR_SET_DUMPABLE, 0);
    if (strcmp(what, "deadlock") == 0) {
        start(front_then_heaped, "teller");
        start(heaped_then_front, "auditor");
        start(reads, "reader");
        start(idles, "idle");
    } else if (strcmp(what, "lively") == 0) {
        for (int i = 0; i < 4; i++)
            start(takes_both, "lively");
    } else if (strcmp(what, "signal") == 0) {
        start(waits_for_signal, "signalled");
    } else if (strcmp(what, "leaked") == 0) {
        pthread_t gone = start(leaves, "gone");
        atomic_fetch_add(&both, 1);
        pthread_join(gone, NULL);
        start(wants, "wants");
    } else {
        keeper = start(keeps, "keeper");
        start(reads, "reader-1");
        start(reads, "reader-2");
        await(&holding, 3);
        start(writes, "writer");
        start(wants, "wants");
        start(wants_for_a_while, "wants-timed");
        start(waits_sem, "sem");
        start(waits_cond, "cond");
        start(waits_barrier, "barrier");
        start(joins, "joiner");
        if (strcmp(what, "spin") == 0)
            start(spins, "spinner");
        start(idles, "idle");
    }
    printf("%d\n", getpid());
    fflush(stdout);
    rest();
}
