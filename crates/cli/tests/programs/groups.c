/* Locks of one array, and locks that one place makes: three threads wait for one of
 * the eight, and two others for one each. */
#include "common.h"

enum { ALL = 8, WAITERS = 5 };

struct shard {
    long entries;
    pthread_mutex_t mutex;
};

static struct shard shards[ALL];
static pthread_mutex_t *heap[ALL];
static const int wanted[WAITERS] = {3, 3, 3, 1, 6};
static atomic_int tids[WAITERS];
static int phase;

static pthread_mutex_t *made(void)
{
    pthread_mutex_t *lock = malloc(sizeof *lock);
    must(pthread_mutex_init(lock, NULL)); /* @made */
    return lock;
}

static pthread_mutex_t *lock_of(int number)
{
    return phase == 0 ? heap[number] : &shards[number].mutex;
}

static void *worker(void *argument)
{
    int number = *(int *)argument;
    announce(&tids[number]);
    must(pthread_mutex_lock(lock_of(wanted[number]))); /* @waits */
    must(pthread_mutex_unlock(lock_of(wanted[number])));
    return NULL;
}

int main(void)
{
    int numbers[WAITERS] = {0, 1, 2, 3, 4};
    for (int i = 0; i < ALL; i++)
        heap[i] = made();
    for (phase = 0; phase < 2; phase++) {
        pthread_t threads[WAITERS];
        for (int i = 0; i < ALL; i++)
            must(pthread_mutex_lock(lock_of(i)));
        for (int i = 0; i < WAITERS; i++) {
            atomic_store(&tids[i], 0);
            must(pthread_create(&threads[i], NULL, worker, &numbers[i]));
        }
        for (int i = 0; i < WAITERS; i++)
            await_state(&tids[i], 'S');
        /* Long beside what it takes them to start and to end. */
        nap(200);
        for (int i = 0; i < ALL; i++)
            must(pthread_mutex_unlock(lock_of(i)));
        for (int i = 0; i < WAITERS; i++)
            must(pthread_join(threads[i], NULL));
    }
    return 0;
}
