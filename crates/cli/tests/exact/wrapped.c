/* A lock that is taken through functions of the program's own, and in one place not.
   Says at its end for how many nanoseconds each place has held it. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

#define APART __attribute__((noinline)) static
/* Not the last call of its function, so that the function is on the stack. */
#define STAY __asm__ volatile("")

static void rest(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

/* Rests with the lock, and adds how long that took to what the lock protects. */
static long long of_cheap, of_dear, of_get;
static void hold(long us, long long *of)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    rest(us);
    clock_gettime(CLOCK_MONOTONIC, &to);
    *of += (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec;
}

APART void my_lock(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    STAY;
}

APART void my_unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
    STAY;
}

APART void cheap(void)
{
    my_lock(&m); /* cheap */
    hold(1000, &of_cheap);
    my_unlock(&m);
}

APART void dear(void)
{
    my_lock(&m); /* dear */
    hold(4000, &of_dear);
    my_unlock(&m);
}

APART void get(void)
{
    pthread_mutex_lock(&m); /* get */
    hold(2000, &of_get);
    pthread_mutex_unlock(&m);
}

APART void *rarely(void *unused)
{
    for (int i = 0; i < 40; i++) {
        cheap();
        dear(); /* rarely */
        get();
        rest(100);
    }
    return unused;
}

APART void *often(void *unused)
{
    for (int i = 0; i < 40; i++) {
        dear(); /* often */
        get();
        rest(100);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, i ? often : rarely, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("dear %lld\nget %lld\ncheap %lld\n", of_dear, of_get, of_cheap);
}
