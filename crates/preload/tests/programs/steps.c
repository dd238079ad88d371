/* A thread that a signal comes to at each instruction of a call that is made again and again: a tracer steps
 * it there. The handler makes the same call, with another lock if there is an argument. */

#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "stops.h"

enum { MOST = 250, KNOWN = 1000 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER, other = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t *of_handler = &lock;
static volatile unsigned long uses, signals;

typedef int (*function)(pthread_rwlock_t *);

/* What the tracer and the traced thread tell each other. */
static struct {
    volatile unsigned long step_in;
    volatile int is_over;
} *shared;

static void be_stepped(void)
{
    syscall(SYS_tgkill, getpid(), getpid(), SIGTRAP);
}

/* The calls in the handler come from the same place as those that it interrupts, so that both count in
 * the same word. */
__attribute__((noinline)) static void use(pthread_rwlock_t *used, function before)
{
    if (before == pthread_rwlock_rdlock)
        be_stepped();
    if (pthread_rwlock_rdlock(used))
        abort();
    if (before == pthread_rwlock_unlock)
        be_stepped();
    if (pthread_rwlock_unlock(used))
        abort();
    uses++;
}

static void handle(int signal)
{
    (void)signal;
    signals++;
    use(of_handler, NULL);
}

#if defined __x86_64__
static unsigned long pc_of(const struct user_regs_struct *registers)
{
    return registers->rip;
}

static unsigned long returns_to(pid_t traced, const struct user_regs_struct *registers)
{
    return (unsigned long)ptrace(PTRACE_PEEKDATA, traced, registers->rsp, 0);
}

static unsigned long behind_exclusive(pid_t traced, unsigned long pc)
{
    (void)traced, (void)pc;
    return 0;
}
#elif defined __aarch64__
static unsigned long pc_of(const struct user_regs_struct *registers)
{
    return registers->pc;
}

static unsigned long returns_to(pid_t traced, const struct user_regs_struct *registers)
{
    (void)traced;
    return registers->regs[30];
}

/* If an exclusive load is at `pc`, the address behind the loop of which it is the first instruction: who steps
 * there gets no further. Else 0. */
static unsigned long behind_exclusive(pid_t traced, unsigned long pc)
{
    enum { LONGEST = 8 };
    for (unsigned long i = 0; i < LONGEST; i++) {
        unsigned code = (unsigned)ptrace(PTRACE_PEEKTEXT, traced, pc + 4 * i, 0);
        if (i == 0 && (code & 0xbfff7c00) != 0x885f7c00)
            return 0;
        /* The store, and a jump back. */
        if (i && (code & 0xbfe07c00) == 0x88007c00)
            return pc + 4 * (i + 2);
    }
    return 0;
}
#else
#error "which instructions cannot be stepped through, and where the program counter is"
#endif

static struct user_regs_struct registers_of(pid_t traced)
{
    struct user_regs_struct registers;
    struct iovec all = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, traced, NT_PRSTATUS, &all))
        _exit(4);
    return registers;
}

/* Resumes `traced`, which stops again with SIGTRAP. */
static void resume(pid_t traced, int how)
{
    int status;
    if (ptrace(how, traced, 0, 0) || waitpid(traced, &status, 0) != traced)
        _exit(4);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
        _exit(5);
}

static void run_to(pid_t traced, unsigned long address)
{
#if defined __aarch64__
    long code = ptrace(PTRACE_PEEKTEXT, traced, address, 0);
    long stop = (code & ~0xffffffffL) | 0xd4200000;
    ptrace(PTRACE_POKETEXT, traced, address, stop);
    resume(traced, PTRACE_CONT);
    ptrace(PTRACE_POKETEXT, traced, address, code);
#else
    (void)traced, (void)address;
#endif
}

/* Steps `steps` instructions into the function; tells whether it has returned before. */
static int step_into(pid_t traced, unsigned long function, unsigned long steps)
{
    struct user_regs_struct registers = registers_of(traced);
    while (pc_of(&registers) != function) {
        resume(traced, PTRACE_SINGLESTEP);
        registers = registers_of(traced);
    }
    unsigned long end = returns_to(traced, &registers);
    for (unsigned long i = 0; i < steps; i++) {
        unsigned long pc = pc_of(&registers), behind = behind_exclusive(traced, pc);
        if (behind && steps - i >= (behind - pc) / 4) {
            run_to(traced, behind);
            i += (behind - pc) / 4 - 1;
        } else {
            resume(traced, PTRACE_SINGLESTEP);
        }
        registers = registers_of(traced);
        if (pc_of(&registers) == end)
            return 1;
    }
    return 0;
}

/* Sends a signal one instruction later each time, until the call is over by then. */
static void trace(pid_t traced, int ready)
{
    int status, signal;
    unsigned long steps = 0;
    char told = ptrace(PTRACE_SEIZE, traced, 0, 0) == 0;
    if (write(ready, &told, 1) != 1 || !told)
        _exit(1);
    while (waitpid(traced, &status, 0) == traced && WIFSTOPPED(status)) {
        signal = WSTOPSIG(status);
        if (signal == SIGTRAP && status >> 16 == 0) {
            signal = SIGUSR1;
            if (step_into(traced, shared->step_in, steps++)) {
                signal = 0;
                steps = 0;
                shared->is_over = 1;
            }
        } else if (status >> 16) {
            signal = 0;
        }
        ptrace(PTRACE_CONT, traced, 0, signal);
    }
    _exit(0);
}

/* Says how far it is now and then: the test waits for a line so long, and no longer. */
static void step_through(const char *name, function function)
{
    unsigned long times = 0;
    shared->step_in = (unsigned long)function;
    shared->is_over = 0;
    for (; !shared->is_over && times < MOST; times++) {
        /* The handler's call has come last, from elsewhere on the stack. Calls that are rare are not left
         * to the fast path. */
        for (volatile int i = 0; i < KNOWN; i++)
            use(&lock, i == KNOWN - 1 ? function : NULL);
        if (times % 16 == 0)
            show(name, times), fflush(stdout);
    }
    show(name, times);
}

int main(int count, char **arguments)
{
    (void)arguments;
    struct sigaction action = {.sa_handler = handle};
    if (count > 1)
        of_handler = &other;
    int go[2], ready[2];
    char told = 0;
    sigaction(SIGUSR1, &action, NULL);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(go) || pipe(ready))
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
    if (told) {
        step_through("acquires", pthread_rwlock_rdlock);
        step_through("releases", pthread_rwlock_unlock);
    }
    SHOW(lock), SHOW(other);
    show("traced", (unsigned long)told), show("uses", uses);
    show("signals", signals);
    stop("over");
    return 0;
}
