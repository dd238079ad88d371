#include "here.h" /* Locks of every kind of origin; prints their addresses, then sleeps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct server {
    char name[24];
    pthread_mutex_t lock;
    pthread_mutex_t locks[4];
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* in .bss */
pthread_mutex_t set_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* in .data */
static struct server server;
static char far_away[3 << 20];
static pthread_mutex_t last_lock; /* far behind the bytes of the file */
static __thread pthread_mutex_t thread_lock;

struct cache {
    int size;
    pthread_mutex_t lock;
};

static void *made_at[8];

__attribute__((noinline)) static struct cache *cache_new(void)
{
    struct cache *cache = calloc(1, sizeof *cache);
    made_at[0] = __builtin_return_address(0);
    return cache;
}

static inline __attribute__((always_inline)) void inner_most(void)
{
    __asm__ volatile(HERE : "=r"(made_at[1])); /* line 37 */
}

static inline __attribute__((always_inline)) void inlined_lock(void)
{
    inner_most(); /* line 42 */
}

__attribute__((noinline)) static void outer(void)
{
    inlined_lock(); /* line 47 */
    made_at[2] = NULL;
}

int main(void)
{
    pthread_mutex_t on_stack = PTHREAD_MUTEX_INITIALIZER;
    struct cache *cache = cache_new(); /* line 54 */
    outer();
    printf("table_lock %p\n", (void *)&table_lock);
    printf("set_lock %p\n", (void *)&set_lock);
    printf("server.lock %p\n", (void *)&server.lock);
    printf("server.locks[2] %p\n", (void *)&server.locks[2]);
    printf("last_lock %p\n", (void *)&last_lock);
    printf("far_away %p\n", (void *)&far_away[1 << 20]);
    printf("thread_lock %p\n", (void *)&thread_lock);
    printf("stdout %p\n", (void *)&stdout);
    printf("heap %p\n", (void *)&cache->lock);
    printf("on_stack %p\n", (void *)&on_stack);
    printf("made_at %p\n", made_at[0]);
    printf("inlined_at %p\n", made_at[1]);
    printf("main %p\n", (void *)&main);
    printf("getpid %p\n", (void *)&getpid);
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}
