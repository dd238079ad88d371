/* A thread that uses ever new locks, and is sent a signal whenever it has just mapped more of its
 * ledger: by a tracer, at the end of the system call, where the kernel delivers signals. The handler
 * jumps away. */

#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "stops.h"

enum { LOCKS = 20000 };

static pthread_mutex_t locks[LOCKS];
static sigjmp_buf out;
static volatile int may_jump;
static volatile unsigned long signals;

static void jump(int signal)
{
    signals++;
    if (may_jump) {
        may_jump = 0;
        siglongjmp(out, signal);
    }
}

/* Signals `traced` at the end of each mremap, until it has ended. */
static void trace(pid_t traced, int ready)
{
    struct __ptrace_syscall_info call;
    int status, maps = 0;
    char told = ptrace(PTRACE_SEIZE, traced, 0, PTRACE_O_TRACESYSGOOD) == 0 &&
                ptrace(PTRACE_INTERRUPT, traced, 0, 0) == 0;
    if (write(ready, &told, 1) != 1 || !told)
        _exit(1);
    while (waitpid(traced, &status, 0) == traced && WIFSTOPPED(status)) {
        int signal = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            ptrace(PTRACE_GET_SYSCALL_INFO, traced, sizeof call, &call);
            if (call.op == PTRACE_SYSCALL_INFO_ENTRY)
                maps = call.entry.nr == SYS_mremap;
            else if (call.op == PTRACE_SYSCALL_INFO_EXIT && maps)
                syscall(SYS_tgkill, traced, traced, SIGUSR1);
        } else if (status >> 16 == 0) {
            signal = WSTOPSIG(status);
        }
        ptrace(PTRACE_SYSCALL, traced, 0, signal);
    }
    _exit(0);
}

int main(void)
{
    struct sigaction action = {.sa_handler = jump};
    int go[2], ready[2];
    char told = 0;
    sigaction(SIGUSR1, &action, NULL);
    if (pipe(go) || pipe(ready))
        return 2;
    pid_t tracer = fork();
    if (tracer == 0) {
        if (read(go[0], &told, 1) == 1)
            trace(getppid(), ready[1]);
        _exit(1);
    }
    prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
    if (tracer < 0 || write(go[1], "g", 1) != 1 || read(ready[0], &told, 1) != 1)
        return 2;
    for (volatile int i = 0; told && i < LOCKS; i++) {
        if (sigsetjmp(out, 1) == 0) {
            may_jump = 1;
            pthread_mutex_lock(&locks[i]);
            pthread_mutex_unlock(&locks[i]);
        }
        may_jump = 0;
    }
    show("traced", (unsigned long)told), show("signals", signals);
    stop("over");
    return 0;
}
