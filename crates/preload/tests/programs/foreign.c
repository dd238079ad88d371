/* Children that share the memory and run on a thread pointer that the C library
 * has not made, as sandboxes have them: nothing of the C library's is where it
 * would be, and what lies below the pointer is anything. Each calls what the C
 * library does there without its own words for the thread, and says by its status
 * that all of it worked. */

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "stops.h"

enum { STACK = 64 << 10, BELOW = 4096, DESCRIPTOR = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t of_parent = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static volatile int handled;

static void handle(int signal)
{
    (void)signal;
    if (pthread_spin_lock(&spin) || pthread_spin_unlock(&spin))
        _exit(90);
    handled++;
}

static int ends(void *argument)
{
    (void)argument;
    _exit(7);
}

static int ends_otherwise(void *argument)
{
    (void)argument;
    _Exit(7);
}

/* Everything that the C library does without a word of the thread's. */
static int works(void *argument)
{
    (void)argument;
    for (int turn = 0; turn < 3; turn++) {
        if (pthread_spin_lock(&spin) || pthread_spin_trylock(&spin) != EBUSY ||
            pthread_spin_unlock(&spin))
            _exit(1);
        if (sem_post(&semaphore) || sem_trywait(&semaphore))
            _exit(2);
    }
    handled = 0;
    kill(getpid(), SIGUSR1);
    if (handled != 1)
        _exit(3);
    signal(SIGUSR2, handle);
    kill(getpid(), SIGUSR2);
    if (handled != 2)
        _exit(4);
    void *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page = mremap(page, 8192, 4096, 0);
    if (page == MAP_FAILED || munmap(page, 4096))
        _exit(5);
    free(NULL);
    usleep(1);
    _exit(7);
}

/* What needs the lower part of the thread's descriptor. */
static int locks(void *argument)
{
    for (int turn = 0; turn < 3; turn++) {
        if (pthread_mutex_lock(&mutex) || pthread_mutex_trylock(&mutex) != EBUSY ||
            pthread_mutex_unlock(&mutex))
            _exit(11);
        /* Without a number of the thread's these take nobody for themselves. */
        if (argument == NULL)
            continue;
        if (pthread_rwlock_rdlock(&rwlock) || pthread_rwlock_unlock(&rwlock) ||
            pthread_rwlock_wrlock(&rwlock) || pthread_rwlock_unlock(&rwlock))
            _exit(12);
    }
    works(argument);
    return 0;
}

/* One that has its parent's thread pointer, and a stack above its parent's, while
 * that waits for a mutex. */
static volatile int may_lock, has_locked;
static pid_t parent;
static char stacks[4 * STACK] __attribute__((aligned(4096)));

static int locks_beside(void *argument)
{
    (void)argument;
    while (!may_lock)
        if (syscall(SYS_sched_yield) || syscall(SYS_getppid) != parent)
            syscall(SYS_exit, 1);
    int failed = pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex);
    has_locked = 1;
    syscall(SYS_exit, failed);
    return 0;
}

static void *waits(void *argument)
{
    (void)argument;
    if (clone(locks_beside, stacks + 4 * STACK, CLONE_VM | SIGCHLD, NULL) < 0 ||
        pthread_mutex_lock(&of_parent) || pthread_mutex_unlock(&of_parent))
        abort();
    return NULL;
}

static char stack[STACK] __attribute__((aligned(64)));

static void expect_seven(const char *what, pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    if (status != 7 << 8) {
        fprintf(stderr, "%s: status %#x\n", what, status);
        exit(1);
    }
}

static void in_child_with(const char *what, int (*routine)(void *), char *thread, void *argument)
{
    int flags = CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD;
    expect_seven(what, clone(routine, stack + STACK, flags, argument, NULL, thread, NULL));
}

static void in_child(const char *what, int (*routine)(void *), char *thread)
{
    in_child_with(what, routine, thread, NULL);
}

/* Memory for a descriptor, and for what lies on the other side of the thread pointer, where the
 * words of libraries are: below it on x86-64, above it and two words of the descriptor on aarch64. */
static char *room(int fill)
{
    char *memory = malloc(BELOW + DESCRIPTOR);
#ifdef __aarch64__
    memset(memory, 0, BELOW + 16);
    memset(memory + BELOW + 16, fill, DESCRIPTOR - 16);
#else
    memset(memory, fill, BELOW);
    memset(memory + BELOW, 0, DESCRIPTOR);
#endif
    return memory + BELOW;
}

int main(int count, char **arguments)
{
    (void)arguments;
    parent = getpid();
    pthread_spin_init(&spin, 0);
    sem_init(&semaphore, 0, 0);
    signal(SIGUSR1, handle);
    in_child("zeroed", ends, room(0));
    in_child("zeroed, otherwise", ends_otherwise, room(0));
    in_child("zeroed, anything beside", ends, room(0xa5));
    in_child("zeroed, works", works, room(0));
    in_child("zeroed, locks", locks, room(0));
    in_child("anything beside, works", works, room(0xa5));
    in_child("anything beside, locks", locks, room(0xa5));

    size_t page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, 2 * page, PROT_READ | PROT_WRITE);
#ifdef __aarch64__
    in_child("nothing beside", ends, pages + 3 * page - 16);
#else
    in_child("nothing beside", ends, pages + page);
#endif

    /* One that has what every descriptor on this processor has, and no more. */
    char *own = room(0xa5);
    ((uintptr_t *)own)[0] = ((uintptr_t *)own)[2] = (uintptr_t)own;
    in_child("of another library", locks, own);

    /* A copy, of the descriptor alone and with what lies beside it. */
    char *self = __builtin_thread_pointer();
    for (int beside = 0; beside < 2; beside++) {
        char *copy = room(0xa5);
        size_t more = beside ? 1024 : 0;
#ifdef __aarch64__
        size_t below = self - (char *)pthread_self();
        memcpy(copy - below, self - below, below + 16 + more);
#else
        memcpy(copy - more, self - more, 0x900 + more);
#endif
        pthread_mutex_lock(&of_parent);
        in_child("copied, ends", ends, copy);
        in_child_with("copied, locks", locks, copy, copy);
        pthread_mutex_unlock(&of_parent);
    }
    /* The parent's own, while that waits. */
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    expect_seven("the same", clone(locks, stack + STACK, flags, stack));

    pthread_mutex_lock(&of_parent);
    SHOW(of_parent);
    if (count > 1) {
        stop("held");
        pthread_attr_t low;
        pthread_t thread;
        pthread_attr_init(&low);
        if (pthread_attr_setstack(&low, stacks, 2 * STACK) ||
            pthread_create(&thread, &low, waits, NULL))
            abort();
        pthread_setname_np(thread, "waits");
        stop("beside");
        may_lock = 1;
        while (!has_locked)
            sched_yield();
        stop("locked beside");
        pthread_mutex_unlock(&of_parent);
        pthread_join(thread, NULL);
        puts("done");
        return 0;
    }
    pthread_mutex_unlock(&of_parent);
    puts("done");
    return 0;
}
