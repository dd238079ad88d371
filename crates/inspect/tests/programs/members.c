/* Locks deep in variables; prints their addresses, then sleeps. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    long entries;
    pthread_mutex_t lock;
    union {
        long one[4];
        long two[4];
    } either;
} grid[2][3];

static struct {
    long entries;
    struct {
        long entries;
        struct {
            long entries[8];
            pthread_mutex_t lock;
        } inner;
    } deep;
    struct {
        pthread_mutex_t unnamed;
    };
} holder;

static pthread_mutex_t plain[4];

/* What has no name keeps its place in what has one. */
static struct {
    long entries[4];
    union {
        pthread_mutex_t mutex;
        pthread_rwlock_t rwlock;
    };
    struct {
        unsigned bits : 3, more : 5;
        pthread_mutex_t lock;
    };
    void *(*pointer)(void *);
    pthread_mutex_t *other;
    pthread_mutex_t locks[2][3];
    pthread_mutex_t last[];
} odd;

/* Nobody says that what is called so is one lock. */
typedef struct Semaphore {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int count;
} Semaphore;
static Semaphore semaphores[2];

static _Thread_local pthread_mutex_t of_thread[4];

int main(void)
{
    static pthread_rwlock_t local[3];
    printf("grid[1][2].lock %p\n", (void *)&grid[1][2].lock);
    printf("grid[1][2].either %p\n", (void *)&grid[1][2].either.two[2]);
    printf("holder.deep.inner.lock %p\n", (void *)&holder.deep.inner.lock);
    printf("holder.unnamed %p\n", (void *)&holder.unnamed);
    printf("plain[0] %p\n", (void *)&plain[0]);
    printf("plain[3] %p\n", (void *)&plain[3]);
    printf("local[1] %p\n", (void *)&local[1]);
    printf("odd %p\n", (void *)&odd);
    printf("odd.mutex %p\n", (void *)&odd.mutex);
    printf("odd.lock %p\n", (void *)&odd.lock);
    printf("odd.locks[1][2] %p\n", (void *)&odd.locks[1][2]);
    printf("semaphores %p\n", (void *)semaphores);
    printf("semaphores[1].mutex %p\n", (void *)&semaphores[1].mutex);
    printf("semaphores[1].condition %p\n", (void *)&semaphores[1].condition);
    printf("of_thread[1] %p\n", (void *)&of_thread[1]);
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}
