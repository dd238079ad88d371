/* Forks in a signal handler, whatever that has interrupted; the child goes on
 * with it, and with more of the same, and ends. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "stops.h"

enum { LOCKS = 64, FORKS = 150, TURNS = 200 };

static pthread_mutex_t locks[LOCKS], known = PTHREAD_MUTEX_INITIALIZER;
static volatile int forks, left = -1;

static void fork_and_wait(int signal)
{
    (void)signal;
    int before = errno, status = 0;
    if (left >= 0 || forks == FORKS)
        return;
    pid_t child = fork();
    if (child == 0) {
        left = TURNS;
        return;
    }
    while (waitpid(child, &status, 0) < 0)
        ;
    if (status != 6 << 8)
        _exit(1);
    forks++;
    errno = before;
}

int main(void)
{
    struct sigaction action = {.sa_handler = fork_and_wait};
    struct itimerval timer = {.it_interval = {0, 700}, .it_value = {0, 700}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (unsigned i = 0; forks < FORKS; i++) {
        pthread_mutex_t *mutex = &locks[i % LOCKS];
        pthread_mutex_init(mutex, NULL);
        for (int j = 0; j < 3; j++) {
            if (pthread_mutex_lock(mutex) || pthread_mutex_lock(&known))
                abort();
            if (pthread_mutex_unlock(mutex) || pthread_mutex_unlock(&known))
                abort();
        }
        pthread_mutex_destroy(mutex);
        if (left >= 0 && left-- == 0)
            _exit(6);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    show("forks", forks);
    stop("forked");
    return 0;
}
