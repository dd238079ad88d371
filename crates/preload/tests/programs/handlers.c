/* What a program sees of its own signal handlers. The library that checks stands
 * before them; its output is to be the same as without. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* `sigset` is to be seen too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

typedef void handler(int);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf back;
static char other_stack[65536];
static volatile int depth, times;

static void say(const char *what, long value)
{
    printf("%s %ld\n", what, value);
    fflush(stdout);
}

/* An address by what it is. */
static const char *name_of(void *installed);

static void plain(int signal)
{
    int before = errno;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    errno = before;
    say("plain", signal);
}

static void informed(int signal, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    say("informed", signal);
    say("number", info->si_signo == signal && info->si_value.sival_int == 42);
#ifdef __aarch64__
    say("context", interrupted->uc_mcontext.pc != 0);
#else
    say("context", interrupted->uc_mcontext.gregs[REG_RIP] != 0);
#endif
}

static void on_other_stack(int signal)
{
    char here;
    say("other stack", &here >= other_stack && &here < other_stack + sizeof other_stack);
    say("signal", signal);
}

static void nested(int signal)
{
    depth++;
    say("depth", depth);
    if (++times < 4)
        raise(signal == SIGUSR1 ? SIGUSR2 : SIGUSR1);
    depth--;
}

static void jumps(int signal)
{
    (void)signal;
    siglongjmp(back, 5);
}

static void mask_inside(int signal)
{
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    say("blocks itself", sigismember(&now, signal));
    say("blocks the other", sigismember(&now, SIGHUP));
}

static const char *name_of(void *installed)
{
    return installed == (void *)SIG_DFL          ? "default"
           : installed == (void *)SIG_IGN        ? "ignored"
           : installed == (void *)plain          ? "plain"
           : installed == (void *)informed       ? "informed"
           : installed == (void *)on_other_stack ? "on_other_stack"
           : installed == (void *)nested         ? "nested"
           : installed == (void *)jumps          ? "jumps"
           : installed == (void *)mask_inside    ? "mask_inside"
                                                 : "unknown";
}

static void show(int signal)
{
    struct sigaction now;
    memset(&now, 0, sizeof now);
    int answer = sigaction(signal, NULL, &now);
    printf("%d: %d %s %x\n", signal, answer, name_of((void *)now.sa_handler),
           (unsigned)now.sa_flags & ~0x04000000u);
    fflush(stdout);
}

static void install(int signal, handler *wanted, int flags, int also)
{
    struct sigaction action, old;
    memset(&action, 0, sizeof action);
    memset(&old, 0, sizeof old);
    action.sa_handler = wanted;
    action.sa_flags = flags;
    if (also)
        sigaddset(&action.sa_mask, also);
    errno = 0;
    int answer = sigaction(signal, &action, &old);
    printf("install %d: %d %d, before %s\n", signal, answer, errno, name_of((void *)old.sa_handler));
    fflush(stdout);
}

static void *locks(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    /* Who is installed, as each function tells. */
    printf("%s\n", name_of((void *)signal(SIGUSR1, plain)));
    printf("%s\n", name_of((void *)signal(SIGUSR1, SIG_IGN)));
    printf("%s\n", name_of((void *)signal(SIGUSR1, nested)));
    show(SIGUSR1);
    printf("%s\n", name_of((void *)sysv_signal(SIGUSR1, plain)));
    show(SIGUSR1);
    raise(SIGUSR1);
    show(SIGUSR1);
    printf("%s\n", name_of((void *)ssignal(SIGUSR1, plain)));
    raise(SIGUSR1);
    raise(SIGUSR1);
    /* A program that installs what it was told was installed. */
    struct sigaction kept;
    sigaction(SIGUSR1, NULL, &kept);
    install(SIGUSR1, SIG_DFL, 0, 0);
    sigaction(SIGUSR1, &kept, NULL);
    show(SIGUSR1);
    raise(SIGUSR1);

    /* Refused. */
    install(SIGKILL, plain, 0, 0);
    install(65, plain, 0, 0);
    install(0, plain, 0, 0);
    errno = 0;
    say("refused", signal(SIGKILL, plain) == SIG_ERR && errno == EINVAL);
    show(SIGUSR1);

    /* The long form, with a value. */
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = informed;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR2, &action, NULL);
    show(SIGUSR2);
    sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 42});

    /* Another stack, and a handler for once. */
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    install(SIGUSR1, on_other_stack, SA_ONSTACK | SA_RESETHAND, 0);
    raise(SIGUSR1);
    show(SIGUSR1);

    /* Handlers within handlers, and a jump out of one. */
    install(SIGUSR1, nested, 0, 0);
    install(SIGUSR2, nested, SA_NODEFER, 0);
    raise(SIGUSR1);
    install(SIGUSR1, jumps, SA_ONSTACK, 0);
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        else
            say("jumped", i);
        locks(NULL);
    }
    install(SIGUSR1, mask_inside, 0, SIGHUP);
    raise(SIGUSR1);

    /* System V's way. */
    printf("%s\n", name_of((void *)sigset(SIGUSR1, plain)));
    raise(SIGUSR1);
    say("held", sigset(SIGUSR1, SIG_HOLD) == plain);
    say("was held", sigset(SIGUSR1, plain) == SIG_HOLD);

    /* While threads work. */
    pthread_t thread;
    pthread_create(&thread, NULL, locks, NULL);
    for (int i = 0; i < 20; i++)
        raise(SIGUSR1);
    pthread_join(thread, NULL);
    return 7;
}
