/* One thread uses many locks, from two places and more than one chain of calls
 * each, some of them again after their life has ended; then it ends. The test
 * knows how often each is acquired. With an argument the first thread acquires and
 * another one releases, more often than the first may hold locks. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MANY 6000

static struct {
    pthread_mutex_t mutex;
    char rest[64 - sizeof(pthread_mutex_t)];
} many[MANY];
static pthread_rwlock_t often = PTHREAD_RWLOCK_INITIALIZER;

static void stop(const char *place)
{
    printf("stopped at %s\n", place);
    fflush(stdout);
    if (getchar() == EOF)
        exit(3);
}

__attribute__((noinline)) static void acquire(int i)
{
    if (pthread_mutex_lock(&many[i].mutex))
        abort();
    pthread_mutex_unlock(&many[i].mutex);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void acquire_deeper(int i)
{
    char room[200];
    __asm__ volatile("" : : "r"(room) : "memory");
    acquire(i);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void *user(void *unused)
{
    pthread_setname_np(pthread_self(), "user");
    for (int pass = 0; pass < 7; pass++)
        for (int i = 0; i < MANY; i++)
            if (i % 7 >= pass) {
                acquire(i);
                if (i % 2 == 0)
                    acquire_deeper(i);
                /* Known long since, and then in the middle of the others. */
                pthread_rwlock_rdlock(&often);
                pthread_rwlock_unlock(&often);
            }
    /* New lives of known locks. */
    for (int i = 0; i < MANY; i += 10) {
        pthread_mutex_destroy(&many[i].mutex);
        pthread_mutex_init(&many[i].mutex, NULL);
        for (int times = 0; times < 3; times++)
            acquire(i);
    }
    stop("used");
    return unused;
}

enum { TIMES = 40000 };
static atomic_int has_acquired;

static void *releases(void *unused)
{
    for (int i = 0; i < TIMES; i++) {
        while (!atomic_load(&has_acquired))
            sched_yield();
        pthread_mutex_unlock(&many[i % MANY].mutex);
        atomic_store(&has_acquired, 0);
    }
    return unused;
}

static void hands_over(void)
{
    pthread_t thread;
    pthread_rwlock_rdlock(&often);
    if (pthread_create(&thread, NULL, releases, NULL))
        abort();
    for (int i = 0; i < TIMES; i++) {
        if (pthread_mutex_lock(&many[i % MANY].mutex))
            abort();
        atomic_store(&has_acquired, 1);
        while (atomic_load(&has_acquired))
            sched_yield();
    }
    pthread_mutex_lock(&many[7].mutex);
    stop("handed over");
}

int main(int count, char **arguments)
{
    (void)arguments;
    pthread_t thread;
    for (int i = 0; i < MANY; i++)
        pthread_mutex_init(&many[i].mutex, NULL);
    printf("many 0x%lx\noften 0x%lx\n", (unsigned long)many, (unsigned long)&often);
    if (count > 1) {
        hands_over();
        return 0;
    }
    if (pthread_create(&thread, NULL, user, NULL))
        abort();
    pthread_join(thread, NULL);
    stop("ended");
    return 0;
}
