/* Two threads that take two semaphores in different orders. A third one could
 * post at any time: lockstead cannot call that a deadlock. */
#include "common.h"

static sem_t one, two;
static atomic_int met, waiters[2];

static void *forth(void *unused)
{
    must(sem_wait(&one));
    meet(&met, 2);
    announce(&waiters[0]);
    must(sem_wait(&two));
    return unused;
}

static void *back(void *unused)
{
    must(sem_wait(&two));
    meet(&met, 2);
    announce(&waiters[1]);
    must(sem_wait(&one));
    return unused;
}

int main(void)
{
    must(sem_init(&one, 0, 1));
    must(sem_init(&two, 0, 1));
    start(forth, NULL, "forth");
    start(back, NULL, "back");
    await_state(&waiters[0], 'S');
    await_state(&waiters[1], 'S');
    fprintf(stderr, "both hold one\n");
    sleep_for_ever();
}
