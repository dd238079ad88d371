/* The rules of a lock's memory: initialised, not wiped or copied, kept while the
 * lock is held, begun and ended while it is free. */
#include "check.h"
#include <sys/mman.h>

struct box {
    long items;
    pthread_mutex_t lid;
    pthread_rwlock_t sides;
};

static struct box parcel = {0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};

static struct box *box_new(void)
{
    struct box *made = malloc(sizeof *made);
    /* Fresh memory may be wiped. */
    memset(made, 0, sizeof *made);
    must(pthread_mutex_init(&made->lid, NULL)); /* @lid-made */
    must(pthread_rwlock_init(&made->sides, NULL));
    return made;
}

static void use(struct box *any)
{
    take(&any->lid);
    give(&any->lid);
    must(pthread_rwlock_rdlock(&any->sides));
    must(pthread_rwlock_unlock(&any->sides));
}

/* CASE not-initialised
 *   RULE: use without initialisation
 *     at: uses_garbage() @garbage-used
 * CASE initialised-statically
 *   silent even with --strict
 * CASE wiped-before-initialisation
 *   silent even with --strict
 */
static void uses_garbage(void)
{
    struct box *fresh = malloc(sizeof *fresh);
    /* What malloc gives back may hold anything. */
    memset(fresh, 0x5a, sizeof *fresh);
    fresh->lid.__data.__lock = 0;
    must(pthread_mutex_lock(&fresh->lid) != EINVAL); /* @garbage-used */
}

static void not_initialised(void)
{
    in_a_thread("hasty", uses_garbage);
}

static void initialised_statically(void)
{
    static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
    static pthread_mutex_t zero;
    static pthread_mutex_t kinds[] = {
        PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
        PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
        PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
    };
    static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_rwlock_t writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    struct box *assigned = malloc(sizeof *assigned), *cleared = calloc(1, sizeof *cleared);
    *assigned = (struct box){1, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, PTHREAD_RWLOCK_INITIALIZER};
    take(&plain);
    must(pthread_cond_signal(&changed));
    give(&plain);
    take(&zero);
    give(&zero);
    for (int i = 0; i < COUNT(kinds); i++) {
        take(&kinds[i]);
        give(&kinds[i]);
    }
    must(pthread_rwlock_wrlock(&shared));
    must(pthread_rwlock_unlock(&shared));
    must(pthread_rwlock_rdlock(&writers));
    must(pthread_rwlock_unlock(&writers));
    use(assigned);
    use(cleared);
}

static void wiped_before(void)
{
    for (int i = 0; i < 10; i++) {
        struct box *made = box_new();
        use(made);
        must(pthread_mutex_destroy(&made->lid));
        must(pthread_rwlock_destroy(&made->sides));
        memset(made, 0x5a, sizeof *made);
        free(made);
    }
}

/* CASE wiped-while-held
 *   RULE: held lock overwritten
 *     has: parcel.lid (mutex)
 *     has: thread "wiper"
 *     at: wipes_held() @wiped-held
 *     lacks: parcel.sides
 * CASE wiped-and-given-back
 *   RULE: held lock overwritten
 *     has: parcel.lid (mutex)
 *     at: wipes_and_gives() @wiped-gives
 */
static void wipes_held(void)
{
    take(&parcel.lid); /* @wiped-held */
    memset(&parcel, 0, sizeof parcel);
    take(&parcel.lid);
    give(&parcel.lid);
}

static void wiped_while_held(void)
{
    in_a_thread("wiper", wipes_held);
}

static void wipes_and_gives(void)
{
    take(&parcel.lid); /* @wiped-gives */
    memset(&parcel, 0, sizeof parcel);
    give(&parcel.lid);
}

static void wiped_and_given_back(void)
{
    in_a_thread("wiper", wipes_and_gives);
}

/* CASE copied-while-held
 *   RULE: use of a copied lock
 *     at: uses_copy() @copy-used
 * CASE copied-of-a-kind
 *   RULE: use of a copied lock
 *     at: uses_copy_of_kind() @kind-used
 * CASE copied-while-free
 *   RULE: use of a copied lock
 *     at: mutex from box_new() @lid-made
 *     at: uses_copy_of_free() @free-copy-used
 * CASE moved-by-realloc-while-free
 *   RULE: use of a copied lock
 *     at: uses_moved() @moved-used
 * CASE copied-before-its-first-use
 *   silent even with --strict
 */
static void uses_copy(void)
{
    struct box *copy = malloc(sizeof *copy);
    take(&parcel.lid);
    memcpy(copy, &parcel, sizeof *copy);
    give(&parcel.lid);
    struct timespec past = {0, 0};
    must(pthread_mutex_timedlock(&copy->lid, &past) != ETIMEDOUT); /* @copy-used */
}

static void copied_while_held(void)
{
    in_a_thread("copier", uses_copy);
}

/* No static initialiser makes such a one. */
static void uses_copy_of_kind(void)
{
    pthread_mutexattr_t attribute;
    struct box *one = box_new(), *copy = malloc(sizeof *copy);
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_setprotocol(&attribute, PTHREAD_PRIO_INHERIT));
    must(pthread_mutex_init(&one->lid, &attribute));
    use(one);
    memcpy(copy, one, sizeof *copy);
    take(&copy->lid); /* @kind-used */
    give(&copy->lid);
}

static void copied_of_a_kind(void)
{
    in_a_thread("copier", uses_copy_of_kind);
}

static void uses_copy_of_free(void)
{
    struct box *one = box_new(), *copy = malloc(sizeof *copy);
    use(one);
    memcpy(copy, one, sizeof *copy);
    take(&copy->lid); /* @free-copy-used */
    give(&copy->lid);
}

static void copied_while_free(void)
{
    in_a_thread("copier", uses_copy_of_free);
}

static void uses_moved(void)
{
    struct box *one = box_new(), *behind = malloc(sizeof *behind);
    use(one);
    struct box *moved = realloc(one, 1000 * sizeof *one);
    must((void *)moved == (void *)behind);
    take(&moved->lid); /* @moved-used */
    give(&moved->lid);
}

static void moved_while_free(void)
{
    in_a_thread("mover", uses_moved);
}

static void copied_before(void)
{
    static const struct box pattern = {5, PTHREAD_MUTEX_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
    for (int i = 0; i < 3; i++) {
        struct box *copy = malloc(sizeof *copy), other = pattern;
        memcpy(copy, &pattern, sizeof *copy);
        use(copy);
        use(&other);
    }
}

/* CASE freed-while-held
 *   RULE: memory of a held lock freed
 *     at: mutex from box_new() @lid-made
 *     at: frees_held() @freed-held
 *     at: frees_held() @freed-here
 * CASE moved-by-realloc-while-held
 *   RULE: memory of a held lock freed
 *     at: mutex from box_new() @lid-made
 *     at: reallocates_held() @moved-held
 *     at: reallocates_held() @moved-here
 * CASE freed-while-free
 *   silent even with --strict
 */
static void frees_held(void)
{
    struct box *held = box_new();
    take(&held->lid); /* @freed-held */
    free(held);       /* @freed-here */
}

static void freed_while_held(void)
{
    in_a_thread("freer", frees_held);
}

static void reallocates_held(void)
{
    struct box *held = box_new(), *behind = malloc(sizeof *behind);
    take(&held->lid);                                       /* @moved-held */
    struct box *moved = realloc(held, 1000 * sizeof *held); /* @moved-here */
    must((void *)moved == (void *)behind);
}

static void moved_while_held(void)
{
    in_a_thread("mover", reallocates_held);
}

static void freed_while_free(void)
{
    for (int i = 0; i < 10; i++) {
        struct box *made = box_new();
        use(made);
        free(made);
    }
}

/* CASE unmapped-while-held
 *   RULE: memory of a held lock unmapped
 *     at: mutex from box_in_a_mapping() @mapped-lid-made
 *     at: unmaps_held() @unmapped-held
 *     at: unmaps_held() @unmapped-here
 * CASE unmapped-while-free
 *   silent even with --strict
 */
static struct box *box_in_a_mapping(void)
{
    struct box *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must((void *)made == MAP_FAILED);
    must(pthread_mutex_init(&made->lid, NULL)); /* @mapped-lid-made */
    must(pthread_rwlock_init(&made->sides, NULL));
    return made;
}

static void unmaps_held(void)
{
    struct box *held = box_in_a_mapping();
    take(&held->lid);         /* @unmapped-held */
    must(munmap(held, 4096)); /* @unmapped-here */
}

static void unmapped_while_held(void)
{
    in_a_thread("unmapper", unmaps_held);
}

static void unmapped_while_free(void)
{
    for (int i = 0; i < 10; i++) {
        struct box *made = box_in_a_mapping();
        use(made);
        must(munmap(made, 4096));
    }
}

/* CASE stack-left-while-held
 *   RULE: stack of a held lock left
 *     at: keeps_local() @local-held
 * CASE stack-left-while-free
 *   silent even with --strict
 */
static __attribute__((noinline)) void keeps_local(int held)
{
    struct box local = {0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
    use(&local);
    if (held)
        take(&local.lid); /* @local-held */
}

static void leaves_stack(void)
{
    keeps_local(1);
    use(&parcel);
}

static void stack_left_held(void)
{
    in_a_thread("leaver", leaves_stack);
}

static void leaves_stack_free(void)
{
    for (int i = 0; i < 10; i++) {
        keeps_local(0);
        use(&parcel);
    }
}

static void stack_left_free(void)
{
    in_a_thread("leaver", leaves_stack_free);
}

/* CASE initialised-while-held
 *   RULE: initialised while held
 *     has: parcel.lid (mutex)
 *     at: initialises_held() @init-held
 *     at: initialises_held() @init-here
 * CASE rwlock-initialised-while-held
 *   RULE: initialised while held
 *     has: parcel.sides (rwlock)
 * CASE initialised-twice
 *   silent even with --strict
 */
static void initialises_held(void)
{
    take(&parcel.lid);                            /* @init-held */
    must(pthread_mutex_init(&parcel.lid, NULL)); /* @init-here */
}

static void initialised_while_held(void)
{
    in_a_thread("again", initialises_held);
}

static void initialises_read(void)
{
    must(pthread_rwlock_rdlock(&parcel.sides));
    must(pthread_rwlock_init(&parcel.sides, NULL));
}

static void rwlock_initialised(void)
{
    in_a_thread("again", initialises_read);
}

static void initialised_twice(void)
{
    struct box *made = box_new();
    use(made);
    must(pthread_mutex_init(&made->lid, NULL));
    use(made);
}

/* CASE destroyed-while-held
 *   RULE: destroyed while held
 *     at: mutex from box_new() @lid-made
 *     at: destroys_held() @destroy-held
 *     at: destroys_held() @destroy-here
 * CASE used-after-destruction
 *   RULE: use after destruction
 *     at: mutex from box_new() @lid-made
 *     at: uses_destroyed() @destroyed-before
 *     at: uses_destroyed() @destroyed-used
 * CASE rwlock-used-after-destruction
 *   RULE: use after destruction
 *     at: reads_destroyed() @sides-used
 * CASE used-after-destruction-and-initialisation
 *   silent even with --strict
 */
static void destroys_held(void)
{
    struct box *held = box_new();
    take(&held->lid);                                 /* @destroy-held */
    must(pthread_mutex_destroy(&held->lid) != EBUSY); /* @destroy-here */
    give(&held->lid);
}

static void destroyed_while_held(void)
{
    in_a_thread("destroyer", destroys_held);
}

static void uses_destroyed(void)
{
    struct box *gone = box_new();
    must(pthread_mutex_destroy(&gone->lid));        /* @destroyed-before */
    must(pthread_mutex_lock(&gone->lid) != EINVAL); /* @destroyed-used */
}

static void used_after(void)
{
    in_a_thread("late", uses_destroyed);
}

static void reads_destroyed(void)
{
    struct box *gone = box_new();
    must(pthread_rwlock_destroy(&gone->sides));
    must(pthread_rwlock_rdlock(&gone->sides)); /* @sides-used */
    must(pthread_rwlock_unlock(&gone->sides));
}

static void rwlock_used_after(void)
{
    in_a_thread("late", reads_destroyed);
}

static void used_anew(void)
{
    struct box *made = box_new();
    for (int i = 0; i < 3; i++) {
        use(made);
        must(pthread_mutex_destroy(&made->lid));
        must(pthread_rwlock_destroy(&made->sides));
        must(pthread_mutex_init(&made->lid, NULL));
        must(pthread_rwlock_init(&made->sides, NULL));
    }
    must(pthread_mutex_destroy(&made->lid));
    made->lid = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    use(made);
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"not-initialised", not_initialised},
        {"initialised-statically", initialised_statically},
        {"wiped-before-initialisation", wiped_before},
        {"wiped-while-held", wiped_while_held},
        {"wiped-and-given-back", wiped_and_given_back},
        {"copied-while-held", copied_while_held},
        {"copied-of-a-kind", copied_of_a_kind},
        {"copied-while-free", copied_while_free},
        {"moved-by-realloc-while-free", moved_while_free},
        {"copied-before-its-first-use", copied_before},
        {"freed-while-held", freed_while_held},
        {"moved-by-realloc-while-held", moved_while_held},
        {"freed-while-free", freed_while_free},
        {"unmapped-while-held", unmapped_while_held},
        {"unmapped-while-free", unmapped_while_free},
        {"stack-left-while-held", stack_left_held},
        {"stack-left-while-free", stack_left_free},
        {"initialised-while-held", initialised_while_held},
        {"rwlock-initialised-while-held", rwlock_initialised},
        {"initialised-twice", initialised_twice},
        {"destroyed-while-held", destroyed_while_held},
        {"used-after-destruction", used_after},
        {"rwlock-used-after-destruction", rwlock_used_after},
        {"used-after-destruction-and-initialisation", used_anew},
    };
    return run_case(argc, argument, all, COUNT(all));
}
