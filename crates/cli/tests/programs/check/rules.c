/* The rules of who may do what with a lock: owners, recursion, ends. Each is
 * broken once, and kept by a sibling that looks like it. */
#include "check.h"
#include <threads.h>

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t drawer = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t careful = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t shelf = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t bell;

/* CASE unlock-by-another
 *   RULE: unlock by another thread
 *     has: ledger (mutex)
 *     has: thread "owner"
 *     has: thread "other"
 *     at: locks_only() @locked-only
 *     at: unlocks_only() @unlocked-only
 *     lacks: drawer
 * CASE unlock-of-a-rwlock-by-another
 *   RULE: unlock by another thread
 *     has: shelf (rwlock)
 *     at: writes_only() @wrote-only
 *     at: leaves_only() @left-only
 * CASE unlock-of-a-spin-lock-by-another
 *   RULE: unlock by another thread
 *     has: bell (spin lock)
 */
static void locks_only(void)
{
    take(&ledger); /* @locked-only */
    take(&drawer);
    give(&drawer);
}

static void unlocks_only(void)
{
    give(&ledger); /* @unlocked-only */
}

static void unlock_by_another(void)
{
    in_turn({"owner", locks_only}, {"other", unlocks_only});
}

static void writes_only(void)
{
    must(pthread_rwlock_wrlock(&shelf)); /* @wrote-only */
}

static void leaves_only(void)
{
    must(pthread_rwlock_unlock(&shelf)); /* @left-only */
}

static void rwlock_by_another(void)
{
    in_turn({"owner", writes_only}, {"other", leaves_only});
}

static void spins_only(void)
{
    must(pthread_spin_lock(&bell));
}

static void stops_only(void)
{
    must(pthread_spin_unlock(&bell));
}

static void spin_by_another(void)
{
    must(pthread_spin_init(&bell, 0));
    in_turn({"owner", spins_only}, {"other", stops_only});
}

/* CASE unlock-by-another-as-announced
 *   silent even with --strict
 */
extern void lockstead_handoff(void *) __attribute__((weak));

static void announced(void)
{
    if (lockstead_handoff != NULL)
        lockstead_handoff(&ledger);
    in_turn({"owner", locks_only}, {"other", unlocks_only});
}

/* CASE unlock-twice
 *   RULE: unlock of an unlocked lock
 *     has: ledger (mutex)
 *     has: thread "twice"
 *     at: unlocks_twice() @second-unlock
 *     lacks: drawer
 * CASE unlock-of-a-free-rwlock
 *   RULE: unlock of an unlocked lock
 *     has: shelf (rwlock)
 *     at: leaves_twice() @second-leave
 * CASE unlock-never-locked
 *   RULE: unlock of an unlocked lock
 *     has: ledger (mutex)
 *     at: unlocks_only() @unlocked-only
 */
static void unlocks_twice(void)
{
    take(&drawer);
    take(&ledger);
    give(&ledger);
    give(&ledger); /* @second-unlock */
    give(&drawer);
}

static void leaves_twice(void)
{
    must(pthread_rwlock_rdlock(&shelf));
    must(pthread_rwlock_unlock(&shelf));
    must(pthread_rwlock_unlock(&shelf)); /* @second-leave */
}

static void unlock_twice(void)
{
    in_a_thread("twice", unlocks_twice);
}

static void free_rwlock(void)
{
    in_a_thread("twice", leaves_twice);
}

static void never_locked(void)
{
    in_a_thread("never", unlocks_only);
}

/* CASE recursion-with-a-deadline
 *   RULE: recursion
 *     has: ledger (mutex)
 *     at: waits_for_itself() @itself-held
 *     at: waits_for_itself() @itself-wanted
 * CASE recursion-by-trylock
 *   silent even with --strict
 * CASE recursion-of-a-spin-lock hangs
 *   RULE: recursion
 *     has: bell (spin lock)
 *     at: spins_twice() @bell-again
 *   DEADLOCK: 1 thread waits for itself
 * CASE recursion-of-a-c11-mutex hangs
 *   RULE: recursion
 *     has: standard (C11 mutex)
 *     at: standard_twice() @standard-again
 *   DEADLOCK: 1 thread waits for itself
 */
static void waits_for_itself(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 30);
    take(&ledger);                                            /* @itself-held */
    must(pthread_mutex_timedlock(&ledger, &at) != ETIMEDOUT); /* @itself-wanted */
    give(&ledger);
}

static void tries_again(void)
{
    take(&ledger);
    must(pthread_mutex_trylock(&ledger) != EBUSY);
    give(&ledger);
}

static void with_a_deadline(void)
{
    in_a_thread("itself", waits_for_itself);
}

static void by_trylock(void)
{
    in_a_thread("itself", tries_again);
}

static void spins_twice(void)
{
    hangs_now();
    must(pthread_spin_lock(&bell));
    must(pthread_spin_lock(&bell)); /* @bell-again */
}

static void spin_twice(void)
{
    must(pthread_spin_init(&bell, 0));
    in_a_thread("twice", spins_twice);
}

static mtx_t standard;

static void standard_twice(void)
{
    hangs_now();
    must(mtx_lock(&standard) != thrd_success);
    must(mtx_lock(&standard) != thrd_success); /* @standard-again */
}

static void c11_twice(void)
{
    must(mtx_init(&standard, mtx_plain) != thrd_success);
    in_a_thread("twice", standard_twice);
}

/* CASE thread-ends-with-a-lock
 *   RULE: thread exit while holding
 *     has: ledger (mutex)
 *     has: thread "leaver"
 *     at: leaves_with_lock() @left-with
 *     lacks: drawer
 * CASE thread-exits-with-a-lock
 *   RULE: thread exit while holding
 *     has: shelf (rwlock)
 *     at: exits_with_lock() @exited-with
 * CASE thread-is-cancelled-with-a-lock
 *   RULE: thread exit while holding
 *     has: ledger (mutex)
 *     at: sleeps_with_lock() @slept-with
 * CASE thread-ends-with-a-lock-on-its-stack
 *   RULE: thread exit while holding
 *     has: thread "leaver"
 *     at: leaves_with_its_own() @own-left
 */
static void leaves_with_lock(void)
{
    take(&drawer);
    give(&drawer);
    take(&ledger); /* @left-with */
}

static void thread_ends(void)
{
    in_a_thread("leaver", leaves_with_lock);
}

static void *exits_with_lock(void *unused)
{
    must(pthread_rwlock_rdlock(&shelf)); /* @exited-with */
    pthread_exit(unused);
}

static void thread_exits(void)
{
    must(pthread_join(start(exits_with_lock, NULL, "leaver"), NULL));
}

static void *sleeps_with_lock(void *unused)
{
    take(&ledger); /* @slept-with */
    atomic_store(&turn, 1);
    sleep_for_ever();
    return unused;
}

static void thread_is_cancelled(void)
{
    pthread_t thread = start(sleeps_with_lock, NULL, "cancelled");
    await(&turn, 1);
    must(pthread_cancel(thread));
    must(pthread_join(thread, NULL));
}

static void *leaves_with_its_own(void *unused)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    take(&own); /* @own-left */
    return unused;
}

static void thread_ends_with_its_own(void)
{
    must(pthread_join(start(leaves_with_its_own, NULL, "leaver"), NULL));
}

/* CASE thread-ends-and-its-destructor-unlocks
 *   silent even with --strict
 * CASE thread-is-cancelled-and-cleans-up
 *   silent even with --strict
 * CASE thread-ends-with-a-robust-lock
 *   silent even with --strict
 */
static pthread_key_t key;

static void unlocks_drawer(void *unused)
{
    (void)unused;
    give(&drawer);
}

static void locks_for_destructor(void)
{
    take(&drawer);
    must(pthread_setspecific(key, &drawer));
}

static void destructor_unlocks(void)
{
    must(pthread_key_create(&key, unlocks_drawer));
    in_turn({"one", locks_for_destructor});
    in_turn({"two", locks_for_destructor});
}

static void *cleans_up(void *unused)
{
    take(&drawer);
    pthread_cleanup_push(unlocks_drawer, NULL);
    atomic_store(&turn, 1);
    sleep_for_ever();
    pthread_cleanup_pop(1);
    return unused;
}

static void cancelled_cleanly(void)
{
    pthread_t thread = start(cleans_up, NULL, "cancelled");
    await(&turn, 1);
    must(pthread_cancel(thread));
    must(pthread_join(thread, NULL));
    take(&drawer);
    give(&drawer);
}

static pthread_mutex_t robust;

static void dies_with_robust(void)
{
    take(&robust);
}

static void robust_thread(void)
{
    pthread_mutexattr_t attribute;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST));
    must(pthread_mutex_init(&robust, &attribute));
    in_a_thread("owner", dies_with_robust);
    must(pthread_mutex_lock(&robust) != EOWNERDEAD);
    must(pthread_mutex_consistent(&robust));
    give(&robust);
    take(&robust);
    give(&robust);
}

/* CASE process-exits-with-a-lock-that-is-waited-for
 *   ORDER: process exit while holding
 *     has: ledger (mutex)
 *     at: process_exits_on_waiter() @exit-on-waiter
 * CASE process-exits-with-a-shared-lock
 *   RULE: process exit while holding
 *     has: process-shared mutex
 * CASE process-exits-with-a-lock
 *   ORDER: process exit while holding
 *     has: ledger (mutex)
 *     at: process_exits() @exit-with
 *     lacks: drawer
 * CASE process-returns-with-a-lock
 *   RULE: process exit while holding
 *     has: ledger (mutex)
 *     at: process_returns() @return-with
 * CASE process-exits-and-its-handler-unlocks
 *   silent even with --strict
 */
static void done_and_exit(void)
{
    printf("done\n");
    exit(7);
}

static void process_exits(void)
{
    take(&drawer);
    give(&drawer);
    take(&ledger); /* @exit-with */
    done_and_exit();
}

static atomic_int waits_there;

static void *waits_for_ledger(void *unused)
{
    announce(&waits_there);
    take(&ledger);
    return unused;
}

static void process_exits_on_waiter(void)
{
    take(&ledger); /* @exit-on-waiter */
    start(waits_for_ledger, NULL, "waiter");
    await_state(&waits_there, 'S');
    done_and_exit();
}

static void process_exits_shared(void)
{
    pthread_mutexattr_t attribute;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED));
    must(pthread_mutex_init(&drawer, &attribute));
    take(&drawer);
    done_and_exit();
}

static void process_returns(void)
{
    take(&ledger); /* @return-with */
}

static void unlocks_ledger(void)
{
    give(&ledger);
}

static void handler_unlocks(void)
{
    must(atexit(unlocks_ledger));
    take(&ledger);
    done_and_exit();
}

/* CASE checked-by-itself
 *   silent even with --strict
 */
static void uses_carefully(void)
{
    for (int i = 0; i < 3; i++) {
        take(&careful);
        must(pthread_mutex_trylock(&careful) != EBUSY);
        give(&careful);
    }
}

static void checked_by_itself(void)
{
    in_turn({"one", uses_carefully}, {"two", uses_carefully});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"unlock-by-another", unlock_by_another},
        {"unlock-of-a-rwlock-by-another", rwlock_by_another},
        {"unlock-of-a-spin-lock-by-another", spin_by_another},
        {"unlock-by-another-as-announced", announced},
        {"unlock-twice", unlock_twice},
        {"unlock-of-a-free-rwlock", free_rwlock},
        {"unlock-never-locked", never_locked},
        {"recursion-with-a-deadline", with_a_deadline},
        {"recursion-by-trylock", by_trylock},
        {"recursion-of-a-spin-lock", spin_twice},
        {"recursion-of-a-c11-mutex", c11_twice},
        {"thread-ends-with-a-lock", thread_ends},
        {"thread-exits-with-a-lock", thread_exits},
        {"thread-is-cancelled-with-a-lock", thread_is_cancelled},
        {"thread-ends-with-a-lock-on-its-stack", thread_ends_with_its_own},
        {"thread-ends-and-its-destructor-unlocks", destructor_unlocks},
        {"thread-is-cancelled-and-cleans-up", cancelled_cleanly},
        {"thread-ends-with-a-robust-lock", robust_thread},
        {"process-exits-with-a-lock-that-is-waited-for", process_exits_on_waiter},
        {"process-exits-with-a-shared-lock", process_exits_shared},
        {"process-exits-with-a-lock", process_exits},
        {"process-returns-with-a-lock", process_returns},
        {"process-exits-and-its-handler-unlocks", handler_unlocks},
        {"checked-by-itself", checked_by_itself},
    };
    return run_case(argc, argument, all, COUNT(all));
}
