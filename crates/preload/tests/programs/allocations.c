/* Calls every function with an allocator of its own under it, and prints how
 * often each of them asked it for something. */

#include <dlfcn.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "answers.h"

static char arena[4 << 20] __attribute__((aligned(64)));
static unsigned long used, asked;

/* Each block has its size in front. */
static void *take(size_t size, size_t alignment)
{
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    if (alignment < 16)
        alignment = 16;
    size_t room = (size + alignment + 31) & ~(size_t)15;
    size_t start = __atomic_fetch_add(&used, room, __ATOMIC_RELAXED);
    if (start + room > sizeof arena)
        _exit(99);
    char *block = arena + start + 16;
    block += -(size_t)block % alignment;
    ((size_t *)block)[-1] = size;
    return block;
}

void *malloc(size_t size) { return take(size, 16); }
void *calloc(size_t count, size_t size) { return take(count * size, 16); }
void *memalign(size_t alignment, size_t size) { return take(size, alignment); }
void *aligned_alloc(size_t alignment, size_t size) { return take(size, alignment); }
void free(void *block) { __atomic_fetch_add(&asked, block != NULL, __ATOMIC_RELAXED); }

int posix_memalign(void **to, size_t alignment, size_t size)
{
    *to = take(size, alignment);
    return 0;
}

void *realloc(void *block, size_t size)
{
    void *new = take(size, 16);
    if (block) {
        size_t old = ((size_t *)block)[-1];
        memcpy(new, block, old < size ? old : size);
    }
    return new;
}

#define COUNT(call)                                     \
    do {                                                \
        unsigned long before = asked;                   \
        (void)(call);                                   \
        printf("%s: %lu\n", #call, asked - before);     \
    } while (0)

static pthread_mutex_t mutex, fresh[100];
static pthread_rwlock_t rwlock;
static pthread_cond_t cond;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t sem;
static mtx_t c11;
static cnd_t c11_cond;

/* Many locks, by many chains of calls. */
static void nested(int depth)
{
    pthread_mutex_lock(&fresh[depth]);
    if (depth)
        nested(depth - 1);
    pthread_mutex_unlock(&fresh[depth]);
}

static void *work(void *unused)
{
    (void)unused;
    nested(99);
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static int work_in_c11(void *unused)
{
    work(unused);
    return 0;
}

static void in_turn(void)
{
    struct timespec time;
    COUNT(pthread_mutex_init(&mutex, NULL));
    COUNT(pthread_mutex_lock(&mutex));
    COUNT(pthread_mutex_trylock(&mutex));
    COUNT((time = soon(CLOCK_REALTIME), pthread_mutex_timedlock(&mutex, &time)));
    COUNT(pthread_cond_init(&cond, NULL));
    COUNT(pthread_cond_timedwait(&cond, &mutex, &past));
    COUNT((time = soon(CLOCK_REALTIME), pthread_cond_timedwait(&cond, &mutex, &time)));
    COUNT(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &past));
    COUNT(pthread_cond_broadcast(&cond));
    COUNT(pthread_mutex_unlock(&mutex));
    COUNT(pthread_rwlock_init(&rwlock, NULL));
    COUNT(pthread_rwlock_rdlock(&rwlock));
    COUNT(pthread_rwlock_timedwrlock(&rwlock, &past));
    COUNT(pthread_rwlock_unlock(&rwlock));
    COUNT(pthread_rwlock_wrlock(&rwlock));
    COUNT(pthread_rwlock_unlock(&rwlock));
    COUNT(pthread_rwlock_destroy(&rwlock));
    COUNT(pthread_spin_init(&spin, 0));
    COUNT(pthread_spin_lock(&spin));
    COUNT(pthread_spin_unlock(&spin));
    COUNT(pthread_spin_destroy(&spin));
    COUNT(pthread_barrier_init(&barrier, NULL, 1));
    COUNT(pthread_barrier_wait(&barrier));
    COUNT(pthread_barrier_destroy(&barrier));
    COUNT(sem_init(&sem, 0, 1));
    COUNT(sem_wait(&sem));
    COUNT(sem_timedwait(&sem, &past));
    COUNT(sem_post(&sem));
    COUNT(sem_destroy(&sem));
    COUNT(mtx_init(&c11, mtx_timed));
    COUNT(mtx_lock(&c11));
    COUNT(cnd_init(&c11_cond));
    COUNT(cnd_timedwait(&c11_cond, &c11, &past));
    COUNT(mtx_unlock(&c11));
    COUNT(cnd_destroy(&c11_cond));
    COUNT(mtx_destroy(&c11));
    COUNT(nested(99));
}

static void processes(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child;
    COUNT(pthread_mutex_lock(&mutex));
    COUNT(child = fork());
    if (child == 0) {
        COUNT(pthread_mutex_unlock(&mutex));
        COUNT(nested(50));
        COUNT(elsewhere(work, NULL));
        fflush(stdout);
        _exit(0);
    }
    COUNT(pthread_mutex_unlock(&mutex));
    waitpid(child, &status, 0);
    printf("child: %d\n", status);
}

/* Waits until this thread is alone: a detached one is a moment in ending. */
static void threads_have_ended(void)
{
    struct stat tasks;
    do
        sched_yield();
    while (!stat("/proc/self/task", &tasks) && tasks.st_nlink > 3);
}

int main(void)
{
    /* What the start of the program asked for. */
    unsigned long at_start = asked;
    pthread_t thread;
    thrd_t c11_thread;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    printf("start: %lu\n", at_start);
    for (int times = 0; times < 2; times++) {
        in_turn();
        COUNT(thread = start(work, NULL));
        COUNT(pthread_setname_np(pthread_self(), "named"));
        COUNT(pthread_join(thread, NULL));
        COUNT(thrd_create(&c11_thread, work_in_c11, NULL));
        COUNT(thrd_join(c11_thread, NULL));
        COUNT((thread = start(work, NULL), pthread_detach(thread)));
        threads_have_ended();
        processes();
        COUNT(pthread_mutex_destroy(&mutex));
    }
    void *self = dlopen(NULL, RTLD_NOW);
    COUNT(dlclose(self));
    return 0;
}
