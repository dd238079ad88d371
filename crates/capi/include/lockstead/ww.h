/*
 * The wait/wound mutex: any set of locks, in any order, without deadlock. 32 bytes.
 *
 * A thread begins a context and takes the locks in it. Where two contexts would
 * wait for each other the younger one gets -EDEADLK: it releases all it has taken,
 * takes the one it was refused by `lks_ww_mutex_lock_slow`, and begins again with the
 * others. `lks_ww_lock_all` does all of that.
 */
#ifndef LOCKSTEAD_WW_H
#define LOCKSTEAD_WW_H

#include "base.h"
#include "low-half.h"

/* Who backs off: a younger context does not wait for an older one (wait-die), or an
 * older one makes a younger holder back off when that waits itself (wound-wait). In both
 * a context that holds locks backs off where an older one waits already. */
enum lks_ww_scheme { LKS_WAIT_DIE = 0, LKS_WOUND_WAIT = 1 };

/* Locks that are taken together. */
typedef struct lks_ww_class {
    uint64_t begun__ __attribute__((aligned(8)));
    uint8_t scheme__;
    uint8_t zeroes__[7];
} lks_ww_class;
#define LKS_WW_CLASS_INIT(scheme) {0, (scheme), {0, 0, 0, 0, 0, 0, 0}}

/* One thread's attempt to take several locks. Belongs to that thread. */
typedef struct lks_ww_ctx {
    uint64_t ticket__ __attribute__((aligned(8)));
    const void *record__;
    uint32_t acquired__;
    uint32_t scheme__;
} lks_ww_ctx;

/* Zeroes: free. May not be copied or moved while anybody uses it. */
typedef struct LKS_TSA__(capability("ww_mutex")) lks_ww_mutex {
    uint64_t word__ __attribute__((aligned(8)));
    uint64_t holder__;
    uint64_t first__;
    lks_ww_ctx *ctx__; /* of the holder, for itself */
} lks_ww_mutex;
#define LKS_WW_MUTEX_INIT LKS_ZEROES__

LKS_ASSERT__(ww_class_size, sizeof(lks_ww_class) == 16);
LKS_ASSERT__(ww_ctx_size, sizeof(lks_ww_ctx) == 24);
LKS_ASSERT__(ww_ctx_ticket, offsetof(lks_ww_ctx, ticket__) == 0);
LKS_ASSERT__(ww_ctx_acquired, offsetof(lks_ww_ctx, acquired__) == 16);
LKS_ASSERT__(ww_mutex_size, sizeof(lks_ww_mutex) == 32);
LKS_ASSERT__(ww_mutex_holder, offsetof(lks_ww_mutex, holder__) == 8);
LKS_ASSERT__(ww_mutex_ctx, offsetof(lks_ww_mutex, ctx__) == 24);

LKS_BEGIN_DECLS__

int lks_ww_mutex_lock_how(lks_ww_mutex *mutex, lks_ww_ctx *ctx, unsigned how);
int lks_ww_mutex_lock_slow_how(lks_ww_mutex *mutex, lks_ww_ctx *ctx, unsigned how);
int lks_ww_mutex_trylock_slow(lks_ww_mutex *mutex, lks_ww_ctx *ctx);
void lks_ww_mutex_unlock_slow(lks_ww_mutex *mutex);
void lks_ww_mutex_unlock_alone_slow(lks_ww_mutex *mutex);

/* Begins a context: 0, or -EBUSY if the thread has four already. */
LKS_NODISCARD__ int lks_ww_ctx_init(lks_ww_ctx *ctx, lks_ww_class *class_of_locks);

/* No further locks will be taken. Only the checking build makes use of it. */
LKS_INLINE__ void lks_ww_ctx_done(lks_ww_ctx *ctx)
{
    (void)ctx;
}

/* Ends a context, which has released all its locks. */
void lks_ww_ctx_fini(lks_ww_ctx *ctx);

/* Makes a free lock. */
LKS_INLINE__ void lks_ww_mutex_init(lks_ww_mutex *mutex)
{
    __atomic_store_n(&mutex->word__, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mutex->holder__, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mutex->first__, 0, __ATOMIC_RELAXED);
    mutex->ctx__ = NULL;
}

/* Ends a lock that nobody uses. Only a lock with a name needs it. */
void lks_ww_mutex_destroy(lks_ww_mutex *mutex);

LKS_INLINE__ int lks_ww_mutex_take__(lks_ww_mutex *mutex, lks_ww_ctx *ctx)
{
    uint32_t me = lks_self__;
    /* Alone the library does it, which counts what a thread holds so. */
    if (LKS_UNLIKELY__(!ctx || me == 0 || !lks_take_low__(&mutex->word__, me)))
        return 0;
    LKS_ACQUIRED__(mutex);
    __atomic_store_n(&mutex->holder__, ctx->ticket__, __ATOMIC_RELEASE);
    ctx->acquired__++;
    mutex->ctx__ = ctx;
    return 1;
}

LKS_INLINE__ int lks_ww_mutex_take_how__(lks_ww_mutex *mutex, lks_ww_ctx *ctx, unsigned how)
{
    int result;
    if (lks_ww_mutex_take__(mutex, ctx))
        return 0;
    result = lks_ww_mutex_lock_how(mutex, ctx, how);
    if (result == 0)
        LKS_ACQUIRED__(mutex);
    return result;
}

/* Takes the lock in a context, or with a null pointer alone: 0; -EDEADLK: back off;
 * -EALREADY: the context has it; -EOWNERDEAD: a thread has it that has ended, or that
 * fork has left behind, and it will never be free. Aborts,
 * rather than wait for ever, if the calling thread has it otherwise. */
LKS_NODISCARD__ LKS_INLINE__ int lks_ww_mutex_lock(lks_ww_mutex *mutex, lks_ww_ctx *ctx)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_ww_mutex_take_how__(mutex, ctx, LKS_FOREVER__);
}

/* The same unless a signal handler runs on this thread while it sleeps: -EINTR. */
LKS_NODISCARD__ LKS_INLINE__ int lks_ww_mutex_lock_interruptible(lks_ww_mutex *mutex,
                                                                 lks_ww_ctx *ctx)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    return lks_ww_mutex_take_how__(mutex, ctx, LKS_INTERRUPTIBLE__);
}

/* Takes the lock that the context was refused, once it has released all others.
 * Aborts if it has not: it might wait for ever. So it does where the other forms say
 * -EOWNERDEAD. */
LKS_INLINE__ void lks_ww_mutex_lock_slow(lks_ww_mutex *mutex, lks_ww_ctx *ctx)
    LKS_TSA__(acquire_capability(mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    (void)lks_ww_mutex_lock_slow_how(mutex, ctx, LKS_FOREVER__);
    LKS_ACQUIRED__(mutex);
}

/* The same unless a signal handler runs: 0, -EINTR, or -EOWNERDEAD. */
LKS_NODISCARD__ LKS_INLINE__ int lks_ww_mutex_lock_slow_interruptible(lks_ww_mutex *mutex,
                                                                      lks_ww_ctx *ctx)
    LKS_TSA__(try_acquire_capability(0, mutex))
{
    int result = lks_ww_mutex_lock_slow_how(mutex, ctx, LKS_INTERRUPTIBLE__);
    if (result == 0)
        LKS_ACQUIRED__(mutex);
    return result;
}

/* Takes the lock if it is free, in a context or alone: 1, otherwise 0. */
LKS_NODISCARD__ LKS_INLINE__ int lks_ww_mutex_trylock(lks_ww_mutex *mutex, lks_ww_ctx *ctx)
    LKS_TSA__(try_acquire_capability(1, mutex)) LKS_TSA__(no_thread_safety_analysis)
{
    if (lks_ww_mutex_take__(mutex, ctx))
        return 1;
    if (!lks_ww_mutex_trylock_slow(mutex, ctx))
        return 0;
    LKS_ACQUIRED__(mutex);
    return 1;
}

/* Releases the lock. */
LKS_INLINE__ void lks_ww_mutex_unlock(lks_ww_mutex *mutex) LKS_TSA__(release_capability(mutex))
    LKS_TSA__(no_thread_safety_analysis)
{
    if (!mutex->ctx__) {
        LKS_RELEASING__(mutex);
        lks_ww_mutex_unlock_alone_slow(mutex);
        return;
    }
    mutex->ctx__->acquired__--;
    __atomic_store_n(&mutex->holder__, 0, __ATOMIC_RELAXED);
    /* After the look at the context, which the next holder replaces. */
    LKS_RELEASING__(mutex);
    if (LKS_UNLIKELY__(!lks_erase_low__(&mutex->word__)))
        lks_ww_mutex_unlock_slow(mutex);
}

/* Tells whether anybody holds the lock, at some moment during the call. */
LKS_INLINE__ int lks_ww_mutex_is_locked(const lks_ww_mutex *mutex)
{
    return (__atomic_load_n(&mutex->word__, __ATOMIC_RELAXED) & LKS_MAX_SLOTS__) != 0;
}

#ifdef LKS_DEBUG
LKS_END_DECLS__
#include "check-ww.h"
LKS_BEGIN_DECLS__
#define lks_ww_lock_all lks_ww_lock_all_dbg
#define lks_ww_unlock_all lks_ww_unlock_all_dbg
#endif

/* Takes all of these locks in a fresh context, in whatever order they come, with all
 * backing off done: 0; or -EOWNERDEAD, with none of them, if one will never be free. The
 * same lock may be among them twice; it is taken once. */
LKS_INLINE__ int lks_ww_lock_all(lks_ww_ctx *ctx, lks_ww_mutex *const locks[],
                                 size_t count LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    lks_ww_mutex *contended = NULL;
    size_t next = 0;
    while (next < count) {
        int result = locks[next] == contended ? -EALREADY
                                              : LKS_ON__(lks_ww_mutex_lock, locks[next], ctx);
        if (result == -EDEADLK || result == -EOWNERDEAD) {
            lks_ww_mutex *refused = locks[next];
            /* Taken once, and so released once, at its first place. */
            while (next-- > 0) {
                size_t before = 0;
                while (locks[before] != locks[next])
                    before++;
                if (before == next && locks[next] != contended)
                    LKS_ON__(lks_ww_mutex_unlock, locks[next]);
            }
            if (contended)
                LKS_ON__(lks_ww_mutex_unlock, contended);
            while (result == -EDEADLK || result == -EINTR)
                result = LKS_ON__(lks_ww_mutex_lock_slow_interruptible, refused, ctx);
            if (result == -EOWNERDEAD)
                return result;
            contended = refused;
            next = 0;
            continue;
        }
        next++;
    }
    return 0;
}

/* Releases what `lks_ww_lock_all` took. */
LKS_INLINE__ void lks_ww_unlock_all(lks_ww_mutex *const locks[], size_t count LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    while (count-- > 0) {
        size_t before = 0;
        while (locks[before] != locks[count])
            before++;
        if (before == count)
            LKS_ON__(lks_ww_mutex_unlock, locks[count]);
    }
}

#ifdef LKS_DEBUG
#undef lks_ww_lock_all
#undef lks_ww_unlock_all
#define lks_ww_lock_all(ctx, locks, count) \
    lks_ww_lock_all_dbg(ctx, locks, count, __FILE__, __LINE__)
#define lks_ww_unlock_all(locks, count) lks_ww_unlock_all_dbg(locks, count, __FILE__, __LINE__)
#endif

LKS_END_DECLS__

#endif
