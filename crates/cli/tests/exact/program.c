/* Four ways to use locks whose times are known to be hard to find out.
 *   few     holds of 1 to 20 ms, some dozens, of locks that are waited for now and then
 *   convoy  threads that take one lock in turn, each for some 20 us
 *   mixed   a lock that is held for a moment, hundreds of thousands of times, and now and
 *           then for milliseconds; beside it another one of the same thread
 *   queue   a queue with a condition, filled and emptied
 * With "alone" behind that the command, its parent, is stopped meanwhile.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_cond_t emptied = PTHREAD_COND_INITIALIZER;
static int jobs;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void compute(uint64_t ns)
{
    for (uint64_t end = now() + ns; now() < end;)
        ;
}

static void rest(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&t, NULL);
}

static void hold(pthread_mutex_t *lock, uint64_t ns, void (*spend)(uint64_t))
{
    pthread_mutex_lock(lock);
    spend(ns);
    pthread_mutex_unlock(lock);
}

static void *few(void *number)
{
    for (int i = 1; i <= 20; i++) {
        hold(&first, (uint64_t)i * 1000000, i % 2 ? compute : rest);
        hold(&second, (uint64_t)(21 - i) * 500000, rest);
        rest(number ? 3000000 : 1000000);
    }
    return NULL;
}

static void *convoy(void *unused)
{
    for (int i = 0; i < 4000; i++) {
        hold(&first, 20000, compute);
        compute(20000);
    }
    return unused;
}

static void *mixed(void *number)
{
    for (int i = 0; i < 40; i++) {
        for (int j = 0; j < 5000; j++)
            hold(&first, 300, compute);
        hold(&first, 6000000 + (uint64_t)i * 100000, i % 2 ? compute : rest);
        hold(&second, 2000000, rest);
        rest(number ? 2500000 : 500000);
    }
    return NULL;
}

static void *fill(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        compute(10000);
        pthread_mutex_lock(&first);
        while (jobs == 8)
            pthread_cond_wait(&emptied, &first);
        compute(15000);
        jobs++;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&first);
    }
    return unused;
}

static void *drain(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&first);
        while (jobs == 0)
            pthread_cond_wait(&filled, &first);
        compute(15000);
        jobs--;
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&first);
        compute(10000);
    }
    return unused;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void *(*bodies[])(void *) = {few, convoy, mixed, fill};
    const char *names[] = {"few", "convoy", "mixed", "queue"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(what, names[i]))
            continue;
        int alone = argc > 2 && !strcmp(argv[2], "alone");
        if (alone)
            kill(getppid(), SIGSTOP);
        pthread_t threads[3];
        for (int t = 0; t < 3; t++)
            pthread_create(&threads[t], NULL, bodies[i], t ? &jobs : NULL);
        pthread_t others[3];
        int drains = i == 3 ? 3 : 0;
        for (int t = 0; t < drains; t++)
            pthread_create(&others[t], NULL, drain, NULL);
        for (int t = 0; t < 3; t++)
            pthread_join(threads[t], NULL);
        for (int t = 0; t < drains; t++)
            pthread_join(others[t], NULL);
        if (alone)
            kill(getppid(), SIGCONT);
        return 0;
    }
    fprintf(stderr, "usage: program few|convoy|mixed|queue [alone]\n");
    return 2;
}
