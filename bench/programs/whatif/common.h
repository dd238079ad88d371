/* What the programs of this folder have in common: work, threads, and a rate at the end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Computes so many rounds, of some nanosecond each. */
static uint64_t compute(uint64_t seed, unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

static _Atomic uint64_t sink;

static pthread_t start(void *(*routine)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, routine, argument)) {
        perror("pthread_create");
        exit(1);
    }
    return thread;
}

/* Prints the rate, which the comparison reads. */
static void rate(double done, double since) { printf("%.1f\n", done / (now() - since)); }
