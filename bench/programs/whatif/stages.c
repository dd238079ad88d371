/* Stages that pass items on by semaphores, in rings of ROOM places.
 * stages ITEMS ROOM FIRST SECOND THIRD (rounds of work for an item) */
#include "common.h"

static sem_t full[2], empty[2];
static long items;
static unsigned rounds[3];

static void *first(void *unused) {
    uint64_t x = 1;
    for (long i = 0; i < items; i++) {
        x = compute(x, rounds[0]);
        sem_wait(&empty[0]);
        sem_post(&full[0]);
    }
    sink += x;
    return unused;
}

static void *second(void *unused) {
    uint64_t x = 2;
    for (long i = 0; i < items; i++) {
        sem_wait(&full[0]);
        x = compute(x, rounds[1]);
        sem_post(&empty[0]);
        sem_wait(&empty[1]);
        sem_post(&full[1]);
    }
    sink += x;
    return unused;
}

static void *third(void *unused) {
    uint64_t x = 3;
    for (long i = 0; i < items; i++) {
        sem_wait(&full[1]);
        x = compute(x, rounds[2]);
        sem_post(&empty[1]);
    }
    sink += x;
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    items = atol(argv[1]);
    for (int i = 0; i < 3; i++)
        rounds[i] = atoi(argv[3 + i]);
    for (int i = 0; i < 2; i++) {
        sem_init(&full[i], 0, 0);
        sem_init(&empty[i], 0, atoi(argv[2]));
    }
    double since = now();
    pthread_t all[] = {start(first, NULL), start(second, NULL), start(third, NULL)};
    for (int i = 0; i < 3; i++)
        pthread_join(all[i], NULL);
    rate(items, since);
}
