/* What the programs for `lockstead run --check` share. Each file has many cases,
 * one a run: `shapes abba`. The comment in front of a case says what must be
 * reported, for `tests/check` to read:
 *
 *     CASE name [with --flag ...] [hangs]
 *       silent                       nothing, or
 *       silent even with --strict    nothing, or findings, which may come in any order:
 *       LEVEL: rule                  the exact first line of a finding, less "lockstead: "
 *         has: text                  what its report contains
 *         at: text @mark             "text at this-file.c:N", N the line that carries @mark
 *         lacks: text                what it does not contain
 *
 * Findings of level ORDER are expected with --strict only. A case that hangs
 * prints a line before it does, and is ended from outside. Nothing here deadlocks
 * by chance: threads act one after the other, and all of them are there meanwhile. */
#include "../common.h"

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* Written in place, so that the calls stand in the functions that make them. */
#define take(mutex) must(pthread_mutex_lock(mutex))
#define give(mutex) must(pthread_mutex_unlock(mutex))

/* A thread and what it does. */
struct part {
    const char *name;
    void (*act)(void);
};

static const struct part *parts;
static int part_count;
static atomic_int present, turn;

static inline void *play(void *which)
{
    int mine = (int)(long)which;
    meet(&present, part_count);
    await(&turn, mine);
    parts[mine].act();
    atomic_fetch_add(&turn, 1);
    await(&turn, part_count);
    return NULL;
}

static inline void play_all(const struct part *all, int count)
{
    pthread_t threads[8];
    parts = all;
    part_count = count;
    atomic_store(&present, 0);
    atomic_store(&turn, 0);
    for (int i = 0; i < count; i++)
        threads[i] = start(play, (void *)(long)i, all[i].name);
    for (int i = 0; i < count; i++)
        must(pthread_join(threads[i], NULL));
}

/* The parts, each in a thread of its own, one after the other. */
#define in_turn(...)                                                        \
    do {                                                                    \
        static const struct part all[] = {__VA_ARGS__};                     \
        play_all(all, COUNT(all));                                          \
    } while (0)

/* One thread that does something and ends. */
static inline void in_a_thread(const char *name, void (*act)(void))
{
    const struct part only[] = {{name, act}};
    play_all(only, 1);
}

/* Says that the case goes no further by itself. */
static inline void hangs_now(void)
{
    printf("hangs\n");
    fflush(stdout);
}

/* So many milliseconds from now. */
static inline struct timespec soon(clockid_t clock, long ms)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += ms * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

struct a_case {
    const char *name;
    void (*run)(void);
};

/* Runs the case that is asked for. */
static inline int run_case(int argc, char **argument, const struct a_case *all, int count)
{
    for (int i = 0; argc == 2 && i < count; i++) {
        if (strcmp(argument[1], all[i].name) == 0) {
            all[i].run();
            printf("done\n");
            return 7;
        }
    }
    return 98;
}
