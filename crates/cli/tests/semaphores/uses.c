/* Semaphores in all their uses, one for each verdict: `uses CASE`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sem_t sem;

static void nap(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static struct timespec in(long ms)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += ms / 1000;
    time.tv_nsec += ms % 1000 * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

/* Until so many threads wait for it: glibc has their number beside the count. */
static void await(unsigned waiters)
{
    while (((volatile unsigned *)&sem)[1] != waiters)
        nap(1);
}

static void run(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    pthread_create(&thread, NULL, body, argument);
    pthread_join(thread, NULL);
}

/* ---- as a mutex ---- */

static void *locker(void *holds)
{
    for (int i = 0; i < 100; i++) {
        sem_wait(&sem); /* locks */
        if (holds)
            nap(1);
        sem_post(&sem); /* unlocks */
    }
    return NULL;
}

static void *tries(void *unused)
{
    (void)unused;
    struct timespec soon = in(5);
    if (sem_trywait(&sem) == 0 || sem_timedwait(&sem, &soon) == 0)
        abort();
    soon = in(5);
    if (sem_clockwait(&sem, CLOCK_REALTIME, &soon) == 0)
        abort();
    return NULL;
}

static int mutex(void)
{
    pthread_t threads[3];
    sem_init(&sem, 0, 1); /* begins with one */
    sem_wait(&sem);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, locker, i == 0 ? &sem : NULL);
    await(3);
    sem_post(&sem);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    sem_wait(&sem);
    run(tries, NULL);
    sem_post(&sem);
    int count;
    sem_getvalue(&sem, &count); /* counts */
    return count == 1 ? 0 : 1;
}

static int alone(void)
{
    sem_init(&sem, 0, 1);
    locker(NULL);
    return 0;
}

/* Lives shortly, on a stack, a thousand times; every other one is not destroyed. */
static void *shortly(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        sem_t here;
        sem_init(&here, 0, 1);
        sem_wait(&here);
        sem_post(&here);
        if (i % 2)
            sem_destroy(&here);
    }
    return NULL;
}

static int stack(void)
{
    run(shortly, NULL);
    shortly(NULL);
    return 0;
}

static int forks(void)
{
    sem_init(&sem, 0, 1); /* before the fork */
    locker(NULL);
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            run(locker, NULL);
            locker(NULL);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}

/* ---- not as one ---- */

static void *tells(void *unused)
{
    (void)unused;
    sem_post(&sem); /* tells */
    return NULL;
}

static int message(void)
{
    sem_init(&sem, 0, 0); /* begins with none */
    for (int i = 0; i < 3; i++) {
        run(tells, NULL);
        sem_wait(&sem);
    }
    return 0;
}

static int counts(void)
{
    sem_init(&sem, 0, 3); /* begins with three */
    sem_wait(&sem);
    sem_wait(&sem);
    sem_post(&sem);
    sem_post(&sem);
    return 0;
}

static int rises(void)
{
    sem_init(&sem, 0, 1);
    sem_post(&sem); /* rises */
    sem_wait(&sem);
    sem_wait(&sem); /* takes the second */
    sem_post(&sem);
    return 0;
}

static void *gives(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "giver");
    sem_post(&sem); /* gives */
    return NULL;
}

static int another(void)
{
    sem_init(&sem, 0, 1);
    sem_wait(&sem); /* had taken */
    run(gives, NULL);
    return 0;
}

static void handler(int signal)
{
    (void)signal;
    sem_post(&sem); /* in the handler */
}

static int handlers(void)
{
    sem_init(&sem, 0, 1);
    signal(SIGUSR1, handler);
    sem_wait(&sem);
    raise(SIGUSR1);
    sem_wait(&sem);
    return 0;
}

/* The handler interrupts the wait that it ends. */
static int blocked(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sem_init(&sem, 0, 1);
    sigaction(SIGALRM, &action, NULL);
    sem_wait(&sem);
    alarm(1);
    while (sem_wait(&sem) != 0)
        if (errno != EINTR)
            return 1;
    return 0;
}

static int shared(void)
{
    sem_t *there = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(there, 1, 1); /* for several */
    if (fork() == 0) {
        sem_wait(there);
        sem_post(there);
        _exit(0);
    }
    wait(NULL);
    sem_wait(there);
    sem_post(there);
    return 0;
}

static int named(void)
{
    char name[64];
    snprintf(name, sizeof name, "/lockstead-test-%d", getpid());
    sem_t *there = sem_open(name, O_CREAT | O_EXCL, 0600, 1); /* opens */
    if (there == SEM_FAILED)
        return 77;
    sem_unlink(name);
    sem_wait(there);
    sem_post(there);
    sem_close(there);
    return 0;
}

static int destroyed(void)
{
    sem_init(&sem, 0, 1);
    sem_wait(&sem);
    sem_destroy(&sem); /* destroys */
    return 0;
}

static void *leaves(void *unused)
{
    (void)unused;
    sem_wait(&sem);
    sem_post(&sem);
    sem_wait(&sem); /* leaves */
    return NULL;
}

static int left(void)
{
    sem_init(&sem, 0, 1);
    run(leaves, NULL);
    return 0;
}

/* One of five of one origin is given by another thread. */
static int mixed(void)
{
    static sem_t all[5];
    for (int i = 0; i < 5; i++)
        sem_init(&all[i], 0, 1); /* five */
    for (int i = 0; i < 5; i++) {
        sem_wait(&all[i]);
        sem_post(&all[i]);
    }
    sem_t *last = &all[4];
    sem_wait(last);
    run((void *(*)(void *))(void *)sem_post, last);
    return 0;
}

/* Seen first when it has several tokens: its initialisation was the parent's. */
static int inherits(void)
{
    sem_init(&sem, 0, 2); /* the parent's */
    if (fork() == 0) {
        sem_wait(&sem);
        sem_post(&sem);
        _exit(0);
    }
    wait(NULL);
    return 0;
}

/* ---- too little ---- */

static int unused(void)
{
    sem_init(&sem, 0, 1);
    return 0;
}

static int kept(void)
{
    sem_init(&sem, 0, 1);
    sem_wait(&sem);
    return 0;
}

static pthread_key_t key;

/* In the last round of destructors lockstead has left the thread already. */
static void at_the_end(void *value)
{
    static __thread int rounds;
    if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(key, value);
        return;
    }
    sem_wait(&sem);
    sem_post(&sem);
}

static void *ends(void *unused)
{
    (void)unused;
    sem_wait(&sem);
    sem_post(&sem);
    pthread_setspecific(key, &key);
    return NULL;
}

static int unknown(void)
{
    pthread_key_create(&key, at_the_end);
    sem_init(&sem, 0, 1);
    run(ends, NULL);
    return 0;
}

/* ---- none ---- */

static int none(void)
{
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {
        {"mutex", mutex},       {"alone", alone},       {"stack", stack},
        {"forks", forks},       {"message", message},   {"counts", counts},
        {"rises", rises},       {"another", another},   {"handlers", handlers},
        {"blocked", blocked},   {"shared", shared},     {"named", named},
        {"destroyed", destroyed}, {"left", left},       {"mixed", mixed},
        {"inherits", inherits}, {"unused", unused},     {"kept", kept},
        {"unknown", unknown},   {"none", none},
    };
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0)
            return cases[i].run();
    return 2;
}
