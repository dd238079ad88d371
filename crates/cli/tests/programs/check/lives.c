/* Memory that holds one pair of locks after another. Each life has the opposite
 * order, by another thread, and so has no cycle; that the addresses are the same
 * is checked. The siblings do the same within one life. */
#include "check.h"
#include <sys/mman.h>

struct pair {
    pthread_mutex_t left, right;
    char rest[200];
};

static struct pair *now;
static void *before;

static void left_right(void)
{
    take(&now->left);  /* @left-held */
    take(&now->right); /* @right-wanted */
    give(&now->right);
    give(&now->left);
}

static void right_left(void)
{
    take(&now->right); /* @right-held */
    take(&now->left);  /* @left-wanted */
    give(&now->left);
    give(&now->right);
}

/* Another life, other places that begin it. */
static void begin_one(struct pair *at)
{
    must(pthread_mutex_init(&at->left, NULL));  /* @left-made */
    must(pthread_mutex_init(&at->right, NULL)); /* @right-made */
    now = at;
}

static void begin_two(struct pair *at)
{
    must(pthread_mutex_init(&at->left, NULL));
    must(pthread_mutex_init(&at->right, NULL));
    now = at;
}

static void end(struct pair *at)
{
    must(pthread_mutex_destroy(&at->left));
    must(pthread_mutex_destroy(&at->right));
}

/* Initialised by nothing that could be seen. */
static void begin_unseen(struct pair *at)
{
    at->left = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    at->right = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    now = at;
}

/* The first time remembers where, then it must be the same place. */
static void same_place(void *at)
{
    must(before != NULL && before != at);
    before = at;
}

/* CASE one-life
 *   POTENTIAL: lock order inversion of 2 locks
 *     at: mutex from begin_one() @left-made
 *     at: mutex from begin_one() @right-made
 *     at: left_right() @left-held
 *     at: left_right() @right-wanted
 *     at: right_left() @right-held
 *     at: right_left() @left-wanted
 */
static void one_life(void)
{
    begin_one(malloc(sizeof(struct pair)));
    in_turn({"one", left_right}, {"two", right_left});
}

/* CASE destroyed-and-begun-anew
 *   silent even with --strict
 * CASE begun-anew
 *   silent even with --strict
 */
static void destroyed_and_begun_anew(void)
{
    struct pair *only = malloc(sizeof *only);
    begin_one(only);
    in_a_thread("one", left_right);
    end(only);
    begin_two(only);
    in_a_thread("two", right_left);
}

static void begun_anew(void)
{
    struct pair *only = malloc(sizeof *only);
    begin_one(only);
    in_a_thread("one", left_right);
    begin_two(only);
    in_a_thread("two", right_left);
}

/* CASE assigned-anew
 *   silent
 * CASE assigned-anew-between-threads-that-stay
 *   silent
 * CASE one-life-between-threads-that-stay
 *   POTENTIAL: lock order inversion of 2 locks
 */
static void assigned_anew(void)
{
    struct pair *only = malloc(sizeof *only);
    for (int life = 0; life < 4; life++) {
        begin_unseen(only);
        in_a_thread("any", life % 2 ? left_right : right_left);
    }
}

static int lives_each;

static void by_turns(int mine, void (*act)(void))
{
    static atomic_int round;
    for (int i = 0; i < 8; i++) {
        await(&round, 2 * i + mine);
        if (lives_each)
            begin_unseen(now);
        act();
        atomic_fetch_add(&round, 1);
    }
}

static void *one_stays(void *unused)
{
    by_turns(0, left_right);
    return unused;
}

static void *another_stays(void *unused)
{
    by_turns(1, right_left);
    return unused;
}

static void two_stay(void)
{
    begin_unseen(malloc(sizeof(struct pair)));
    pthread_t one = start(one_stays, NULL, "one");
    pthread_t two = start(another_stays, NULL, "two");
    must(pthread_join(one, NULL));
    must(pthread_join(two, NULL));
}

static void assigned_by_those_that_stay(void)
{
    lives_each = 1;
    two_stay();
}

/* CASE freed
 *   silent even with --strict
 * CASE freed-unseen
 *   silent
 * CASE freed-one-of-two
 *   silent
 */
static void freed(void)
{
    struct pair *one = malloc(sizeof *one);
    same_place(one);
    begin_one(one);
    in_a_thread("one", left_right);
    free(one);
    struct pair *two = malloc(sizeof *two);
    same_place(two);
    begin_two(two);
    in_a_thread("two", right_left);
    free(two);
}

static void freed_unseen(void)
{
    for (int life = 0; life < 4; life++) {
        struct pair *only = malloc(sizeof *only);
        same_place(only);
        begin_unseen(only);
        in_a_thread("any", life % 2 ? left_right : right_left);
        free(only);
    }
}

/* A lock that stays, beside one that comes and goes in the same place. */
static pthread_mutex_t root = PTHREAD_MUTEX_INITIALIZER;

static void root_left(void)
{
    take(&root);
    take(&now->left);
    give(&now->left);
    give(&root);
}

static void left_root(void)
{
    take(&now->left);
    take(&root);
    give(&root);
    give(&now->left);
}

static void freed_one_of_two(void)
{
    for (int life = 0; life < 4; life++) {
        struct pair *only = malloc(sizeof *only);
        same_place(only);
        begin_unseen(only);
        in_a_thread("any", life % 2 ? left_root : root_left);
        free(only);
    }
}

/* CASE freed-by-realloc
 *   silent
 * CASE freed-by-another-thread
 *   silent
 * CASE freed-in-a-block
 *   silent
 */
static void freed_by_realloc(void)
{
    struct pair *one = malloc(sizeof *one), *barrier = malloc(sizeof *one);
    begin_one(one);
    same_place(one);
    in_a_thread("one", left_right);
    /* It moves: something lies behind it. */
    struct pair *moved = realloc(one, 100 * sizeof *one);
    must(moved == before);
    struct pair *two = malloc(sizeof *two);
    same_place(two);
    begin_two(two);
    in_a_thread("two", right_left);
    free(moved);
    free(barrier);
}

static void *frees(void *what)
{
    free(what);
    return NULL;
}

static void freed_elsewhere(void)
{
    /* Above what threads keep for themselves, so that it comes back. */
    size_t size = 64 << 10;
    struct pair *one = malloc(size);
    void *barrier = malloc(10);
    same_place(one);
    begin_one(one);
    in_a_thread("one", left_right);
    must(pthread_join(start(frees, one, "frees"), NULL));
    struct pair *two = malloc(size);
    same_place(two);
    begin_two(two);
    in_a_thread("two", right_left);
    free(two);
    free(barrier);
}

static void freed_in_a_block(void)
{
    for (int life = 0; life < 4; life++) {
        char *block = malloc(400 * sizeof(struct pair));
        same_place(block);
        begin_unseen((struct pair *)block + 333);
        in_a_thread("any", life % 2 ? left_right : right_left);
        free(block);
    }
}

/* CASE on-the-stack-of-a-function
 *   silent
 * CASE on-the-stack-unseen
 *   silent
 * CASE on-the-stack-of-one-call
 *   POTENTIAL: lock order inversion of 2 locks
 */
static __attribute__((noinline)) void has_pair(void (*begin)(struct pair *), void (*act)(void))
{
    struct pair local;
    same_place(&local);
    begin(&local);
    in_a_thread("any", act);
}

static void on_the_stack(void)
{
    has_pair(begin_one, left_right);
    has_pair(begin_two, right_left);
}

static void on_the_stack_unseen(void)
{
    for (int life = 0; life < 4; life++) {
        has_pair(begin_unseen, life % 2 ? left_right : right_left);
        take(&root);
        give(&root);
    }
}

static void on_the_stack_of_one_call(void)
{
    struct pair local;
    begin_unseen(&local);
    in_turn({"one", left_right}, {"two", right_left});
}

/* CASE on-the-stack-of-an-ended-thread
 *   silent
 * CASE thread-local
 *   silent
 */
static atomic_int lives;

static void *has_pair_of_its_own(void *unused)
{
    struct pair local;
    same_place(&local);
    begin_unseen(&local);
    if (atomic_fetch_add(&lives, 1) % 2)
        left_right();
    else
        right_left();
    return unused;
}

static void ended_threads(void)
{
    pthread_t thread;
    for (int life = 0; life < 6; life++) {
        must(pthread_create(&thread, NULL, has_pair_of_its_own, NULL));
        must(pthread_join(thread, NULL));
    }
}

static _Thread_local struct pair own = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, ""};

static void *uses_thread_local(void *unused)
{
    same_place(&own);
    now = &own;
    if (atomic_fetch_add(&lives, 1) % 2)
        left_right();
    else
        right_left();
    return unused;
}

static void thread_local_pair(void)
{
    pthread_t thread;
    for (int life = 0; life < 6; life++) {
        must(pthread_create(&thread, NULL, uses_thread_local, NULL));
        must(pthread_join(thread, NULL));
    }
}

/* CASE in-a-mapping
 *   silent
 * CASE mapped-over
 *   silent
 * CASE mapping-of-one-life
 *   POTENTIAL: lock order inversion of 2 locks
 */
static struct pair *map(void *at, int flags)
{
    char *pages = mmap(at, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    must(pages == MAP_FAILED);
    same_place(pages);
    return (struct pair *)(pages + 4096);
}

static void unmap(struct pair *at)
{
    must(munmap((char *)at - 4096, 8192));
}

static void in_a_mapping(void)
{
    for (int life = 0; life < 4; life++) {
        begin_unseen(map(before, 0));
        in_a_thread("any", life % 2 ? left_right : right_left);
        unmap(now);
    }
}

static void mapped_over(void)
{
    for (int life = 0; life < 4; life++) {
        begin_unseen(map(before, life ? MAP_FIXED : 0));
        in_a_thread("any", life % 2 ? left_right : right_left);
    }
}

static void mapping_of_one_life(void)
{
    begin_unseen(map(NULL, 0));
    in_turn({"one", left_right}, {"two", right_left});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"one-life", one_life},
        {"destroyed-and-begun-anew", destroyed_and_begun_anew},
        {"begun-anew", begun_anew},
        {"assigned-anew", assigned_anew},
        {"assigned-anew-between-threads-that-stay", assigned_by_those_that_stay},
        {"one-life-between-threads-that-stay", two_stay},
        {"freed", freed},
        {"freed-unseen", freed_unseen},
        {"freed-one-of-two", freed_one_of_two},
        {"freed-by-realloc", freed_by_realloc},
        {"freed-by-another-thread", freed_elsewhere},
        {"freed-in-a-block", freed_in_a_block},
        {"on-the-stack-of-a-function", on_the_stack},
        {"on-the-stack-unseen", on_the_stack_unseen},
        {"on-the-stack-of-one-call", on_the_stack_of_one_call},
        {"on-the-stack-of-an-ended-thread", ended_threads},
        {"thread-local", thread_local_pair},
        {"in-a-mapping", in_a_mapping},
        {"mapped-over", mapped_over},
        {"mapping-of-one-life", mapping_of_one_life},
    };
    return run_case(argc, argument, all, COUNT(all));
}
