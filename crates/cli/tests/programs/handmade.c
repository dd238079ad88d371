/* Mutex, condition and a flag or a count, in patterns that look alike: `handmade KIND`.
 *
 *   lock        a lock: two threads take it in turn and hold it for a while each
 *   late        the same, signalled after the mutex was given back
 *   rare        the same, signalled only when somebody waits
 *   queue       one condition for those who put and one for those who get
 *   shared      one condition for both
 *   jobs        workers that wait for jobs, and do each in a further section of the mutex
 *   turns       two threads that hand one job to each other, in sections of their own
 *   permits     a lock with two permits, of which both are taken
 *   brief       many conditions that are made at one place and waited for once each
 */
#include "common.h"

enum { ROUNDS = 300, THREADS = 3, ROOM = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_cond_t emptied = PTHREAD_COND_INITIALIZER;
static int taken, waiting, items, done, turn, permits;
static const char *kind;

static int is(const char *what)
{
    return !strcmp(kind, what);
}

static void take(void)
{
    must(pthread_mutex_lock(&mutex));
    waiting++;
    while (taken)
        must(pthread_cond_wait(&changed, &mutex)); /* @takes */
    waiting--;
    taken = 1;
    must(pthread_mutex_unlock(&mutex));
}

static void give(void)
{
    must(pthread_mutex_lock(&mutex));
    taken = 0;
    int wanted = !is("rare") || waiting;
    if (wanted && !is("late"))
        must(pthread_cond_signal(&changed));
    must(pthread_mutex_unlock(&mutex));
    if (is("late"))
        must(pthread_cond_signal(&changed));
}

/* Holds the lock until somebody waits for it, if anybody will. */
static void *locks(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        take();
        nap(1);
        give();
        take();
        give();
    }
    return unused;
}

static void *puts_things(void *unused)
{
    pthread_cond_t *room = is("queue") ? &emptied : &changed;
    for (int i = 0; i < ROUNDS; i++) {
        must(pthread_mutex_lock(&mutex));
        while (items == ROOM)
            must(pthread_cond_wait(room, &mutex));
        items++;
        must(is("queue") ? pthread_cond_signal(&changed) : pthread_cond_broadcast(&changed));
        must(pthread_mutex_unlock(&mutex));
    }
    return unused;
}

static void *gets_things(void *unused)
{
    pthread_cond_t *room = is("queue") ? &emptied : &changed;
    for (int i = 0; i < ROUNDS; i++) {
        must(pthread_mutex_lock(&mutex));
        while (!items)
            must(pthread_cond_wait(&changed, &mutex)); /* @gets */
        items--;
        must(is("queue") ? pthread_cond_signal(room) : pthread_cond_broadcast(room));
        must(pthread_mutex_unlock(&mutex));
    }
    return unused;
}

/* A section for each job that is put. */
static void *gives_jobs(void *unused)
{
    for (int i = 0; i < ROUNDS * (THREADS - 1); i++) {
        must(pthread_mutex_lock(&mutex));
        items++;
        must(pthread_cond_signal(&changed));
        must(pthread_mutex_unlock(&mutex));
        if (i % 8 == 0)
            nap(1);
    }
    return unused;
}

static void *does_jobs(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        must(pthread_mutex_lock(&mutex));
        while (!items)
            must(pthread_cond_wait(&changed, &mutex));
        items--;
        must(pthread_mutex_unlock(&mutex));
        must(pthread_mutex_lock(&mutex));
        done++;
        must(pthread_mutex_unlock(&mutex));
    }
    return unused;
}

static void *takes_turns(void *which)
{
    int mine = which != NULL;
    for (int i = 0; i < ROUNDS; i++) {
        must(pthread_mutex_lock(&mutex));
        while (turn != mine)
            must(pthread_cond_wait(&changed, &mutex));
        must(pthread_mutex_unlock(&mutex));
        must(pthread_mutex_lock(&mutex));
        turn = !mine;
        must(pthread_cond_signal(&changed));
        must(pthread_mutex_unlock(&mutex));
    }
    return which;
}

static void *takes_permits(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        must(pthread_mutex_lock(&mutex));
        while (permits == 2)
            must(pthread_cond_wait(&changed, &mutex));
        permits++;
        must(pthread_mutex_unlock(&mutex));
        nap(1);
        must(pthread_mutex_lock(&mutex));
        permits--;
        must(pthread_cond_signal(&changed));
        must(pthread_mutex_unlock(&mutex));
    }
    return unused;
}

static void wait_briefly(void)
{
    struct timespec long_ago = {1, 0};
    pthread_cond_t *condition = malloc(sizeof *condition);
    must(pthread_cond_init(condition, NULL)); /* @made */
    must(pthread_mutex_lock(&mutex));
    int ended = pthread_cond_timedwait(condition, &mutex, &long_ago);
    must(ended == ETIMEDOUT ? 0 : ended + 1);
    must(pthread_mutex_unlock(&mutex));
    must(pthread_cond_destroy(condition));
    free(condition);
}

static void *waits_briefly(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        wait_briefly();
        wait_briefly();
    }
    return unused;
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "";
    void *(*first)(void *) = locks, *(*others)(void *) = locks;
    if (is("queue") || is("shared"))
        first = puts_things, others = gets_things;
    else if (is("jobs"))
        first = gives_jobs, others = does_jobs;
    else if (is("turns"))
        first = others = takes_turns;
    else if (is("brief"))
        first = others = waits_briefly;
    else if (is("permits"))
        first = others = takes_permits;
    int threads = is("jobs") || is("permits") ? THREADS : 2;
    pthread_t all[THREADS];
    for (int i = 0; i < threads; i++)
        all[i] = start(i ? others : first, i ? &all : NULL, i ? "second" : "first");
    for (int i = 0; i < threads; i++)
        must(pthread_join(all[i], NULL));
    return 0;
}
