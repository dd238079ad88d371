/* A main thread that gives out BATCH jobs at a time, waits until all are done, and does its own part.
 * batches BATCHES BATCH WORKERS JOB OWN (rounds of work) */
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static long waiting, unfinished;
static int over;
static unsigned job;

static void *worker(void *seed) {
    uint64_t x = (uintptr_t)seed;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!waiting && !over)
            pthread_cond_wait(&work, &lock);
        if (over)
            break;
        waiting--;
        pthread_mutex_unlock(&lock);
        x = compute(x, job);
        pthread_mutex_lock(&lock);
        if (--unfinished == 0)
            pthread_cond_signal(&done);
    }
    pthread_mutex_unlock(&lock);
    sink += x;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    long batches = atol(argv[1]), batch = atol(argv[2]);
    int workers = atoi(argv[3]);
    job = atoi(argv[4]);
    unsigned own = atoi(argv[5]);
    pthread_t all[64];
    uint64_t x = 5;
    double since = now();
    for (int i = 0; i < workers; i++)
        all[i] = start(worker, (void *)(uintptr_t)(i + 1));
    for (long b = 0; b < batches; b++) {
        x = compute(x, own);
        pthread_mutex_lock(&lock);
        unfinished = batch;
        for (long i = 0; i < batch; i++) {
            waiting++;
            pthread_cond_signal(&work);
        }
        while (unfinished)
            pthread_cond_wait(&done, &lock);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < workers; i++)
        pthread_join(all[i], NULL);
    sink += x;
    rate(batches * batch, since);
}
