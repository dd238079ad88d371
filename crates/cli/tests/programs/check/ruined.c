/* Locks that something was done to while nobody held them: their memory was freed,
 * or written over as a whole or in part, and then they are used. */
#include "check.h"

struct box {
    pthread_mutex_t lid;
    long items;
    pthread_mutex_t lock;
    pthread_rwlock_t sides;
};

static struct box *box_new(void)
{
    struct box *made = malloc(sizeof *made);
    must(pthread_mutex_init(&made->lid, NULL));  /* @lid-made */
    must(pthread_mutex_init(&made->lock, NULL)); /* @lock-made */
    must(pthread_rwlock_init(&made->sides, NULL));
    return made;
}

static void use(struct box *any)
{
    take(&any->lid);
    give(&any->lid);
    take(&any->lock);
    give(&any->lock);
    must(pthread_rwlock_rdlock(&any->sides));
    must(pthread_rwlock_unlock(&any->sides));
}

/* Through a pointer that no compiler follows. */
static struct box *volatile box;

/* CASE used-in-freed-memory
 *   RULE: use in freed memory
 *     at: mutex from box_new() @lock-made
 *     at: uses_freed() @freed-used
 *     at: uses_freed() @freed-before
 * CASE read-in-freed-memory
 *   RULE: use in freed memory
 *     at: reads_freed() @freed-read
 * CASE used-in-freed-memory-of-the-allocators
 *   RULE: use in freed memory
 *     at: mutex from box_new() @lid-made
 *     at: tries_freed() @freed-tried
 */
static void uses_freed(void)
{
    box = box_new();
    use(box);
    free(box);       /* @freed-before */
    take(&box->lock); /* @freed-used */
    give(&box->lock);
}

static void used_freed(void)
{
    in_a_thread("late", uses_freed);
}

static void reads_freed(void)
{
    box = box_new();
    free(box);
    must(pthread_rwlock_rdlock(&box->sides)); /* @freed-read */
    must(pthread_rwlock_unlock(&box->sides));
}

static void read_freed(void)
{
    in_a_thread("late", reads_freed);
}

/* Of the beginning of a block the allocator makes something of its own. */
static void tries_freed(void)
{
    box = box_new();
    use(box);
    free(box);
    must(pthread_mutex_trylock(&box->lid) != EBUSY); /* @freed-tried */
}

static void tried_freed(void)
{
    in_a_thread("late", tries_freed);
}

/* CASE semaphore-used-in-freed-memory
 *   RULE: use in freed memory
 *     at: waits_freed() @freed-waited
 */
static void waits_freed(void)
{
    struct { long items; sem_t tokens; } *volatile bag = malloc(sizeof *bag);
    must(sem_init(&bag->tokens, 0, 2));
    for (int i = 0; i < 2; i++) {
        must(sem_wait(&bag->tokens)); /* @freed-waited */
        if (i == 0)
            free((void *)bag);
    }
}

static void waited_freed(void)
{
    in_a_thread("late", waits_freed);
}

/* CASE freed-by-another-thread-and-used-as-before
 *   RULE: use in freed memory
 *     at: uses_often() @used-often
 *     at: frees_box() @freed-elsewhere
 */
static void *frees_box(void *unused)
{
    free(box); /* @freed-elsewhere */
    return unused;
}

static void uses_often(void)
{
    box = box_new();
    for (int i = 0; i < 100; i++) {
        if (i == 90)
            must(pthread_join(start(frees_box, NULL, "freer"), NULL));
        take(&box->lock); /* @used-often */
        give(&box->lock);
    }
}

static void freed_elsewhere(void)
{
    in_a_thread("user", uses_often);
}

/* CASE freed-and-allocated-again
 *   silent even with --strict
 * CASE reallocated-where-it-is
 *   silent even with --strict
 */
static void allocated_again(void)
{
    for (int i = 0; i < 8; i++) {
        box = i % 2 ? box_new() : calloc(1, sizeof *box);
        use(box);
        free(box);
        box = malloc(sizeof *box);
        *box = (struct box){PTHREAD_MUTEX_INITIALIZER, 0, PTHREAD_MUTEX_INITIALIZER,
                            PTHREAD_RWLOCK_INITIALIZER};
        use(box);
        free(box);
    }
}

static void reallocated(void)
{
    box = box_new();
    use(box);
    struct box *same = realloc(box, sizeof *box - 8);
    must(same != box);
    use(box);
}

/* CASE wiped-after-initialisation
 *   ORDER: lock overwritten before its use
 *     at: box_new() @lock-made
 *     at: uses_wiped() @wiped-used
 *     has: its words are in order, as an assignment leaves them
 * CASE wiped-in-a-loop
 *   ORDER: lock overwritten before its use
 *     at: uses_in_a_loop() @looped
 * CASE overrun
 *   RULE: lock overwritten before its use
 *     at: box_new() @lock-made
 *     at: uses_overrun() @overrun-used
 * CASE overwritten-by-another-word
 *   RULE: lock overwritten before its use
 *     at: uses_other_word() @word-used
 * CASE overwritten-in-the-middle
 *   RULE: lock overwritten before its use
 *     at: box_new() @lock-made
 *     at: uses_other_middle() @middle-used
 * CASE overwritten-by-another-kind
 *   RULE: lock overwritten before its use
 *     at: uses_other_kind() @kind-used
 * CASE overwritten-at-its-end
 *   ORDER: lock overwritten before its use
 *     at: uses_other_end() @end-used
 */
static void uses_wiped(void)
{
    box = box_new();
    take(&box->lock);
    give(&box->lock);
    memset(&box->lock, 0, sizeof box->lock);
    take(&box->lock); /* @wiped-used */
    give(&box->lock);
}

static void wiped(void)
{
    in_a_thread("wiper", uses_wiped);
}

static void uses_in_a_loop(void)
{
    box = box_new();
    for (int i = 0; i < 100; i++) {
        if (i == 90)
            memset(&box->lock, 0, sizeof box->lock);
        take(&box->lock); /* @looped */
        give(&box->lock);
    }
}

static void wiped_in_a_loop(void)
{
    in_a_thread("wiper", uses_in_a_loop);
}

static void uses_overrun(void)
{
    box = box_new();
    /* What was meant for the items in front of it. */
    memset(&box->items, 0x5a, 40);
    must(pthread_mutex_lock(&box->lock) != EINVAL); /* @overrun-used */
}

static void overrun(void)
{
    in_a_thread("writer", uses_overrun);
}

static void uses_other_word(void)
{
    struct timespec past = {0, 0};
    box = box_new();
    memset(&box->lock, 'A', 4);
    must(pthread_mutex_timedlock(&box->lock, &past) != ETIMEDOUT); /* @word-used */
}

static void other_word(void)
{
    in_a_thread("writer", uses_other_word);
}

static void uses_other_middle(void)
{
    box = box_new();
    memset((char *)&box->lock + 4, 'A', 4);
    take(&box->lock); /* @middle-used */
    give(&box->lock);
}

static void other_middle(void)
{
    in_a_thread("writer", uses_other_middle);
}

static void uses_other_kind(void)
{
    static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    take(&again);
    give(&again);
    memset(&again, 0, 24);
    take(&again); /* @kind-used */
    give(&again);
}

static void other_kind(void)
{
    in_a_thread("writer", uses_other_kind);
}

static void uses_other_end(void)
{
    box = box_new();
    memset((char *)&box->lock + 24, 'A', 16);
    take(&box->lock); /* @end-used */
    give(&box->lock);
}

static void other_end(void)
{
    in_a_thread("writer", uses_other_end);
}

/* CASE assigned-though-it-was-static
 *   silent even with --strict
 * CASE destroyed-and-assigned
 *   silent even with --strict
 */
static void assigned(void)
{
    static struct box parcel = {PTHREAD_MUTEX_INITIALIZER, 0, PTHREAD_MUTEX_INITIALIZER,
                                PTHREAD_RWLOCK_INITIALIZER};
    for (int i = 0; i < 4; i++) {
        use(&parcel);
        memset(&parcel, 0, sizeof parcel);
    }
}

static void destroyed_and_assigned(void)
{
    box = box_new();
    use(box);
    must(pthread_mutex_destroy(&box->lid));
    must(pthread_mutex_destroy(&box->lock));
    must(pthread_rwlock_destroy(&box->sides));
    *box = (struct box){PTHREAD_MUTEX_INITIALIZER, 0, PTHREAD_MUTEX_INITIALIZER,
                        PTHREAD_RWLOCK_INITIALIZER};
    use(box);
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"used-in-freed-memory", used_freed},
        {"read-in-freed-memory", read_freed},
        {"used-in-freed-memory-of-the-allocators", tried_freed},
        {"semaphore-used-in-freed-memory", waited_freed},
        {"freed-by-another-thread-and-used-as-before", freed_elsewhere},
        {"freed-and-allocated-again", allocated_again},
        {"reallocated-where-it-is", reallocated},
        {"wiped-after-initialisation", wiped},
        {"wiped-in-a-loop", wiped_in_a_loop},
        {"overrun", overrun},
        {"overwritten-by-another-word", other_word},
        {"overwritten-in-the-middle", other_middle},
        {"overwritten-by-another-kind", other_kind},
        {"overwritten-at-its-end", other_end},
        {"assigned-though-it-was-static", assigned},
        {"destroyed-and-assigned", destroyed_and_assigned},
    };
    return run_case(argc, argument, all, COUNT(all));
}
