/* Reader-writer locks. A lock of the default kind lets readers in although a
 * writer waits, so a reader waits for writers only; one that prefers writers
 * makes readers wait behind a waiting writer, and so for other readers. */
#include "check.h"

static pthread_rwlock_t atlas = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t globe = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t eager = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_mutex_t pen = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t ruler = PTHREAD_MUTEX_INITIALIZER;

#define reads(lock) must(pthread_rwlock_rdlock(lock))
#define writes(lock) must(pthread_rwlock_wrlock(lock))
#define leaves(lock) must(pthread_rwlock_unlock(lock))

/* CASE read-read
 *   silent even with --strict
 */
static void reads_atlas_reads_globe(void)
{
    reads(&atlas);
    reads(&globe);
    leaves(&globe);
    leaves(&atlas);
}

static void reads_globe_reads_atlas(void)
{
    reads(&globe);
    reads(&atlas);
    leaves(&atlas);
    leaves(&globe);
}

static void read_read(void)
{
    in_turn({"one", reads_atlas_reads_globe}, {"two", reads_globe_reads_atlas});
}

/* CASE read-write
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: atlas (rwlock)
 *     has: globe (rwlock)
 *     at: reads_atlas_writes_globe() @ra-holds
 *     at: reads_atlas_writes_globe() @wg-wants
 *     at: reads_globe_writes_atlas() @rg-holds
 *     at: reads_globe_writes_atlas() @wa-wants
 *     lacks: pen
 */
static void reads_atlas_writes_globe(void)
{
    reads(&atlas);  /* @ra-holds */
    writes(&globe); /* @wg-wants */
    leaves(&globe);
    leaves(&atlas);
}

static void reads_globe_writes_atlas(void)
{
    reads(&globe);  /* @rg-holds */
    writes(&atlas); /* @wa-wants */
    leaves(&atlas);
    leaves(&globe);
}

static void read_write(void)
{
    in_turn({"one", reads_atlas_writes_globe}, {"two", reads_globe_writes_atlas});
}

/* CASE write-read
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: atlas (rwlock)
 *     has: globe (rwlock)
 *     at: writes_atlas_reads_globe() @rg-wants
 *     at: writes_globe_reads_atlas() @ra-wants
 */
static void writes_atlas_reads_globe(void)
{
    writes(&atlas);
    reads(&globe); /* @rg-wants */
    leaves(&globe);
    leaves(&atlas);
}

static void writes_globe_reads_atlas(void)
{
    writes(&globe);
    reads(&atlas); /* @ra-wants */
    leaves(&atlas);
    leaves(&globe);
}

static void write_read(void)
{
    in_turn({"one", writes_atlas_reads_globe}, {"two", writes_globe_reads_atlas});
}

/* CASE write-write
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: atlas (rwlock)
 *     has: globe (rwlock)
 */
static void writes_atlas_writes_globe(void)
{
    writes(&atlas);
    writes(&globe);
    leaves(&globe);
    leaves(&atlas);
}

static void writes_globe_writes_atlas(void)
{
    writes(&globe);
    writes(&atlas);
    leaves(&atlas);
    leaves(&globe);
}

static void write_write(void)
{
    in_turn({"one", writes_atlas_writes_globe}, {"two", writes_globe_writes_atlas});
}

/* CASE read-and-a-mutex
 *   silent even with --strict
 * CASE write-and-a-mutex
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: atlas (rwlock)
 *     has: pen (mutex)
 *     at: reads_then_pen() @rp-holds
 *     at: reads_then_pen() @rp-wants
 *     at: pen_then_writes() @pw-holds
 *     at: pen_then_writes() @pw-wants
 */
static void reads_then_pen(void)
{
    reads(&atlas); /* @rp-holds */
    take(&pen);    /* @rp-wants */
    give(&pen);
    leaves(&atlas);
}

static void pen_then_reads(void)
{
    take(&pen);
    reads(&atlas);
    leaves(&atlas);
    give(&pen);
}

static void pen_then_writes(void)
{
    take(&pen);     /* @pw-holds */
    writes(&atlas); /* @pw-wants */
    leaves(&atlas);
    give(&pen);
}

static void read_and_mutex(void)
{
    in_turn({"one", reads_then_pen}, {"two", pen_then_reads});
}

static void write_and_mutex(void)
{
    in_turn({"one", reads_then_pen}, {"two", pen_then_writes});
}

/* CASE read-read-behind-writers
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: eager (writers-first rwlock)
 *     has: pen (mutex)
 *     at: eager_then_pen() @ep-wants
 *     at: pen_then_eager() @pe-wants
 */
static void eager_then_pen(void)
{
    reads(&eager);
    take(&pen); /* @ep-wants */
    give(&pen);
    leaves(&eager);
}

static void pen_then_eager(void)
{
    take(&pen);
    reads(&eager); /* @pe-wants */
    leaves(&eager);
    give(&pen);
}

static void writes_eager(void)
{
    writes(&eager);
    leaves(&eager);
}

static void behind_writers(void)
{
    in_turn({"one", eager_then_pen}, {"two", pen_then_eager}, {"three", writes_eager});
}

/* CASE read-write-through-a-chain
 *   POTENTIAL: lock order inversion of 3 locks
 *     has: atlas (rwlock)
 *     has: pen (mutex)
 *     has: ruler (mutex)
 *     at: reads_then_pen() @rp-wants
 *     at: pen_then_ruler() @pr-wants
 *     at: ruler_then_writes() @rw-wants
 *     lacks: globe
 * CASE read-read-through-a-chain
 *   silent even with --strict
 */
static void pen_then_ruler(void)
{
    take(&pen);
    take(&ruler); /* @pr-wants */
    give(&ruler);
    give(&pen);
}

static void ruler_then_writes(void)
{
    take(&ruler);
    writes(&atlas); /* @rw-wants */
    leaves(&atlas);
    give(&ruler);
}

static void ruler_then_reads(void)
{
    take(&ruler);
    reads(&atlas);
    leaves(&atlas);
    give(&ruler);
}

static void write_chain(void)
{
    in_turn({"one", reads_then_pen}, {"two", pen_then_ruler}, {"three", ruler_then_writes});
}

static void read_chain(void)
{
    in_turn({"one", reads_then_pen}, {"two", pen_then_ruler}, {"three", ruler_then_reads});
}

/* CASE recursive-read-behind-writers
 *   RULE: recursive read lock
 *     has: eager (writers-first rwlock)
 *     has: thread "twice"
 *     at: reads_eager_twice() @eager-first
 *     at: reads_eager_twice() @eager-again
 *     lacks: atlas
 * CASE recursive-read
 *   silent even with --strict
 */
static void reads_eager_twice(void)
{
    reads(&eager); /* @eager-first */
    reads(&eager); /* @eager-again */
    leaves(&eager);
    leaves(&eager);
}

static void reads_twice(void)
{
    reads(&atlas);
    reads(&atlas);
    leaves(&atlas);
    leaves(&atlas);
}

static void writes_atlas(void)
{
    writes(&atlas);
    leaves(&atlas);
}

static void recursive_behind_writers(void)
{
    in_turn({"bystander", reads_atlas_reads_globe}, {"twice", reads_eager_twice});
}

static void recursive(void)
{
    in_turn({"twice", reads_twice}, {"writer", writes_atlas}, {"again", reads_twice});
}

/* CASE two-readers-behind-writers
 *   silent even with --strict
 */
static void reads_eager_once(void)
{
    reads(&eager);
    leaves(&eager);
}

static void two_readers(void)
{
    in_turn({"one", reads_eager_once}, {"writer", writes_eager}, {"two", reads_eager_once});
}

/* CASE reader-that-writes hangs
 *   RULE: recursion
 *     has: atlas (rwlock)
 *     at: upgrades() @upgrade-holds
 *     at: upgrades() @upgrade-wants
 *   DEADLOCK: 1 thread waits for itself
 * CASE writer-that-writes
 *   RULE: recursion
 *     has: atlas (rwlock)
 *     at: writes_twice() @write-holds
 *     at: writes_twice() @write-wants
 */
static void upgrades(void)
{
    hangs_now();
    reads(&atlas);  /* @upgrade-holds */
    writes(&atlas); /* @upgrade-wants */
}

static void writes_twice(void)
{
    writes(&atlas);                                       /* @write-holds */
    must(pthread_rwlock_wrlock(&atlas) != EDEADLK); /* @write-wants */
    leaves(&atlas);
}

static void reader_that_writes(void)
{
    in_a_thread("upgrader", upgrades);
}

static void writer_that_writes(void)
{
    in_a_thread("twice", writes_twice);
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"read-read", read_read},
        {"read-write", read_write},
        {"write-read", write_read},
        {"write-write", write_write},
        {"read-and-a-mutex", read_and_mutex},
        {"write-and-a-mutex", write_and_mutex},
        {"read-read-behind-writers", behind_writers},
        {"read-write-through-a-chain", write_chain},
        {"read-read-through-a-chain", read_chain},
        {"recursive-read-behind-writers", recursive_behind_writers},
        {"recursive-read", recursive},
        {"two-readers-behind-writers", two_readers},
        {"reader-that-writes", reader_that_writes},
        {"writer-that-writes", writer_that_writes},
    };
    return run_case(argc, argument, all, COUNT(all));
}
