/* `owners WHAT`: a thread waits for a mutex whose owner sleeps, reads, or has
 * ended. */
#include "common.h"

static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held, named;
static int pipes[2];

static void *sleeps(void *unused)
{
    must(pthread_mutex_lock(&wanted)); /* @sleeps-holds */
    atomic_fetch_add(&held, 1);
    nap(3600 * 1000); /* @sleeps */
    return unused;
}

static void *reads(void *unused)
{
    char byte;
    must(pthread_mutex_lock(&wanted)); /* @reads-holds */
    atomic_fetch_add(&held, 1);
    must(read(pipes[0], &byte, 1) != 1); /* @reads */
    return unused;
}

static void *leaks(void *unused)
{
    must(pthread_mutex_lock(&wanted)); /* @leaks-holds */
    await(&named, 1);
    atomic_fetch_add(&held, 1);
    return unused;
}

static void *wants(void *unused)
{
    await(&held, 1);
    must(pthread_mutex_lock(&wanted)); /* @wants */
    return unused;
}

int main(int count, char **argument)
{
    if (count != 2)
        return 96;
    must(pipe(pipes));
    void *(*owner)(void *) = strcmp(argument[1], "sleeps") == 0  ? sleeps
                             : strcmp(argument[1], "reads") == 0 ? reads
                                                                 : leaks;
    pthread_t thread = start(owner, NULL, "owner");
    atomic_fetch_add(&named, 1);
    if (owner == leaks)
        must(pthread_join(thread, NULL));
    start(wants, NULL, "wants");
    sleep_for_ever();
}
