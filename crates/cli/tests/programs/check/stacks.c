/* Locks on stacks of all kinds. That a lock lies below the stack pointer says that
 * its function has returned only where the two are on one stack. */
#include "check.h"
#include <setjmp.h>
#include <ucontext.h>

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stage;

static void use(pthread_mutex_t *mutex)
{
    take(mutex);
    give(mutex);
}

/* CASE handler-on-a-stack-of-its-own
 *   silent even with --strict
 */
static sem_t rang;

static void rings(int signal)
{
    (void)signal;
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    must(pthread_mutex_trylock(&local));
    must(sem_post(&rang));
    give(&local);
}

static void holds_while_rung(void)
{
    stack_t other = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    struct sigaction action = {.sa_handler = rings, .sa_flags = SA_ONSTACK};
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    must(sigaltstack(&other, NULL));
    must(sigaction(SIGUSR1, &action, NULL));
    for (int i = 0; i < 10; i++) {
        take(&local);
        raise(SIGUSR1);
        must(sem_wait(&rang));
        use(&shared);
        give(&local);
    }
}

static void on_another_stack(void)
{
    must(sem_init(&rang, 0, 0));
    in_turn({"one", holds_while_rung}, {"two", holds_while_rung});
}

/* CASE handler-on-a-stack-in-a-frame
 *   ORDER: use in a signal handler
 *     has: shared (mutex)
 *     has: nobody takes it outside of handlers
 */
static void locks(int signal)
{
    (void)signal;
    use(&shared);
}

static __attribute__((noinline)) void rung_while_it_holds(void)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    take(&local);
    raise(SIGUSR1);
    give(&local);
}

static void lends_its_frame(void)
{
    char room[64 << 10];
    stack_t other = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = locks, .sa_flags = SA_ONSTACK};
    must(sigaltstack(&other, NULL));
    must(sigaction(SIGUSR1, &action, NULL));
    rung_while_it_holds();
    other.ss_flags = SS_DISABLE;
    must(sigaltstack(&other, NULL));
}

static void in_a_frame(void)
{
    in_a_thread("lends", lends_its_frame);
}

/* CASE routines-on-stacks-of-their-own
 *   silent
 * CASE routines-one-after-another
 *   silent
 */
static ucontext_t outside, inside;

static void holds_and_yields(void)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < 3; i++) {
        take(&local);
        must(swapcontext(&inside, &outside));
        use(&shared);
        give(&local);
    }
}

static void goes_on(void)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    use(&shared);
    take(&local);
    must(swapcontext(&outside, &inside));
    give(&local);
    use(&shared);
}

static void run_routine(void (*routine)(void))
{
    void *stack = malloc(64 << 10);
    must(getcontext(&inside));
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = 64 << 10;
    inside.uc_link = &outside;
    makecontext(&inside, routine, 0);
    for (int i = 0; i < 4; i++)
        goes_on();
    free(stack);
}

static void yields(void)
{
    run_routine(holds_and_yields);
}

static void routines(void)
{
    in_turn({"one", yields}, {"two", yields});
}

static int swapped;

static void has_a_pair(void)
{
    pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < 3; i++) {
        take(swapped ? &right : &left);
        take(swapped ? &left : &right);
        must(swapcontext(&inside, &outside));
        give(&left);
        give(&right);
    }
    swapped = !swapped;
}

static void yields_with_a_pair(void)
{
    run_routine(has_a_pair);
}

static void routines_in_line(void)
{
    in_turn({"one", yields_with_a_pair}, {"two", yields_with_a_pair},
            {"three", yields_with_a_pair});
}

/* CASE routine-on-a-stack-in-a-frame
 *   silent even with --strict
 */
static void locks_and_yields(void)
{
    use(&shared);
    must(swapcontext(&inside, &outside));
}

static __attribute__((noinline)) void yields_while_it_holds(void)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    take(&local);
    must(swapcontext(&outside, &inside));
    give(&local);
}

static void has_it_in_its_frame(void)
{
    char room[64 << 10];
    must(getcontext(&inside));
    inside.uc_stack.ss_sp = room;
    inside.uc_stack.ss_size = sizeof room;
    makecontext(&inside, locks_and_yields, 0);
    yields_while_it_holds();
}

static void routine_in_a_frame(void)
{
    in_a_thread("outside", has_it_in_its_frame);
}

/* CASE a-lock-in-each-frame
 *   silent
 * CASE lock-on-the-stack-of-another
 *   silent even with --strict
 */
static void goes_down(int levels)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    take(&local);
    if (levels > 0)
        goes_down(levels - 1);
    use(&shared);
    give(&local);
}

static void goes_deep(void)
{
    for (int i = 1; i < 20; i++)
        goes_down(i);
}

static void in_each_frame(void)
{
    in_turn({"one", goes_deep}, {"two", goes_deep});
}

static void *holds_lent(void *lent)
{
    take((pthread_mutex_t *)lent);
    atomic_store(&stage, 1);
    await(&stage, 2);
    give((pthread_mutex_t *)lent);
    return NULL;
}

static __attribute__((noinline)) void lends(void)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    pthread_t borrower = start(holds_lent, &local, "borrower");
    await(&stage, 1);
    goes_down(5);
    atomic_store(&stage, 2);
    must(pthread_join(borrower, NULL));
}

static void lent(void)
{
    in_a_thread("lender", lends);
}

/* CASE jumped-over
 *   silent even with --strict
 * CASE jumped-over-while-held
 *   RULE: stack of a held lock left
 *     has: thread "jumper"
 *     at: jumps_holding() @jump-holds
 */
static jmp_buf back;

static __attribute__((noinline)) void jumps(void)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    use(&local);
    longjmp(back, 1);
}

static void jumps_often(void)
{
    for (volatile int i = 0; i < 10; i++) {
        if (setjmp(back) == 0)
            jumps();
        use(&shared);
    }
}

static void jumped_over(void)
{
    in_a_thread("jumper", jumps_often);
}

static __attribute__((noinline)) void jumps_holding(void)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    take(&local); /* @jump-holds */
    longjmp(back, 1);
}

static void jumps_once(void)
{
    if (setjmp(back) == 0)
        jumps_holding();
    use(&shared);
}

static void jumped_over_held(void)
{
    in_a_thread("jumper", jumps_once);
}

/* CASE stack-given-by-the-program
 *   silent
 */
static void *takes_its_pair(void *order)
{
    pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
    take(order ? &left : &right);
    take(order ? &right : &left);
    give(&left);
    give(&right);
    return NULL;
}

static void given_stack(void)
{
    pthread_attr_t attribute;
    pthread_t thread;
    size_t size = 256 << 10;
    void *stack = aligned_alloc(4096, size);
    must(pthread_attr_init(&attribute));
    must(pthread_attr_setstack(&attribute, stack, size));
    for (int i = 0; i < 6; i++) {
        must(pthread_create(&thread, &attribute, takes_its_pair, i % 2 ? stack : NULL));
        must(pthread_join(thread, NULL));
    }
    free(stack);
}

/* CASE inversion-far-down
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: shared (mutex)
 *     has: other (mutex)
 *     at: descends() @deep-holds
 *     at: descends() @deep-wants
 *     at: climbs() @high-holds
 *     at: climbs() @high-wants
 */
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;

static void descends(int levels)
{
    if (levels == 20)
        take(&shared); /* @deep-holds */
    if (levels > 0) {
        descends(levels - 1);
    } else {
        take(&other); /* @deep-wants */
        give(&other);
    }
    if (levels == 20)
        give(&shared);
}

static void climbs(int levels)
{
    if (levels > 0) {
        climbs(levels - 1);
        return;
    }
    take(&other);  /* @high-holds */
    take(&shared); /* @high-wants */
    give(&shared);
    give(&other);
}

static void descends_far(void)
{
    descends(40);
}

static void climbs_far(void)
{
    climbs(40);
}

static void far_down(void)
{
    in_turn({"one", descends_far}, {"two", climbs_far});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"handler-on-a-stack-in-a-frame", in_a_frame},
        {"routine-on-a-stack-in-a-frame", routine_in_a_frame},
        {"handler-on-a-stack-of-its-own", on_another_stack},
        {"routines-on-stacks-of-their-own", routines},
        {"routines-one-after-another", routines_in_line},
        {"a-lock-in-each-frame", in_each_frame},
        {"lock-on-the-stack-of-another", lent},
        {"jumped-over", jumped_over},
        {"jumped-over-while-held", jumped_over_held},
        {"inversion-far-down", far_down},
        {"stack-given-by-the-program", given_stack},
    };
    return run_case(argc, argument, all, COUNT(all));
}
