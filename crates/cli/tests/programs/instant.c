/* `instant threads N`: N times two new threads take two new mutexes in both
 * orders, the second steps at one instant or nearly. `instant processes N`: the
 * same, in N children. */
#include "common.h"

struct pair {
    pthread_mutex_t mutex[2];
    atomic_int met;
    unsigned jitter[2];
};

struct side {
    struct pair *pair;
    int which;
};

static void *cross(void *argument)
{
    struct side *side = argument;
    struct pair *pair = side->pair;
    must(pthread_mutex_lock(&pair->mutex[side->which]));
    atomic_fetch_add(&pair->met, 1);
    while (atomic_load(&pair->met) < 2) {
    }
    for (volatile unsigned i = 0; i < pair->jitter[side->which]; i++) {
    }
    must(pthread_mutex_lock(&pair->mutex[!side->which]));
    return NULL;
}

static void close_one(unsigned *seed)
{
    struct pair *pair = calloc(1, sizeof *pair);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (int i = 0; i < 2; i++) {
        must(pthread_mutex_init(&pair->mutex[i], NULL));
        pair->jitter[i] = rand_r(seed) % 2000;
    }
    for (int i = 0; i < 2; i++) {
        struct side *side = malloc(sizeof *side);
        pthread_t thread;
        side->pair = pair;
        side->which = i;
        must(pthread_create(&thread, &small, cross, side));
    }
}

int main(int count, char **argument)
{
    unsigned seed = 1;
    if (count != 3)
        return 96;
    for (int i = 0; i < atoi(argument[2]); i++) {
        if (strcmp(argument[1], "threads") == 0) {
            close_one(&seed);
        } else if (fork() == 0) {
            seed = i;
            close_one(&seed);
            sleep_for_ever();
        }
    }
    sleep_for_ever();
}
