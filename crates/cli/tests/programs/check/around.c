/* Around the rules: fork, join, conditions. */
#include "check.h"

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t spare = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static atomic_int stage;

static void *holds_heap(void *unused)
{
    take(&heap); /* @heap-held-at-fork */
    atomic_store(&stage, 1);
    await(&stage, 2);
    give(&heap);
    return unused;
}

static int ended(pid_t child)
{
    int status;
    must(waitpid(child, &status, 0) != child);
    return status;
}

/* CASE fork-while-another-holds
 *   RULE: use in a child of a lock held at fork
 *     has: heap (mutex)
 *     has: thread "holder"
 *     at: uses_heap() @child-uses
 *     at: holds_heap() @heap-held-at-fork
 *     lacks: queue
 * CASE fork-and-no-use
 *   silent even with --strict
 * CASE fork-and-a-new-beginning
 *   silent even with --strict
 */
static void uses_heap(void)
{
    /* Long enough for the command to have asked for the names of the threads before they end. */
    struct timespec at = soon(CLOCK_REALTIME, 300);
    must(pthread_mutex_timedlock(&heap, &at) != ETIMEDOUT); /* @child-uses */
}

static void fork_with(void (*in_child)(void))
{
    pthread_t holder = start(holds_heap, NULL, "holder");
    await(&stage, 1);
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        in_child();
        _exit(0);
    }
    must(ended(child));
    atomic_store(&stage, 2);
    must(pthread_join(holder, NULL));
}

static void uses_queue(void)
{
    take(&queue);
    give(&queue);
}

static void heap_anew(void)
{
    must(pthread_mutex_init(&heap, NULL));
    take(&heap);
    give(&heap);
}

static void fork_and_use(void)
{
    fork_with(uses_heap);
}

static void fork_no_use(void)
{
    fork_with(uses_queue);
}

static void fork_anew(void)
{
    fork_with(heap_anew);
}

/* CASE fork-with-a-lock-of-its-own
 *   silent even with --strict
 * CASE fork-with-handlers
 *   silent even with --strict
 * CASE daemon
 *   silent even with --strict
 */
static void fork_holding(void)
{
    take(&heap);
    pid_t child = fork();
    must(child < 0);
    give(&heap);
    if (child == 0) {
        take(&heap);
        give(&heap);
        _exit(0);
    }
    must(ended(child));
}

static void before_fork(void)
{
    take(&heap);
    take(&queue);
}

static void after_fork(void)
{
    give(&queue);
    give(&heap);
}

static void heap_queue(void)
{
    take(&heap);
    take(&queue);
    give(&queue);
    give(&heap);
}

static void fork_handlers(void)
{
    must(pthread_atfork(before_fork, after_fork, after_fork));
    in_turn({"one", heap_queue}, {"two", heap_queue});
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        in_turn({"three", heap_queue}, {"four", heap_queue});
        _exit(0);
    }
    must(ended(child));
    heap_queue();
}

static void daemonise(void)
{
    int pipe_ends[2];
    char byte;
    must(pipe(pipe_ends));
    heap_queue();
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        must(setsid() < 0);
        if (fork() != 0)
            _exit(0);
        heap_queue();
        in_turn({"one", heap_queue}, {"two", heap_queue});
        must(write(pipe_ends[1], "x", 1) != 1);
        _exit(0);
    }
    must(ended(child));
    must(read(pipe_ends[0], &byte, 1) != 1);
}

/* CASE join-while-it-waits
 *   RULE: join while holding
 *     has: heap (mutex)
 *     has: thread "joined"
 *     at: joins_with_heap_wanted() @wanted-holds
 *     at: joins_with_heap_wanted() @wanted-join
 *     lacks: spare
 * CASE join-while-holding
 *   ORDER: join while holding
 *     has: heap (mutex)
 *     has: thread "joined"
 *     at: joins_with_heap() @join-holds
 *     at: joins_with_heap() @join-here
 *     at: uses_heap_early() @joined-used
 *     lacks: spare
 * CASE join-while-holding-another
 *   silent even with --strict
 * CASE join-that-closes hangs
 *   DEADLOCK: 2 threads wait for each other
 *     has: heap (mutex)
 *     at: joins_for_ever() @join-for-ever
 *     at: wants_heap() @wants-for-ever
 */
static void *uses_heap_early(void *unused)
{
    take(&heap); /* @joined-used */
    give(&heap);
    atomic_store(&stage, 1);
    return unused;
}

static void joins_with_heap(void)
{
    pthread_t joined = start(uses_heap_early, NULL, "joined");
    await(&stage, 1);
    take(&spare);
    give(&spare);
    take(&heap);                       /* @join-holds */
    must(pthread_join(joined, NULL)); /* @join-here */
    give(&heap);
}

static void join_while_holding(void)
{
    in_a_thread("joiner", joins_with_heap);
}

/* The joined thread gives up in time. */
static void *wants_heap_for_a_while(void *unused)
{
    struct timespec at = soon(CLOCK_REALTIME, 1000);
    announce(&stage);
    must(pthread_mutex_timedlock(&heap, &at) != ETIMEDOUT);
    return unused;
}

static void joins_with_heap_wanted(void)
{
    take(&heap); /* @wanted-holds */
    pthread_t joined = start(wants_heap_for_a_while, NULL, "joined");
    await_state(&stage, 'S');
    /* By then its wait is more than a try. */
    nap(20);
    must(pthread_join(joined, NULL)); /* @wanted-join */
    give(&heap);
}

static void join_while_it_waits(void)
{
    in_a_thread("joiner", joins_with_heap_wanted);
}

static void joins_with_spare(void)
{
    pthread_t joined = start(uses_heap_early, NULL, "joined");
    take(&spare);
    must(pthread_join(joined, NULL));
    give(&spare);
}

static void join_with_another(void)
{
    in_a_thread("joiner", joins_with_spare);
}

static void *wants_heap(void *unused)
{
    await(&stage, 1);
    take(&heap); /* @wants-for-ever */
    return unused;
}

static void joins_for_ever(void)
{
    pthread_t joined = start(wants_heap, NULL, "joined");
    take(&heap);
    hangs_now();
    atomic_store(&stage, 1);
    must(pthread_join(joined, NULL)); /* @join-for-ever */
}

static void join_closes(void)
{
    in_a_thread("joiner", joins_for_ever);
}

/* CASE wait-with-an-unlocked-mutex
 *   RULE: condition wait with an unlocked mutex
 *     has: queue (mutex)
 *     at: waits_unlocked() @unlocked-wait
 * CASE wait-with-a-mutex-held-twice
 *   RULE: condition wait with a mutex held more than once
 *     has: stack_of_trays (recursive mutex), which it holds 2 times
 *     at: waits_twice_deep() @deep-wait
 *     at: waits_twice_deep() @deep-taken
 * CASE wait-with-a-recursive-mutex-held-once
 *   silent even with --strict
 * CASE wait-with-two-mutexes
 *   RULE: condition wait with a changing mutex
 *     has: queue (mutex)
 *     has: spare (mutex)
 *     at: waits_by_spare() @spare-wait
 *     at: waits_by_queue() @queue-wait
 * CASE wait-with-one-mutex-after-the-other
 *   silent even with --strict
 */
static void waits_unlocked(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 20);
    pthread_cond_timedwait(&filled, &queue, &at); /* @unlocked-wait */
}

static void wait_unlocked(void)
{
    in_a_thread("hasty", waits_unlocked);
}

static pthread_mutex_t stack_of_trays = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void waits_twice_deep(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 20);
    take(&stack_of_trays);
    take(&stack_of_trays); /* @deep-taken */
    must(pthread_cond_timedwait(&filled, &stack_of_trays, &at) != ETIMEDOUT); /* @deep-wait */
    give(&stack_of_trays);
    give(&stack_of_trays);
}

static void wait_twice_deep(void)
{
    in_a_thread("deep", waits_twice_deep);
}

static void waits_once_deep(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 20);
    take(&stack_of_trays);
    take(&stack_of_trays);
    give(&stack_of_trays);
    must(pthread_cond_timedwait(&filled, &stack_of_trays, &at) != ETIMEDOUT);
    give(&stack_of_trays);
}

static void wait_once_deep(void)
{
    in_a_thread("shallow", waits_once_deep);
}

static void *waits_by_queue(void *unused)
{
    take(&queue);
    atomic_store(&stage, 1);
    while (atomic_load(&stage) < 2)
        must(pthread_cond_wait(&filled, &queue)); /* @queue-wait */
    give(&queue);
    return unused;
}

static void waits_by_spare(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 30);
    take(&spare);
    must(pthread_cond_timedwait(&filled, &spare, &at) != ETIMEDOUT); /* @spare-wait */
    give(&spare);
}

static void wake_all(void)
{
    take(&queue);
    atomic_store(&stage, 2);
    must(pthread_cond_broadcast(&filled));
    give(&queue);
}

static void wait_with_two(void)
{
    pthread_t waiter = start(waits_by_queue, NULL, "by-queue");
    await(&stage, 1);
    /* When it can be had, the other one waits. */
    take(&queue);
    give(&queue);
    in_a_thread("by-spare", waits_by_spare);
    wake_all();
    must(pthread_join(waiter, NULL));
}

static void one_after_the_other(void)
{
    pthread_t waiter = start(waits_by_queue, NULL, "by-queue");
    await(&stage, 1);
    wake_all();
    must(pthread_join(waiter, NULL));
    in_a_thread("by-spare", waits_by_spare);
}

/* CASE wait-while-holding-what-some-need
 *   ORDER: condition wait while holding
 *     has: heap (mutex)
 * CASE wait-while-holding
 *   RULE: condition wait while holding
 *     has: heap (mutex)
 *     has: queue (mutex)
 *     at: waits_with_heap() @with-heap-holds
 *     at: waits_with_heap() @with-heap-waits
 *     at: fills_by_heap() @fill-takes-heap
 *     lacks: spare
 * CASE wait-while-holding-what-nobody-needs
 *   silent even with --strict
 */
static int items;

static void fills_by_heap(void)
{
    take(&heap); /* @fill-takes-heap */
    take(&queue);
    items++;
    must(pthread_cond_signal(&filled));
    give(&queue);
    give(&heap);
}

static void fills(void)
{
    take(&queue);
    items++;
    must(pthread_cond_signal(&filled));
    give(&queue);
}

static void waits_with_heap(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 30);
    take(&spare);
    give(&spare);
    take(&heap); /* @with-heap-holds */
    take(&queue);
    /* Nobody signals while this one waits: it could not come through. */
    must(pthread_cond_timedwait(&filled, &queue, &at) != ETIMEDOUT); /* @with-heap-waits */
    give(&queue);
    give(&heap);
}

static void wait_holding(void)
{
    in_turn({"filler", fills_by_heap}, {"waiter", waits_with_heap});
}

static void wait_holding_some(void)
{
    in_turn({"filler", fills_by_heap}, {"other", fills}, {"waiter", waits_with_heap});
}

static void wait_holding_other(void)
{
    in_turn({"filler", fills}, {"waiter", waits_with_heap}, {"again", fills});
}

/* CASE wait-that-takes-the-mutex-back
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: heap (mutex)
 *     has: queue (mutex)
 *     at: waits_inside() @back-wants
 *     at: queue_heap() @qh-wants
 */
static void waits_inside(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 20);
    take(&queue);
    take(&heap);
    must(pthread_cond_timedwait(&filled, &queue, &at) != ETIMEDOUT); /* @back-wants */
    give(&heap);
    give(&queue);
}

static void queue_heap(void)
{
    take(&queue);
    take(&heap); /* @qh-wants */
    give(&heap);
    give(&queue);
}

static void takes_back(void)
{
    in_turn({"waiter", waits_inside}, {"other", queue_heap});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"fork-while-another-holds", fork_and_use},
        {"fork-and-no-use", fork_no_use},
        {"fork-and-a-new-beginning", fork_anew},
        {"fork-with-a-lock-of-its-own", fork_holding},
        {"fork-with-handlers", fork_handlers},
        {"daemon", daemonise},
        {"join-while-it-waits", join_while_it_waits},
        {"join-while-holding", join_while_holding},
        {"join-while-holding-another", join_with_another},
        {"join-that-closes", join_closes},
        {"wait-with-an-unlocked-mutex", wait_unlocked},
        {"wait-with-a-mutex-held-twice", wait_twice_deep},
        {"wait-with-a-recursive-mutex-held-once", wait_once_deep},
        {"wait-with-two-mutexes", wait_with_two},
        {"wait-with-one-mutex-after-the-other", one_after_the_other},
        {"wait-while-holding", wait_holding},
        {"wait-that-takes-the-mutex-back", takes_back},
        {"wait-while-holding-what-some-need", wait_holding_some},
        {"wait-while-holding-what-nobody-needs", wait_holding_other},
    };
    return run_case(argc, argument, all, COUNT(all));
}
