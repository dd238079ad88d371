/* Sleeps in a signal handler, on a stack of its own with an argument.
   The tests count on the lines. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile int sink;

static void on_signal(int number)
{
    struct timespec long_time = { 1000, 0 };
    sink = number;
    nanosleep(&long_time, NULL); /* line 16 */
    sink = 0;
}

__attribute__((noinline)) static void faults(volatile int *at)
{
    sink = *at; /* line 22 */
    sink++;
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = on_signal };
    stack_t own = { .ss_size = 1 << 16, .ss_sp = malloc(1 << 16) };
    prctl(PR_SET_NAME, "handler");
    if (argc > 1) {
        sigaltstack(&own, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGSEGV, &action, NULL);
    faults((volatile int *)(long)sink); /* line 36 */
    (void)argv;
    return sink;
}
