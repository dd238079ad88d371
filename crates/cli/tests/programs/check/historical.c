/* Two deadlocks that shipped, re-created from their descriptions. */
#include "check.h"

/* A network library has a list of its sockets, and a lock for the list and one
 * for each socket. Shutting the library down takes the list and then each
 * socket; closing one socket takes the socket and then the list. */
struct socket {
    pthread_mutex_t lock;
    int open;
};

static pthread_mutex_t socket_list = PTHREAD_MUTEX_INITIALIZER;
static struct socket *sockets[4];

static struct socket *socket_open(void)
{
    struct socket *made = calloc(1, sizeof *made);
    must(pthread_mutex_init(&made->lock, NULL)); /* @socket-made */
    take(&socket_list);
    for (int i = 0; i < COUNT(sockets); i++) {
        if (sockets[i] == NULL) {
            sockets[i] = made;
            break;
        }
    }
    give(&socket_list);
    made->open = 1;
    return made;
}

/* CASE close-and-shutdown
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: socket_list (mutex)
 *     at: mutex from socket_open() @socket-made
 *     has: thread "closer"
 *     has: thread "stopper"
 *     at: socket_close() @close-holds
 *     at: socket_forget() @close-wants
 *     at: library_shutdown() @shutdown-holds
 *     at: library_shutdown() @shutdown-wants
 * CASE close-and-shutdown-repaired
 *   silent even with --strict
 */
static void socket_forget(struct socket *old)
{
    take(&socket_list); /* @close-wants */
    for (int i = 0; i < COUNT(sockets); i++) {
        if (sockets[i] == old)
            sockets[i] = NULL;
    }
    give(&socket_list);
}

static void socket_close(struct socket *old)
{
    take(&old->lock); /* @close-holds */
    old->open = 0;
    socket_forget(old);
    give(&old->lock);
}

static void library_shutdown(void)
{
    take(&socket_list); /* @shutdown-holds */
    for (int i = 0; i < COUNT(sockets); i++) {
        if (sockets[i] != NULL) {
            take(&sockets[i]->lock); /* @shutdown-wants */
            sockets[i]->open = 0;
            give(&sockets[i]->lock);
        }
    }
    give(&socket_list);
}

static void socket_close_repaired(struct socket *old)
{
    socket_forget(old);
    take(&old->lock);
    old->open = 0;
    give(&old->lock);
}

/* Two stay open, so that the shutdown meets the one that is being closed. */
static struct socket *third;

static void closes_and_opens(void)
{
    socket_close(third);
    take(&socket_list);
    sockets[2] = third;
    give(&socket_list);
}

static void closes_repaired(void)
{
    socket_close_repaired(third);
    take(&socket_list);
    sockets[2] = third;
    give(&socket_list);
}

static void open_three(void)
{
    socket_open();
    socket_open();
    third = socket_open();
}

static void close_and_shutdown(void)
{
    open_three();
    in_turn({"closer", closes_and_opens}, {"stopper", library_shutdown});
}

static void close_and_shutdown_repaired(void)
{
    open_three();
    in_turn({"closer", closes_repaired}, {"stopper", library_shutdown});
}

/* A database makes a recursive lock of two plain ones, for systems that lack it:
 * `inner` is the lock, `guard` protects who owns it and how often. Entering waits
 * for `inner` with `guard` held, and leaving takes `guard` with `inner` held.
 */
/* CASE recursive-of-two
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: guard (mutex)
 *     has: inner (mutex)
 *     has: thread "reader"
 *     has: thread "writer"
 *     at: enter() @enter-holds
 *     at: enter() @enter-wants
 *     at: statement() @statement-enters
 * CASE recursive-of-two-repaired
 *   silent even with --strict
 */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_t owner;
static int depth;

static void enter(void)
{
    take(&guard); /* @enter-holds */
    if (depth == 0 || !pthread_equal(owner, pthread_self())) {
        take(&inner); /* @enter-wants */
        owner = pthread_self();
    }
    depth++;
    give(&guard);
}

static void leave(void)
{
    take(&guard); /* @leave-wants */
    if (--depth == 0)
        give(&inner);
    give(&guard);
}

static void statement(void)
{
    enter(); /* @statement-enters */
    enter();
    leave();
    leave();
}

static void recursive_of_two(void)
{
    in_turn({"reader", statement}, {"writer", statement});
}

/* Nobody waits with `guard` held. */
static void enter_repaired(void)
{
    take(&guard);
    if (depth == 0 || !pthread_equal(owner, pthread_self())) {
        give(&guard);
        take(&inner);
        take(&guard);
        owner = pthread_self();
    }
    depth++;
    give(&guard);
}

static void statement_repaired(void)
{
    enter_repaired();
    enter_repaired();
    leave();
    leave();
}

static void recursive_of_two_repaired(void)
{
    in_turn({"reader", statement_repaired}, {"writer", statement_repaired});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"close-and-shutdown", close_and_shutdown},
        {"close-and-shutdown-repaired", close_and_shutdown_repaired},
        {"recursive-of-two", recursive_of_two},
        {"recursive-of-two-repaired", recursive_of_two_repaired},
    };
    return run_case(argc, argument, all, COUNT(all));
}
