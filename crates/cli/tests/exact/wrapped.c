/* A lock that is taken through functions of the program's own, and in one place not. */
#include <pthread.h>
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
    rest(1000);
    my_unlock(&m);
}

APART void dear(void)
{
    my_lock(&m); /* dear */
    rest(4000);
    my_unlock(&m);
}

APART void get(void)
{
    pthread_mutex_lock(&m); /* get */
    rest(2000);
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
}
