/* A table that threads read under a reader-writer lock, and now and then write.
 * cache THREADS SECONDS READING WRITING OUTSIDE (rounds of work) WRITES (in a thousand) */
#include "common.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned reading, writing, outside, writes;
static double until;
static _Atomic long done;

static void *user(void *seed) {
    uint64_t x = (uintptr_t)seed * 77777;
    long mine = 0;
    while (now() < until) {
        for (int i = 0; i < 16; i++, mine++) {
            x = compute(x, outside);
            if (x % 1000 < writes) {
                pthread_rwlock_wrlock(&lock);
                x = compute(x, writing);
            } else {
                pthread_rwlock_rdlock(&lock);
                x = compute(x, reading);
            }
            pthread_rwlock_unlock(&lock);
        }
    }
    done += mine;
    sink += x;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 7)
        return 2;
    int threads = atoi(argv[1]);
    reading = atoi(argv[3]), writing = atoi(argv[4]), outside = atoi(argv[5]);
    writes = atoi(argv[6]);
    double since = now();
    until = since + atof(argv[2]);
    pthread_t all[64];
    for (int i = 0; i < threads; i++)
        all[i] = start(user, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    rate(done, since);
}
