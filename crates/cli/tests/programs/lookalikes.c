/* Programs that look deadlocked for a while and are not, one a run: `lookalikes
 * WHAT`. Each stays long enough in the state that looks so, goes on by itself
 * and ends in order. */
#include "common.h"
#include "waiting.h"
#include <linux/seccomp.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int stage;
static sigjmp_buf back;

/* A mutex that is a signal: whoever locks it twice waits for somebody else to
 * unlock it. Wrong by the book, and works. That the mutex is used so can be
 * known from the first time on, which here is a short one. */
static atomic_int given;

static void *gives(void *unused)
{
    for (; given < 6; given++) {
        await(&stage, given + 1);
        nap(given == 0 ? 0 : LASTS);
        unlock(&one);
    }
    return unused;
}

static void handed_over(void)
{
    pthread_t giver = start(gives, NULL, "giver");
    lock(&one);
    atomic_store(&stage, 1);
    await(&given, 1);
    for (int taken = 1; taken < 6; taken++) {
        lock(&one);
        atomic_store(&stage, taken + 1);
        lock(&one);
        atomic_store(&stage, ++taken + 1);
    }
    must(pthread_join(giver, NULL));
}

/* Trying, letting go and trying again: nobody sleeps. */
static void *tries(void *which)
{
    pthread_mutex_t *first = which ? &one : &two, *second = which ? &two : &one;
    for (int got = 0; got < 20;) {
        lock(first);
        nap(1);
        if (pthread_mutex_trylock(second) == 0) {
            got++;
            unlock(second);
        }
        unlock(first);
        nap(which ? 1 : 2);
    }
    return NULL;
}

static void livelock(void)
{
    pthread_t a = start(tries, &one, "a"), b = start(tries, NULL, "b");
    must(pthread_join(a, NULL));
    must(pthread_join(b, NULL));
}

/* A mutex lent to a condition is not held. */
static void *waits(void *unused)
{
    lock(&one);
    lock(&two);
    atomic_store(&stage, 1);
    while (atomic_load(&stage) < 3)
        must(pthread_cond_wait(&changed, &two));
    unlock(&two);
    unlock(&one);
    return unused;
}

static void *takes_the_lent(void *unused)
{
    await(&stage, 1);
    lock(&two);
    atomic_store(&stage, 2);
    lock(&one);
    unlock(&one);
    unlock(&two);
    return unused;
}

static void lent(void)
{
    pthread_t waiter = start(waits, NULL, "waiter"), taker = start(takes_the_lent, NULL, "taker");
    await(&stage, 2);
    nap(LASTS);
    /* The taker holds `two`, which the waiter must get back: it will not, so
     * the taker has to be given `one`. The waiter's own thread cannot. */
    must(pthread_mutex_unlock(&one));
    must(pthread_join(taker, NULL));
    must(pthread_mutex_trylock(&one));
    lock(&two);
    atomic_store(&stage, 3);
    must(pthread_cond_signal(&changed));
    unlock(&two);
    must(pthread_join(waiter, NULL));
}

/* Readers come and go, and read twice, while writers wait: their preference is
 * the default one. */
static void *reads(void *unused)
{
    for (int i = 0; i < 30; i++) {
        must(pthread_rwlock_rdlock(&table));
        nap(3);
        must(pthread_rwlock_rdlock(&table));
        nap(3);
        must(pthread_rwlock_unlock(&table));
        must(pthread_rwlock_unlock(&table));
    }
    return unused;
}

static void *writes(void *unused)
{
    for (int i = 0; i < 3; i++) {
        must(pthread_rwlock_wrlock(&table));
        must(pthread_rwlock_unlock(&table));
    }
    return unused;
}

static void readers(void)
{
    pthread_t some[12];
    for (int i = 0; i < 12; i++)
        some[i] = begin(i % 4 ? reads : writes, NULL);
    for (int i = 0; i < 12; i++)
        must(pthread_join(some[i], NULL));
}

/* Mutexes that see for themselves that they would wait for ever. */
static void checked(void)
{
    pthread_mutexattr_t attribute;
    pthread_mutex_t checks;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_ERRORCHECK));
    for (int inherit = 0; inherit < 2; inherit++) {
        must(pthread_mutexattr_setprotocol(&attribute, inherit));
        must(pthread_mutex_init(&checks, &attribute));
        must(pthread_mutex_lock(&checks));
        for (int i = 0; i < 20000; i++)
            must(pthread_mutex_lock(&checks) != EDEADLK);
        must(pthread_mutex_unlock(&checks));
    }
}

/* The owner of a robust mutex dies while another thread waits for it, and that
 * one holds what the owner wanted. */
static pthread_mutex_t robust;

static void *dies(void *unused)
{
    struct timespec soon;
    must(pthread_mutex_lock(&robust));
    atomic_store(&stage, 1);
    await(&stage, 2);
    nap(LASTS);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = 0;
    must(pthread_mutex_timedlock(&one, &soon) != ETIMEDOUT);
    return unused;
}

static void owner_dies(void)
{
    pthread_mutexattr_t attribute;
    must(pthread_mutexattr_init(&attribute));
    must(pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST));
    must(pthread_mutex_init(&robust, &attribute));
    lock(&one);
    pthread_t owner = start(dies, NULL, "owner");
    await(&stage, 1);
    atomic_store(&stage, 2);
    must(pthread_mutex_lock(&robust) != EOWNERDEAD);
    must(pthread_mutex_consistent(&robust));
    must(pthread_mutex_unlock(&robust));
    unlock(&one);
    must(pthread_join(owner, NULL));
}

/* A wait that is left by a jump, and what its thread does afterwards: it computes
 * and calls nothing of ours. */
static void jumps(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void *wants_one(void *unused)
{
    lock(&two);
    atomic_store(&stage, 1);
    lock(&one);
    unlock(&one);
    unlock(&two);
    return unused;
}

static void jump_out(void)
{
    lock(&one);
    pthread_t other = start(wants_one, NULL, "other");
    await(&stage, 1);
    signal(SIGALRM, jumps);
    if (sigsetjmp(back, 1) == 0) {
        /* In time for nobody to have looked twice. */
        ualarm(1000, 0);
        lock(&two);
    }
    nap(LASTS);
    unlock(&one);
    must(pthread_join(other, NULL));
}

/* Handles of threads that are used again, for threads that wait for the joiner's
 * lock. */
static void *ends_at_once(void *unused)
{
    return unused;
}

static void *behind_one(void *unused)
{
    atomic_fetch_add(&stage, 1);
    lock(&one);
    unlock(&one);
    return unused;
}

static void *joins(void *other)
{
    must(pthread_join(*(pthread_t *)other, NULL));
    return NULL;
}

static void handles(void)
{
    for (int i = 0; i < 40; i++) {
        pthread_t first = begin(ends_at_once, NULL), joiner, second;
        atomic_store(&stage, 0);
        lock(&one);
        must(pthread_create(&joiner, NULL, joins, &first));
        must(pthread_create(&second, NULL, behind_one, NULL));
        await(&stage, 1);
        nap(25);
        unlock(&one);
        must(pthread_join(joiner, NULL));
        must(pthread_join(second, NULL));
    }
}

/* A thread that may make no system call but reading, writing and ending, and may
 * not read the processor's clock. */
static void *in_jail(void *unused)
{
    lock(&two);
    unlock(&two);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    for (int i = 0; i < 100000; i++) {
        lock(&one);
        lock(&two);
        unlock(&two);
        unlock(&one);
    }
    syscall(SYS_exit, 0);
    return unused;
}

static void jail(void)
{
    pthread_t thread = begin(in_jail, NULL);
    must(pthread_join(thread, NULL));
    lock(&one);
    unlock(&one);
}

/* More threads than processors, all in one order. */
static pthread_mutex_t chain[8];

static void *in_order(void *seed)
{
    unsigned random = (unsigned)(size_t)seed + 1;
    for (int i = 0; i < 20000; i++) {
        int from = rand_r(&random) % 6, to = from + 1 + rand_r(&random) % 2;
        lock(&chain[from]);
        lock(&chain[to]);
        unlock(&chain[i % 2 ? from : to]);
        unlock(&chain[i % 2 ? to : from]);
    }
    return NULL;
}

static void crowd(void)
{
    pthread_t some[32];
    for (int i = 0; i < 8; i++)
        must(pthread_mutex_init(&chain[i], NULL));
    for (long i = 0; i < 32; i++)
        some[i] = begin(in_order, (void *)i);
    for (int i = 0; i < 32; i++)
        must(pthread_join(some[i], NULL));
}

int main(int argc, char **argument)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {
        {"handed-over", handed_over},
        {"livelock", livelock},
        {"lent", lent},
        {"readers", readers},
        {"checked", checked},
        {"owner-dies", owner_dies},
        {"jump-out", jump_out},
        {"handles", handles},
        {"jail", jail},
        {"crowd", crowd},
    };
    for (size_t i = 0; argc == 2 && i < sizeof all / sizeof *all; i++) {
        if (strcmp(argument[1], all[i].name) == 0) {
            all[i].run();
            printf("went on\n");
            return 0;
        }
    }
    return 98;
}
