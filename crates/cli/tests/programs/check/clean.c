/* Programs that do nothing wrong, with what other checkers mistake for wrong. */
#include "check.h"
#include <sys/mman.h>
#include <threads.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t two = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t book = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int stage;

/* CASE clocks-and-deadlines
 *   silent even with --strict
 * CASE clocks-and-deadlines-that-pass
 *   silent even with --strict
 */
static void all_timed(void)
{
    const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    struct timespec at = soon(CLOCK_REALTIME, 10000);
    must(pthread_mutex_timedlock(&one, &at));
    give(&one);
    must(pthread_rwlock_timedrdlock(&book, &at));
    must(pthread_rwlock_unlock(&book));
    must(pthread_rwlock_timedwrlock(&book, &at));
    must(pthread_rwlock_unlock(&book));
    for (int i = 0; i < COUNT(clocks); i++) {
        at = soon(clocks[i], 10000);
        must(pthread_mutex_clocklock(&one, clocks[i], &at));
        must(pthread_mutex_clocklock(&two, clocks[i], &at));
        give(&two);
        give(&one);
        must(pthread_rwlock_clockrdlock(&book, clocks[i], &at));
        must(pthread_rwlock_unlock(&book));
        must(pthread_rwlock_clockwrlock(&book, clocks[i], &at));
        must(pthread_rwlock_unlock(&book));
        at = soon(clocks[i], 5);
        take(&one);
        must(pthread_cond_clockwait(&changed, &one, clocks[i], &at) != ETIMEDOUT);
        give(&one);
    }
}

static void timed(void)
{
    in_turn({"one", all_timed}, {"two", all_timed});
}

static void *comes_too_late(void *unused)
{
    struct timespec at = soon(CLOCK_MONOTONIC, 5);
    must(pthread_mutex_clocklock(&one, CLOCK_MONOTONIC, &at) != ETIMEDOUT);
    must(pthread_rwlock_clockrdlock(&book, CLOCK_MONOTONIC, &at) != ETIMEDOUT);
    at = soon(CLOCK_REALTIME, 5);
    must(pthread_mutex_timedlock(&one, &at) != ETIMEDOUT);
    must(pthread_rwlock_timedwrlock(&book, &at) != ETIMEDOUT);
    return unused;
}

static void timed_out(void)
{
    take(&one);
    must(pthread_rwlock_wrlock(&book));
    must(pthread_join(start(comes_too_late, NULL, "late"), NULL));
    must(pthread_rwlock_unlock(&book));
    give(&one);
}

/* CASE cancelled-waits
 *   silent even with --strict
 */
static void give_back(void *mutex)
{
    give((pthread_mutex_t *)mutex);
}

static void *waits_with_cleanup(void *unused)
{
    take(&one);
    pthread_cleanup_push(give_back, &one);
    atomic_fetch_add(&stage, 1);
    for (;;)
        must(pthread_cond_wait(&changed, &one));
    pthread_cleanup_pop(1);
    return unused;
}

static void cancelled(void)
{
    pthread_t waiters[4];
    for (int i = 0; i < COUNT(waiters); i++)
        waiters[i] = start(waits_with_cleanup, NULL, "waiter");
    await(&stage, COUNT(waiters));
    for (int i = 0; i < COUNT(waiters); i++) {
        must(pthread_cancel(waiters[i]));
        must(pthread_join(waiters[i], NULL));
    }
    take(&one);
    give(&one);
}

/* CASE recovered-from-an-ended-process
 *   silent even with --strict
 * CASE recovered-from-a-dead-process
 *   silent even with --strict
 * CASE shared-between-processes
 *   silent even with --strict
 * CASE shared-and-held-at-fork
 *   silent even with --strict
 */
struct shared {
    pthread_mutex_t first, second;
    pthread_cond_t changed;
    int turns;
};

static struct shared *share(int robust)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    struct shared *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must((void *)made == MAP_FAILED);
    must(pthread_mutexattr_init(&mutex));
    must(pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED));
    must(pthread_mutexattr_setrobust(&mutex, robust));
    must(pthread_condattr_init(&condition));
    must(pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED));
    must(pthread_mutex_init(&made->first, &mutex));
    must(pthread_mutex_init(&made->second, &mutex));
    must(pthread_cond_init(&made->changed, &condition));
    return made;
}

static void child_ends(pid_t child, int with)
{
    int status;
    must(waitpid(child, &status, 0) != child);
    must(status != with);
}

static void recovers_from(void (*end)(void), int status)
{
    struct shared *all = share(PTHREAD_MUTEX_ROBUST);
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        take(&all->first);
        end();
    }
    child_ends(child, status);
    must(pthread_mutex_lock(&all->first) != EOWNERDEAD);
    must(pthread_mutex_consistent(&all->first));
    give(&all->first);
}

static void dies(void)
{
    kill(getpid(), SIGKILL);
}

static void ends(void)
{
    _exit(0);
}

static void recovered(void)
{
    recovers_from(dies, SIGKILL);
}

static void recovered_in_order(void)
{
    recovers_from(ends, 0);
}

static void takes_turns(struct shared *all, int mine)
{
    for (int i = 0; i < 10; i++) {
        take(&all->first);
        while (all->turns % 2 != mine)
            must(pthread_cond_wait(&all->changed, &all->first));
        take(&all->second);
        all->turns++;
        give(&all->second);
        must(pthread_cond_signal(&all->changed));
        give(&all->first);
    }
}

static void between_processes(void)
{
    struct shared *all = share(PTHREAD_MUTEX_STALLED);
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        takes_turns(all, 1);
        _exit(0);
    }
    takes_turns(all, 0);
    child_ends(child, 0);
    must(pthread_mutex_destroy(&all->first));
    must(munmap(all, sizeof *all));
}

static void held_at_fork(void)
{
    struct shared *all = share(PTHREAD_MUTEX_STALLED);
    take(&all->first);
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        take(&all->first);
        give(&all->first);
        _exit(0);
    }
    atomic_int waiter = child;
    await_state(&waiter, 'S');
    give(&all->first);
    child_ends(child, 0);
}

/* CASE producers-and-consumers
 *   silent even with --strict
 * CASE barriers-and-once
 *   silent even with --strict
 */
static int queued, taken;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;

static void *produces(void *unused)
{
    for (int i = 0; i < 500; i++) {
        take(&one);
        while (queued == 4)
            must(pthread_cond_wait(&room, &one));
        queued++;
        must(pthread_cond_signal(&changed));
        give(&one);
    }
    return unused;
}

static void *consumes(void *unused)
{
    for (int i = 0; i < 500; i++) {
        take(&one);
        while (queued == 0)
            must(pthread_cond_wait(&changed, &one));
        queued--;
        take(&two);
        taken++;
        give(&two);
        must(pthread_cond_signal(&room));
        give(&one);
    }
    return unused;
}

static void queues(void)
{
    pthread_t all[4];
    for (int i = 0; i < COUNT(all); i++)
        all[i] = start(i % 2 ? produces : consumes, NULL, i % 2 ? "producer" : "consumer");
    for (int i = 0; i < COUNT(all); i++)
        must(pthread_join(all[i], NULL));
}

static pthread_barrier_t line;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static mtx_t standard;

static void once_only(void)
{
    must(mtx_init(&standard, mtx_timed | mtx_recursive) != thrd_success);
}

static void *runs(void *unused)
{
    for (int i = 0; i < 20; i++) {
        int first = pthread_barrier_wait(&line);
        must(first != 0 && first != PTHREAD_BARRIER_SERIAL_THREAD);
        must(pthread_once(&once, once_only));
        must(mtx_lock(&standard) != thrd_success);
        must(mtx_lock(&standard) != thrd_success);
        must(mtx_unlock(&standard) != thrd_success);
        must(mtx_unlock(&standard) != thrd_success);
    }
    return unused;
}

static void barriers(void)
{
    pthread_t all[3];
    must(pthread_barrier_init(&line, NULL, COUNT(all)));
    for (int i = 0; i < COUNT(all); i++)
        all[i] = start(runs, NULL, "runner");
    for (int i = 0; i < COUNT(all); i++)
        must(pthread_join(all[i], NULL));
    must(pthread_barrier_destroy(&line));
    mtx_destroy(&standard);
}

/* CASE the-last-one-frees-it
 *   silent even with --strict
 * CASE priority-inheriting
 *   silent even with --strict
 */
struct counted {
    pthread_mutex_t lock;
    int users;
};

static void *uses_counted(void *what)
{
    struct counted *counted = what;
    take(&counted->lock);
    int last = --counted->users == 0;
    give(&counted->lock);
    if (last) {
        must(pthread_mutex_destroy(&counted->lock));
        free(counted);
    }
    return NULL;
}

static void last_one_frees(void)
{
    pthread_t users[2];
    for (int i = 0; i < 50; i++) {
        struct counted *counted = malloc(sizeof *counted);
        must(pthread_mutex_init(&counted->lock, NULL));
        counted->users = COUNT(users);
        for (int j = 0; j < COUNT(users); j++)
            must(pthread_create(&users[j], NULL, uses_counted, counted));
        for (int j = 0; j < COUNT(users); j++)
            must(pthread_join(users[j], NULL));
    }
}

static pthread_mutex_t inheriting[2];

static void uses_inheriting(void)
{
    for (int i = 0; i < 100; i++) {
        take(&inheriting[0]);
        take(&inheriting[1]);
        give(&inheriting[0]);
        give(&inheriting[1]);
    }
}

static void inherits(void)
{
    pthread_mutexattr_t attribute;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_setprotocol(&attribute, PTHREAD_PRIO_INHERIT));
    for (int i = 0; i < COUNT(inheriting); i++)
        must(pthread_mutex_init(&inheriting[i], &attribute));
    in_turn({"one", uses_inheriting}, {"two", uses_inheriting});
}

/* CASE destructors-that-lock
 *   silent even with --strict
 * CASE detached-threads-at-the-end
 *   silent even with --strict
 */
static pthread_key_t key;

static void locks_at_end(void *unused)
{
    (void)unused;
    take(&one);
    take(&two);
    give(&two);
    give(&one);
}

static void sets_key(void)
{
    must(pthread_setspecific(key, &key));
}

static void destructors(void)
{
    must(pthread_key_create(&key, locks_at_end));
    in_turn({"one", sets_key}, {"two", sets_key}, {"three", sets_key});
}

static void *works_on(void *unused)
{
    for (;;) {
        take(&one);
        give(&one);
        atomic_store(&stage, 1);
        nap(1);
    }
    return unused;
}

static void detached(void)
{
    for (int i = 0; i < 3; i++)
        must(pthread_detach(start(works_on, NULL, "worker")));
    await(&stage, 1);
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"clocks-and-deadlines", timed},
        {"clocks-and-deadlines-that-pass", timed_out},
        {"cancelled-waits", cancelled},
        {"recovered-from-a-dead-process", recovered},
        {"recovered-from-an-ended-process", recovered_in_order},
        {"shared-between-processes", between_processes},
        {"shared-and-held-at-fork", held_at_fork},
        {"producers-and-consumers", queues},
        {"barriers-and-once", barriers},
        {"the-last-one-frees-it", last_one_frees},
        {"priority-inheriting", inherits},
        {"destructors-that-lock", destructors},
        {"detached-threads-at-the-end", detached},
    };
    return run_case(argc, argument, all, COUNT(all));
}
