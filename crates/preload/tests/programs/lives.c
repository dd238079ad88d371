/* One lock after another in the same memory. Each pair is taken in one order in its
 * first life and in the other one in its second. */

#include <string.h>
#include <sys/mman.h>
#include "stops.h"

struct pair {
    pthread_mutex_t left, right;
};

static pthread_mutex_t stays = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void nest(pthread_mutex_t *first, pthread_mutex_t *second)
{
    if (pthread_mutex_lock(first) || pthread_mutex_lock(second) || pthread_mutex_unlock(second) ||
        pthread_mutex_unlock(first))
        abort();
}

static void *known;

/* The memory is that of the life before. */
static struct pair *at(const char *name, void *memory, int life)
{
    if (life == 0)
        show(name, (unsigned long)memory);
    else if (memory != known)
        abort();
    known = memory;
    struct pair *pair = memory;
    pair->left = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pair->right = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    return pair;
}

static void live(struct pair *pair, int life)
{
    for (int i = 0; i < 3; i++) {
        if (life % 2)
            nest(&pair->left, &pair->right);
        else
            nest(&pair->right, &pair->left);
    }
}

static void *live_first(void *pair)
{
    live(pair, 0);
    return NULL;
}

static void *live_second(void *pair)
{
    live(pair, 1);
    return NULL;
}

static void live_elsewhere(struct pair *pair, int life)
{
    pthread_join(start("other", life % 2 ? live_second : live_first, pair), NULL);
}

__attribute__((noinline)) static void in_a_frame(const char *name, int life, int elsewhere)
{
    struct pair local;
    (elsewhere ? live_elsewhere : live)(at(name, &local, life), life);
    __asm__ volatile("" : : "r"(&local) : "memory");
}

struct life {
    const char *name;
    int number;
};

static void *on_its_stack(void *life)
{
    struct life *this = life;
    in_a_frame(this->name, this->number, 0);
    return NULL;
}

int main(void)
{
    char *mapping = NULL;
    void *block;
    /* So that it comes to lie where no other lock was. */
    struct pair *kept = malloc(600);
    for (int life = 0; life < 2; life++) {
        block = malloc(100);
        live(at("freed", block, life), life);
        free(block);
    }
    for (int life = 0; life < 2; life++) {
        block = malloc(300);
        live_elsewhere(at("freed_by_other", block, life), life);
        free(block);
    }
    for (int life = 0; life < 2; life++) {
        char *large = malloc(100000);
        live(at("within", large + 54320, life), life);
        free(large);
    }
    void *barriers[2];
    for (int life = 0; life < 2; life++) {
        block = malloc(1000);
        barriers[life] = malloc(1000);
        live(at("moved", block, life), life);
        block = realloc(block, 100000);
        free(block);
    }
    free(barriers[0]);
    free(barriers[1]);
    for (int life = 0; life < 2; life++) {
        mapping = mmap(mapping, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        live(at("unmapped", mapping + 4096, life), life);
        munmap(mapping, 8192);
    }
    mapping = NULL;
    for (int life = 0; life < 2; life++) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | (life ? MAP_FIXED : 0);
        mapping = mmap(mapping, 8192, PROT_READ | PROT_WRITE, flags, -1, 0);
        live(at("mapped_over", mapping + 64, life), life);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int life = 0; life < 2; life++) {
        char *region = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (life) {
            munmap(region, 4 * page);
            region = mmap(mapping, 4 * page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        }
        mapping = region;
        live(at("remapped", region + 3 * page, life), life);
        if (mremap(region, 4 * page, 2 * page, 0) != region)
            abort();
    }

    /* A call above the frame; the second time it is one that is known. */
    for (int life = 0; life < 4; life++) {
        in_a_frame("frame", life, 0);
        pthread_mutex_lock(&stays);
        pthread_mutex_unlock(&stays);
    }
    for (int life = 0; life < 4; life++) {
        in_a_frame("frame_of_other", life, 1);
        pthread_mutex_lock(&stays);
        pthread_mutex_unlock(&stays);
    }
    /* No call above, but from elsewhere. */
    in_a_frame("called_again", 0, 0);
    in_a_frame("called_again", 1, 0);

    for (int life = 0; life < 2; life++) {
        struct life this = {"ended", life};
        pthread_join(start("short", on_its_stack, &this), NULL);
    }

    /* Blocks that never had locks, and one that has them still. */
    kept = at("kept", kept, 0);
    for (int life = 0; life < 2; life++) {
        for (int i = 0; i < 1000; i++)
            free(memset(malloc(100 + i), 1, 100));
        live(kept, life);
    }
    stop("the end");
    return 0;
}
