/* How much of a stack is used by calls for locks: of a thread, of a handler on a
 * stack of its own, of a thread on the smallest stack that there is. */

#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "answers.h"

enum { LOCKS = 300, UNTOUCHED = 0xa5 };

static unsigned char *stack;
static const size_t size = 1 << 18;
static pthread_mutex_t locks[LOCKS];
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;

static void paint(void)
{
    memset(stack, UNTOUCHED, size);
}

static void say_used(const char *by)
{
    size_t untouched = 0;
    while (untouched < size && stack[untouched] == UNTOUCHED)
        untouched++;
    printf("%s %zu\n", by, size - untouched);
}

static void *nothing(void *unused)
{
    return unused;
}

static void *use_all(void *unused)
{
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_lock(&locks[i]);
        pthread_mutex_unlock(&locks[i]);
    }
    pthread_mutex_init(&locks[1], NULL);
    pthread_mutex_lock(&locks[0]);
    pthread_mutex_trylock(&locks[0]);
    pthread_mutex_timedlock(&locks[0], &past);
    pthread_cond_timedwait(&cond, &locks[0], &past);
    pthread_mutex_unlock(&locks[0]);
    pthread_mutex_destroy(&locks[1]);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_timedwrlock(&rwlock, &past);
    pthread_rwlock_unlock(&rwlock);
    sem_timedwait(&sem, &past);
    return unused;
}

static void *use_and_create(void *unused)
{
    elsewhere(use_all, unused);
    return use_all(unused);
}

static void on_painted_stack(const char *name, void *(*routine)(void *))
{
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, stack, size);
    paint();
    if (pthread_create(&thread, &attr, routine, NULL))
        abort();
    pthread_join(thread, NULL);
    say_used(name);
}

static void handle(int signal)
{
    if (signal == SIGUSR2)
        for (int i = 0; i < LOCKS; i++) {
            pthread_mutex_lock(&locks[i]);
            pthread_mutex_unlock(&locks[i]);
        }
}

int main(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    sem_init(&sem, 0, 0);
    stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    on_painted_stack("idle", nothing);
    on_painted_stack("busy", use_all);
    on_painted_stack("creator", use_and_create);
    stack_t of_handlers = {.ss_sp = stack, .ss_size = size};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigaltstack(&of_handlers, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    paint();
    raise(SIGUSR1);
    say_used("idle_handler");
    paint();
    raise(SIGUSR2);
    say_used("handler");
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
    if (pthread_create(&thread, &attr, use_all, NULL))
        abort();
    pthread_join(thread, NULL);
    printf("smallest 0\n");
    return 0;
}
