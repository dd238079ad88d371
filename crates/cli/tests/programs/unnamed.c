/* Two threads that nobody has named, and one that has named itself, wait for each other in a
 * cycle. */
#include "common.h"
#include <sys/prctl.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t two = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t three = PTHREAD_MUTEX_INITIALIZER;
static atomic_int met;

static void take(pthread_mutex_t *first, pthread_mutex_t *second)
{
    must(pthread_mutex_lock(first));
    meet(&met, 3);
    must(pthread_mutex_lock(second));
}

static void *pays(void *unused)
{
    take(&one, &two);
    return unused;
}

static void *books(void *unused)
{
    take(&two, &three);
    return unused;
}

static void *counts(void *unused)
{
    prctl(PR_SET_NAME, "counter");
    take(&three, &one);
    return unused;
}

int main(void)
{
    void *(*const bodies[])(void *) = { pays, books, counts };
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        must(pthread_create(&thread, NULL, bodies[i], NULL));
    sleep_for_ever();
}
