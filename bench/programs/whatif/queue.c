/* A queue of a mutex and two conditions: PRODUCERS put, CONSUMERS get. With ROOM 1 and more a full
 * queue makes producers wait.
 * queue ITEMS PRODUCERS CONSUMERS ROOM PRODUCING CONSUMING (rounds of work for an item) */
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static long there, put, got, items, room;
static unsigned producing, consuming;

static void *producer(void *seed) {
    uint64_t x = (uintptr_t)seed;
    for (;;) {
        x = compute(x, producing);
        pthread_mutex_lock(&lock);
        while (there >= room && put < items)
            pthread_cond_wait(&emptied, &lock);
        if (put >= items) {
            pthread_cond_broadcast(&emptied);
            pthread_mutex_unlock(&lock);
            sink += x;
            return NULL;
        }
        put++, there++;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
}

static void *consumer(void *seed) {
    uint64_t x = (uintptr_t)seed;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!there && got < items)
            pthread_cond_wait(&filled, &lock);
        if (got >= items) {
            pthread_cond_broadcast(&filled);
            pthread_mutex_unlock(&lock);
            sink += x;
            return NULL;
        }
        got++, there--;
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&lock);
        x = compute(x, consuming);
    }
}

int main(int argc, char **argv) {
    if (argc != 7)
        return 2;
    items = atol(argv[1]);
    int producers = atoi(argv[2]), consumers = atoi(argv[3]);
    room = atol(argv[4]), producing = atoi(argv[5]), consuming = atoi(argv[6]);
    pthread_t threads[64];
    double since = now();
    for (int i = 0; i < producers; i++)
        threads[i] = start(producer, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < consumers; i++)
        threads[producers + i] = start(consumer, (void *)(uintptr_t)(i + 11));
    for (int i = 0; i < producers + consumers; i++)
        pthread_join(threads[i], NULL);
    rate(items, since);
}
