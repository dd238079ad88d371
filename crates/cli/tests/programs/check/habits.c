/* Orders of locks of two origins, never of the same locks: what tells a habit of the
 * program, which comes to the same locks one day, from a plan that never does. */
#include "check.h"

static pthread_mutex_t *lists[8], *items[8], *rooms[8];

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

static pthread_mutex_t *room_new(void)
{
    pthread_mutex_t *made = malloc(sizeof *made);
    must(pthread_mutex_init(made, NULL));
    return made;
}

static void make_all(void)
{
    for (int i = 0; i < 8; i++) {
        lists[i] = list_new();
        items[i] = item_new();
        rooms[i] = room_new();
    }
}

static void list_visit(pthread_mutex_t *list, pthread_mutex_t *item)
{
    take(list); /* @visit-holds */
    take(item); /* @visit-wants */
    give(item);
    give(list);
}

static void item_leave(pthread_mutex_t *item, pthread_mutex_t *list)
{
    take(item); /* @leave-holds */
    take(list); /* @leave-wants */
    give(list);
    give(item);
}

/* CASE two-functions
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: not of the same locks, but of their origins
 *     at: mutex from list_new() @list-made
 *     at: mutex from item_new() @item-made
 *     at: list_visit() @visit-holds
 *     at: list_visit() @visit-wants
 *     at: item_leave() @leave-holds
 *     at: item_leave() @leave-wants
 * CASE two-functions-once-each
 *   ORDER: lock order inversion of 2 locks
 *     has: the locks are not the same, but of the same origin
 * CASE two-functions-of-one-thread
 *   ORDER: lock order inversion of 2 locks
 * CASE many-items-of-one-list
 *   POTENTIAL: lock order inversion of 2 locks
 *     at: list_visit() @visit-wants
 *     at: item_leave() @leave-wants
 */
static void visits(void)
{
    for (int i = 0; i < 3; i++)
        list_visit(lists[i], items[i]);
}

static void leaves(void)
{
    for (int i = 4; i < 7; i++)
        item_leave(items[i], lists[i]);
}

static void two_functions(void)
{
    make_all();
    in_turn({"visitor", visits}, {"leaver", leaves});
}

static void visits_once(void)
{
    list_visit(lists[0], items[0]);
}

static void leaves_once(void)
{
    item_leave(items[1], lists[1]);
}

static void once_each(void)
{
    make_all();
    in_turn({"visitor", visits_once}, {"leaver", leaves_once});
}

static void visits_and_leaves(void)
{
    visits();
    leaves();
}

static void one_thread(void)
{
    make_all();
    in_a_thread("both", visits_and_leaves);
}

static void visits_one_list(void)
{
    for (int i = 0; i < 3; i++)
        list_visit(lists[0], items[i]);
}

static void leaves_one_list(void)
{
    for (int i = 4; i < 7; i++)
        item_leave(items[i], lists[0]);
}

static void one_list(void)
{
    make_all();
    in_turn({"visitor", visits_one_list}, {"leaver", leaves_one_list});
}

/* CASE tree-of-items-and-their-lists
 *   ORDER: lock order inversion of 2 locks
 */
/* An item before the list of its own, the list before the items in it. */
static void owners(void)
{
    for (int i = 0; i < 3; i++)
        item_leave(items[i], lists[i]);
}

static void members(void)
{
    for (int i = 0; i < 3; i++) {
        list_visit(lists[i], items[i + 3]);
        list_visit(lists[i], items[i + 4]);
    }
}

static void tree(void)
{
    make_all();
    in_turn({"owner", owners}, {"member", members});
}

/* CASE each-in-its-room
 *   ORDER: lock order inversion of 2 locks
 */
static void visits_in_rooms(void)
{
    for (int i = 0; i < 3; i++) {
        take(rooms[i]);
        list_visit(lists[i], items[i]);
        give(rooms[i]);
    }
}

static void leaves_in_rooms(void)
{
    for (int i = 4; i < 7; i++) {
        take(rooms[i]);
        item_leave(items[i], lists[i]);
        give(rooms[i]);
    }
}

static void in_rooms(void)
{
    make_all();
    in_turn({"visitor", visits_in_rooms}, {"leaver", leaves_in_rooms});
}

/* CASE both-by-address
 *   ORDER: lock order inversion of 2 locks
 */
static void take_both(pthread_mutex_t *one, pthread_mutex_t *other)
{
    take(one < other ? one : other);
    take(one < other ? other : one);
    give(one);
    give(other);
}

static void takes_upwards(void)
{
    for (int i = 0; i < 3; i++)
        take_both(items[i], lists[i]);
}

static void takes_downwards(void)
{
    for (int i = 4; i < 7; i++)
        take_both(lists[i], items[i]);
}

static int by_address(const void *one, const void *other)
{
    char *a = *(char *const *)one, *b = *(char *const *)other;
    return a < b ? -1 : a > b;
}

static void both_by_address(void)
{
    make_all();
    qsort(lists, 8, sizeof *lists, by_address);
    qsort(items, 8, sizeof *items, by_address);
    /* The lower half of the lists with the upper half of the items, and the other way round. */
    for (int i = 0; i < 4; i++) {
        pthread_mutex_t *upper = items[i + 4];
        must(lists[i] >= upper);
        items[i + 4] = items[i];
        items[i] = upper;
        must(lists[i + 4] <= items[i + 4]);
    }
    in_turn({"one", takes_upwards}, {"two", takes_downwards});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"two-functions", two_functions},
        {"two-functions-once-each", once_each},
        {"two-functions-of-one-thread", one_thread},
        {"many-items-of-one-list", one_list},
        {"tree-of-items-and-their-lists", tree},
        {"each-in-its-room", in_rooms},
        {"both-by-address", both_by_address},
    };
    return run_case(argc, argument, all, COUNT(all));
}
