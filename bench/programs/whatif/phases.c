/* Threads that compute their parts of a phase, which differ, and meet at a barrier after each.
 * phases THREADS PHASES ROUNDS */
#include "common.h"

static pthread_barrier_t barrier;
static long phases;
static unsigned rounds;

static void *part(void *seed) {
    uint64_t x = (uintptr_t)seed * 77777;
    for (long i = 0; i < phases; i++) {
        x = compute(x, rounds / 2 + x % (rounds + 1));
        pthread_barrier_wait(&barrier);
    }
    sink += x;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int threads = atoi(argv[1]);
    phases = atol(argv[2]), rounds = atoi(argv[3]);
    pthread_barrier_init(&barrier, NULL, threads);
    pthread_t all[64];
    double since = now();
    for (int i = 0; i < threads; i++)
        all[i] = start(part, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    rate(phases, since);
}
