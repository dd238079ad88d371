/*
 * The other side of the tests of Python's part, in C: opens or makes the segment of shop.rs.
 *
 * `shop make PATH` makes one; `shop add PATH` adds 1 to the total, under a lock; `shop die PATH` ends
 * by a signal with the lock; `shop carts PATH` takes one of the semaphore's units and says how many
 * are left, and keeps it until its end.
 */
#include <lockstead/shared.h>
#include <lockstead/shm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shop {
    lks_shared_mutex orders;
    lks_shared_mutex shelves[3];
    lks_shared_semaphore carts;
    uint8_t total[8];
};

static const lks_shm_type shelves = LKS_SHM_ARRAY_OF(&lks_shm_mutex, lks_shared_mutex, 3);
static const lks_shm_type total = LKS_SHM_ARRAY_OF(&lks_shm_u8, uint8_t, 8);
static const lks_shm_field fields[] = {
    LKS_SHM_FIELD(struct shop, orders, &lks_shm_mutex),
    LKS_SHM_FIELD(struct shop, shelves, &shelves),
    LKS_SHM_FIELD(struct shop, carts, &lks_shm_semaphore),
    LKS_SHM_FIELD(struct shop, total, &total)};
static const lks_shm_type shop_type = LKS_SHM_STRUCT_OF("Shop", struct shop, fields);

static void fill(void *root, void *argument)
{
    struct shop *shop = root;
    (void)argument;
    lks_shared_semaphore_init(&shop->carts, 2, 0);
}

static int add(struct shop *shop, int dies)
{
    int got = lks_shared_mutex_lock(&shop->shelves[1]);
    if (got == -EOWNERDEAD) {
        printf("recovered\n");
        lks_shared_mutex_consistent(&shop->shelves[1]);
    } else if (got != 0) {
        fprintf(stderr, "shop: %s\n", strerror(-got));
        return 1;
    }
    if (dies)
        abort();
    uint64_t number;
    memcpy(&number, shop->total, sizeof(number));
    number++;
    memcpy(shop->total, &number, sizeof(number));
    printf("total %llu\n", (unsigned long long)number);
    return lks_shared_mutex_unlock(&shop->shelves[1]) != 0;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const char *what = arguments[1];
    lks_shm_segment *segment;
    int failed;
    if (strcmp(what, "make") == 0) {
        lks_shm_options options = LKS_SHM_OPTIONS_INIT;
        options.fill = fill;
        failed = lks_shm_create(&segment, arguments[2], &shop_type, &options);
    } else {
        failed = lks_shm_open(&segment, arguments[2], &shop_type);
    }
    if (failed != 0) {
        fprintf(stderr, "shop: %s\n", lks_shm_reason());
        return 1;
    }
    struct shop *shop = lks_shm_root(segment);
    if (strcmp(what, "carts") == 0) {
        if (lks_shared_semaphore_tryacquire(&shop->carts, 1) != 0)
            return 1;
        printf("carts %u\n", (unsigned)lks_shared_semaphore_free(&shop->carts));
        return 0;
    }
    return strcmp(what, "make") == 0 ? 0 : add(shop, strcmp(what, "die") == 0);
}
