/* The shapes of lock order: cycles of one to five locks, by one thread and by
 * several, and their siblings in good order. */
#include "check.h"

static pthread_mutex_t north = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t east = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t south = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t west = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t attic = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cellar = PTHREAD_MUTEX_INITIALIZER;

/* Takes two and gives them back. */
#define both(first, second)                                                 \
    do {                                                                    \
        take(first);                                                        \
        take(second);                                                       \
        give(second);                                                       \
        give(first);                                                        \
    } while (0)

static void bystander(void)
{
    both(&attic, &cellar);
}

static void north_east(void)
{
    take(&north); /* @ne-has-north */
    take(&east);  /* @ne-wants-east */
    give(&east);
    give(&north);
}

static void east_north(void)
{
    take(&east);  /* @en-has-east */
    take(&north); /* @en-wants-north */
    give(&north);
    give(&east);
}

static void east_south(void)
{
    take(&east);  /* @es-has-east */
    take(&south); /* @es-wants-south */
    give(&south);
    give(&east);
}

static void south_north(void)
{
    take(&south); /* @sn-has-south */
    take(&north); /* @sn-wants-north */
    give(&north);
    give(&south);
}

static void south_west(void)
{
    take(&south); /* @sw-has-south */
    take(&west);  /* @sw-wants-west */
    give(&west);
    give(&south);
}

static void east_west(void)
{
    take(&east); /* @ew-has-east */
    take(&west); /* @ew-wants-west */
    give(&west);
    give(&east);
}

static void west_north(void)
{
    take(&west);  /* @wn-has-west */
    take(&north); /* @wn-wants-north */
    give(&north);
    give(&west);
}

/* CASE aa hangs
 *   RULE: recursion
 *     has: north (mutex)
 *     at: takes_twice() @aa-has
 *     at: takes_twice() @aa-wants
 *     lacks: attic
 *   DEADLOCK: 1 thread waits for itself
 */
static void takes_twice(void)
{
    hangs_now();
    take(&north); /* @aa-has */
    take(&north); /* @aa-wants */
}

static void aa(void)
{
    in_turn({"bystander", bystander}, {"twice", takes_twice});
}

/* CASE aa-recursive
 *   silent even with --strict
 * CASE aba-recursive
 *   silent even with --strict
 */
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void again_again(void)
{
    both(&again, &again);
}

static void aa_recursive(void)
{
    in_turn({"one", again_again}, {"two", again_again});
}

static void again_east_again(void)
{
    take(&again);
    both(&east, &again);
    give(&again);
}

static void aba_recursive(void)
{
    in_turn({"one", again_east_again}, {"two", again_east_again});
}

/* CASE aba-recursive-beside-ba
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: again (recursive mutex)
 *     has: east (mutex)
 *     at: east_again() @ea-has
 *     at: east_again() @ea-wants
 *     at: again_east() @ae-has
 *     at: again_east() @ae-wants
 */
static void again_east(void)
{
    take(&again); /* @ae-has */
    take(&again);
    give(&again);
    take(&east); /* @ae-wants */
    give(&east);
    give(&again);
}

static void east_again(void)
{
    take(&east);  /* @ea-has */
    take(&again); /* @ea-wants */
    give(&again);
    give(&east);
}

static void aba_beside_ba(void)
{
    in_turn({"one", again_east}, {"two", east_again});
}

/* CASE abba
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: north (mutex)
 *     has: east (mutex)
 *     has: thread "one"
 *     has: thread "two"
 *     at: north_east() @ne-has-north
 *     at: north_east() @ne-wants-east
 *     at: east_north() @en-has-east
 *     at: east_north() @en-wants-north
 *     lacks: attic
 *     lacks: cellar
 *     lacks: bystander
 */
static void abba(void)
{
    in_turn({"bystander", bystander}, {"one", north_east}, {"two", east_north});
}

/* CASE abab
 *   silent even with --strict
 */
static void abab(void)
{
    in_turn({"one", north_east}, {"two", north_east}, {"three", bystander});
}

/* CASE abba-one-after-the-other
 *   silent even with --strict
 */
static void not_nested(void)
{
    take(&east);
    give(&east);
    take(&north);
    give(&north);
}

static void one_after_the_other(void)
{
    in_turn({"one", north_east}, {"two", not_nested});
}

/* CASE abba-again-and-again
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: north (mutex)
 *     has: east (mutex)
 */
static void often(void)
{
    for (int i = 0; i < 100; i++)
        in_turn({"one", north_east}, {"two", east_north});
}

/* CASE abba-by-one-thread
 *   ORDER: lock order inversion of 2 locks
 *     has: north (mutex)
 *     has: east (mutex)
 *     at: north_east() @ne-wants-east
 *     at: east_north() @en-wants-north
 *     lacks: cellar
 */
static void one_does_both(void)
{
    north_east();
    east_north();
}

static void abba_by_one(void)
{
    in_turn({"bystander", bystander}, {"one", one_does_both});
}

/* CASE abba-by-one-thread-then-two
 *   ORDER: lock order inversion of 2 locks
 *     has: thread "one"
 *     lacks: thread "two"
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: thread "one"
 *     has: thread "two"
 */
static void after_a_while(void)
{
    await_looks(2);
    east_north();
}

static void one_then_two(void)
{
    in_turn({"one", one_does_both}, {"two", after_a_while});
}

/* CASE abba-that-closes hangs
 *   DEADLOCK: 2 threads wait for each other
 *     has: north (mutex)
 *     has: east (mutex)
 *     at: closes_one() @closes-one
 *     at: closes_two() @closes-two
 */
static atomic_int closing;

static void *closes_one(void *unused)
{
    take(&north);
    meet(&closing, 2);
    take(&east); /* @closes-one */
    return unused;
}

static void *closes_two(void *unused)
{
    take(&east);
    meet(&closing, 2);
    take(&north); /* @closes-two */
    return unused;
}

static void closes(void)
{
    hangs_now();
    start(closes_one, NULL, "one");
    start(closes_two, NULL, "two");
    sleep_for_ever();
}

/* CASE abbcca
 *   POTENTIAL: lock order inversion of 3 locks
 *     has: north (mutex)
 *     has: east (mutex)
 *     has: south (mutex)
 *     has: thread "one"
 *     has: thread "two"
 *     has: thread "three"
 *     at: north_east() @ne-wants-east
 *     at: east_south() @es-wants-south
 *     at: south_north() @sn-wants-north
 *     lacks: west
 *     lacks: attic
 */
static void abbcca(void)
{
    in_turn({"one", north_east}, {"bystander", bystander}, {"two", east_south},
            {"three", south_north});
}

/* CASE abcabc
 *   POTENTIAL: lock order inversion of 3 locks
 *     has: north (mutex)
 *     has: east (mutex)
 *     has: south (mutex)
 */
static void abcabc(void)
{
    in_turn({"one", north_east}, {"two", south_north}, {"three", east_south});
}

/* CASE abbcca-by-two-threads
 *   ORDER: lock order inversion of 3 locks
 *     has: north (mutex)
 *     has: east (mutex)
 *     has: south (mutex)
 */
static void one_does_two(void)
{
    north_east();
    east_south();
}

static void abbcca_by_two(void)
{
    in_turn({"one", one_does_two}, {"two", south_north});
}

/* CASE abc-ca
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: north (mutex)
 *     has: south (mutex)
 *     has: thread "one"
 *     has: thread "two"
 *     at: all_three() @abc-has-north
 *     at: all_three() @abc-wants-south
 *     at: south_north() @sn-wants-north
 */
static void all_three(void)
{
    take(&north); /* @abc-has-north */
    take(&east);
    take(&south); /* @abc-wants-south */
    give(&south);
    give(&east);
    give(&north);
}

static void abc_ca(void)
{
    in_turn({"one", all_three}, {"two", south_north});
}

/* CASE abcdbcda
 *   POTENTIAL: lock order inversion of 4 locks
 *     has: north (mutex)
 *     has: east (mutex)
 *     has: south (mutex)
 *     has: west (mutex)
 *     at: north_east() @ne-wants-east
 *     at: east_south() @es-wants-south
 *     at: south_west() @sw-wants-west
 *     at: west_north() @wn-wants-north
 *     lacks: attic
 */
static void abcdbcda(void)
{
    in_turn({"one", north_east}, {"two", south_west}, {"bystander", bystander},
            {"three", east_south}, {"four", west_north});
}

/* CASE abcdbdda
 *   POTENTIAL: lock order inversion of 3 locks
 *     has: north (mutex)
 *     has: east (mutex)
 *     has: west (mutex)
 *     lacks: south
 */
static void abcdbdda(void)
{
    in_turn({"one", north_east}, {"two", south_west}, {"three", east_west},
            {"four", west_north});
}

/* CASE abcdbcad
 *   silent even with --strict
 */
static void north_west(void)
{
    both(&north, &west);
}

static void abcdbcad(void)
{
    in_turn({"one", north_east}, {"two", south_west}, {"three", east_south},
            {"four", north_west});
}

/* CASE philosophers
 *   POTENTIAL: lock order inversion of 5 locks
 *     has: forks[0] (mutex)
 *     has: forks[1] (mutex)
 *     has: forks[2] (mutex)
 *     has: forks[3] (mutex)
 *     has: forks[4] (mutex)
 *     has: thread "philosopher-0"
 *     has: thread "philosopher-4"
 *     at: eats() @fork-left
 *     at: eats() @fork-right
 * CASE philosophers-one-left-handed
 *   silent
 * CASE philosophers-on-the-heap
 *   POTENTIAL: lock order inversion of 5 locks
 *     at: mutex from lays_table() @lays-fork
 *     at: eats() @fork-left
 *     at: eats() @fork-right
 */
#define SEATS 5
static pthread_mutex_t forks[SEATS], *table = forks;
static int left_handed;

static void eats(void)
{
    int seat = atomic_load(&turn), other = (seat + 1) % SEATS;
    if (left_handed && other < seat) {
        both(&table[other], &table[seat]);
        return;
    }
    take(&table[seat]);  /* @fork-left */
    take(&table[other]); /* @fork-right */
    give(&table[other]);
    give(&table[seat]);
}

static void lays_table(void)
{
    for (int i = 0; i < SEATS; i++)
        must(pthread_mutex_init(&table[i], NULL)); /* @lays-fork */
}

static void philosophers(void)
{
    lays_table();
    in_turn({"philosopher-0", eats}, {"philosopher-1", eats}, {"philosopher-2", eats},
            {"philosopher-3", eats}, {"philosopher-4", eats});
}

static void one_left_handed(void)
{
    left_handed = 1;
    philosophers();
}

static void on_the_heap(void)
{
    table = malloc(sizeof forks);
    philosophers();
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"aa", aa},
        {"aa-recursive", aa_recursive},
        {"aba-recursive", aba_recursive},
        {"aba-recursive-beside-ba", aba_beside_ba},
        {"abba", abba},
        {"abab", abab},
        {"abba-one-after-the-other", one_after_the_other},
        {"abba-again-and-again", often},
        {"abba-by-one-thread", abba_by_one},
        {"abba-by-one-thread-then-two", one_then_two},
        {"abba-that-closes", closes},
        {"abbcca", abbcca},
        {"abcabc", abcabc},
        {"abbcca-by-two-threads", abbcca_by_two},
        {"abc-ca", abc_ca},
        {"abcdbcda", abcdbcda},
        {"abcdbdda", abcdbdda},
        {"abcdbcad", abcdbcad},
        {"philosophers", philosophers},
        {"philosophers-one-left-handed", one_left_handed},
        {"philosophers-on-the-heap", on_the_heap},
    };
    return run_case(argc, argument, all, COUNT(all));
}
