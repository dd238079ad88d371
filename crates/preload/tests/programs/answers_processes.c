/* Processes: fork and its relatives, with locks held, by threads, with handlers
 * that lock; locks that processes share; and what they execute. */

#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "answers.h"

extern char **environ;
static const char *self;

/* Held across forks. One that checks its owner would be nobody's in the child,
 * whose thread has another number. */
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t inner = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

/* Waits for the child, which has printed its part by then. */
static void say_end_of(pid_t child)
{
    int status = -1;
    SAY(waitpid(child, &status, 0) == child);
    SAY(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static void *lock_and_unlock(void *unused)
{
    (void)unused;
    SAY(pthread_mutex_lock(&outer));
    SAY(pthread_rwlock_rdlock(&rwlock));
    SAY(pthread_rwlock_unlock(&rwlock));
    SAY(pthread_mutex_unlock(&outer));
    return NULL;
}

/* What a process that was forked while `outer` and `rwlock` were held can do. */
static int in_child(int generation)
{
    SAY(pthread_mutex_trylock(&outer));
    SAY(pthread_mutex_timedlock(&checked, &past));
    SAY(pthread_mutex_unlock(&checked));
    SAY(pthread_mutex_init(&checked, NULL));
    SAY(pthread_rwlock_unlock(&rwlock));
    SAY(pthread_mutex_unlock(&outer));
    elsewhere(lock_and_unlock, NULL);
    if (generation < 2) {
        SAY(pthread_mutex_lock(&outer));
        SAY(pthread_mutex_lock(&checked));
        SAY(pthread_rwlock_rdlock(&rwlock));
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            _exit(in_child(generation + 1));
        say_end_of(child);
    }
    fflush(stdout);
    return 40 + generation;
}

static void *fork_holding(void *unused)
{
    (void)unused;
    SAY(pthread_mutex_lock(&outer));
    SAY(pthread_mutex_lock(&checked));
    SAY(pthread_rwlock_rdlock(&rwlock));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child(0));
    say_end_of(child);
    SAY(pthread_rwlock_unlock(&rwlock));
    SAY(pthread_mutex_unlock(&checked));
    SAY(pthread_mutex_unlock(&outer));
    return NULL;
}

/* Children that libc does not hear of. */
static void quiet_children(void)
{
    SAY(pthread_mutex_lock(&outer));
    SAY(pthread_rwlock_rdlock(&rwlock));
    fflush(stdout);
    pid_t child = _Fork();
    if (child == 0) {
        SAY(pthread_rwlock_unlock(&rwlock));
        SAY(pthread_mutex_trylock(&outer));
        SAY(pthread_mutex_lock(&inner));
        fflush(stdout);
        _exit(1);
    }
    say_end_of(child);
    fflush(stdout);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        SAY(pthread_mutex_lock(&inner));
        SAY(pthread_mutex_unlock(&inner));
        SAY(pthread_rwlock_tryrdlock(&rwlock));
        fflush(stdout);
        _exit(2);
    }
    say_end_of(child);
    fflush(stdout);
    child = vfork();
    if (child == 0)
        _exit(3);
    say_end_of(child);
    fflush(stdout);
    child = vfork();
    if (child == 0) {
        execl(self, self, "executed", "4", NULL);
        _exit(127);
    }
    say_end_of(child);
    char *arguments[] = {(char *)self, (char *)"executed", (char *)"5", NULL};
    SAY(posix_spawn(&child, self, NULL, NULL, arguments, environ));
    say_end_of(child);
    SAY(posix_spawn(&child, "/none", NULL, NULL, arguments, environ));
    char line[512];
    snprintf(line, sizeof line, "'%s' executed 6", self);
    SAY(WEXITSTATUS(system(line)));
    FILE *pipe = popen(line, "r");
    while (fgets(line, sizeof line, pipe))
        printf("  piped: %s", line);
    SAY(WEXITSTATUS(pclose(pipe)));
    SAY(pthread_rwlock_unlock(&rwlock));
    SAY(pthread_mutex_unlock(&outer));
}

/* Handlers that lock before a fork, as libraries do that want to be whole in
 * the child, one that forgets to unlock in the child, and initialises anew. */
static pthread_mutex_t of_library = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t renewed = PTHREAD_MUTEX_INITIALIZER;

static void before(void)
{
    SAY(pthread_mutex_lock(&of_library));
    SAY(pthread_mutex_lock(&renewed));
    fflush(stdout);
}

static void in_the_parent(void)
{
    SAY(pthread_mutex_unlock(&renewed));
    SAY(pthread_mutex_unlock(&of_library));
}

static void in_the_child(void)
{
    SAY(pthread_mutex_init(&renewed, NULL));
    SAY(pthread_mutex_lock(&renewed));
    SAY(pthread_mutex_unlock(&renewed));
    SAY(pthread_mutex_unlock(&of_library));
    SAY(pthread_mutex_lock(&of_library));
    SAY(pthread_mutex_unlock(&of_library));
    fflush(stdout);
}

/* What processes share. */
struct shared {
    pthread_mutex_t mutex, robust, inheriting;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    pthread_spinlock_t spin;
    sem_t sem;
    int turn;
};

static void take_turns(struct shared *shared, int mine)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&shared->mutex);
        while (shared->turn % 2 != mine)
            pthread_cond_wait(&shared->cond, &shared->mutex);
        shared->turn++;
        pthread_cond_broadcast(&shared->cond);
        pthread_mutex_unlock(&shared->mutex);
    }
}

static void share(void)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;
    pthread_rwlockattr_t lock;
    pthread_barrierattr_t barrier;
    int value = -1;
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    SAY(pthread_mutex_init(&shared->mutex, &mutex));
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    SAY(pthread_mutex_init(&shared->robust, &mutex));
    pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
    SAY(pthread_mutex_init(&shared->inheriting, &mutex));
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    SAY(pthread_cond_init(&shared->cond, &cond));
    pthread_rwlockattr_init(&lock);
    pthread_rwlockattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    SAY(pthread_rwlock_init(&shared->rwlock, &lock));
    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    SAY(pthread_barrier_init(&shared->barrier, &barrier, 2));
    SAY(pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED));
    SAY(sem_init(&shared->sem, 1, 0));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int first = pthread_barrier_wait(&shared->barrier);
        take_turns(shared, 1);
        if (first != 0 && first != PTHREAD_BARRIER_SERIAL_THREAD)
            _exit(50);
        if (pthread_mutex_lock(&shared->robust) || pthread_mutex_lock(&shared->inheriting)
            || pthread_rwlock_rdlock(&shared->rwlock) || pthread_spin_lock(&shared->spin)
            || sem_wait(&shared->sem))
            _exit(51);
        kill(getpid(), SIGKILL);
    }
    int first = pthread_barrier_wait(&shared->barrier);
    SAY(first == 0 || first == PTHREAD_BARRIER_SERIAL_THREAD);
    take_turns(shared, 0);
    sem_post(&shared->sem);
    say_end_of(child);
    SAY(shared->turn);
    SAY(sem_getvalue(&shared->sem, &value));
    SAY(value);
    SAY(pthread_spin_trylock(&shared->spin));
    SAY(pthread_rwlock_timedwrlock(&shared->rwlock, &past));
    SAY(pthread_rwlock_rdlock(&shared->rwlock));
    SAY(pthread_rwlock_unlock(&shared->rwlock));
    SAY(pthread_mutex_lock(&shared->robust));
    SAY(pthread_mutex_consistent(&shared->robust));
    SAY(pthread_mutex_unlock(&shared->robust));
    SAY(pthread_mutex_trylock(&shared->robust));
    SAY(pthread_mutex_unlock(&shared->robust));
    SAY(pthread_mutex_trylock(&shared->inheriting));
    SAY(pthread_mutex_unlock(&shared->inheriting));
    SAY(pthread_mutex_lock(&shared->inheriting));
    munmap(shared, sizeof *shared);
}

int main(int argc, char **argv)
{
    self = argv[0];
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (argc == 3) {
        printf("executed %s\n", argv[2]);
        elsewhere(fork_holding, NULL);
        return atoi(argv[2]) + 60;
    }
    elsewhere(fork_holding, NULL);
    quiet_children();
    SAY(pthread_atfork(before, in_the_parent, in_the_child));
    elsewhere(fork_holding, NULL);
    SAY(system("exit 9"));
    share();
    return 0;
}
