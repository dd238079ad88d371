/* Two threads, one counter, a lock each: a race. */
#include "expect.h"

static lks_mutex mutexes[2];
static long counter;

static void *count(void *mutex)
{
    for (int i = 0; i < 10000; i++) {
        lks_mutex_lock(mutex);
        counter++;
        lks_mutex_unlock(mutex);
    }
    return NULL;
}

int main(void)
{
    pthread_t one = start(count, &mutexes[0]), two = start(count, &mutexes[1]);
    join(one);
    join(two);
    return counter == 0;
}
