/* Locks in signal handlers. A handler may come between any two instructions of a
 * thread that lets it in, so it must not want what that thread may hold; that is
 * known without the signal coming at the wrong moment. */
#include "check.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static sem_t rang;

static void handle(int signal, void (*handler)(int), int meanwhile)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (meanwhile != 0)
        sigaddset(&action.sa_mask, meanwhile);
    must(sigaction(signal, &action, NULL));
}

static void mask(int how, int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    must(pthread_sigmask(how, &set, NULL));
}

static void logs(int signal)
{
    (void)signal;
    take(&log_lock); /* @handler-logs */
    give(&log_lock);
}

static void logs_outside(void)
{
    take(&log_lock); /* @outside-logs */
    give(&log_lock);
}

/* CASE in-a-handler-and-outside
 *   RULE: use in a signal handler
 *     has: log_lock (mutex)
 *     has: SIGUSR1
 *     at: logs() @handler-logs
 *     at: logs_outside() @outside-logs
 *     lacks: table
 * CASE outside-first
 *   RULE: use in a signal handler
 *     has: log_lock (mutex)
 *     has: SIGUSR1
 *     at: logs() @handler-logs
 *     at: logs_outside() @outside-logs
 */
static void interrupted(void)
{
    raise(SIGUSR1);
    logs_outside();
    take(&table);
    give(&table);
}

static void handler_and_outside(void)
{
    handle(SIGUSR1, logs, 0);
    in_a_thread("worker", interrupted);
}

static void rung(void)
{
    raise(SIGUSR1);
}

static void outside_first(void)
{
    handle(SIGUSR1, logs, 0);
    in_turn({"worker", logs_outside}, {"rung", rung});
}

/* CASE with-the-signal-blocked
 *   silent even with --strict
 * CASE in-the-handler-only
 *   ORDER: use in a signal handler
 *     has: log_lock (mutex)
 *     has: SIGUSR1
 *     has: nobody takes it outside of handlers
 *     at: logs() @handler-logs
 * CASE outside-with-the-signal-blocked-and-later-only-in-the-handler
 *   silent even with --strict
 * CASE with-no-handler
 *   silent even with --strict
 */
static void logs_blocked(void)
{
    mask(SIG_BLOCK, SIGUSR1);
    logs_outside();
    raise(SIGUSR1);
    logs_outside();
    mask(SIG_UNBLOCK, SIGUSR1);
}

static void blocked(void)
{
    handle(SIGUSR1, logs, 0);
    in_turn({"one", logs_blocked}, {"two", logs_blocked});
}

static void handler_only(void)
{
    handle(SIGUSR1, logs, 0);
    in_turn({"one", rung}, {"two", rung});
}

static void outside_and_then_in_the_handler(void)
{
    mask(SIG_BLOCK, SIGUSR1);
    logs_outside();
    mask(SIG_UNBLOCK, SIGUSR1);
    raise(SIGUSR1);
}

static void handler_only_later(void)
{
    handle(SIGUSR1, logs, 0);
    in_a_thread("one", outside_and_then_in_the_handler);
}

static void no_handler(void)
{
    signal(SIGUSR1, SIG_IGN);
    in_turn({"one", logs_outside}, {"two", rung}, {"three", logs_outside});
}

/* CASE handler-that-was-taken-away
 *   silent even with --strict
 * CASE handler-for-one-time
 *   silent even with --strict
 * CASE handler-for-one-time-after-a-use
 *   RULE: use in a signal handler
 *     at: logs() @handler-logs
 *     at: logs_outside() @outside-logs
 */
static void taken_away(void)
{
    handle(SIGUSR1, logs, 0);
    raise(SIGUSR1);
    handle(SIGUSR1, SIG_IGN, 0);
    logs_outside();
    must(signal(SIGUSR2, logs) == SIG_ERR);
    raise(SIGUSR2);
    must(signal(SIGUSR2, SIG_DFL) != logs);
    logs_outside();
}

static void for_one_time(void)
{
    struct sigaction action = {.sa_handler = logs, .sa_flags = SA_RESETHAND};
    must(sigaction(SIGUSR1, &action, NULL));
}

static void one_time(void)
{
    for_one_time();
    raise(SIGUSR1);
    logs_outside();
}

static void one_time_later(void)
{
    for_one_time();
    logs_outside();
    raise(SIGUSR1);
}

/* CASE handler-that-a-child-takes-away
 *   RULE: use in a signal handler
 *     at: logs() @handler-logs
 *     at: logs_outside() @outside-logs
 */
static void child_takes_away(void)
{
    handle(SIGUSR1, logs, 0);
    pid_t child = vfork();
    if (child == 0) {
        signal(SIGUSR1, SIG_DFL);
        _exit(0);
    }
    must(waitpid(child, NULL, 0) != child);
    logs_outside();
    raise(SIGUSR1);
}

/* CASE handler-that-interrupts-a-wait
 *   RULE: use in a signal handler
 *     has: SIGUSR1
 *     at: logs_and_posts() @waiter-interrupted
 *     at: logs_outside() @outside-logs
 */
static void logs_and_posts(int signal)
{
    (void)signal;
    take(&log_lock); /* @waiter-interrupted */
    give(&log_lock);
    must(sem_post(&rang));
}

static atomic_int interrupted_waiter;

static void *rings(void *whom)
{
    await_state(&interrupted_waiter, 'S');
    must(pthread_kill(*(pthread_t *)whom, SIGUSR1));
    return NULL;
}

static void interrupts_a_wait(void)
{
    must(sem_init(&rang, 0, 0));
    handle(SIGUSR1, logs_and_posts, 0);
    logs_outside();
    pthread_t self = pthread_self(), ringer = start(rings, &self, "ringer");
    announce(&interrupted_waiter);
    must(sem_wait(&rang));
    must(pthread_join(ringer, NULL));
}

/* CASE handlers-that-keep-each-other-out
 *   ORDER: use in a signal handler
 *     has: nobody takes it outside of handlers
 * CASE handlers-that-interrupt-each-other
 *   RULE: use in a signal handler
 *     has: log_lock (mutex)
 *     has: SIGUSR1
 *     at: logs() @handler-logs
 *     at: logs_too() @second-logs
 */
static void logs_too(int signal)
{
    (void)signal;
    take(&log_lock); /* @second-logs */
    give(&log_lock);
}

static void rung_twice(void)
{
    raise(SIGUSR1);
    raise(SIGUSR2);
}

static void kept_out(void)
{
    handle(SIGUSR1, logs, SIGUSR2);
    handle(SIGUSR2, logs_too, SIGUSR1);
    in_a_thread("rung", rung_twice);
}

static void interrupt_each_other(void)
{
    handle(SIGUSR1, logs, SIGUSR2);
    handle(SIGUSR2, logs_too, 0);
    in_a_thread("rung", rung_twice);
}

/* CASE handler-that-tries
 *   silent even with --strict
 * CASE handler-that-posts
 *   silent even with --strict
 * CASE handler-with-a-lock-of-its-own
 *   ORDER: use in a signal handler
 *     has: log_lock (mutex)
 *     lacks: table
 */
static void tries(int signal)
{
    (void)signal;
    if (pthread_mutex_trylock(&log_lock) == 0)
        give(&log_lock);
}

static void handler_tries(void)
{
    handle(SIGUSR1, tries, 0);
    in_a_thread("worker", interrupted);
}

static void posts(int signal)
{
    (void)signal;
    must(sem_post(&rang));
}

static void interrupted_and_waits(void)
{
    interrupted();
    must(sem_wait(&rang));
}

static void handler_posts(void)
{
    must(sem_init(&rang, 0, 0));
    handle(SIGUSR1, posts, 0);
    in_a_thread("worker", interrupted_and_waits);
}

static void uses_table(void)
{
    take(&table);
    give(&table);
}

static void other_lock(void)
{
    handle(SIGUSR1, logs, 0);
    in_turn({"one", uses_table}, {"two", rung}, {"three", uses_table});
}

/* CASE order-between-the-worlds
 *   RULE: use in a signal handler
 *     has: log_lock (mutex)
 *     has: table (mutex)
 *     at: logs() @handler-logs
 *     at: logs_then_table() @connects
 *     at: open_table() @open-table
 * CASE order-within-one-world
 *   silent even with --strict
 */
static void logs_then_table(void)
{
    mask(SIG_BLOCK, SIGUSR1);
    take(&log_lock);
    take(&table); /* @connects */
    give(&table);
    give(&log_lock);
    mask(SIG_UNBLOCK, SIGUSR1);
}

static void open_table(void)
{
    take(&table); /* @open-table */
    give(&table);
}

static void blocked_table(void)
{
    mask(SIG_BLOCK, SIGUSR1);
    open_table();
    mask(SIG_UNBLOCK, SIGUSR1);
}

static void connects_worlds(void)
{
    handle(SIGUSR1, logs, 0);
    in_turn({"rung", rung}, {"one", logs_then_table}, {"two", open_table});
}

static void one_world(void)
{
    handle(SIGUSR1, logs, 0);
    in_turn({"rung", rung}, {"one", logs_then_table}, {"two", blocked_table});
}

/* CASE waited-for-by-a-thread
 *   silent even with --strict
 */
static void *waits_for_signals(void *unused)
{
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    for (int i = 0; i < 3; i++) {
        must(sigwait(&set, &got));
        logs_outside();
        must(sem_post(&rang));
    }
    return unused;
}

static void sends_and_logs(void)
{
    for (int i = 0; i < 3; i++) {
        must(kill(getpid(), SIGUSR1));
        must(sem_wait(&rang));
        logs_outside();
    }
}

static void waited_for(void)
{
    must(sem_init(&rang, 0, 0));
    mask(SIG_BLOCK, SIGUSR1);
    pthread_t waiter = start(waits_for_signals, NULL, "signals");
    in_a_thread("sender", sends_and_logs);
    must(pthread_join(waiter, NULL));
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"in-a-handler-and-outside", handler_and_outside},
        {"outside-first", outside_first},
        {"with-the-signal-blocked", blocked},
        {"in-the-handler-only", handler_only},
        {"outside-with-the-signal-blocked-and-later-only-in-the-handler", handler_only_later},
        {"with-no-handler", no_handler},
        {"handler-that-was-taken-away", taken_away},
        {"handler-for-one-time", one_time},
        {"handler-for-one-time-after-a-use", one_time_later},
        {"handler-that-a-child-takes-away", child_takes_away},
        {"handler-that-interrupts-a-wait", interrupts_a_wait},
        {"handlers-that-keep-each-other-out", kept_out},
        {"handlers-that-interrupt-each-other", interrupt_each_other},
        {"handler-that-tries", handler_tries},
        {"handler-that-posts", handler_posts},
        {"handler-with-a-lock-of-its-own", other_lock},
        {"order-between-the-worlds", connects_worlds},
        {"order-within-one-world", one_world},
        {"waited-for-by-a-thread", waited_for},
    };
    return run_case(argc, argument, all, COUNT(all));
}
