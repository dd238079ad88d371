/*
 * Completions: what each call returns, and that one may be gone as soon as its waiter
 * has come back.
 */
#define _GNU_SOURCE /* REG_EFL */
#include <lockstead/kernel.h>

#include "expect.h"

#include <sched.h>
#include <sys/mman.h>
#include <ucontext.h>

static struct completion done;
static int waits_over;

static void *wait_once(void *unused)
{
    begins();
    wait_for_completion(&done);
    __atomic_fetch_add(&waits_over, 1, __ATOMIC_RELEASE);
    return unused;
}

static void counts(void)
{
    DECLARE_COMPLETION_ONSTACK(here);
    EXPECT(!completion_done(&here) && !try_wait_for_completion(&here));
    complete(&here);
    complete(&here);
    EXPECT(completion_done(&here));
    wait_for_completion(&here);
    EXPECT(try_wait_for_completion(&here) && !try_wait_for_completion(&here));

    /* For all who come, however many complete it besides, until it begins anew. */
    complete_all(&here);
    complete(&here);
    for (int i = 0; i < 3; i++) {
        wait_for_completion(&here);
        EXPECT(wait_for_completion_interruptible(&here) == 0);
        EXPECT(wait_for_completion_killable(&here) == 0 && try_wait_for_completion(&here));
    }
    EXPECT(completion_done(&here));
    reinit_completion(&here);
    EXPECT(!completion_done(&here) && wait_for_completion_timeout(&here, 0) == 0);

    /* The count stays at its end. */
    here.done__ = UINT_MAX - 1;
    complete(&here);
    complete(&here);
    EXPECT(here.done__ == UINT_MAX);
}

static void times(void)
{
    lks_cancel token = LKS_CANCEL_INIT;
    init_completion(&done);
    EXPECT(wait_for_completion_timeout(&done, 2) == 0);
    EXPECT(wait_for_completion_io_timeout(&done, 0) == 0);
    EXPECT(wait_for_completion_interruptible_timeout(&done, 2) == 0);
    EXPECT(wait_for_completion_killable_timeout(&done, 2) == 0);
    complete_all(&done);
    unsigned long left = wait_for_completion_timeout(&done, 60 * HZ);
    EXPECT(left >= 1 && left <= 60 * HZ);
    EXPECT(wait_for_completion_timeout(&done, 0) == 1);
    EXPECT(wait_for_completion_timeout(&done, MAX_SCHEDULE_TIMEOUT) == MAX_SCHEDULE_TIMEOUT);
    EXPECT(wait_for_completion_interruptible_timeout(&done, HZ) >= 1);

    /* Done comes before killed. */
    lks_cancel_fire(&token);
    lockstead_kill_token(&token);
    EXPECT(wait_for_completion_killable_timeout(&done, HZ) >= 1);
    EXPECT(wait_for_completion_killable(&done) == 0);
    reinit_completion(&done);
    EXPECT(wait_for_completion_killable(&done) == -ERESTARTSYS);
    EXPECT(wait_for_completion_killable_timeout(&done, 60 * HZ) == -ERESTARTSYS);
    EXPECT(wait_for_completion_killable_timeout(&done, MAX_SCHEDULE_TIMEOUT) == -ERESTARTSYS);
    lockstead_kill_token(NULL);
}

static int interrupted;

static void *wait_interruptibly(void *timed)
{
    if (timed)
        EXPECT(wait_for_completion_interruptible_timeout(&done, 600 * HZ) == -ERESTARTSYS);
    else
        EXPECT(wait_for_completion_interruptible(&done) == -ERESTARTSYS);
    __atomic_store_n(&interrupted, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void signals(void)
{
    int timed;
    init_completion(&done);
    for (timed = 0; timed < 2; timed++) {
        pthread_t waiter;
        interrupted = 0;
        waiter = start(wait_interruptibly, timed ? &timed : NULL);
        SIGNAL_UNTIL(waiter, interrupted);
        join(waiter);
    }
}

/* As many come back as were let go. */
static void several(void)
{
    pthread_t threads[3];
    int i;
    init_completion(&done);
    for (i = 0; i < 3; i++) {
        threads[i] = start(wait_once, NULL);
        until_it_sleeps();
    }
    complete(&done);
    while (__atomic_load_n(&waits_over, __ATOMIC_ACQUIRE) != 1)
        nap(1);
    EXPECT(!completion_done(&done));
    complete_all(&done);
    for (i = 0; i < 3; i++)
        join(threads[i]);
    EXPECT(waits_over == 3);
}

/* ---- requests that are gone when they are answered ---- */

struct request {
    struct completion answered;
    int question, answer;
};

static struct request *asked_now;
static struct completion asked_for;

enum { ROUNDS = 3000, LAST = -1 };

static void *answer(void *all)
{
    for (;;) {
        struct request *request;
        int last;
        wait_for_completion(&asked_for);
        request = __atomic_load_n(&asked_now, __ATOMIC_ACQUIRE);
        last = request->question == LAST;
        request->answer = request->question + 1;
        if (all)
            complete_all(&request->answered);
        else
            complete(&request->answered);
        if (last)
            return NULL;
    }
}

/* In memory of its own, which is unmapped at once: any later look at it is a fault. */
static void ask(int question, int by)
{
    struct request *request = (struct request *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(request != MAP_FAILED);
    init_completion(&request->answered);
    request->question = question;
    __atomic_store_n(&asked_now, request, __ATOMIC_RELEASE);
    complete(&asked_for);
    switch (by) {
    case 0:
        wait_for_completion(&request->answered);
        break;
    case 1:
        while (!completion_done(&request->answered))
            sched_yield();
        break;
    case 2:
        while (!try_wait_for_completion(&request->answered))
            sched_yield();
        break;
    default:
        while (wait_for_completion_timeout(&request->answered, 1) == 0)
            ;
    }
    EXPECT(request->answer == question + 1);
    EXPECT(munmap(request, 4096) == 0);
}

static void gone_when_answered(void)
{
    int all, i;
    init_completion(&asked_for);
    for (all = 0; all < 2; all++) {
        pthread_t thread = start(answer, all ? &all : NULL);
        for (i = 0; i < ROUNDS; i++)
            ask(i, i % 4);
        ask(LAST, 0);
        join(thread);
    }
}

/* ---- the same, one instruction of who completes at a time ---- */

#if defined(__x86_64__)

static struct completion *stepped;
static int steps, poller, poller_is_back, is_gone;

/* After each instruction: as soon as the other thread has come back the memory is gone. It
 * gets the time to come back, or to go to sleep for what this thread still has. */
static void step(int signal, siginfo_t *info, void *context)
{
    long long *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    const int trap = 0x100;
    char path[64];
    (void)signal;
    /* An `int3` begins and ends it. */
    if (info->si_code != TRAP_TRACE)
        *flags ^= trap;
    if (is_gone)
        return;
    steps++;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", poller);
    if (__atomic_load_n(&stepped->done__, __ATOMIC_ACQUIRE) != 0)
        while (!__atomic_load_n(&poller_is_back, __ATOMIC_ACQUIRE) && !is_asleep(path))
            sched_yield();
    if (__atomic_load_n(&poller_is_back, __ATOMIC_ACQUIRE)) {
        is_gone = 1;
        EXPECT(mprotect(stepped, 4096, PROT_NONE) == 0);
    }
}

static void *poll_it(void *tries)
{
    struct completion *completion = stepped;
    __atomic_store_n(&poller, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (tries ? !try_wait_for_completion(completion) : !completion_done(completion))
        sched_yield();
    __atomic_store_n(&poller_is_back, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void gone_at_any_step(void)
{
    struct sigaction action;
    int way;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = step;
    action.sa_flags = SA_SIGINFO;
    EXPECT(sigaction(SIGTRAP, &action, NULL) == 0);
    for (way = 0; way < 4; way++) {
        pthread_t thread;
        stepped = (struct completion *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(stepped != MAP_FAILED);
        init_completion(stepped);
        steps = poller = poller_is_back = is_gone = 0;
        thread = start(poll_it, way & 1 ? &way : NULL);
        while (!__atomic_load_n(&poller, __ATOMIC_ACQUIRE))
            nap(1);
        __asm__ __volatile__("int3" ::: "memory");
        if (way & 2)
            complete_all(stepped);
        else
            complete(stepped);
        __asm__ __volatile__("int3" ::: "memory");
        join(thread);
        EXPECT(steps > 10);
        EXPECT(munmap(stepped, 4096) == 0);
    }
}

#else

static void gone_at_any_step(void)
{
    puts("skipped: instructions are stepped through on x86-64 only");
}

#endif

int main(void)
{
    counts();
    times();
    signals();
    several();
    gone_when_answered();
    gone_at_any_step();
    return 0;
}
