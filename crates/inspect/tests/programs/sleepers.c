/* Threads that sleep at known lines: one holds a lock, the others want it.
   The tests count on the lines. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t locked;
volatile int sink;

__attribute__((noinline)) static void hold_for_long(int seconds)
{
    struct timespec long_time = { seconds, 0 };
    nanosleep(&long_time, NULL); /* line 17 */
    sink++;
}

static void *holder(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&table_lock);
    pthread_barrier_wait(&locked);
    hold_for_long(1000); /* line 26 */
    pthread_mutex_unlock(&table_lock);
    return NULL;
}

__attribute__((noinline)) static int take_the_lock(int depth)
{
    volatile char room[200];
    room[depth % 200] = 1;
    if (depth > 0) {
        sink += take_the_lock(depth - 1); /* line 36 */
        return room[depth % 200];
    }
    pthread_mutex_lock(&table_lock); /* line 39 */
    sink++;
    pthread_mutex_unlock(&table_lock);
    return room[0];
}

static void *waiter(void *depth)
{
    sink += take_the_lock((int)(long)depth); /* line 47 */
    return NULL;
}

int main(int argc, char **argv)
{
    int waiters = argc > 1 ? atoi(argv[1]) : 1;
    long depth = argc > 2 ? atoi(argv[2]) : 2;
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    pthread_barrier_init(&locked, NULL, 2);
    pthread_create(&thread, &small, holder, NULL);
    pthread_setname_np(thread, "holder");
    pthread_barrier_wait(&locked);
    for (int i = 0; i < waiters; i++) {
        pthread_create(&thread, &small, waiter, (void *)depth);
        pthread_setname_np(thread, "waiter");
    }
    pthread_join(thread, NULL); /* line 67 */
    return sink;
}
