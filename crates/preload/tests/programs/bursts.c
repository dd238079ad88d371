/* Many threads live at once, and end at once, again and again. Each locks one mutex. */
#include "stops.h"

enum { ROUNDS = 12, THREADS = 300 };

static pthread_mutex_t counter = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static void *work(void *unused)
{
    pthread_mutex_lock(&counter);
    pthread_mutex_unlock(&counter);
    pthread_barrier_wait(&together);
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&together, NULL, THREADS);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], &small, work, NULL))
                abort();
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    SHOW(counter);
    stop("over");
    return 0;
}
