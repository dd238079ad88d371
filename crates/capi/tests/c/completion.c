/*
 * Completions: what each call returns, and that one may be gone as soon as its waiter
 * has come back.
 */
#include <lockstead/kernel.h>

#include "expect.h"

#include <sched.h>
#include <sys/mman.h>

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

int main(void)
{
    counts();
    times();
    signals();
    several();
    gone_when_answered();
    return 0;
}
