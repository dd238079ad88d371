/* The same rules for other kinds of locks: reader-writer locks, spin locks,
 * semaphores, C11 mutexes, and mutexes that check for themselves. */
#include "check.h"
#include <threads.h>

static pthread_rwlock_t *index_lock;
static pthread_spinlock_t gong;
static pthread_mutex_t careful = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t robust;
static mtx_t standard;
static sem_t tokens;

static pthread_rwlock_t *index_new(void)
{
    pthread_rwlock_t *made = malloc(sizeof *made);
    must(pthread_rwlock_init(made, NULL)); /* @index-made */
    return made;
}

/* CASE rwlock-freed-while-read
 *   RULE: memory of a held lock freed
 *     at: rwlock from index_new() @index-made
 *     at: frees_read() @index-read
 * CASE rwlock-destroyed-while-written
 *   RULE: destroyed while held
 *     at: rwlock from index_new() @index-made
 *     at: destroys_written() @index-written
 *     at: destroys_written() @index-destroyed
 * CASE rwlock-left-by-two-readers
 *   RULE: thread exit while holding
 *     at: rwlock from index_new() @index-made
 *     at: reads_and_ends() @index-left
 */
static void frees_read(void)
{
    index_lock = index_new();
    must(pthread_rwlock_rdlock(index_lock)); /* @index-read */
    free(index_lock);
}

static void rwlock_freed(void)
{
    in_a_thread("freer", frees_read);
}

static void destroys_written(void)
{
    index_lock = index_new();
    must(pthread_rwlock_wrlock(index_lock));  /* @index-written */
    must(pthread_rwlock_destroy(index_lock)); /* @index-destroyed */
}

static void rwlock_destroyed(void)
{
    in_a_thread("destroyer", destroys_written);
}

static void reads_and_ends(void)
{
    must(pthread_rwlock_rdlock(index_lock)); /* @index-left */
}

static void rwlock_left(void)
{
    index_lock = index_new();
    in_turn({"one", reads_and_ends}, {"two", reads_and_ends});
}

/* CASE spin-lock-unlocked-twice
 *   RULE: unlock of an unlocked lock
 *     has: gong (spin lock)
 *     at: stops_twice() @gong-again
 * CASE spin-lock-used-after-destruction
 *   RULE: use after destruction
 *     has: gong (spin lock)
 *     at: spins_late() @gong-late
 * CASE spin-locks-inverted
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: gong (spin lock)
 *     has: careful (error-checking mutex)
 */
static void stops_twice(void)
{
    must(pthread_spin_lock(&gong));
    must(pthread_spin_unlock(&gong));
    must(pthread_spin_unlock(&gong)); /* @gong-again */
}

static void spin_twice(void)
{
    must(pthread_spin_init(&gong, 0));
    in_a_thread("twice", stops_twice);
}

static void spins_late(void)
{
    must(pthread_spin_lock(&gong)); /* @gong-late */
    must(pthread_spin_unlock(&gong));
}

static void spin_late(void)
{
    must(pthread_spin_init(&gong, 0));
    must(pthread_spin_destroy(&gong));
    in_a_thread("late", spins_late);
}

static void gong_careful(void)
{
    must(pthread_spin_lock(&gong));
    take(&careful);
    give(&careful);
    must(pthread_spin_unlock(&gong));
}

static void careful_gong(void)
{
    take(&careful);
    must(pthread_spin_lock(&gong));
    must(pthread_spin_unlock(&gong));
    give(&careful);
}

static void spin_inverted(void)
{
    must(pthread_spin_init(&gong, 0));
    in_turn({"one", gong_careful}, {"two", careful_gong});
}

/* CASE semaphore-used-after-destruction
 *   RULE: use after destruction
 *     has: tokens (semaphore)
 *     at: waits_late() @tokens-late
 */
static void waits_late(void)
{
    must(sem_wait(&tokens)); /* @tokens-late */
}

static void semaphore_late(void)
{
    must(sem_init(&tokens, 0, 1));
    must(sem_destroy(&tokens));
    in_a_thread("late", waits_late);
}

/* CASE c11-unlock-by-another
 *   RULE: unlock by another thread
 *     has: standard (C11 mutex)
 *     has: thread "owner"
 *     at: locks_standard() @standard-held
 *     at: unlocks_standard() @standard-given
 * CASE c11-in-order
 *   silent even with --strict
 * CASE c11-inverted
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: standard (C11 mutex)
 *     has: careful (error-checking mutex)
 *     at: standard_careful() @sc-wants
 *     at: careful_standard() @cs-wants
 */
static void locks_standard(void)
{
    must(mtx_lock(&standard)); /* @standard-held */
}

static void unlocks_standard(void)
{
    must(mtx_unlock(&standard)); /* @standard-given */
}

static void c11_by_another(void)
{
    must(mtx_init(&standard, mtx_plain));
    in_turn({"owner", locks_standard}, {"other", unlocks_standard});
}

static void standard_careful(void)
{
    must(mtx_lock(&standard));
    take(&careful); /* @sc-wants */
    give(&careful);
    must(mtx_unlock(&standard));
}

static void careful_standard(void)
{
    take(&careful);
    must(mtx_lock(&standard)); /* @cs-wants */
    must(mtx_unlock(&standard));
    give(&careful);
}

static void c11_in_order(void)
{
    must(mtx_init(&standard, mtx_timed));
    in_turn({"one", standard_careful}, {"two", standard_careful});
    mtx_destroy(&standard);
}

static void c11_inverted(void)
{
    must(mtx_init(&standard, mtx_timed));
    in_turn({"one", standard_careful}, {"two", careful_standard});
}

/* CASE refused-unlock-by-another
 *   RULE: unlock by another thread
 *     has: careful (error-checking mutex)
 *     at: is_refused() @refused
 * CASE refused-unlock-of-a-robust-one
 *   RULE: unlock by another thread
 *     has: robust (robust mutex)
 * CASE refused-recursion
 *   RULE: recursion
 *     has: careful (error-checking mutex)
 *     at: is_refused_again() @refused-again
 */
static pthread_mutex_t *wanted;

static void gives_wanted(void *unused)
{
    (void)unused;
    give(wanted);
}

static pthread_key_t at_end;

static void takes_wanted(void)
{
    take(wanted);
    /* Given back by a destructor, when the other thread has been refused. */
    must(pthread_setspecific(at_end, wanted));
}

static void is_refused(void)
{
    must(pthread_mutex_unlock(wanted) != EPERM); /* @refused */
}

static void refused(pthread_mutex_t *mutex)
{
    wanted = mutex;
    must(pthread_key_create(&at_end, gives_wanted));
    in_turn({"owner", takes_wanted}, {"other", is_refused});
}

static void refused_careful(void)
{
    refused(&careful);
}

static void refused_robust(void)
{
    pthread_mutexattr_t attribute;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST));
    must(pthread_mutex_init(&robust, &attribute));
    refused(&robust);
}

static void is_refused_again(void)
{
    take(&careful);
    must(pthread_mutex_lock(&careful) != EDEADLK); /* @refused-again */
    give(&careful);
}

static void refused_again(void)
{
    in_a_thread("twice", is_refused_again);
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"rwlock-freed-while-read", rwlock_freed},
        {"rwlock-destroyed-while-written", rwlock_destroyed},
        {"rwlock-left-by-two-readers", rwlock_left},
        {"spin-lock-unlocked-twice", spin_twice},
        {"spin-lock-used-after-destruction", spin_late},
        {"spin-locks-inverted", spin_inverted},
        {"semaphore-used-after-destruction", semaphore_late},
        {"c11-unlock-by-another", c11_by_another},
        {"c11-in-order", c11_in_order},
        {"c11-inverted", c11_inverted},
        {"refused-unlock-by-another", refused_careful},
        {"refused-unlock-of-a-robust-one", refused_robust},
        {"refused-recursion", refused_again},
    };
    return run_case(argc, argument, all, COUNT(all));
}
