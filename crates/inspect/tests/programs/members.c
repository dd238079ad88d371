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
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}
