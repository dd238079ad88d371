/* Calls the kernel by itself, as programs do that take no library along. */
#include "common.h"
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/time.h>

static long futex(void *word, int operation, unsigned value, const struct timespec *time)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, time, NULL, 0);
}

static atomic_int turn[2] = {1};
static int times;
static atomic_int second;

/* Waits for its turn, and gives the turn to the other, the first time when that sleeps. */
static void *passes(void *number)
{
    int me = number != NULL;
    if (me == 0)
        await_state(&second, 'S');
    else
        announce(&second);
    for (int i = 0; i < times; i++) {
        while (atomic_load(&turn[me]) == 0)
            futex(&turn[me], FUTEX_WAIT, 0, NULL); /* @waits */
        atomic_store(&turn[me], 0);
        atomic_store(&turn[1 - me], 1);
        futex(&turn[1 - me], FUTEX_WAKE, 1, NULL);
    }
    return NULL;
}

static void pass(int count)
{
    pthread_t threads[2];
    times = count;
    for (long i = 0; i < 2; i++)
        must(pthread_create(&threads[i], NULL, passes, i == 0 ? NULL : &times));
    for (int i = 0; i < 2; i++)
        must(pthread_join(threads[i], NULL));
    printf("passed\n");
}

static volatile int handled;

static void handle(int signal)
{
    (void)signal;
    handled++;
}

/* Each wait is ended by a signal, and says so. */
static void interrupted(void)
{
    struct sigaction action = {.sa_handler = handle};
    struct itimerval every = {{0, 2000}, {0, 2000}};
    unsigned word = 1;
    int told = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    while (handled < 50)
        told += futex(&word, FUTEX_WAIT, 1, NULL) == -1 && errno == EINTR;
    printf("%s\n", told > 0 ? "interrupted" : "not");
}

/* Traces a child that waits, and counts its stops. */
static void traces(void)
{
    int status, stops = 0;
    pid_t child = fork();
    if (child == 0) {
        unsigned word = 1;
        struct timespec soon = {0, 1000000};
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        futex(&word, FUTEX_WAIT, 1, &soon);
        _exit(5);
    }
    while (waitpid(child, &status, 0) == child && !WIFEXITED(status)) {
        stops++;
        ptrace(PTRACE_SYSCALL, child, 0, 0);
    }
    printf("%d stops, status %d\n", stops, WEXITSTATUS(status));
}

/* Has futex calls refused by a filter of its own. */
static void filters(void)
{
    struct sock_filter steps[] = {
        {0x20, 0, 0, 0}, {0x15, 0, 1, SYS_futex}, {6, 0, 0, 0x00050000 | 77}, {6, 0, 0, 0x7fff0000}};
    struct sock_fprog filter = {4, steps};
    unsigned word = 1;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long made = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
    long answer = syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
    printf("%ld %ld %d\n", made, answer, errno);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(what, "pass") == 0)
        pass(2000);
    else if (strcmp(what, "long") == 0) {
        printf("%d\n", getpid());
        pass(20000);
    } else if (strcmp(what, "interrupted") == 0)
        interrupted();
    else if (strcmp(what, "traces") == 0)
        traces();
    else if (strcmp(what, "filters") == 0)
        filters();
    return 7;
}
