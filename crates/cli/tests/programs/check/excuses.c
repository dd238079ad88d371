/* Orders that cannot deadlock although they are inverted: by trylock, under a
 * gate, in a process with one thread only, and by other instances. With their
 * siblings, which can. */
#include "check.h"

static pthread_mutex_t oak = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t elm = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t fence = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t park = PTHREAD_RWLOCK_INITIALIZER;

static void oak_elm(void)
{
    take(&oak); /* @oak-held */
    take(&elm); /* @elm-wanted */
    give(&elm);
    give(&oak);
}

static void elm_oak(void)
{
    take(&elm); /* @elm-held */
    take(&oak); /* @oak-wanted */
    give(&oak);
    give(&elm);
}

/* CASE trylock-back-off
 *   silent even with --strict
 * CASE trylock-that-fails
 *   silent even with --strict
 */
static void elm_tries_oak(void)
{
    take(&elm);
    must(pthread_mutex_trylock(&oak));
    give(&oak);
    give(&elm);
}

static void back_off(void)
{
    in_turn({"one", oak_elm}, {"two", elm_tries_oak});
}

static void *tries_in_vain(void *unused)
{
    take(&elm);
    must(pthread_mutex_trylock(&oak) != EBUSY);
    give(&elm);
    return unused;
}

static void try_fails(void)
{
    in_a_thread("one", oak_elm);
    take(&oak);
    must(pthread_join(start(tries_in_vain, NULL, "two"), NULL));
    give(&oak);
}

/* CASE trylock-first
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: oak (mutex)
 *     has: elm (mutex)
 *     at: oak_elm() @elm-wanted
 *     at: tries_elm_then_oak() @elm-tried
 *     at: tries_elm_then_oak() @oak-after-try
 */
static void tries_elm_then_oak(void)
{
    must(pthread_mutex_trylock(&elm)); /* @elm-tried */
    take(&oak);                        /* @oak-after-try */
    give(&oak);
    give(&elm);
}

static void try_first(void)
{
    in_turn({"one", oak_elm}, {"two", tries_elm_then_oak});
}

/* CASE deadline-in-the-other-order
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: asks for oak (mutex), until a deadline, at:
 *     has: asks for elm (mutex), at:
 *     at: oak_elm() @elm-wanted
 *     at: elm_oak_in_time() @oak-in-time
 */
static void elm_oak_in_time(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 10000);
    take(&elm);
    must(pthread_mutex_timedlock(&oak, &at)); /* @oak-in-time */
    give(&oak);
    give(&elm);
}

/* CASE deadline-and-then-none
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: asks for oak (mutex), at:
 *     has: asks for elm (mutex), at:
 *     lacks: deadline
 */
static void elm_oak_in_time_and_ever(void)
{
    elm_oak_in_time();
    elm_oak();
}

static void deadline_and_none(void)
{
    in_turn({"two", elm_oak_in_time_and_ever}, {"one", oak_elm});
}

static void deadline(void)
{
    in_turn({"one", oak_elm}, {"two", elm_oak_in_time});
}

/* CASE trylock-of-readers
 *   silent even with --strict
 */
static void park_oak(void)
{
    must(pthread_rwlock_wrlock(&park));
    take(&oak);
    give(&oak);
    must(pthread_rwlock_unlock(&park));
}

static void oak_tries_park(void)
{
    take(&oak);
    must(pthread_rwlock_tryrdlock(&park));
    must(pthread_rwlock_unlock(&park));
    must(pthread_rwlock_trywrlock(&park));
    must(pthread_rwlock_unlock(&park));
    give(&oak);
}

static void try_readers(void)
{
    in_turn({"one", park_oak}, {"two", oak_tries_park});
}

/* CASE gate
 *   ORDER: lock order inversion of 2 locks
 *     has: oak (mutex)
 *     has: elm (mutex)
 *     has: gate (mutex)
 *     lacks: fence
 */
static void gated_oak_elm(void)
{
    take(&gate);
    oak_elm();
    give(&gate);
}

static void gated_elm_oak(void)
{
    take(&gate);
    elm_oak();
    give(&gate);
}

static void under_a_gate(void)
{
    in_turn({"one", gated_oak_elm}, {"two", gated_elm_oak});
}

/* CASE gate-on-one-side
 *   POTENTIAL: lock order inversion of 2 locks
 *     at: oak_elm() @elm-wanted
 *     at: elm_oak() @oak-wanted
 * CASE gates-that-differ
 *   POTENTIAL: lock order inversion of 2 locks
 *     at: oak_elm() @elm-wanted
 *     at: elm_oak() @oak-wanted
 * CASE gate-then-none
 *   ORDER: lock order inversion of 2 locks
 *     has: gate (mutex)
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: oak (mutex)
 *     has: elm (mutex)
 */
static void gate_on_one_side(void)
{
    in_turn({"one", gated_oak_elm}, {"two", elm_oak});
}

static void fenced_elm_oak(void)
{
    take(&fence);
    elm_oak();
    give(&fence);
}

static void gates_that_differ(void)
{
    in_turn({"one", gated_oak_elm}, {"two", fenced_elm_oak});
}

static void later_without(void)
{
    await_looks(2);
    elm_oak();
}

static void gate_then_none(void)
{
    in_turn({"one", gated_oak_elm}, {"two", gated_elm_oak}, {"three", later_without});
}

/* CASE gate-for-readers
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: oak (mutex)
 *     has: elm (mutex)
 * CASE gate-for-a-writer
 *   ORDER: lock order inversion of 2 locks
 *     has: oak (mutex)
 *     has: elm (mutex)
 *     has: park (rwlock)
 */
static void reader_oak_elm(void)
{
    must(pthread_rwlock_rdlock(&park));
    oak_elm();
    must(pthread_rwlock_unlock(&park));
}

static void reader_elm_oak(void)
{
    must(pthread_rwlock_rdlock(&park));
    elm_oak();
    must(pthread_rwlock_unlock(&park));
}

static void writer_elm_oak(void)
{
    must(pthread_rwlock_wrlock(&park));
    elm_oak();
    must(pthread_rwlock_unlock(&park));
}

static void gate_for_readers(void)
{
    in_turn({"one", reader_oak_elm}, {"two", reader_elm_oak});
}

static void gate_for_a_writer(void)
{
    in_turn({"one", reader_oak_elm}, {"two", writer_elm_oak});
}

/* CASE before-there-are-threads
 *   ORDER: lock order inversion of 2 locks
 *     has: oak (mutex)
 *     has: elm (mutex)
 *     at: elm_oak() @oak-wanted
 * CASE before-and-with-threads
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: oak (mutex)
 *     has: elm (mutex)
 * CASE only-one-thread
 *   ORDER: lock order inversion of 2 locks
 */
static void alone_first(void)
{
    elm_oak();
    in_turn({"one", oak_elm}, {"two", oak_elm});
}

static void alone_and_not(void)
{
    elm_oak();
    in_turn({"one", oak_elm}, {"two", elm_oak});
}

static void only_one(void)
{
    elm_oak();
    oak_elm();
}

/* CASE other-instances
 *   ORDER: lock order inversion of 2 locks
 *     at: mutex from list_new() @list-made
 *     at: mutex from item_new() @item-made
 *     at: list_item() @li-wants
 *     at: item_list() @il-wants
 * CASE same-instances
 *   POTENTIAL: lock order inversion of 2 locks
 *     at: mutex from list_new() @list-made
 *     at: mutex from item_new() @item-made
 *     at: list_item() @li-wants
 *     at: item_list() @il-wants
 */
static pthread_mutex_t *lists[2], *items[2];
static int theirs;

static pthread_mutex_t *list_new(void)
{
    pthread_mutex_t *made = malloc(sizeof *made);
    must(pthread_mutex_init(made, NULL)); /* @list-made */
    return made;
}

static pthread_mutex_t *item_new(void)
{
    pthread_mutex_t *made = malloc(sizeof *made);
    must(pthread_mutex_init(made, NULL)); /* @item-made */
    return made;
}

static void list_item(void)
{
    take(lists[0]);
    take(items[0]); /* @li-wants */
    give(items[0]);
    give(lists[0]);
}

static void item_list(void)
{
    take(items[theirs]);
    take(lists[theirs]); /* @il-wants */
    give(lists[theirs]);
    give(items[theirs]);
}

static void instances(void)
{
    for (int i = 0; i < 2; i++) {
        lists[i] = list_new();
        items[i] = item_new();
    }
    in_turn({"one", list_item}, {"two", item_list});
}

static void other_instances(void)
{
    theirs = 1;
    instances();
}

/* CASE many-instances
 *   POTENTIAL: lock order inversion of 2 locks
 *     at: mutex from list_new() @list-made
 *     at: mutex from item_new() @item-made
 */
static void many_instances(void)
{
    for (int i = 0; i < 50; i++)
        instances();
}

/* CASE hand-over-hand
 *   silent
 * CASE by-address
 *   silent
 */
static void down_the_list(void)
{
    take(items[0]);
    take(items[1]);
    give(items[0]);
    take(lists[0]);
    give(items[1]);
    take(lists[1]);
    give(lists[0]);
    give(lists[1]);
}

static void hand_over_hand(void)
{
    for (int i = 0; i < 2; i++) {
        items[i] = item_new();
        lists[i] = item_new();
    }
    in_turn({"one", down_the_list}, {"two", down_the_list});
}

static void swap(pthread_mutex_t *a, pthread_mutex_t *b)
{
    take(a < b ? a : b);
    take(a < b ? b : a);
    give(a);
    give(b);
}

static void swaps(void)
{
    swap(items[0], items[1]);
}

static void swaps_back(void)
{
    swap(items[1], items[0]);
}

static void by_address(void)
{
    items[0] = item_new();
    items[1] = item_new();
    in_turn({"one", swaps}, {"two", swaps_back});
}

/* CASE two-inversions
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: oak (mutex)
 *     has: elm (mutex)
 *     lacks: fence
 *     lacks: gate
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: fence (mutex)
 *     has: gate (mutex)
 *     lacks: oak
 *     lacks: elm
 */
static void fence_gate(void)
{
    take(&fence);
    take(&gate);
    give(&gate);
    give(&fence);
}

static void gate_fence(void)
{
    take(&gate);
    take(&fence);
    give(&fence);
    give(&gate);
}

static void two_inversions(void)
{
    in_turn({"one", oak_elm}, {"two", elm_oak}, {"three", fence_gate}, {"four", gate_fence});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"trylock-back-off", back_off},
        {"trylock-that-fails", try_fails},
        {"trylock-first", try_first},
        {"deadline-in-the-other-order", deadline},
        {"deadline-and-then-none", deadline_and_none},
        {"trylock-of-readers", try_readers},
        {"gate", under_a_gate},
        {"gate-on-one-side", gate_on_one_side},
        {"gates-that-differ", gates_that_differ},
        {"gate-then-none", gate_then_none},
        {"gate-for-readers", gate_for_readers},
        {"gate-for-a-writer", gate_for_a_writer},
        {"before-there-are-threads", alone_first},
        {"before-and-with-threads", alone_and_not},
        {"only-one-thread", only_one},
        {"other-instances", other_instances},
        {"same-instances", instances},
        {"many-instances", many_instances},
        {"hand-over-hand", hand_over_hand},
        {"by-address", by_address},
        {"two-inversions", two_inversions},
    };
    return run_case(argc, argument, all, COUNT(all));
}
