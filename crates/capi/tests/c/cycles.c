/* Threads that wait for each other, and one that ends with a lock: the test reads the
 * messages. Right programs that look like it are here, too. */
#include "expect.h"

enum { MOST = 3 };
static lks_mutex mutexes[MOST];
static lks_rwlock lock = LKS_RWLOCK_INIT;
static int members, holding;

static void all_hold(void)
{
    __atomic_add_fetch(&holding, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&holding, __ATOMIC_ACQUIRE) < members)
        nap(1);
}

static void *member(void *number)
{
    int me = (int)(intptr_t)number;
    lks_mutex_lock(&mutexes[me]); /* HELD */
    all_hold();
    lks_mutex_lock(&mutexes[(me + 1) % members]); /* WANTED */
    return NULL;
}

static void *writer(void *unused)
{
    lks_rwlock_write(&lock);
    all_hold();
    lks_mutex_lock(&mutexes[0]);
    return unused;
}

static void *reader(void *unused)
{
    lks_mutex_lock(&mutexes[0]);
    all_hold();
    lks_rwlock_read(&lock);
    return unused;
}

/* The same, but one of them gives up. */
static void *patient(void *unused)
{
    lks_mutex_lock(&mutexes[1]);
    all_hold();
    EXPECT(lks_mutex_lock_timeout(&mutexes[0], MILLISECONDS(200)) == -ETIMEDOUT);
    lks_mutex_unlock(&mutexes[1]);
    return unused;
}

static void *waiting(void *unused)
{
    lks_mutex_lock(&mutexes[0]);
    all_hold();
    lks_mutex_lock(&mutexes[1]);
    lks_mutex_unlock(&mutexes[1]);
    lks_mutex_unlock(&mutexes[0]);
    return unused;
}

static void *leaver(void *unused)
{
    lks_mutex_lock(&mutexes[0]); /* LEFT */
    return unused;
}

static void *leaving_reader(void *unused)
{
    lks_rwlock_read(&lock); /* READ AND LEFT */
    pthread_exit(unused);
}

int main(int count, char **arguments)
{
    pthread_t threads[MOST];
    const char *which;
    int i;
    EXPECT(count == 2);
    which = arguments[1];
    members = 2;
    if (!strcmp(which, "two") || !strcmp(which, "three")) {
        members = which[1] == 'w' ? 2 : 3;
        for (i = 0; i < members; i++)
            threads[i] = start(member, (void *)(intptr_t)i);
    } else if (!strcmp(which, "rwlock")) {
        threads[0] = start(writer, NULL);
        threads[1] = start(reader, NULL);
    } else if (!strcmp(which, "patient")) {
        threads[0] = start(patient, NULL);
        threads[1] = start(waiting, NULL);
    } else if (!strcmp(which, "leaver")) {
        threads[0] = start(leaver, NULL);
        members = 1;
    } else {
        threads[0] = start(leaving_reader, NULL);
        members = 1;
    }
    for (i = 0; i < members; i++)
        join(threads[i]);
    return 0;
}
