/* Threads that take one of LOCKS mutexes, compute in it, and compute outside.
 * locks THREADS SECONDS LOCKS INSIDE OUTSIDE (rounds of work) */
#include "common.h"

static pthread_mutex_t locks[64];
static int many;
static unsigned inside, outside;
static double until;
static _Atomic long done;

static void *user(void *seed) {
    uint64_t x = (uintptr_t)seed * 77777;
    long mine = 0;
    while (now() < until) {
        for (int i = 0; i < 16; i++, mine++) {
            x = compute(x, outside);
            pthread_mutex_t *lock = &locks[x % many];
            pthread_mutex_lock(lock);
            x = compute(x, inside);
            pthread_mutex_unlock(lock);
        }
    }
    done += mine;
    sink += x;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    int threads = atoi(argv[1]);
    many = atoi(argv[3]), inside = atoi(argv[4]), outside = atoi(argv[5]);
    for (int i = 0; i < many; i++)
        pthread_mutex_init(&locks[i], NULL);
    double since = now();
    until = since + atof(argv[2]);
    pthread_t all[64];
    for (int i = 0; i < threads; i++)
        all[i] = start(user, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    rate(done, since);
}
