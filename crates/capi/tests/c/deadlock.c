/* Two threads that take two locks in two orders, and meet: a program for POSIX threads that knows
 * nothing of lockstead. It hangs. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t journal = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t counted = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER;
static int here;

/* Waits until both have their first lock. */
static void meet(void)
{
    pthread_mutex_lock(&counted);
    here++;
    pthread_cond_broadcast(&come);
    while (here < 2)
        pthread_cond_wait(&come, &counted);
    pthread_mutex_unlock(&counted);
}

static void *transfer(void *nothing)
{
    pthread_mutex_lock(&accounts);
    meet();
    pthread_rwlock_wrlock(&journal);
    return nothing;
}

static void *audit(void *nothing)
{
    pthread_rwlock_wrlock(&journal);
    meet();
    pthread_mutex_lock(&accounts);
    return nothing;
}

int main(void)
{
    pthread_t first, second;

    if (pthread_create(&first, NULL, transfer, NULL) || pthread_create(&second, NULL, audit, NULL))
        return EXIT_FAILURE;
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return EXIT_SUCCESS;
}
