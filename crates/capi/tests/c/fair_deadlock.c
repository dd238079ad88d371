/* Two threads that take two fair mutexes in two orders, and meet. It hangs. */
#include "expect.h"

static lks_fair_mutex accounts = LKS_FAIR_MUTEX_INIT, journal = LKS_FAIR_MUTEX_INIT;
static lks_fair_mutex counted = LKS_FAIR_MUTEX_INIT;
static lks_cond come = LKS_COND_INIT;
static int here;

/* Waits until both have their first lock. */
static void meet(void)
{
    lks_fair_mutex_lock(&counted);
    here++;
    lks_cond_notify_all(&come);
    while (here < 2)
        lks_cond_wait_fair(&come, &counted);
    lks_fair_mutex_unlock(&counted);
}

static void *transfer(void *nothing)
{
    lks_fair_mutex_lock(&accounts);
    meet();
    lks_fair_mutex_lock(&journal);
    return nothing;
}

/* By the plain mutex's calls: they are told of alike. */
static void *audit(void *nothing)
{
    lks_mutex_lock(lks_mutex_of_fair(&journal));
    meet();
    lks_mutex_lock(lks_mutex_of_fair(&accounts));
    return nothing;
}

int main(void)
{
    pthread_t first = start(transfer, NULL), second = start(audit, NULL);
    join(first);
    join(second);
    return 0;
}
