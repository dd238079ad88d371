/* For programs that print what functions answer: run with and without the
 * library they print the same. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* errno must be as the real function leaves it, hence as it was mostly. */
#define SAY(call)                                              \
    do {                                                       \
        errno = 77;                                            \
        long said = (long)(call);                              \
        int after = errno;                                     \
        printf("%s: %ld errno %d\n", #call, said, after);      \
    } while (0)

#define MAYBE_UNUSED __attribute__((unused))

/* A time that has passed, and two that are none. */
MAYBE_UNUSED static const struct timespec past = {1, 0};
MAYBE_UNUSED static const struct timespec bad = {1, 1000000000}, worse = {1, -1};

MAYBE_UNUSED static struct timespec soon(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += 20000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

static pthread_t start(void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, routine, argument))
        abort();
    return thread;
}

/* Runs a routine in a thread of its own. */
MAYBE_UNUSED static void elsewhere(void *(*routine)(void *), void *argument)
{
    pthread_join(start(routine, argument), NULL);
}
