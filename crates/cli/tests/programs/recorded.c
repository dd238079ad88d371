/* What a recording has: each part of the program makes events of which a test knows the number. */
#include "common.h"
#include <setjmp.h>
#include <sys/resource.h>

pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static sem_t units;
static pthread_barrier_t meeting;
static atomic_int id, is_ready, met;
static long rounds;
static sigjmp_buf outside;

static void enter(void)
{
    announce(&id);
    pthread_mutex_lock(&wanted); /* @waits */
    pthread_mutex_unlock(&wanted);
}

static void *waiter(void *unused)
{
    enter();
    return unused;
}

/* Starts a thread that announces itself and then waits; returns when it sleeps. */
static pthread_t start_asleep(void *(*body)(void *), const char *name)
{
    atomic_store(&id, getpid());
    pthread_t thread = start(body, NULL, name);
    while (atomic_load(&id) == getpid())
        nap(1);
    await_state(&id, 'S');
    return thread;
}

static void hold(pthread_t *threads, int count)
{
    pthread_mutex_lock(&wanted); /* @holds */
    for (int i = 0; i < count; i++) {
        threads[i] = start_asleep(waiter, "waiter");
    }
    pthread_mutex_unlock(&wanted);
}

static void *sleeper(void *unused)
{
    pthread_mutex_lock(&other);
    announce(&id);
    while (!atomic_load(&is_ready))
        pthread_cond_wait(&ready, &other); /* @sleeps */
    pthread_mutex_unlock(&other);
    atomic_store(&met, 1);
    sem_wait(&units);
    atomic_store(&met, 2);
    pthread_barrier_wait(&meeting);
    return unused;
}

/* Three threads wait for a mutex, one after the other for a condition, a semaphore, a barrier. */
static void waits(void)
{
    pthread_t threads[3];
    hold(threads, 3);
    for (int i = 0; i < 3; i++)
        must(pthread_join(threads[i], NULL));
    must(sem_init(&units, 0, 0));
    must(pthread_barrier_init(&meeting, NULL, 2));
    pthread_t thread = start_asleep(sleeper, "sleeper");
    pthread_mutex_lock(&other);
    atomic_store(&is_ready, 1);
    pthread_cond_signal(&ready); /* @signals */
    pthread_mutex_unlock(&other);
    await(&met, 1);
    await_state(&id, 'S');
    sem_post(&units);
    await(&met, 2);
    await_state(&id, 'S');
    pthread_barrier_wait(&meeting);
    must(pthread_join(thread, NULL));
}

static void *worker(void *unused)
{
    meet(&met, 4);
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&hot);
        if (i % 16 == 0)
            sched_yield();
        pthread_mutex_unlock(&hot);
    }
    return unused;
}

/* Four threads want one mutex all the time, and give the processor away with it now and then. */
static void storm(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        must(pthread_create(&threads[i], NULL, worker, NULL));
    for (int i = 0; i < 4; i++)
        must(pthread_join(threads[i], NULL));
}

/* Ends while a thread waits. */
static void killed(void)
{
    pthread_mutex_lock(&wanted); /* @holds_to_the_end */
    start_asleep(waiter, "waiter");
    raise(SIGKILL);
}

static pthread_mutex_t mortal;

static void *owner(void *unused)
{
    must(pthread_mutex_lock(&mortal)); /* @dies */
    atomic_store(&met, 1);
    await(&met, 2);
    return unused;
}

static void *heir(void *unused)
{
    announce(&id);
    if (pthread_mutex_lock(&mortal) == EOWNERDEAD)
        pthread_mutex_unlock(&mortal);
    return unused;
}

/* A thread ends that holds a robust mutex, for which two others wait: the first one has it then, and
 * does not make it whole, so that the second one is refused. */
static void robust(void)
{
    pthread_mutexattr_t attributes;
    pthread_t threads[3];
    must(pthread_mutexattr_init(&attributes));
    must(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
    must(pthread_mutex_init(&mortal, &attributes));
    threads[0] = start(owner, NULL, "owner");
    await(&met, 1);
    for (int i = 1; i < 3; i++) {
        threads[i] = start_asleep(heir, "heir");
    }
    atomic_store(&met, 2);
    for (int i = 0; i < 3; i++)
        must(pthread_join(threads[i], NULL));
}

static void leave(int unused)
{
    (void)unused;
    pthread_exit(NULL);
}

static void jump(int unused)
{
    (void)unused;
    siglongjmp(outside, 1);
}

static void *left(void *unused)
{
    if (sigsetjmp(outside, 1) == 0) {
        announce(&id);
        pthread_mutex_lock(&hot);
        abort();
    }
    return unused;
}

/* Threads leave their waits for `hot` by handlers, the first by ending, the second by a jump. Later
 * nobody waits for it. */
static void leaves(void)
{
    pthread_mutex_lock(&hot);
    for (int i = 0; i < 2; i++) {
        must(signal(SIGUSR1, i == 0 ? leave : jump) == SIG_ERR);
        pthread_t thread = start_asleep(left, "left");
        must(pthread_kill(thread, SIGUSR1));
        must(pthread_join(thread, NULL));
    }
    pthread_mutex_unlock(&hot);
}

static void *killer(void *unused)
{
    atomic_int first = getpid();
    await(&met, 1);
    await_state(&first, 'S');
    raise(SIGKILL);
    return unused;
}

/* Ends while the first thread waits for the end of another one. */
static void joins(void)
{
    pthread_mutex_lock(&wanted);
    pthread_t thread = start_asleep(waiter, "waiter");
    start(killer, NULL, "killer");
    atomic_store(&met, 1);
    pthread_join(thread, NULL);
}

/* Forty threads wait, one after the other, in an address space that has room for few rings. */
static void limited(char **arguments)
{
    struct rlimit limit = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    must(setrlimit(RLIMIT_AS, &limit));
    arguments[1] = "crowd";
    execv("/proc/self/exe", arguments);
    must(errno);
}

static void crowd(void)
{
    for (int i = 0; i < 40; i++) {
        pthread_t threads[1];
        hold(threads, 1);
        must(pthread_join(threads[0], NULL));
    }
}

/* Stops the command, which takes no events until it is told to go on. */
static void stop_command(void)
{
    char path[64];
    int stopped = 0;
    must(kill(getppid(), SIGSTOP));
    while (!stopped) {
        snprintf(path, sizeof path, "/proc/%d/task", getppid());
        DIR *tasks = opendir(path);
        must(tasks == NULL);
        stopped = 1;
        for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
            char text[512], *end;
            snprintf(path, sizeof path, "/proc/%d/task/%ld/stat", getppid(), atol(entry->d_name));
            if (atol(entry->d_name) == 0)
                continue;
            read_proc(path, text, sizeof text);
            end = strrchr(text, ')');
            stopped &= end == NULL || end[2] == 'T';
        }
        closedir(tasks);
    }
}

/* Waits more often than a ring has room, while nobody takes the events. */
static void full(void)
{
    struct timespec over = {-1, 0};
    stop_command();
    pthread_mutex_lock(&wanted);
    for (long i = 0; i < rounds; i++)
        must(pthread_mutex_timedlock(&wanted, &over) != ETIMEDOUT);
    pthread_mutex_unlock(&wanted);
    must(kill(getppid(), SIGCONT));
}

static union {
    pthread_mutex_t mutex;
    pthread_rwlock_t lock;
} place;

static void *mutex_waiter(void *unused)
{
    announce(&id);
    pthread_mutex_lock(&place.mutex);
    pthread_mutex_unlock(&place.mutex);
    return unused;
}

static void *lock_waiter(void *unused)
{
    announce(&id);
    pthread_rwlock_rdlock(&place.lock);
    pthread_rwlock_unlock(&place.lock);
    return unused;
}

/* A mutex and a lock for readers and writers lie at one address, one after the other, before the
 * command meets an event of the first. */
static void lives(void)
{
    stop_command();
    for (int i = 0; i < 2; i++) {
        must(i == 0 ? pthread_mutex_init(&place.mutex, NULL) : pthread_rwlock_init(&place.lock, NULL));
        must(i == 0 ? pthread_mutex_lock(&place.mutex) : pthread_rwlock_wrlock(&place.lock));
        atomic_store(&id, getpid());
        pthread_t thread = start(i == 0 ? mutex_waiter : lock_waiter, NULL, "waiter");
        while (atomic_load(&id) == getpid())
            nap(1);
        await_state(&id, 'S');
        must(i == 0 ? pthread_mutex_unlock(&place.mutex) : pthread_rwlock_unlock(&place.lock));
        must(pthread_join(thread, NULL));
        must(i == 0 ? pthread_mutex_destroy(&place.mutex) : pthread_rwlock_destroy(&place.lock));
    }
    must(kill(getppid(), SIGCONT));
}

int main(int count, char **arguments)
{
    const struct {
        const char *name;
        void (*part)(void);
    } parts[] = {{"leaves", leaves}, {"crowd", crowd}, {"full", full}, {"lives", lives},
                 {"robust", robust}};
    rounds = count > 2 ? atol(arguments[2]) : 0;
    for (size_t i = 0; count > 1 && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(arguments[1], parts[i].name) == 0) {
            parts[i].part();
            return 0;
        }
    if (count > 1 && strcmp(arguments[1], "limited") == 0)
        limited(arguments);
    if (count > 1 && strcmp(arguments[1], "joins") == 0) {
        pid_t child = fork();
        if (child == 0)
            joins();
        must(waitpid(child, NULL, 0) != child);
        return 0;
    }
    if (count > 2 && strcmp(arguments[1], "storm") == 0) {
        rounds = atol(arguments[2]);
        storm();
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "killed") == 0) {
        pid_t child = fork();
        if (child == 0)
            killed();
        must(waitpid(child, NULL, 0) != child);
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "forks") == 0) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t threads[1];
            hold(threads, 1);
            must(pthread_join(threads[0], NULL));
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) != child);
        must(status);
    }
    waits();
    return 0;
}
