/* Two processes, each the first one of a PID namespace of its own, share a mutex: one holds it, the other
 * waits for it, as number 1 each. One line: the number of the one that waits, or "none" and why. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t *shared;
static int ready[2];

/* Starts it by a process of its own, whose children have the namespace. */
static void contained(void (*part)(void), int says)
{
    if (fork())
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID)) {
        if (!says)
            printf("none: %s\n", strerror(errno));
        fflush(stdout);
        _exit(1);
    }
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        part();
    } else if (says) {
        printf("%d\n", pid);
        fflush(stdout);
    }
    for (;;)
        pause();
}

static void holds(void)
{
    pthread_mutex_lock(shared);
    if (write(ready[1], "h", 1) != 1)
        _exit(1);
}

static void waits(void) { pthread_mutex_lock(shared); }

int main(void)
{
    char byte;
    pthread_mutexattr_t between;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&between);
    pthread_mutexattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
    if (shared == MAP_FAILED || pthread_mutex_init(shared, &between) || pipe(ready))
        return 1;
    contained(holds, 0);
    if (read(ready[0], &byte, 1) == 1)
        contained(waits, 1);
    for (;;)
        pause();
}
