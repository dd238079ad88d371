/* Threads: joins, cancellation, keys, routines that run once, jumps out of
 * handlers. */

#include <setjmp.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include "answers.h"
#include "state.h"

static atomic_int tid;

/* Until the thread that has said its `tid` sleeps, or ends. */
static void await_state(char state)
{
    while (tid == 0 || state_of(tid) != state)
        usleep(200);
    tid = 0;
}

static void *wait_for(void *sem)
{
    while (sem_wait(sem))
        ;
    return (void *)42;
}

static void *exit_at_once(void *value)
{
    tid = gettid();
    pthread_exit(value);
}

static void joins(void)
{
    sem_t sem;
    void *result = NULL;
    sem_init(&sem, 0, 0);
    pthread_t thread = start(wait_for, &sem);
    struct timespec real = soon(CLOCK_REALTIME), mono = soon(CLOCK_MONOTONIC);
    SAY(pthread_join(pthread_self(), NULL));
    SAY(pthread_tryjoin_np(pthread_self(), NULL));
    SAY(pthread_tryjoin_np(thread, &result));
    SAY(pthread_timedjoin_np(thread, &result, &past));
    SAY(pthread_timedjoin_np(thread, &result, &real));
    /* Not with a bad time: glibc's would look at it for ever. */
    SAY(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &mono));
    SAY(pthread_clockjoin_np(thread, &result, CLOCK_BOOTTIME, &past));
    sem_post(&sem);
    SAY(pthread_join(thread, &result));
    SAY(result);
    thread = start(exit_at_once, (void *)7);
    SAY(pthread_timedjoin_np(thread, &result, NULL));
    SAY(result);
    tid = 0;
    thread = start(exit_at_once, (void *)8);
    await_state(0);
    SAY(pthread_timedjoin_np(thread, &result, &bad));
    SAY(result);
    /* Nobody knows when a detached thread has taken what it waited for. */
    static sem_t its_own;
    thread = start(wait_for, &its_own);
    SAY(pthread_detach(thread));
    SAY(pthread_detach(thread));
    SAY(pthread_join(thread, NULL));
    SAY(pthread_clockjoin_np(thread, NULL, CLOCK_REALTIME, &past));
    sem_post(&its_own);
    thread = start(wait_for, &sem);
    SAY(pthread_cancel(thread));
    SAY(pthread_join(thread, &result));
    SAY(result == PTHREAD_CANCELED);
}

/* Attributes of threads, and what libc knows about one. */
static char stack[1 << 17] __attribute__((aligned(4096)));

static void *own_stack(void *unused)
{
    (void)unused;
    pthread_attr_t attr;
    size_t size;
    void *lowest;
    char local, name[16];
    SAY(pthread_getattr_np(pthread_self(), &attr));
    SAY(pthread_attr_getstack(&attr, &lowest, &size));
    SAY(lowest == stack);
    SAY(size);
    SAY(&local > stack && &local < stack + sizeof stack);
    SAY(pthread_setname_np(pthread_self(), "a name"));
    SAY(pthread_setname_np(pthread_self(), "a name that is too long"));
    SAY(pthread_getname_np(pthread_self(), name, sizeof name));
    puts(name);
    pthread_attr_destroy(&attr);
    return NULL;
}

static void attributes(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    SAY(pthread_attr_setstack(&attr, stack, sizeof stack));
    /* Said when the thread has said all that it has to say. */
    int created = pthread_create(&thread, &attr, own_stack, NULL);
    SAY(pthread_join(thread, NULL));
    SAY(created);
    pthread_attr_destroy(&attr);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1ul << 46);
    SAY(pthread_create(&thread, &attr, own_stack, NULL));
    /* Twice what aarch64 wants at least. */
    pthread_attr_setstacksize(&attr, 1 << 18);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    tid = 0;
    SAY(pthread_create(&thread, &attr, exit_at_once, NULL));
    await_state(0);
    pthread_attr_destroy(&attr);
}

/* Where a thread is cancelled. One by one: with the cancellation already there
 * when the function is called, and while it waits. Of each it is said whether the
 * thread came back, and which locks it then holds. */
static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t taken = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t empty, full;
static pthread_t sleeper;
static mtx_t c11_mutex;
static cnd_t c11_condition;
static struct timespec far;

enum point {
    COND_WAIT, COND_TIMEDWAIT, COND_CLOCKWAIT, CND_WAIT, CND_TIMEDWAIT,
    SEM_WAIT, SEM_TIMEDWAIT, SEM_CLOCKWAIT, JOIN, TIMEDJOIN, CLOCKJOIN, THRD_JOIN, PAUSE,
    LAST_THAT_WAITS = PAUSE,
    FULL_SEM_WAIT, FULL_SEM_TIMEDWAIT, SEM_TRYWAIT, TRYJOIN, SIGNAL,
    MUTEX_LOCK, MUTEX_TIMEDLOCK, READ, WRITE, MTX_LOCK, COND_WAIT_PAST,
    LAST
};

static long call(enum point point)
{
    switch (point) {
    case COND_WAIT: return pthread_cond_wait(&condition, &mutex);
    case COND_TIMEDWAIT: return pthread_cond_timedwait(&condition, &mutex, &far);
    case COND_CLOCKWAIT:
        return pthread_cond_clockwait(&condition, &mutex, CLOCK_REALTIME, &far);
    case CND_WAIT: return cnd_wait(&c11_condition, &c11_mutex);
    case CND_TIMEDWAIT: return cnd_timedwait(&c11_condition, &c11_mutex, &far);
    case SEM_WAIT: return sem_wait(&empty);
    case SEM_TIMEDWAIT: return sem_timedwait(&empty, &far);
    case SEM_CLOCKWAIT: return sem_clockwait(&empty, CLOCK_REALTIME, &far);
    case JOIN: return pthread_join(sleeper, NULL);
    case TIMEDJOIN: return pthread_timedjoin_np(sleeper, NULL, &far);
    case CLOCKJOIN: return pthread_clockjoin_np(sleeper, NULL, CLOCK_REALTIME, &far);
    case THRD_JOIN: return thrd_join(sleeper, NULL);
    case PAUSE: return pause();
    case FULL_SEM_WAIT: return sem_wait(&full);
    case FULL_SEM_TIMEDWAIT: return sem_timedwait(&full, &far);
    case SEM_TRYWAIT: return sem_trywait(&empty);
    case TRYJOIN: return pthread_tryjoin_np(sleeper, NULL);
    case SIGNAL: return pthread_cond_signal(&condition) + cnd_broadcast(&c11_condition);
    case MUTEX_LOCK: return pthread_mutex_lock(&mutex);
    case MUTEX_TIMEDLOCK: return pthread_mutex_timedlock(&taken, &past);
    case READ: return pthread_rwlock_rdlock(&rwlock) + pthread_rwlock_unlock(&rwlock);
    case WRITE: return pthread_rwlock_wrlock(&rwlock) + pthread_rwlock_unlock(&rwlock);
    case MTX_LOCK: return mtx_trylock(&c11_mutex);
    case COND_WAIT_PAST: return pthread_cond_timedwait(&condition, &mutex, &past);
    case LAST: break;
    }
    abort();
}

static void say_what_is_held(void *came_back)
{
    printf("  %s\n", *(int *)came_back ? "came back" : "was cancelled");
    SAY(pthread_mutex_unlock(&mutex));
    SAY(mtx_unlock(&c11_mutex));
}

struct plan {
    enum point point;
    int pending, type;
};

static sem_t go;

static void *be_cancelled(void *argument)
{
    struct plan *plan = argument;
    int old, came_back = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    pthread_setcanceltype(plan->type, &old);
    mtx_lock(&c11_mutex);
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(say_what_is_held, &came_back);
    if (plan->pending)
        while (sem_wait(&go))
            ;
    else
        tid = gettid();
    if (plan->type == PTHREAD_CANCEL_DEFERRED)
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    long answer = call(plan->point);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    printf("  answer %ld\n", answer);
    came_back = 1;
    pthread_cleanup_pop(1);
    return NULL;
}

static void cancel_at(struct plan plan)
{
    void *result;
    printf("point %d, %s\n", plan.point, plan.pending ? "pending" : "waiting");
    pthread_t thread = start(be_cancelled, &plan);
    if (!plan.pending)
        await_state('S');
    pthread_cancel(thread);
    if (plan.pending)
        sem_post(&go);
    pthread_join(thread, &result);
    SAY(result == PTHREAD_CANCELED);
}

static void points_of_cancellation(void)
{
    int value;
    sem_init(&empty, 0, 0);
    sem_init(&full, 0, 1);
    sem_init(&go, 0, 0);
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_condition);
    clock_gettime(CLOCK_REALTIME, &far);
    far.tv_sec += 1000;
    pthread_mutex_lock(&taken);
    sem_t end;
    sem_init(&end, 0, 0);
    sleeper = start(wait_for, &end);
    for (enum point point = 0; point < LAST; point++)
        cancel_at((struct plan){point, 1, PTHREAD_CANCEL_DEFERRED});
    for (enum point point = 0; point <= LAST_THAT_WAITS; point++)
        cancel_at((struct plan){point, 0, PTHREAD_CANCEL_DEFERRED});
    SAY(sem_getvalue(&full, &value));
    SAY(value);
    SAY(pthread_mutex_unlock(&taken));
    sem_post(&end);
    SAY(pthread_join(sleeper, NULL));
}

/* Cancelled anywhere, in the middle of a wait that is no point of cancellation. */
static void *wait_without_end(void *unused)
{
    int old;
    (void)unused;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    tid = gettid();
    pthread_rwlock_wrlock(&rwlock);
    abort();
}

static void *spin_without_end(void *unused)
{
    int old;
    (void)unused;
    pthread_mutex_lock(&mutex);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    for (;;)
        tid = gettid();
    return NULL;
}

static void cancellation_anywhere(void)
{
    void *result;
    pthread_rwlock_rdlock(&rwlock);
    pthread_t thread = start(wait_without_end, NULL);
    await_state('S');
    pthread_cancel(thread);
    SAY(pthread_join(thread, &result));
    SAY(result == PTHREAD_CANCELED);
    SAY(pthread_rwlock_unlock(&rwlock));
    thread = start(spin_without_end, NULL);
    await_state('R');
    pthread_cancel(thread);
    SAY(pthread_join(thread, &result));
    SAY(result == PTHREAD_CANCELED);
    SAY(pthread_mutex_trylock(&mutex));
    pthread_mutex_init(&mutex, NULL);
}

/* Routines that run once, also when the first who runs one is cancelled. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag flag = ONCE_FLAG_INIT;
static int runs;

static void run_once(void)
{
    SAY(pthread_mutex_lock(&mutex));
    runs++;
    if (runs == 1) {
        pthread_mutex_unlock(&mutex);
        tid = gettid();
        for (;;)
            sem_wait(&empty);
    }
    SAY(pthread_mutex_unlock(&mutex));
}

static void *go_once(void *unused)
{
    (void)unused;
    pthread_once(&once, run_once);
    return NULL;
}

static void once_only(void)
{
    pthread_t thread = start(go_once, NULL);
    await_state('S');
    pthread_cancel(thread);
    SAY(pthread_join(thread, NULL));
    SAY(pthread_once(&once, run_once));
    SAY(pthread_once(&once, run_once));
    call_once(&flag, run_once);
    call_once(&flag, run_once);
    SAY(runs);
}

/* Destructors of keys, which take locks, and set the key again. */
static pthread_key_t key;
static tss_t c11_key;

static void destroy_value(void *value)
{
    SAY(pthread_mutex_lock(&mutex));
    SAY((long)value);
    SAY(pthread_mutex_unlock(&mutex));
    if (value != (void *)1)
        pthread_setspecific(key, (char *)value - 1);
}

static void *with_values(void *unused)
{
    (void)unused;
    SAY(pthread_setspecific(key, (void *)6));
    SAY(tss_set(c11_key, (void *)2));
    return NULL;
}

static void keys(void)
{
    SAY(pthread_key_create(&key, destroy_value));
    SAY(tss_create(&c11_key, destroy_value));
    elsewhere(with_values, NULL);
    SAY(pthread_key_delete(key));
    elsewhere(with_values, NULL);
}

/* A handler that jumps out of a wait. */
static sigjmp_buf out;

static void jump(int signal)
{
    siglongjmp(out, signal);
}

static void jumps(void)
{
    pthread_mutex_t own = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    struct itimerval timer = {.it_value = {0, 20000}};
    signal(SIGALRM, jump);
    SAY(pthread_mutex_lock(&own));
    if (sigsetjmp(out, 1) == 0) {
        setitimer(ITIMER_REAL, &timer, NULL);
        for (;;)
            sem_wait(&empty);
    }
    SAY(pthread_mutex_trylock(&own));
    SAY(pthread_mutex_unlock(&own));
    if (sigsetjmp(out, 1) == 0) {
        setitimer(ITIMER_REAL, &timer, NULL);
        for (;;)
            pthread_mutex_lock(&taken), pthread_mutex_trylock(&taken);
    }
    SAY(pthread_mutex_trylock(&taken));
    SAY(pthread_mutex_unlock(&taken));
    signal(SIGALRM, SIG_DFL);
}

static void *last_words(void *thread)
{
    SAY(pthread_join(*(pthread_t *)thread, NULL));
    SAY(pthread_mutex_lock(&taken));
    exit(7);
}

int main(void)
{
    static pthread_t first;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    joins();
    attributes();
    points_of_cancellation();
    cancellation_anywhere();
    once_only();
    keys();
    jumps();
    /* The first thread ends before the program does. */
    first = pthread_self();
    start(last_words, &first);
    pthread_exit(NULL);
}
