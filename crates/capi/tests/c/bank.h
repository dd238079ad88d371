/* A root that programs in C, C++ and Rust share: `tests/shared.rs` has the same. */
#ifndef BANK_H
#define BANK_H

#include "expect.h"

#define ACCOUNTS 1000

struct account {
    lks_shared_mutex lock;
    int64_t balance;
};

struct rates {
    lks_shared_rwlock lock;
    uint64_t of[2];
};

struct bank {
    uint32_t stage;
    uint32_t spare;
    struct account accounts[ACCOUNTS];
    struct rates rates;
    lks_shared_semaphore clerks;
    lks_shared_cond changed;
    uint8_t notes[64];
};

static const lks_shm_type account_type =
    LKS_SHM_LOCK_OF(LKS_SHM_MUTEX, struct account, balance, &lks_shm_i64);
static const lks_shm_type accounts_type = LKS_SHM_ARRAY_OF(&account_type, struct account, ACCOUNTS);
static const lks_shm_type pair_type = LKS_SHM_ARRAY_OF(&lks_shm_u64, uint64_t, 2);
static const lks_shm_type rates_type =
    LKS_SHM_LOCK_OF(LKS_SHM_RWLOCK, struct rates, of, &pair_type);
static const lks_shm_type notes_type = LKS_SHM_ARRAY_OF(&lks_shm_u8, uint8_t, 64);
static const lks_shm_field bank_fields[] = {
    LKS_SHM_FIELD(struct bank, stage, &lks_shm_u32),
    LKS_SHM_FIELD(struct bank, spare, &lks_shm_u32),
    LKS_SHM_FIELD(struct bank, accounts, &accounts_type),
    LKS_SHM_FIELD(struct bank, rates, &rates_type),
    LKS_SHM_FIELD(struct bank, clerks, &lks_shm_semaphore),
    LKS_SHM_FIELD(struct bank, changed, &lks_shm_cond),
    LKS_SHM_FIELD(struct bank, notes, &notes_type)};
static const lks_shm_type bank_type = LKS_SHM_STRUCT_OF("Bank", struct bank, bank_fields);

static inline void fill_bank(void *root, void *clerks)
{
    struct bank *bank = (struct bank *)root;
    lks_shared_semaphore_init(&bank->clerks, *(uint32_t *)clerks, 1);
    bank->accounts[7].balance = 77;
}

/* What went wrong with a segment. */
#define OPENED(call)                                                               \
    do {                                                                           \
        int error = (call);                                                        \
        if (error) {                                                               \
            fprintf(stderr, "%s:%d: %d: %s\n", __FILE__, __LINE__, error, lks_shm_reason()); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

/* A segment without a name, with three clerks. */
static inline lks_shm_segment *new_bank(void)
{
    lks_shm_segment *segment;
    uint32_t clerks = 3;
    lks_shm_options options = LKS_SHM_OPTIONS_INIT;
    options.fill = fill_bank;
    options.argument = &clerks;
    OPENED(lks_shm_memfd(&segment, "bank", &bank_type, &options));
    return segment;
}

#endif
