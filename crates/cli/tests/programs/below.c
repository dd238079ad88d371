/* With LIBRARY: mutexes of another library than the C library's, which leave the words that glibc
 * would have alone. Without: two threads that take two mutexes in different orders. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#ifdef LIBRARY
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By address: 0 free, 1 taken, 2 taken and waited for. */
static atomic_int words[4096];

static atomic_int *word(pthread_mutex_t *mutex)
{
    return &words[((uintptr_t)mutex >> 3) % 4096];
}

static int take(pthread_mutex_t *mutex)
{
    int free = 0;
    return atomic_compare_exchange_strong(word(mutex), &free, 1) ? 0 : EBUSY;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return take(mutex);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (take(mutex) == 0)
        return 0;
    while (atomic_exchange(word(mutex), 2) != 0)
        syscall(SYS_futex, word(mutex), FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (atomic_exchange(word(mutex), 0) == 2)
        syscall(SYS_futex, word(mutex), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return 0;
}
#else
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *one(void *unused)
{
    pthread_mutex_lock(&first);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&second);
    return unused;
}

static void *other(void *unused)
{
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&first);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, other, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
#endif
