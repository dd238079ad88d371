/* A program that writes over what lockstead reads: `scribbles FIRST COUNT` has
 * COUNT children, each with a seed of its own, deadlocked threads and threads
 * that go on, which damage their ledgers and end as they like. `scribbles claims`
 * only writes over the counters. Without lockstead there is nothing to write
 * over. */
#include "common.h"
#include <inttypes.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t free_one = PTHREAD_MUTEX_INITIALIZER;
static atomic_int came;
static uint64_t state;

static uint64_t any(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void *cross(void *first)
{
    must(pthread_mutex_lock(first));
    meet(&came, 2);
    must(pthread_mutex_lock(first == &one ? &two : &one));
    return NULL;
}

static void *goes_on(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&free_one);
        nap(1);
        pthread_mutex_unlock(&free_one);
    }
    return unused;
}

/* The first word of the ledger, as the maps have it. */
static volatile uint64_t *ledger(void)
{
    char line[512];
    uintptr_t start = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && start == 0 && fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "memfd:lockstead") != NULL)
            start = (uintptr_t)strtoull(line, NULL, 16);
    if (maps != NULL)
        fclose(maps);
    return (volatile uint64_t *)start;
}

/* Writes over some of it: over the counters behind the layout, or the beginning
 * of one of the fourteen parts that the layout tells of. */
static void scribble(volatile uint64_t *words)
{
    /* Where offsets stand in the layout, which begins with the fifth word. */
    static const int offsets[] = {5, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32};
    for (uint64_t i = any(20) + 1; i > 0; i--) {
        volatile uint64_t *at = words + 34 + any(40);
        uint64_t part = any(18);
        if (part < 14)
            at = words + words[offsets[part]] / 8 + any(part == 0 ? 4096 : 600);
        uint64_t how = any(5), length = any(4) ? 1 : any(200);
        for (; length > 0; length--, at++)
            *at = how == 0   ? UINT64_MAX
                  : how == 1 ? state * 0x9e3779b97f4a7c15
                  : how == 2 ? *at ^ (uint64_t)1 << any(64)
                  : how == 3 ? *at + any(16)
                             : 0;
    }
}

static void child(uint64_t seed)
{
    state = seed * 0x9e3779b97f4a7c15 + 1;
    start(cross, &one, "forth");
    start(cross, &two, "back");
    for (int i = 0; i < 3; i++)
        start(goes_on, NULL, "on");
    volatile uint64_t *words = ledger();
    nap(any(60));
    for (int times = 0; words != NULL && times < 4; times++) {
        scribble(words);
        nap(any(25));
    }
    _exit(0);
}

/* Claims that all parts of the ledger are full. */
static int claims(void)
{
    must(pthread_mutex_lock(&one));
    volatile uint64_t *words = ledger();
    /* It has been looked at before. */
    await_looks(1);
    for (int at = 34; words != NULL && at < 43; at++)
        words[at] = UINT32_MAX;
    await_looks(1);
    puts("done");
    fflush(stdout);
    _exit(7);
}

int main(int argc, char **argument)
{
    if (argc == 2)
        return claims();
    if (argc != 3)
        return 98;
    uint64_t first = strtoull(argument[1], NULL, 10), count = strtoull(argument[2], NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++) {
        int status;
        pid_t born = fork();
        if (born == 0)
            child(seed);
        /* Its own end is its own affair, unless it does not come. */
        for (int i = 0; waitpid(born, &status, WNOHANG) == 0; i++) {
            if (i == 2000)
                kill(born, SIGKILL);
            nap(1);
        }
    }
    puts("done");
    return 7;
}
