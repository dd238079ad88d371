/* `owners WHAT`: a thread waits for a lock whose owner sleeps, reads, runs, has
 * ended, waits itself, or is many. */
#include "common.h"

static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static volatile unsigned long steps;
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

static void turn(void)
{
    for (;;)
        steps++; /* @turns */
}

static void *runs(void *unused)
{
    must(pthread_mutex_lock(&wanted)); /* @runs-holds */
    atomic_fetch_add(&held, 1);
    turn(); /* @runs */
    return unused;
}

static void *holds_other(void *unused)
{
    must(pthread_mutex_lock(&other)); /* @other-holds */
    atomic_fetch_add(&held, 1);
    sleep_for_ever(); /* @other-sleeps */
    return unused;
}

static void *waits(void *unused)
{
    must(pthread_mutex_lock(&wanted)); /* @waits-holds */
    await(&held, 1);
    atomic_fetch_add(&held, 1);
    must(pthread_mutex_lock(&other)); /* @waits */
    return unused;
}

static void *reads_table(void *unused)
{
    must(pthread_rwlock_rdlock(&table)); /* @table-holds */
    atomic_fetch_add(&held, 1);
    sleep_for_ever(); /* @table-sleeps */
    return unused;
}

static void *writes_table(void *unused)
{
    await(&held, 4);
    must(pthread_rwlock_wrlock(&table)); /* @table-wants */
    return unused;
}

static void *leaks(void *unused)
{
    must(pthread_mutex_lock(&wanted)); /* @leaks-holds */
    await(&named, 1);
    atomic_fetch_add(&held, 1);
    return unused;
}

static void *wants(void *enough)
{
    await(&held, (int)(long)enough);
    must(pthread_mutex_lock(&wanted)); /* @wants */
    return NULL;
}

int main(int count, char **argument)
{
    const char *what = count == 2 ? argument[1] : "";
    must(pipe(pipes));
    if (strcmp(what, "sleeps") == 0) {
        start(sleeps, NULL, "owner");
    } else if (strcmp(what, "reads") == 0) {
        start(reads, NULL, "owner");
    } else if (strcmp(what, "runs") == 0) {
        start(runs, NULL, "owner");
    } else if (strcmp(what, "leaks") == 0) {
        pthread_t thread = start(leaks, NULL, "owner");
        atomic_fetch_add(&named, 1);
        must(pthread_join(thread, NULL));
    } else if (strcmp(what, "waits") == 0) {
        start(holds_other, NULL, "last");
        start(waits, NULL, "owner");
    } else if (strcmp(what, "readers") == 0) {
        for (int i = 0; i < 4; i++)
            start(reads_table, NULL, "reader");
        start(writes_table, NULL, "writer");
        sleep_for_ever();
    } else {
        return 96;
    }
    start(wants, (void *)(strcmp(what, "waits") == 0 ? 2L : 1L), "wants");
    sleep_for_ever();
}
