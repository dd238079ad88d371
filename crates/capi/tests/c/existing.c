/*
 * A program as there are many: a thread pool that runs jobs and their dependants, a
 * cache that is read more than it is written, a log. Nothing in it knows of lockstead;
 * it is compiled as C and as C++, with and without the header that changes its locks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define DIE(what) \
    do { \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, what); \
        exit(1); \
    } while (0)
#define CHECK(call) \
    do { \
        int error_ = (call); \
        if (error_) { \
            errno = error_; \
            perror(#call); \
            exit(1); \
        } \
    } while (0)

/* ---- a log, guarded by a recursive mutex: its functions call each other ---- */

static pthread_once_t log_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t log_lock;
static char *log_text;
static size_t log_used, log_size;
static int log_opened;

static void log_open(void)
{
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr));
    CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    CHECK(pthread_mutex_init(&log_lock, &attr));
    CHECK(pthread_mutexattr_destroy(&attr));
    log_opened++;
}

static void log_reserve(size_t more)
{
    CHECK(pthread_mutex_lock(&log_lock));
    if (log_used + more > log_size) {
        log_size = 2 * (log_size + more);
        log_text = (char *)realloc(log_text, log_size);
        if (!log_text)
            DIE("no memory");
    }
    CHECK(pthread_mutex_unlock(&log_lock));
}

static void log_line(const char *line)
{
    size_t length = strlen(line);
    CHECK(pthread_once(&log_once, log_open));
    CHECK(pthread_mutex_lock(&log_lock));
    log_reserve(length + 1);
    memcpy(log_text + log_used, line, length + 1);
    log_used += length;
    CHECK(pthread_mutex_unlock(&log_lock));
}

/* ---- a cache ---- */

#define BUCKETS 64

struct entry {
    struct entry *next;
    unsigned key;
    unsigned long value;
};

struct cache {
    pthread_rwlock_t lock;
    struct entry *buckets[BUCKETS];
    unsigned long misses;
};

static struct cache squares = {PTHREAD_RWLOCK_INITIALIZER, {NULL}, 0};

static struct entry *cache_find(struct cache *cache, unsigned key)
{
    struct entry *entry = cache->buckets[key % BUCKETS];
    while (entry && entry->key != key)
        entry = entry->next;
    return entry;
}

static unsigned long cache_get(struct cache *cache, unsigned key)
{
    struct entry *entry;
    unsigned long value = 0;
    CHECK(pthread_rwlock_rdlock(&cache->lock));
    entry = cache_find(cache, key);
    if (entry)
        value = entry->value;
    CHECK(pthread_rwlock_unlock(&cache->lock));
    if (entry)
        return value;
    CHECK(pthread_rwlock_wrlock(&cache->lock));
    entry = cache_find(cache, key);
    if (!entry) {
        entry = (struct entry *)malloc(sizeof *entry);
        if (!entry)
            DIE("no memory");
        entry->key = key;
        entry->value = (unsigned long)key * key;
        entry->next = cache->buckets[key % BUCKETS];
        cache->buckets[key % BUCKETS] = entry;
        cache->misses++;
    }
    value = entry->value;
    CHECK(pthread_rwlock_unlock(&cache->lock));
    return value;
}

/* ---- a thread pool with a bounded queue ---- */

#define ROOM 16

typedef void (*job_fn)(void *);

struct job {
    job_fn run;
    void *argument;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full, idle;
    struct job queue[ROOM];
    unsigned head, used, running;
    int closing;
    unsigned size;
    pthread_t threads[8];
};

static void *pool_work(void *argument)
{
    struct pool *pool = (struct pool *)argument;
    CHECK(pthread_mutex_lock(&pool->lock));
    for (;;) {
        struct job job;
        while (pool->used == 0 && !pool->closing)
            CHECK(pthread_cond_wait(&pool->not_empty, &pool->lock));
        if (pool->used == 0)
            break;
        job = pool->queue[pool->head++ % ROOM];
        pool->used--;
        pool->running++;
        CHECK(pthread_cond_signal(&pool->not_full));
        CHECK(pthread_mutex_unlock(&pool->lock));
        job.run(job.argument);
        CHECK(pthread_mutex_lock(&pool->lock));
        pool->running--;
        if (pool->running == 0 && pool->used == 0)
            CHECK(pthread_cond_broadcast(&pool->idle));
    }
    CHECK(pthread_mutex_unlock(&pool->lock));
    return NULL;
}

static void pool_open(struct pool *pool, unsigned size)
{
    pthread_condattr_t attr;
    memset(pool, 0, sizeof *pool);
    CHECK(pthread_mutex_init(&pool->lock, NULL));
    CHECK(pthread_condattr_init(&attr));
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    CHECK(pthread_cond_init(&pool->not_empty, NULL));
    CHECK(pthread_cond_init(&pool->not_full, &attr));
    CHECK(pthread_cond_init(&pool->idle, NULL));
    CHECK(pthread_condattr_destroy(&attr));
    for (pool->size = 0; pool->size < size; pool->size++)
        CHECK(pthread_create(&pool->threads[pool->size], NULL, pool_work, pool));
}

/* Gives up after a minute. */
static void pool_add(struct pool *pool, job_fn run, void *argument)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += 60;
    CHECK(pthread_mutex_lock(&pool->lock));
    while (pool->used == ROOM)
        CHECK(pthread_cond_timedwait(&pool->not_full, &pool->lock, &deadline));
    pool->queue[(pool->head + pool->used++) % ROOM].run = run;
    pool->queue[(pool->head + pool->used - 1) % ROOM].argument = argument;
    CHECK(pthread_cond_signal(&pool->not_empty));
    CHECK(pthread_mutex_unlock(&pool->lock));
}

static void pool_wait(struct pool *pool)
{
    CHECK(pthread_mutex_lock(&pool->lock));
    while (pool->used || pool->running) {
        struct timeval now;
        struct timespec deadline;
        int error;
        gettimeofday(&now, NULL);
        deadline.tv_sec = now.tv_sec + 60;
        deadline.tv_nsec = now.tv_usec * 1000;
        error = pthread_cond_timedwait(&pool->idle, &pool->lock, &deadline);
        if (error == ETIMEDOUT)
            DIE("the pool hangs");
    }
    CHECK(pthread_mutex_unlock(&pool->lock));
}

static void pool_close(struct pool *pool)
{
    CHECK(pthread_mutex_lock(&pool->lock));
    pool->closing = 1;
    CHECK(pthread_cond_broadcast(&pool->not_empty));
    CHECK(pthread_mutex_unlock(&pool->lock));
    while (pool->size)
        CHECK(pthread_join(pool->threads[--pool->size], NULL));
    CHECK(pthread_cond_destroy(&pool->not_empty));
    CHECK(pthread_cond_destroy(&pool->not_full));
    CHECK(pthread_cond_destroy(&pool->idle));
    CHECK(pthread_mutex_destroy(&pool->lock));
}

/* ---- what it does ---- */

static pthread_mutex_t sum_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sum;

static void add_square(void *argument)
{
    unsigned key = *(unsigned *)argument;
    unsigned long square = cache_get(&squares, key);
    while (pthread_mutex_trylock(&sum_lock) != 0)
        ;
    sum += square;
    CHECK(pthread_mutex_unlock(&sum_lock));
    if (key == 0)
        log_line("zero\n");
}

int main(void)
{
    static unsigned keys[200];
    struct pool pool;
    unsigned long expected = 0;
    unsigned round, i;
    for (i = 0; i < 200; i++)
        keys[i] = i;
    pool_open(&pool, 4);
    for (round = 0; round < 50; round++) {
        for (i = 0; i < 200; i++) {
            expected += (unsigned long)i * i;
            pool_add(&pool, add_square, &keys[i]);
        }
        pool_wait(&pool);
        if (sum != expected)
            DIE("a wrong sum");
    }
    pool_close(&pool);
    if (squares.misses != 200 || log_opened != 1 || log_used != 50 * strlen("zero\n"))
        DIE("wrong counts");
    CHECK(pthread_rwlock_destroy(&squares.lock));
    CHECK(pthread_mutex_destroy(&log_lock));
    puts("done");
    return 0;
}
