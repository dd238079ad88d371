/* Some threads take turns under `hot`, and do there what the argument says:
 *   burn    use the processor for 3 ms
 *   sleep   sleep for 3 ms
 *   nest    wait for `inner`, which another thread holds while it sleeps
 * At the end: how long `hot` was held, how much of that its holders ran, and how much they slept
 * at least, in nanoseconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 3, STEP = 3000000 };
static const long long LENGTH = 1500000000;

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static const char *kind;
static long long held, ran, slept;

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void nap(void)
{
    struct timespec time = {0, STEP};
    nanosleep(&time, NULL); /* naps */
}

static void *holds_inner(void *unused)
{
    while (!stop) {
        pthread_mutex_lock(&inner);
        nap();
        pthread_mutex_unlock(&inner);
    }
    return unused;
}

static void section(void)
{
    if (!strcmp(kind, "burn")) {
        long long end = now(CLOCK_THREAD_CPUTIME_ID) + STEP;
        while (now(CLOCK_THREAD_CPUTIME_ID) < end) {
        }
    } else if (!strcmp(kind, "sleep")) {
        nap();
        slept += STEP;
    } else {
        pthread_mutex_lock(&inner); /* asks */
        pthread_mutex_unlock(&inner);
    }
}

static void *worker(void *unused)
{
    while (!stop) {
        pthread_mutex_lock(&hot); /* takes */
        long long began = now(CLOCK_MONOTONIC), used = now(CLOCK_THREAD_CPUTIME_ID);
        section();
        ran += now(CLOCK_THREAD_CPUTIME_ID) - used;
        held += now(CLOCK_MONOTONIC) - began;
        pthread_mutex_unlock(&hot);
    }
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t threads[WORKERS + 1];
    long long end = now(CLOCK_MONOTONIC) + LENGTH;
    kind = count > 1 ? arguments[1] : "burn";
    pthread_create(&threads[WORKERS], NULL, strcmp(kind, "nest") ? worker : holds_inner, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    while (now(CLOCK_MONOTONIC) < end)
        nap();
    stop = 1;
    for (int i = 0; i <= WORKERS; i++)
        pthread_join(threads[i], NULL);
    printf("%lld %lld %lld\n", held, ran, slept);
    return 0;
}
