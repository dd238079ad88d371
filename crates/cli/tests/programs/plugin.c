/* A library with locks of its own, which is loaded late. */
#include "common.h"

static pthread_mutex_t plug = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t socket_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int met;

static void *plugs(void *unused)
{
    must(pthread_mutex_lock(&plug)); /* @plug-holds */
    meet(&met, 2);
    must(pthread_mutex_lock(&socket_lock)); /* @plug-waits */
    return unused;
}

static void *sockets(void *unused)
{
    must(pthread_mutex_lock(&socket_lock)); /* @socket-holds */
    meet(&met, 2);
    must(pthread_mutex_lock(&plug)); /* @socket-waits */
    return unused;
}

void plugin_stall(void)
{
    start(plugs, NULL, "plugs");
    start(sockets, NULL, "sockets");
}

/* Uses its locks and is done. */
void plugin_work(void)
{
    for (int i = 0; i < 100; i++) {
        must(pthread_mutex_lock(&plug));
        must(pthread_mutex_unlock(&plug));
    }
}
