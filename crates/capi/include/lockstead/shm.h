/*
 * Segments: memory that processes share, for the locks of shared.h, which survive their
 * holders.
 *
 * A segment is a file: with a name, or in memory only and handed on as a descriptor.
 * Whoever makes it says what its root, the program's part of it, consists of; that
 * stands in the file. So `lockstead shm` lists the locks by their names, with their
 * holders, and a program that has another idea of the layout, be it in C or in Rust,
 * is told so when it opens the file.
 *
 *     struct account { lks_shared_mutex lock; int64_t balance; };
 *     struct bank { struct account accounts[100]; };
 *
 *     static const lks_shm_field account_fields[] = {
 *         LKS_SHM_FIELD(struct account, lock, &lks_shm_mutex),
 *         LKS_SHM_FIELD(struct account, balance, &lks_shm_i64)};
 *     static const lks_shm_type account_type =
 *         LKS_SHM_STRUCT_OF("Account", struct account, account_fields);
 *     static const lks_shm_type accounts_type =
 *         LKS_SHM_ARRAY_OF(&account_type, struct account, 100);
 *     static const lks_shm_field bank_fields[] = {
 *         LKS_SHM_FIELD(struct bank, accounts, &accounts_type)};
 *     static const lks_shm_type bank_type = LKS_SHM_STRUCT_OF("Bank", struct bank, bank_fields);
 *
 *     lks_shm_segment *segment;
 *     if (lks_shm_open_or_create(&segment, "/dev/shm/bank", &bank_type, NULL) != 0)
 *         fprintf(stderr, "%s\n", lks_shm_reason());
 *     struct bank *bank = lks_shm_root(segment);
 *
 * Who may write the file may write anything there, at any time: a lock operation then
 * still ends, in a lock or an error, or waits as it was told to.
 */
#ifndef LOCKSTEAD_SHM_H
#define LOCKSTEAD_SHM_H

#include "base.h"

/* A segment that this process has open. */
typedef struct lks_shm_segment lks_shm_segment;

/* The kinds of parts of a root. */
enum lks_shm_kind {
    LKS_SHM_PLAIN = 0, /* data */
    LKS_SHM_ARRAY = 1,
    LKS_SHM_STRUCT = 2,
    LKS_SHM_MUTEX = 3, /* a lock, and maybe what it guards behind it */
    LKS_SHM_RWLOCK = 4,
    LKS_SHM_SEMAPHORE = 5,
    LKS_SHM_COND = 6
};

struct lks_shm_type;

/* A field of a struct. */
typedef struct lks_shm_field {
    const char *name;
    size_t offset;
    const struct lks_shm_type *type;
} lks_shm_field;

/* A part of a root, by the macros below. Names, and the order of fields, are part of it:
 * two programs that share a segment give the same. */
typedef struct lks_shm_type {
    uint32_t kind;
    const char *name;                 /* of data and structs */
    size_t size;                      /* all of it */
    size_t align;                     /* matters of the root */
    size_t count;                     /* elements, or fields */
    size_t offset;                    /* between elements, or where a lock's data begins */
    const struct lks_shm_type *inner; /* the element; a lock's data or null */
    const lks_shm_field *fields;
} lks_shm_type;

/* Describes data of a C type under the name that Rust has for it, or another one. */
#define LKS_SHM_DATA_OF(name, type) \
    {LKS_SHM_PLAIN, name, sizeof(type), __alignof__(type), 0, 0, NULL, NULL}
/* Describes so many bytes of which nothing is said. Locks may lie there, at multiples
 * of 8; `lockstead shm` does not see them, and a slot that 16,384 participants have
 * died in is not used again. */
#define LKS_SHM_BYTES(size) {LKS_SHM_PLAIN, "bytes", size, 1, 0, 0, NULL, NULL}
/* Describes `count` times a C type that `element` describes. */
#define LKS_SHM_ARRAY_OF(element, type, count)                                                     \
    {LKS_SHM_ARRAY, NULL, sizeof(type) * (count), __alignof__(type), count, sizeof(type), element, \
     NULL}
/* A struct with the fields of an array of them. */
#define LKS_SHM_STRUCT_OF(name, type, fields)                                                    \
    {LKS_SHM_STRUCT, name, sizeof(type), __alignof__(type), sizeof(fields) / sizeof((fields)[0]), \
     0, NULL, fields}
#define LKS_SHM_FIELD(type, field, of) {#field, offsetof(type, field), of}
/* A struct that begins with a lock of this kind and goes on with what that guards, in the
 * field `data`: what `SharedMutex<T>` and `SharedRwLock<T>` are in Rust. */
#define LKS_SHM_LOCK_OF(kind, type, data, of) \
    {kind, NULL, sizeof(type), __alignof__(type), 0, offsetof(type, data), of, NULL}
/* A lock alone. */
#define LKS_SHM_LOCK__(kind, size) {kind, NULL, size, 8, 0, size, NULL, NULL}

#define LKS_SHM_TYPE__ static const lks_shm_type __attribute__((unused))
LKS_SHM_TYPE__ lks_shm_mutex = LKS_SHM_LOCK__(LKS_SHM_MUTEX, 8);
LKS_SHM_TYPE__ lks_shm_rwlock = LKS_SHM_LOCK__(LKS_SHM_RWLOCK, 8);
LKS_SHM_TYPE__ lks_shm_semaphore = LKS_SHM_LOCK__(LKS_SHM_SEMAPHORE, 40);
LKS_SHM_TYPE__ lks_shm_cond = LKS_SHM_LOCK__(LKS_SHM_COND, 8);
LKS_SHM_TYPE__ lks_shm_u8 = LKS_SHM_DATA_OF("u8", uint8_t);
LKS_SHM_TYPE__ lks_shm_u16 = LKS_SHM_DATA_OF("u16", uint16_t);
LKS_SHM_TYPE__ lks_shm_u32 = LKS_SHM_DATA_OF("u32", uint32_t);
LKS_SHM_TYPE__ lks_shm_u64 = LKS_SHM_DATA_OF("u64", uint64_t);
LKS_SHM_TYPE__ lks_shm_i8 = LKS_SHM_DATA_OF("i8", int8_t);
LKS_SHM_TYPE__ lks_shm_i16 = LKS_SHM_DATA_OF("i16", int16_t);
LKS_SHM_TYPE__ lks_shm_i32 = LKS_SHM_DATA_OF("i32", int32_t);
LKS_SHM_TYPE__ lks_shm_i64 = LKS_SHM_DATA_OF("i64", int64_t);
LKS_SHM_TYPE__ lks_shm_f32 = LKS_SHM_DATA_OF("f32", float);
LKS_SHM_TYPE__ lks_shm_f64 = LKS_SHM_DATA_OF("f64", double);

/* What a new segment is to be like. */
typedef struct lks_shm_options {
    /* Threads, of all processes, that may use it at the same time: 1 to 16,382. */
    uint32_t participants;
    /* Reader-writer locks that a thread may read under at the same time without keeping
     * other readers out, and semaphores that it may have units of: at most 192. */
    uint32_t claims;
    /* The permissions of the file, whatever the process's umask. */
    uint32_t mode;
    /* LKS_SHM_EXCLUSIVE or 0. */
    uint32_t flags;
    /* Called with the root, which is zeroes, before anybody else sees it; or null. Also for
     * a segment that nobody ever sees, since another one has got its name first. May not
     * leave by an exception or a jump. */
    void (*fill)(void *root, void *argument);
    void *argument;
} lks_shm_options;
#define LKS_SHM_OPTIONS_INIT {256, 64, 0600, 0, NULL, NULL}
/* Threads join by robust lists of their own, that lie in the segment: their end is told
 * even if the kernel has taken the memory of their process before. They may then not use
 * robust mutexes of pthread. */
#define LKS_SHM_EXCLUSIVE 1u

LKS_ASSERT__(shm_field_size, sizeof(lks_shm_field) == 24);
LKS_ASSERT__(shm_type_size, sizeof(lks_shm_type) == 64);
LKS_ASSERT__(shm_type_fields, offsetof(lks_shm_type, fields) == 56);
LKS_ASSERT__(shm_options_size, sizeof(lks_shm_options) == 32);
LKS_ASSERT__(shm_options_fill, offsetof(lks_shm_options, fill) == 16);

LKS_BEGIN_DECLS__

/* Makes a segment in a new file of this name, which nobody sees before it is complete.
 * /dev/shm is the place for it, unless it is to survive the system. `options` may be
 * null: those of LKS_SHM_OPTIONS_INIT. 0 and the segment; or a null pointer and
 * -EEXIST, -EINVAL (options, description) or what the system says. */
LKS_NODISCARD__ int lks_shm_create(lks_shm_segment **segment, const char *path,
                                   const lks_shm_type *root, const lks_shm_options *options);

/* Opens the segment in the file of this name. With a null pointer for `root`, whatever
 * it is; otherwise -EPROTO if it was made for another root. -EBADMSG: that file is no
 * segment, or one that was cut, damaged, or made by another version. */
LKS_NODISCARD__ int lks_shm_open(lks_shm_segment **segment, const char *path,
                                 const lks_shm_type *root);

/* Opens it, or makes it if there is no such file; of several processes that do so at the
 * same time, one makes it. */
LKS_NODISCARD__ int lks_shm_open_or_create(lks_shm_segment **segment, const char *path,
                                           const lks_shm_type *root,
                                           const lks_shm_options *options);

/* Makes a segment without a name in the file system, which nobody can cut. Others get its
 * descriptor, by inheritance or over a socket. `name` is what /proc shows. */
LKS_NODISCARD__ int lks_shm_memfd(lks_shm_segment **segment, const char *name,
                                  const lks_shm_type *root, const lks_shm_options *options);

/* Opens the segment behind a descriptor that allows reading and writing, and that stays
 * the caller's. As lks_shm_open. */
LKS_NODISCARD__ int lks_shm_from_fd(lks_shm_segment **segment, int fd, const lks_shm_type *root);

/* Leaves the segment and unmaps it: 0. Or -EBUSY, and it stays open, while other threads
 * of this process are participants, or the caller holds a lock in it. */
int lks_shm_close(lks_shm_segment *segment);

/* Returns where the root begins, with a page, and its size. */
void *lks_shm_root(const lks_shm_segment *segment);
size_t lks_shm_size(const lks_shm_segment *segment);

/* The segment's own descriptor, to be handed on; not to be closed. */
int lks_shm_fd(const lks_shm_segment *segment);

/* Makes the calling thread a participant now, and not at its first lock operation: so that
 * a segment that is full is found out where that can be handled. 0, -EUSERS: all slots are
 * taken; or as the lock operations of shared.h. */
LKS_NODISCARD__ int lks_shm_participate(lks_shm_segment *segment);

/* Gives the calling thread's slot up, for other threads: 0, or -EBUSY if it holds a lock.
 * (A thread that ends does this by itself.) */
int lks_shm_leave(lks_shm_segment *segment);

/* From now on this process survives that a peer cuts the file of a segment: the locks
 * behind the cut are not recoverable then. Installs a handler of SIGBUS, which hands on
 * what does not concern a segment. */
int lks_shm_survive_cuts(void);

/* Why the latest call of this thread about a segment failed that did, or a lock operation
 * that could not begin: what is wrong and what to do. Valid until the next one fails;
 * never null. */
const char *lks_shm_reason(void);

LKS_END_DECLS__

#endif
