/* A producer hands ITEMS to two consumers, one at a time, through a mutex and two conditions. The first one comes
 * when somebody waits for it. */
#include "common.h"

#include <pthread.h>

enum { ITEMS = 100 };

static pthread_mutex_t store = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int there, put, got, waiting;

static void *producer(void *unused)
{
    must(pthread_mutex_lock(&store));
    while (!waiting)
        must(pthread_cond_wait(&emptied, &store));
    while (put < ITEMS) {
        while (there)
            must(pthread_cond_wait(&emptied, &store));
        there = 1;
        put++;
        must(pthread_cond_signal(&filled));
    }
    must(pthread_mutex_unlock(&store));
    return unused;
}

static void *consumer(void *unused)
{
    must(pthread_mutex_lock(&store));
    waiting = 1;
    must(pthread_cond_signal(&emptied));
    while (got < ITEMS) {
        if (there) {
            there = 0;
            got++;
            must(pthread_cond_signal(&emptied));
        } else {
            must(pthread_cond_wait(&filled, &store));
        }
    }
    must(pthread_cond_broadcast(&filled));
    must(pthread_mutex_unlock(&store));
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    must(pthread_create(&threads[0], NULL, producer, NULL));
    must(pthread_create(&threads[1], NULL, consumer, NULL));
    must(pthread_create(&threads[2], NULL, consumer, NULL));
    for (int i = 0; i < 3; i++)
        must(pthread_join(threads[i], NULL));
    return 0;
}
