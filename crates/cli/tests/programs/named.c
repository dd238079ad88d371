/* Locks of every kind of place, in one cycle, so that a report names them all: a
 * static one, a member of a static structure, one on the heap, a C11 mutex. */
#include "common.h"
#include <threads.h>

struct registry {
    long entries;
    pthread_mutex_t guard;
};

struct cache {
    int size;
    pthread_mutex_t lock;
};

static struct registry registry = {0, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static struct cache *caches[3];
static mtx_t standard;
static atomic_int met;

static struct cache *cache_new(void)
{
    struct cache *made = calloc(1, sizeof *made);
    must(pthread_mutex_init(&made->lock, NULL)); /* @cache-init */
    return made;
}

static void *from_static(void *unused)
{
    must(pthread_mutex_lock(&journal));
    meet(&met, 4);
    must(pthread_mutex_lock(&registry.guard));
    return unused;
}

static void *from_member(void *unused)
{
    must(pthread_mutex_lock(&registry.guard));
    meet(&met, 4);
    must(pthread_mutex_lock(&caches[1]->lock));
    return unused;
}

static void *from_heap(void *unused)
{
    must(pthread_mutex_lock(&caches[1]->lock));
    meet(&met, 4);
    must(mtx_lock(&standard) != thrd_success);
    return unused;
}

static void *from_standard(void *unused)
{
    must(mtx_lock(&standard) != thrd_success);
    meet(&met, 4);
    must(pthread_mutex_lock(&journal));
    return unused;
}

int main(void)
{
    must(mtx_init(&standard, mtx_plain) != thrd_success);
    for (int i = 0; i < 3; i++)
        caches[i] = cache_new();
    start(from_static, NULL, "static");
    start(from_member, NULL, "member");
    start(from_heap, NULL, "heap");
    start(from_standard, NULL, "standard");
    sleep_for_ever();
}
