/* Two threads that take two mutexes in different orders, and bystanders: ten
 * threads and ten mutexes that are used, held and waited for besides. */
#include "common.h"

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t calm[10];
static pthread_mutex_t crowded = PTHREAD_MUTEX_INITIALIZER;
static atomic_int met, ready;

static void lock_accounts(void)
{
    must(pthread_mutex_lock(&accounts)); /* @accounts */
}

static void lock_journal(void)
{
    must(pthread_mutex_lock(&journal)); /* @journal */
}

static void *transfer(void *unused)
{
    lock_accounts(); /* @transfer-first */
    meet(&met, 2);
    lock_journal(); /* @transfer-second */
    return unused;
}

static void *audit(void *unused)
{
    lock_journal(); /* @audit-first */
    meet(&met, 2);
    lock_accounts(); /* @audit-second */
    return unused;
}

/* Holds one mutex for ever and waits for another now and then. */
static void *bystander(void *which)
{
    must(pthread_mutex_lock(which));
    atomic_fetch_add(&ready, 1);
    for (;;) {
        must(pthread_mutex_lock(&crowded));
        nap(1);
        must(pthread_mutex_unlock(&crowded));
    }
    return NULL;
}

/* Queues up behind the deadlock without being part of it. */
static void *behind(void *unused)
{
    must(pthread_mutex_lock(&accounts));
    return unused;
}

int main(void)
{
    for (int i = 0; i < 10; i++) {
        must(pthread_mutex_init(&calm[i], NULL));
        start(bystander, &calm[i], "bystander");
    }
    await(&ready, 10);
    start(transfer, NULL, "transfer");
    start(audit, NULL, "audit");
    await(&met, 2);
    start(behind, NULL, "behind");
    sleep_for_ever();
}
