/* Semaphores: those that serve as mutexes, one post by whoever waited, have an
 * order; those that are signals have none. */
#include "check.h"

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;

/* CASE semaphores-as-mutexes
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: printer (semaphore)
 *     has: scanner (semaphore)
 *     at: prints_scans() @ps-holds
 *     at: prints_scans() @ps-wants
 *     at: scans_prints() @sp-holds
 *     at: scans_prints() @sp-wants
 * CASE semaphore-and-mutex
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: printer (semaphore)
 *     has: queue (mutex)
 *     at: prints_queue() @pq-wants
 *     at: queue_prints() @qp-wants
 * CASE semaphores-as-mutexes-in-order
 *   silent even with --strict
 * CASE semaphores-as-signals
 *   silent even with --strict
 * CASE semaphores-that-count
 *   silent
 */
static sem_t printer, scanner;

static void prints_scans(void)
{
    for (int i = 0; i < 3; i++) {
        must(sem_wait(&printer)); /* @ps-holds */
        must(sem_wait(&scanner)); /* @ps-wants */
        must(sem_post(&scanner));
        must(sem_post(&printer));
    }
}

static void scans_prints(void)
{
    for (int i = 0; i < 3; i++) {
        must(sem_wait(&scanner)); /* @sp-holds */
        must(sem_wait(&printer)); /* @sp-wants */
        must(sem_post(&printer));
        must(sem_post(&scanner));
    }
}

static void prints_queue(void)
{
    for (int i = 0; i < 3; i++) {
        must(sem_wait(&printer));
        take(&queue); /* @pq-wants */
        give(&queue);
        must(sem_post(&printer));
    }
}

static void queue_prints(void)
{
    for (int i = 0; i < 3; i++) {
        take(&queue);
        must(sem_wait(&printer)); /* @qp-wants */
        must(sem_post(&printer));
        give(&queue);
    }
}

static void semaphores(int printers, int scanners)
{
    must(sem_init(&printer, 0, printers));
    must(sem_init(&scanner, 0, scanners));
}

static void as_mutexes(void)
{
    semaphores(1, 1);
    in_turn({"one", prints_scans}, {"two", scans_prints});
}

static void with_a_mutex(void)
{
    semaphores(1, 1);
    in_turn({"one", prints_queue}, {"two", queue_prints});
}

static void in_order(void)
{
    semaphores(1, 1);
    in_turn({"one", prints_scans}, {"two", prints_scans});
}

/* Ping-pong: who waits for one has posted the other. */
static void *answers(void *unused)
{
    for (int i = 0; i < 20; i++) {
        must(sem_wait(&printer));
        take(&queue);
        give(&queue);
        must(sem_post(&scanner));
    }
    return unused;
}

static void as_signals(void)
{
    semaphores(0, 0);
    pthread_t other = start(answers, NULL, "answers");
    for (int i = 0; i < 20; i++) {
        must(sem_post(&printer));
        must(sem_wait(&scanner));
        take(&queue);
        give(&queue);
    }
    must(pthread_join(other, NULL));
}

static void counting(void)
{
    semaphores(4, 4);
    in_turn({"one", prints_scans}, {"two", scans_prints});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"semaphores-as-mutexes", as_mutexes},
        {"semaphore-and-mutex", with_a_mutex},
        {"semaphores-as-mutexes-in-order", in_order},
        {"semaphores-as-signals", as_signals},
        {"semaphores-that-count", counting},
    };
    return run_case(argc, argument, all, COUNT(all));
}
