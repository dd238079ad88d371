/* The mutexes with priority inheritance. */
#include "expect.h"
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static lks_rt_mutex mutex = LKS_RT_MUTEX_INIT;
static lks_rt_recursive_mutex recursive = LKS_RT_RECURSIVE_MUTEX_INIT;
static lks_semaphore go_on = LKS_SEMAPHORE_INIT(0), reached = LKS_SEMAPHORE_INIT(0);
static long counter, twice;
static int done, result;

static void *count(void *unused)
{
    for (int round = 0; round < 20000; round++) {
        EXPECT(lks_rt_mutex_lock(&mutex) == 0);
        counter++;
        lks_rt_mutex_unlock(&mutex);
        EXPECT(lks_rt_recursive_mutex_lock(&recursive) == 0);
        EXPECT(lks_rt_recursive_mutex_trylock(&recursive));
        twice += lks_rt_recursive_mutex_depth(&recursive) == 2;
        lks_rt_recursive_mutex_unlock(&recursive);
        lks_rt_recursive_mutex_unlock(&recursive);
    }
    return unused;
}

static void *others(void *unused)
{
    struct timespec past = {0, 1}, none = {0, -1};
    lks_cancel token = LKS_CANCEL_INIT;
    lks_cancel_fire(&token);
    EXPECT(!lks_rt_mutex_trylock(&mutex) && lks_rt_mutex_is_locked(&mutex));
    EXPECT(!lks_rt_mutex_is_mine(&mutex));
    EXPECT(lks_rt_mutex_lock_timeout(&mutex, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_rt_mutex_lock_until(&mutex, &past) == -ETIMEDOUT);
    EXPECT(lks_rt_mutex_lock_until(&mutex, &none) == -EINVAL);
    EXPECT(lks_rt_mutex_lock_killable(&mutex, &token) == -EINTR);
    EXPECT(!lks_rt_recursive_mutex_trylock(&recursive));
    EXPECT(lks_rt_recursive_mutex_depth(&recursive) == 0);
    EXPECT(lks_rt_recursive_mutex_is_locked(&recursive));
    EXPECT(lks_rt_recursive_mutex_lock_timeout(&recursive, MILLISECONDS(2)) == -ETIMEDOUT);
    EXPECT(lks_rt_recursive_mutex_lock_until(&recursive, &past) == -ETIMEDOUT);
    EXPECT(lks_rt_recursive_mutex_lock_killable(&recursive, &token) == -EINTR);
    return unused;
}

static void *interrupted(void *recursively)
{
    result = recursively ? lks_rt_recursive_mutex_lock_interruptible(&recursive)
                         : lks_rt_mutex_lock_interruptible(&mutex);
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void forms(void)
{
    EXPECT(lks_rt_mutex_lock(&mutex) == 0 && lks_rt_recursive_mutex_lock(&recursive) == 0);
    EXPECT(lks_rt_mutex_is_mine(&mutex));
    EXPECT(lks_rt_mutex_lock(&mutex) == -EDEADLK);
    EXPECT(lks_rt_mutex_lock_timeout(&mutex, MILLISECONDS(60000)) == -EDEADLK);
    EXPECT(!lks_rt_mutex_trylock(&mutex));
    join(start(others, NULL));
    for (int kind = 0; kind < 2; kind++) {
        done = 0;
        pthread_t thread = start(interrupted, kind ? &kind : NULL);
        SIGNAL_UNTIL(thread, done);
        join(thread);
        EXPECT(result == -EINTR);
    }
    EXPECT(lks_rt_recursive_mutex_lock_interruptible(&recursive) == 0);
    lks_rt_recursive_mutex_unlock(&recursive);
    lks_rt_recursive_mutex_unlock(&recursive);
    lks_rt_mutex_unlock(&mutex);
    EXPECT(!lks_rt_mutex_is_locked(&mutex) && lks_rt_mutex_lock_interruptible(&mutex) == 0);
    lks_rt_mutex_unlock(&mutex);
}

/* Ends while it holds both. */
static void *abandon(void *unused)
{
    EXPECT(lks_rt_mutex_lock(&mutex) == 0 && lks_rt_recursive_mutex_lock(&recursive) == 0);
    EXPECT(lks_semaphore_up(&reached) == 0);
    lks_semaphore_down(&go_on);
    return unused;
}

static void dead_owner(void)
{
    pthread_t thread = start(abandon, NULL);
    lks_semaphore_down(&reached);
    EXPECT(lks_semaphore_up(&go_on) == 0);
    /* It waits, unless the thread has ended before. */
    EXPECT(lks_rt_mutex_lock(&mutex) == -EOWNERDEAD);
    join(thread);
    EXPECT(lks_rt_mutex_lock_timeout(&mutex, 1000) == -EOWNERDEAD);
    EXPECT(!lks_rt_mutex_trylock(&mutex));
    EXPECT(lks_rt_recursive_mutex_lock(&recursive) == -EOWNERDEAD);
    lks_rt_mutex_init(&mutex);
    lks_rt_recursive_mutex_init(&recursive);
    EXPECT(lks_rt_mutex_lock(&mutex) == 0 && lks_rt_recursive_mutex_lock(&recursive) == 0);
    lks_rt_mutex_unlock(&mutex);
    lks_rt_recursive_mutex_unlock(&recursive);
}

static lks_rt_mutex first = LKS_RT_MUTEX_INIT, second = LKS_RT_MUTEX_INIT;

static void *close_cycle(void *refused)
{
    EXPECT(lks_rt_mutex_lock(&second) == 0);
    EXPECT(lks_semaphore_up(&reached) == 0);
    int error = lks_rt_mutex_lock(&first);
    if (error == 0)
        lks_rt_mutex_unlock(&first);
    else
        *(int *)refused = error;
    lks_rt_mutex_unlock(&second);
    return NULL;
}

static void cycle(void)
{
    int there = 0, here;
    if (!lks_rt_inherits()) {
        fprintf(stderr, "skipped: the kernel does not find cycles here\n");
        return;
    }
    EXPECT(lks_rt_mutex_lock(&first) == 0);
    pthread_t thread = start(close_cycle, &there);
    lks_semaphore_down(&reached);
    here = lks_rt_mutex_lock(&second);
    if (here == 0)
        lks_rt_mutex_unlock(&second);
    lks_rt_mutex_unlock(&first);
    join(thread);
    /* Who closes it is refused, and only that one. */
    EXPECT((here == -EDEADLK && there == 0) || (here == 0 && there == -EDEADLK));
}

/* A signal that ends the process does so in a wait that looks at signals in between. */
static void killed(void)
{
    int ready[2];
    EXPECT(pipe(ready) == 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        lks_semaphore_init(&go_on, 0);
        lks_semaphore_init(&reached, 0);
        start(abandon, NULL);
        lks_semaphore_down(&reached);
        EXPECT(write(ready[1], "", 1) == 1);
        EXPECT(lks_rt_mutex_lock_interruptible(&mutex) == 0);
        _exit(0);
    }
    char byte, stat[64];
    int status;
    EXPECT(read(ready[0], &byte, 1) == 1);
    snprintf(stat, sizeof stat, "/proc/%d/stat", (int)child);
    until_asleep(stat);
    EXPECT(kill(child, SIGTERM) == 0);
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static int holder_number;

static void *hold(void *unused)
{
    EXPECT(lks_rt_mutex_lock(&mutex) == 0);
    holder_number = (int)syscall(SYS_gettid);
    EXPECT(lks_semaphore_up(&reached) == 0);
    lks_semaphore_down(&go_on);
    lks_rt_mutex_unlock(&mutex);
    return unused;
}

static void *want(void *unused)
{
    EXPECT(lks_rt_mutex_lock_timeout(&mutex, MILLISECONDS(60000)) == 0);
    lks_rt_mutex_unlock(&mutex);
    return unused;
}

/* The priority that the kernel runs a thread with: from 1 for SCHED_FIFO, otherwise less. */
static int effective(int thread)
{
    char path[64], text[512];
    long priority;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    EXPECT(sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
                                          "%*d %*d %ld", &priority) == 1);
    return (int)(-1 - priority);
}

static void boost(void)
{
    pthread_attr_t attributes;
    struct sched_param priority;
    pthread_t waiter;
    memset(&priority, 0, sizeof priority);
    priority.sched_priority = 30;
    EXPECT(pthread_attr_init(&attributes) == 0);
    EXPECT(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0);
    EXPECT(pthread_attr_setschedpolicy(&attributes, SCHED_FIFO) == 0);
    EXPECT(pthread_attr_setschedparam(&attributes, &priority) == 0);
    pthread_t holder = start(hold, NULL);
    lks_semaphore_down(&reached);
    EXPECT(effective(holder_number) < 1);
    int refused = pthread_create(&waiter, &attributes, want, NULL);
    if (refused || !lks_rt_inherits()) {
        fprintf(stderr, "skipped: no boost, %s\n",
                refused ? "SCHED_FIFO is not allowed here" : "the kernel lends no priorities");
    } else {
        for (int round = 0; effective(holder_number) != 30; round++) {
            EXPECT(round < 30000);
            nap(1);
        }
    }
    EXPECT(lks_semaphore_up(&go_on) == 0);
    join(holder);
    if (!refused)
        join(waiter);
    EXPECT(pthread_attr_destroy(&attributes) == 0);
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = start(count, NULL);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    EXPECT(counter == 80000 && twice == 80000);
    forms();
    boost();
    cycle();
    killed();
    dead_owner();
    lks_rt_mutex_destroy(&mutex);
    lks_rt_recursive_mutex_destroy(&recursive);
    return 0;
}
