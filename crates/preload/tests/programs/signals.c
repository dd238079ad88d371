/* Threads that use locks while signals come, whose handlers use locks of their
 * own, post semaphores, or jump out of whatever they have interrupted; between
 * that forks, and threads that come, are cancelled and go. */

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include "stops.h"

enum { WORKERS = 4, LOCKS = 8 };

static int over;
static unsigned long ticks, kicks, jumps, forks, cancelled, uses;

/* Of the threads; handlers keep away. */
static pthread_mutex_t locks[LOCKS];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t of_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t of_forks = PTHREAD_MUTEX_INITIALIZER;
static sem_t tokens, never;

/* Of the handlers, in which all signals are blocked. */
static pthread_mutex_t of_handlers = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t read_by_handlers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin_of_handlers;

static void must(int answer)
{
    if (answer)
        abort();
}

static void add(unsigned long *to)
{
    __atomic_fetch_add(to, 1, __ATOMIC_RELAXED);
}

static int is_over(void)
{
    return __atomic_load_n(&over, __ATOMIC_RELAXED);
}

static unsigned below(unsigned long *seed, unsigned limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % limit;
}

static struct timespec in(long nanoseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += nanoseconds;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

/* The next tick comes some time after the last one was dealt with. On a slow machine a clock that
 * goes on by itself takes all the time there is: the threads are in handlers without end. */
static void tick_again(void)
{
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 200}}, NULL);
}

static void tick(int signal)
{
    (void)signal;
    int before = errno, state;
    /* What it has interrupted may be a point of cancellation: then a thread is
     * cancelled at once, here as well. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    must(pthread_mutex_lock(&of_handlers));
    must(pthread_rwlock_rdlock(&read_by_handlers));
    must(pthread_spin_lock(&spin_of_handlers));
    must(pthread_spin_unlock(&spin_of_handlers));
    must(pthread_mutex_unlock(&of_handlers));
    must(pthread_rwlock_unlock(&read_by_handlers));
    sem_post(&tokens);
    add(&ticks);
    if (!is_over())
        tick_again();
    errno = before;
    pthread_setcancelstate(state, &state);
}

static __thread sigjmp_buf out;
static __thread volatile int may_jump;

static void kick(int signal)
{
    add(&kicks);
    if (may_jump) {
        may_jump = 0;
        siglongjmp(out, signal);
    }
}

/* A mutex that nobody else knows, in use until a signal comes, whatever the
 * signal interrupts; then it may be in any state, and begins anew. */
__attribute__((noinline)) static void use_until_kicked(unsigned long *seed)
{
    static __thread pthread_mutex_t own;
    unsigned waits = below(seed, 2);
    must(pthread_mutex_init(&own, NULL));
    if (sigsetjmp(out, 1) == 0) {
        may_jump = 1;
        while (!is_over())
            if (waits) {
                sem_wait(&never);
            } else {
                pthread_mutex_lock(&own);
                pthread_mutex_unlock(&own);
                /* Another call each time: the slow ways are of interest. */
                pthread_mutex_destroy(&own);
                pthread_mutex_init(&own, NULL);
            }
        may_jump = 0;
    } else {
        add(&jumps);
    }
    must(pthread_mutex_init(&own, NULL));
}

static void use(unsigned long *seed)
{
    pthread_mutex_t *first = &locks[below(seed, LOCKS)], *second = &locks[below(seed, LOCKS)];
    struct timespec soon;
    switch (below(seed, 8)) {
    case 0:
        if (first > second) {
            pthread_mutex_t *other = first;
            first = second, second = other;
        }
        must(pthread_mutex_lock(first));
        if (second != first)
            must(pthread_mutex_lock(second));
        must(pthread_mutex_unlock(first));
        if (second != first)
            must(pthread_mutex_unlock(second));
        break;
    case 1:
        if (pthread_mutex_trylock(first) == 0)
            must(pthread_mutex_unlock(first));
        break;
    case 2:
        soon = in(20000);
        if (pthread_mutex_timedlock(first, &soon) == 0)
            must(pthread_mutex_unlock(first));
        break;
    case 3:
        must(pthread_rwlock_rdlock(&rwlock));
        must(pthread_rwlock_unlock(&rwlock));
        break;
    case 4:
        must(pthread_rwlock_wrlock(&rwlock));
        must(pthread_rwlock_unlock(&rwlock));
        break;
    case 5:
        soon = in(50000);
        must(pthread_mutex_lock(&of_cond));
        if (below(seed, 2))
            pthread_cond_timedwait(&cond, &of_cond, &soon);
        else
            pthread_cond_broadcast(&cond);
        must(pthread_mutex_unlock(&of_cond));
        break;
    case 6:
        soon = in(50000);
        sem_timedwait(&tokens, &soon);
        break;
    default:
        use_until_kicked(seed);
    }
    add(&uses);
}

static void *work(void *argument)
{
    unsigned long seed = (unsigned long)argument;
    stack_t stack = {.ss_size = 1 << 16};
    /* Every second one has a stack for its handlers. */
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (seed % 2)
        sigaltstack(&stack, NULL);
    while (!is_over())
        use(&seed);
    return NULL;
}

/* Ends a call that waits, which goes on by itself after the other signals. */
static void poke(int signal)
{
    (void)signal;
}

static void unlock(void *mutex)
{
    must(pthread_mutex_unlock(mutex));
}

static void *be_cancelled(void *argument)
{
    static __thread unsigned long seed;
    int old;
    seed = (unsigned long)argument;
    must(pthread_mutex_lock(&of_cond));
    pthread_cleanup_push(unlock, &of_cond);
    for (unsigned i = below(&seed, 20); i > 0; i--) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
        must(pthread_mutex_lock(&locks[i % LOCKS]));
        must(pthread_mutex_unlock(&locks[i % LOCKS]));
        pthread_setcancelstate(old, &old);
        pthread_testcancel();
    }
    for (;;)
        if (below(&seed, 2))
            pthread_cond_wait(&cond, &of_cond);
        else
            sem_wait(&never);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *cancel_others(void *argument)
{
    unsigned long seed = (unsigned long)argument;
    while (!is_over()) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, be_cancelled, (void *)(seed + cancelled)))
            abort();
        if (below(&seed, 2))
            sched_yield();
        must(pthread_cancel(thread));
        /* A thread of glibc 2.43, not of 2.36, overlooks a cancellation that comes while it is in a
         * handler, and sleeps on when that returns. The next call sees it. */
        struct timespec soon = in(20000000);
        for (int left; (left = pthread_timedjoin_np(thread, &result, &soon)); soon = in(20000000)) {
            must(left != ETIMEDOUT);
            pthread_kill(thread, SIGUSR2);
        }
        if (result == PTHREAD_CANCELED)
            add(&cancelled);
    }
    return NULL;
}

static void *fork_others(void *unused)
{
    (void)unused;
    while (!is_over()) {
        must(pthread_mutex_lock(&of_forks));
        pid_t child = fork();
        if (child == 0) {
            must(pthread_mutex_unlock(&of_forks));
            must(pthread_mutex_lock(&of_forks));
            _exit(5);
        }
        must(pthread_mutex_unlock(&of_forks));
        int status = 0;
        while (waitpid(child, &status, 0) < 0)
            ;
        if (status != 5 << 8)
            abort();
        add(&forks);
        usleep(5000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
    long milliseconds = argc > 2 ? atol(argv[2]) : 1000;
    pthread_t workers[WORKERS], canceller, forker;
    for (int i = 0; i < LOCKS; i++)
        must(pthread_mutex_init(&locks[i], NULL));
    pthread_spin_init(&spin_of_handlers, PTHREAD_PROCESS_PRIVATE);
    sem_init(&tokens, 0, 0), sem_init(&never, 0, 0);
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = kick;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = poke, action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start("work", work, (void *)(seed * WORKERS + (unsigned)i));
    canceller = start("cancel", cancel_others, (void *)seed);
    forker = start("fork", fork_others, NULL);
    tick_again();
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += milliseconds / 1000, end.tv_nsec += milliseconds % 1000 * 1000000;
    do {
        pthread_kill(workers[below(&seed, WORKERS)], SIGUSR1);
        usleep(100);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < end.tv_sec * 1000 + end.tv_nsec / 1000000);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    /* Those that wait for a kick get it, until all have ended. */
    for (int i = 0; i < WORKERS; i++)
        while (pthread_tryjoin_np(workers[i], NULL)) {
            pthread_kill(workers[i], SIGUSR1);
            usleep(1000);
        }
    must(pthread_join(canceller, NULL));
    must(pthread_join(forker, NULL));
    /* Now nobody else is there in whose handler the clock is set again. */
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    SHOW(of_handlers), SHOW(read_by_handlers), SHOW(spin_of_handlers), SHOW(of_forks);
    show("ticks", ticks), show("kicks", kicks), show("jumps", jumps), show("forks", forks);
    show("cancelled", cancelled), show("uses", uses);
    stop("over");
    return 0;
}
