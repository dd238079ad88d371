/* Forks in a signal handler, whatever that has interrupted; the child goes on
 * with it, and with more of the same, and ends. Then in handlers that come before a
 * new thread has begun. */

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "stops.h"

enum { LOCKS = 64, FORKS = 150, TURNS = 200, THREADS = 20 };

static pthread_mutex_t locks[LOCKS], known = PTHREAD_MUTEX_INITIALIZER;
static volatile int forks, most = FORKS, left = -1;

static void fork_and_wait(int signal)
{
    (void)signal;
    int before = errno, status = 0;
    if (left >= 0 || forks == most)
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

/* In a child that a handler has forked before this, the argument is the same. */
static void *begin(void *argument)
{
    if (left >= 0)
        _exit(argument == &known ? 6 : 7);
    return argument;
}

/* A signal that the process has and every thread blocks comes to the one that is created
 * without it blocked, before its routine. */
static void fork_at_the_beginning(void)
{
    sigset_t none, one;
    sigemptyset(&none);
    sigemptyset(&one);
    sigaddset(&one, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    pthread_attr_t open;
    pthread_attr_init(&open);
    if (pthread_attr_setsigmask_np(&open, &none))
        abort();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        void *answer;
        kill(getpid(), SIGALRM);
        if (pthread_create(&thread, &open, begin, &known) || pthread_join(thread, &answer))
            abort();
        if (answer != &known || forks != FORKS + i + 1)
            abort();
    }
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
    most += THREADS;
    fork_at_the_beginning();
    show("forks", forks);
    stop("forked");
    return 0;
}
