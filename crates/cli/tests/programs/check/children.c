/* What programs do with locks around fork, exec and the end of their first thread,
 * and may. */
#include "check.h"

static pthread_mutex_t arena = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;

static void arena_cache(void)
{
    take(&arena);
    take(&cache);
    give(&cache);
    give(&arena);
}

static void child_ends_well(pid_t child)
{
    int status;
    must(waitpid(child, &status, 0) != child);
    must(status);
}

/* CASE handlers-of-fork-that-begin-anew
 *   silent even with --strict
 */
static void before(void)
{
    take(&arena);
    take(&cache);
}

static void in_parent(void)
{
    give(&cache);
    give(&arena);
}

/* As allocators do it: nobody else is there to have these locks. */
static void in_child(void)
{
    must(pthread_mutex_init(&arena, NULL));
    must(pthread_mutex_init(&cache, NULL));
}

static void begin_anew(void)
{
    must(pthread_atfork(before, in_parent, in_child));
    in_turn({"one", arena_cache}, {"two", arena_cache});
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        must(child < 0);
        if (child == 0) {
            in_turn({"three", arena_cache}, {"four", arena_cache});
            _exit(0);
        }
        child_ends_well(child);
        arena_cache();
    }
}

/* CASE child-that-ends-with-its-parents-lock
 *   silent even with --strict
 * CASE child-that-runs-another-program
 *   silent even with --strict
 */
static void fork_with_lock(void (*in_child)(void))
{
    take(&arena);
    pid_t child = fork();
    must(child < 0);
    if (child == 0) {
        in_child();
        _exit(0);
    }
    child_ends_well(child);
    give(&arena);
}

static void does_nothing(void)
{
}

static void runs_true(void)
{
    execl("/bin/true", "true", NULL);
    _exit(1);
}

static void ends_with_lock(void)
{
    fork_with_lock(does_nothing);
}

static void runs_another(void)
{
    fork_with_lock(runs_true);
}

/* CASE program-that-becomes-another
 *   silent even with --strict
 */
static void becomes_another(void)
{
    take(&arena);
    execl("/bin/sh", "sh", "-c", "echo done; exit 7", NULL);
}

/* CASE first-thread-that-ends-before-others
 *   silent even with --strict
 * CASE first-thread-that-ends-with-a-lock
 *   RULE: thread exit while holding
 *     has: arena (mutex)
 *     at: first_ends_with_lock() @first-holds
 */
static void *stays(void *unused)
{
    atomic_int first = getpid();
    await_state(&first, 'Z');
    take(&cache);
    give(&cache);
    printf("done\n");
    exit(7);
    return unused;
}

static void first_ends(void)
{
    start(stays, NULL, "last");
    take(&cache);
    give(&cache);
    pthread_exit(NULL);
}

static void first_ends_with_lock(void)
{
    start(stays, NULL, "last");
    take(&arena); /* @first-holds */
    pthread_exit(NULL);
}

/* CASE others-hold-at-the-end
 *   silent even with --strict
 */
static void *keeps(void *stage)
{
    take(&cache);
    atomic_store((atomic_int *)stage, 1);
    sleep_for_ever();
    return NULL;
}

static void others_hold(void)
{
    static atomic_int stage;
    start(keeps, &stage, "keeper");
    await(&stage, 1);
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"handlers-of-fork-that-begin-anew", begin_anew},
        {"child-that-ends-with-its-parents-lock", ends_with_lock},
        {"child-that-runs-another-program", runs_another},
        {"program-that-becomes-another", becomes_another},
        {"first-thread-that-ends-before-others", first_ends},
        {"first-thread-that-ends-with-a-lock", first_ends_with_lock},
        {"others-hold-at-the-end", others_hold},
    };
    return run_case(argc, argument, all, COUNT(all));
}
