/* What a recording has: each part of the program makes events of which a test knows the number. */
#include "common.h"

pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static sem_t units;
static pthread_barrier_t meeting;
static atomic_int id, is_ready, met;
static long rounds;

static void enter(void)
{
    announce(&id);
    pthread_mutex_lock(&wanted); /* @waits */
    pthread_mutex_unlock(&wanted);
}

static void *waiter(void *unused)
{
    enter();
    return unused;
}

static void hold(pthread_t *threads, int count)
{
    pthread_mutex_lock(&wanted); /* @holds */
    for (int i = 0; i < count; i++) {
        atomic_store(&id, getpid());
        threads[i] = start(waiter, NULL, "waiter");
        while (atomic_load(&id) == getpid())
            nap(1);
        await_state(&id, 'S');
    }
    pthread_mutex_unlock(&wanted);
}

static void *sleeper(void *unused)
{
    pthread_mutex_lock(&other);
    announce(&id);
    while (!atomic_load(&is_ready))
        pthread_cond_wait(&ready, &other); /* @sleeps */
    pthread_mutex_unlock(&other);
    atomic_store(&met, 1);
    sem_wait(&units);
    atomic_store(&met, 2);
    pthread_barrier_wait(&meeting);
    return unused;
}

/* Three threads wait for a mutex, one after the other for a condition, a semaphore, a barrier. */
static void waits(void)
{
    pthread_t threads[3];
    hold(threads, 3);
    for (int i = 0; i < 3; i++)
        must(pthread_join(threads[i], NULL));
    must(sem_init(&units, 0, 0));
    must(pthread_barrier_init(&meeting, NULL, 2));
    atomic_store(&id, getpid());
    pthread_t thread = start(sleeper, NULL, "sleeper");
    while (atomic_load(&id) == getpid())
        nap(1);
    await_state(&id, 'S');
    pthread_mutex_lock(&other);
    atomic_store(&is_ready, 1);
    pthread_cond_signal(&ready); /* @signals */
    pthread_mutex_unlock(&other);
    await(&met, 1);
    await_state(&id, 'S');
    sem_post(&units);
    await(&met, 2);
    await_state(&id, 'S');
    pthread_barrier_wait(&meeting);
    must(pthread_join(thread, NULL));
}

static void *worker(void *unused)
{
    meet(&met, 4);
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&hot);
        if (i % 16 == 0)
            sched_yield();
        pthread_mutex_unlock(&hot);
    }
    return unused;
}

/* Four threads want one mutex all the time, and give the processor away with it now and then. */
static void storm(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        must(pthread_create(&threads[i], NULL, worker, NULL));
    for (int i = 0; i < 4; i++)
        must(pthread_join(threads[i], NULL));
}

/* Ends while a thread waits. */
static void killed(void)
{
    pthread_t thread;
    pthread_mutex_lock(&wanted);
    atomic_store(&id, getpid());
    thread = start(waiter, NULL, "waiter");
    while (atomic_load(&id) == getpid())
        nap(1);
    await_state(&id, 'S');
    (void)thread;
    raise(SIGKILL);
}

int main(int count, char **arguments)
{
    if (count > 2 && strcmp(arguments[1], "storm") == 0) {
        rounds = atol(arguments[2]);
        storm();
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "killed") == 0) {
        pid_t child = fork();
        if (child == 0)
            killed();
        must(waitpid(child, NULL, 0) != child);
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "forks") == 0) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t threads[1];
            hold(threads, 1);
            must(pthread_join(threads[0], NULL));
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) != child);
        must(status);
    }
    waits();
    return 0;
}
