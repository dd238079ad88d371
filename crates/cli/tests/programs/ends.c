/* A deadlock in two threads, while the first one goes on and ends with 7; told
 * to abort, it says so and ends with 9. */
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

static void aborted(int number)
{
    (void)number;
    if (write(1, "aborted\n", 8) == 8)
        _exit(9);
}

int main(void)
{
    signal(SIGABRT, aborted);
    start(forth, NULL, "forth");
    start(back, NULL, "back");
    await(&met, 2);
    /* Until it is told to end, so that the report comes first. */
    while (getchar() != EOF) {
    }
    puts("the rest goes on");
    return 7;
}
