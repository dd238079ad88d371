/* A deadlock in two threads, while the first one goes on and ends with 7. */
#include "common.h"

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t two = PTHREAD_MUTEX_INITIALIZER;
static atomic_int met;

static void *forth(void *unused)
{
    must(pthread_mutex_lock(&one));
    meet(&met, 2);
    must(pthread_mutex_lock(&two));
    return unused;
}

static void *back(void *unused)
{
    must(pthread_mutex_lock(&two));
    meet(&met, 2);
    must(pthread_mutex_lock(&one));
    return unused;
}

int main(void)
{
    start(forth, NULL, "forth");
    start(back, NULL, "back");
    await(&met, 2);
    /* Until it is told to end, so that the report comes first. */
    while (getchar() != EOF) {
    }
    puts("the rest goes on");
    return 7;
}
