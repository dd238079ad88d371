/* Two threads that take two semaphores in different orders. A third one could
 * post at any time: lockstead cannot call that a deadlock. */
#include "common.h"

static sem_t one, two;
static atomic_int met;

static void *forth(void *unused)
{
    must(sem_wait(&one));
    meet(&met, 2);
    must(sem_wait(&two));
    return unused;
}

static void *back(void *unused)
{
    must(sem_wait(&two));
    meet(&met, 2);
    must(sem_wait(&one));
    return unused;
}

int main(void)
{
    must(sem_init(&one, 0, 1));
    must(sem_init(&two, 0, 1));
    start(forth, NULL, "forth");
    start(back, NULL, "back");
    await(&met, 2);
    nap(200);
    fprintf(stderr, "both hold one\n");
    sleep_for_ever();
}
