/* Rules that the programs of the command's tests do not come to: kinds of locks,
 * ways to end, ways to leave a handler. One case a run. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define must(answer)                                                        \
    do {                                                                    \
        if (answer) {                                                       \
            printf("%s: line %d\n", #answer, __LINE__);                     \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t made;
static pthread_rwlock_t book = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t tokens;
static pthread_barrier_t barrier;
static pthread_cond_t changed;

static void *in_thread(void *(*routine)(void *), void *argument)
{
    void *result;
    pthread_t thread;
    must(pthread_create(&thread, NULL, routine, argument));
    must(pthread_join(thread, &result));
    return result;
}

static void make(int type, int robust, int protocol)
{
    pthread_mutexattr_t attributes;
    must(pthread_mutexattr_init(&attributes));
    must(pthread_mutexattr_settype(&attributes, type));
    must(pthread_mutexattr_setrobust(&attributes, robust));
    must(pthread_mutexattr_setprotocol(&attributes, protocol));
    must(pthread_mutex_init(&made, &attributes));
}

/* Unlocks, with each kind's answer. */
static void *unlocks(void *answer)
{
    must(pthread_mutex_unlock(&made) != (int)(long)answer);
    return NULL;
}

static void by_another(int type, int robust, int protocol)
{
    make(type, robust, protocol);
    must(pthread_mutex_lock(&made));
    in_thread(unlocks, (void *)EPERM);
    must(pthread_mutex_unlock(&made));
}

static void recursive_by_another(void) { by_another(PTHREAD_MUTEX_RECURSIVE, 0, 0); }
static void checking_by_another(void) { by_another(PTHREAD_MUTEX_ERRORCHECK, 0, 0); }
static void robust_by_another(void) { by_another(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, 0); }
static void inheriting_by_another(void)
{
    by_another(PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT);
}

static void checking_unlocked(void)
{
    make(PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    unlocks((void *)EPERM);
}

static void recursive_deep(void)
{
    make(PTHREAD_MUTEX_RECURSIVE, 0, 0);
    for (int i = 0; i < 3; i++)
        must(pthread_mutex_lock(&made));
    for (int i = 0; i < 3; i++)
        must(pthread_mutex_unlock(&made));
    unlocks((void *)EPERM);
}

static void checking_twice(void)
{
    make(PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    must(pthread_mutex_lock(&made));
    must(pthread_mutex_lock(&made) != EDEADLK);
    must(pthread_mutex_unlock(&made));
}

static void *takes_robust(void *unused)
{
    must(pthread_mutex_lock(&made));
    return unused;
}

static void robust_recovered(void)
{
    make(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, 0);
    in_thread(takes_robust, NULL);
    must(pthread_mutex_lock(&made) != EOWNERDEAD);
    must(pthread_mutex_unlock(&made));
    must(pthread_mutex_lock(&made) != ENOTRECOVERABLE);
}

/* Beginnings and ends. */
static void semaphore_unmade(void)
{
    must(sem_trywait(&tokens) == 0);
}

static void barrier_unmade(void)
{
    barrier.__size[8] = 1;
    int answer = pthread_barrier_wait(&barrier);
    must(answer != PTHREAD_BARRIER_SERIAL_THREAD);
}

static void semaphore_used(void)
{
    for (int i = 0; i < 3; i++) {
        must(sem_init(&tokens, 0, 2));
        must(sem_wait(&tokens));
        must(sem_post(&tokens));
        must(sem_destroy(&tokens));
    }
    must(pthread_barrier_init(&barrier, NULL, 1));
    must(pthread_barrier_wait(&barrier) != PTHREAD_BARRIER_SERIAL_THREAD);
    must(pthread_barrier_destroy(&barrier));
}

static void semaphore_destroyed(void)
{
    must(sem_init(&tokens, 0, 2));
    must(sem_destroy(&tokens));
    must(sem_wait(&tokens));
}

static void semaphore_copied(void)
{
    must(sem_init(&tokens, 0, 2));
    sem_t *copy = malloc(sizeof *copy);
    memcpy(copy, &tokens, sizeof *copy);
    must(sem_wait(copy));
}

static void semaphore_inherited(void)
{
    int status;
    must(sem_init(&tokens, 0, 2));
    pid_t child = fork();
    if (child == 0) {
        must(sem_wait(&tokens));
        _exit(0);
    }
    must(waitpid(child, &status, 0) != child || status != 0);
}

static void spin_destroyed(void)
{
    must(pthread_spin_init(&spin, 0));
    must(pthread_spin_lock(&spin));
    must(pthread_spin_unlock(&spin));
    must(pthread_spin_destroy(&spin));
    must(pthread_spin_lock(&spin));
    must(pthread_spin_unlock(&spin));
}

static void condition_destroyed(void)
{
    struct timespec past = {0, 0};
    must(pthread_cond_init(&changed, NULL));
    must(pthread_cond_destroy(&changed));
    must(pthread_mutex_lock(&plain));
    must(pthread_cond_timedwait(&changed, &plain, &past) != ETIMEDOUT);
    must(pthread_mutex_unlock(&plain));
}

static void condition_anew(void)
{
    struct timespec past = {0, 0};
    must(pthread_cond_init(&changed, NULL));
    must(pthread_cond_destroy(&changed));
    changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    must(pthread_mutex_lock(&plain));
    must(pthread_cond_timedwait(&changed, &plain, &past) != ETIMEDOUT);
    must(pthread_mutex_unlock(&plain));
}

static void rwlock_garbage(void)
{
    pthread_rwlock_t *garbage = malloc(sizeof *garbage);
    memset(garbage, 0, sizeof *garbage);
    garbage->__data.__flags = 77;
    must(pthread_rwlock_rdlock(garbage));
    must(pthread_rwlock_unlock(garbage));
}

static void rwlock_wiped(void)
{
    must(pthread_rwlock_wrlock(&book));
    memset(&book, 0, sizeof book);
    must(pthread_rwlock_unlock(&book));
}

/* Ends of the process. */
static void quick(void)
{
    must(pthread_mutex_lock(&plain));
    fflush(stdout);
    quick_exit(7);
}

static void at_once(void)
{
    must(pthread_mutex_lock(&plain));
    _exit(7);
}

static void child_ends(pid_t child)
{
    int status;
    must(child < 0);
    must(waitpid(child, &status, 0) != child || status != 0);
}

/* A mutex that processes share, which a child unlocks that does not hold it. */
static pthread_mutex_t *unlocked_by_child(void)
{
    pthread_mutexattr_t attributes;
    must(pthread_mutexattr_init(&attributes));
    must(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    pthread_mutex_t *mutex = mmap(NULL, sizeof *mutex, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(mutex == MAP_FAILED);
    must(pthread_mutex_init(mutex, &attributes));
    must(pthread_mutex_lock(mutex));
    pid_t child = fork();
    if (child == 0) {
        must(pthread_mutex_unlock(mutex));
        _exit(0);
    }
    child_ends(child);
    return mutex;
}

static void child_unlocks(void)
{
    must(pthread_mutex_unlock(unlocked_by_child()));
}

static void child_unlocks_and_again(void)
{
    pthread_mutex_t *mutex = unlocked_by_child();
    must(pthread_mutex_lock(mutex));
    must(pthread_mutex_unlock(mutex));
}

static void child_unlocks_and_keeps(void)
{
    pthread_mutex_t *mutex = unlocked_by_child();
    int ready[2], done[2];
    char byte = 0;
    must(pipe(ready) || pipe(done));
    pid_t child = fork();
    if (child == 0) {
        must(pthread_mutex_lock(mutex));
        must(write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1);
        _exit(0);
    }
    must(read(ready[0], &byte, 1) != 1);
    must(pthread_mutex_unlock(mutex));
    must(write(done[1], &byte, 1) != 1);
    child_ends(child);
}

static void child_at_once(void)
{
    must(pthread_mutex_lock(&plain));
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    child_ends(child);
    child = fork();
    if (child == 0)
        _exit(0);
    child_ends(child);
    must(pthread_mutex_unlock(&plain));
}

static void child_begins_anew(void)
{
    must(pthread_mutex_lock(&plain));
    pid_t child = fork();
    if (child == 0) {
        plain = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        must(pthread_mutex_lock(&plain));
        must(pthread_mutex_unlock(&plain));
        _exit(0);
    }
    child_ends(child);
    must(pthread_mutex_unlock(&plain));
}

/* Handlers. */
static sigjmp_buf back;
static volatile int rung;

static void leaves(int signal)
{
    (void)signal;
    rung++;
    siglongjmp(back, 1);
}

static void locks_once(void)
{
    must(pthread_mutex_lock(&plain));
    must(pthread_mutex_unlock(&plain));
}

static __attribute__((noinline)) void deep(int levels)
{
    char room[500];
    memset(room, levels, sizeof room);
    if (levels > 0)
        deep(levels - 1);
    else
        locks_once();
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void left_by_jump(void)
{
    must(signal(SIGUSR1, leaves) == SIG_ERR);
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        deep(20);
    }
    must(rung != 3);
}

static void locks_in_handler(int signal)
{
    (void)signal;
    locks_once();
}

/* With its own signal let in, it may come again within itself. */
static void lets_itself_in(void)
{
    struct sigaction action = {.sa_handler = locks_in_handler, .sa_flags = SA_NODEFER};
    must(sigaction(SIGUSR1, &action, NULL));
    raise(SIGUSR1);
}

/* A fault has its place. */
static void locks_at_fault(int signal)
{
    (void)signal;
    locks_once();
    siglongjmp(back, 1);
}

static void at_a_fault(void)
{
    must(signal(SIGSEGV, locks_at_fault) == SIG_ERR);
    locks_once();
    if (sigsetjmp(back, 1) == 0)
        *(volatile int *)8 = 1;
    locks_once();
}

static pthread_mutex_t room = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waits;

static void *wait_in_room(void *unused)
{
    must(pthread_mutex_lock(&room));
    atomic_store(&waits, 1);
    must(pthread_cond_wait(&changed, &room));
    must(pthread_mutex_unlock(&room));
    return unused;
}

/* Who waited with the one mutex has been woken, and wants but that when the other one is
 * waited with. */
static void woken_and_another_mutex(void)
{
    struct timespec past = {0};
    pthread_t first;
    must(pthread_create(&first, NULL, wait_in_room, NULL));
    while (!atomic_load(&waits))
        sched_yield();
    /* When it can be had, the first one waits. */
    must(pthread_mutex_lock(&room));
    must(pthread_cond_broadcast(&changed));
    must(pthread_mutex_lock(&plain));
    must(pthread_cond_timedwait(&changed, &plain, &past) != ETIMEDOUT);
    must(pthread_mutex_unlock(&plain));
    must(pthread_mutex_unlock(&room));
    must(pthread_join(first, NULL));
}

/* Who has woken all that waited for a condition may destroy it, before they are out of
 * their calls. */
static pthread_cond_t many[128];

static void *wait_for_many(void *unused)
{
    for (int i = 0; i < 1280; i++) {
        must(pthread_mutex_lock(&room));
        atomic_store(&waits, 1);
        while (atomic_load(&waits) != 2)
            must(pthread_cond_wait(&many[i % 128], &room));
        must(pthread_mutex_unlock(&room));
        atomic_store(&waits, 3);
        while (atomic_load(&waits) == 3)
            sched_yield();
    }
    return unused;
}

static void destroyed_when_woken(void)
{
    pthread_t waiter;
    must(pthread_create(&waiter, NULL, wait_for_many, NULL));
    for (int i = 0; i < 1280; i++) {
        while (atomic_load(&waits) != 1)
            sched_yield();
        must(pthread_mutex_lock(&room));
        atomic_store(&waits, 2);
        must(pthread_cond_broadcast(&many[i % 128]));
        must(pthread_cond_destroy(&many[i % 128]));
        must(pthread_mutex_unlock(&room));
        while (atomic_load(&waits) != 3)
            sched_yield();
        must(pthread_cond_init(&many[i % 128], NULL));
        atomic_store(&waits, 0);
    }
    must(pthread_join(waiter, NULL));
}

int main(int argc, char **argument)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {
        {"recursive-by-another", recursive_by_another},
        {"checking-by-another", checking_by_another},
        {"robust-by-another", robust_by_another},
        {"inheriting-by-another", inheriting_by_another},
        {"checking-unlocked", checking_unlocked},
        {"recursive-deep", recursive_deep},
        {"checking-twice", checking_twice},
        {"robust-recovered", robust_recovered},
        {"semaphore-unmade", semaphore_unmade},
        {"barrier-unmade", barrier_unmade},
        {"semaphore-used", semaphore_used},
        {"semaphore-destroyed", semaphore_destroyed},
        {"semaphore-copied", semaphore_copied},
        {"semaphore-inherited", semaphore_inherited},
        {"spin-destroyed", spin_destroyed},
        {"condition-destroyed", condition_destroyed},
        {"condition-anew", condition_anew},
        {"woken-and-another-mutex", woken_and_another_mutex},
        {"destroyed-when-woken", destroyed_when_woken},
        {"rwlock-garbage", rwlock_garbage},
        {"rwlock-wiped", rwlock_wiped},
        {"quick", quick},
        {"at-once", at_once},
        {"child-unlocks", child_unlocks},
        {"child-unlocks-and-again", child_unlocks_and_again},
        {"child-unlocks-and-keeps", child_unlocks_and_keeps},
        {"child-at-once", child_at_once},
        {"child-begins-anew", child_begins_anew},
        {"left-by-jump", left_by_jump},
        {"lets-itself-in", lets_itself_in},
        {"at-a-fault", at_a_fault},
    };
    for (unsigned i = 0; argc == 2 && i < sizeof all / sizeof *all; i++) {
        if (strcmp(argument[1], all[i].name) == 0) {
            all[i].run();
            return 7;
        }
    }
    return 98;
}
