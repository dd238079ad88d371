/* Programs in which a thread seems to hold what it does not, one a run: `stale
 * WHAT`. Another thread really has it, and goes on after a while. */
#include "common.h"
#include "waiting.h"
#include <sys/mman.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static atomic_int stage;

/* Of what the first thread only seems to hold, somebody else is the owner: this
 * thread. It lets go after a while. */
static void *really_holds(void *lock_it)
{
    ((void (*)(int))lock_it)(1);
    atomic_fetch_add(&stage, 1);
    nap(LASTS);
    ((void (*)(int))lock_it)(0);
    return NULL;
}

/* Waits for that lock and holds what the first thread waits for. */
static void *stands_between(void *lock_it)
{
    await(&stage, 1);
    lock(&two);
    atomic_fetch_add(&stage, 1);
    ((void (*)(int))lock_it)(1);
    ((void (*)(int))lock_it)(0);
    unlock(&two);
    return NULL;
}

static void as_if_held(void (*lock_it)(int))
{
    pthread_t owner = start(really_holds, (void *)lock_it, "owner");
    pthread_t between = start(stands_between, (void *)lock_it, "between");
    await(&stage, 2);
    lock(&two);
    unlock(&two);
    must(pthread_join(owner, NULL));
    must(pthread_join(between, NULL));
}

static void a_mutex(int on)
{
    must(on ? pthread_mutex_lock(&one) : pthread_mutex_unlock(&one));
}

static void a_writer(int on)
{
    must(on ? pthread_rwlock_wrlock(&table) : pthread_rwlock_unlock(&table));
}

static void a_spin_lock(int on)
{
    must(on ? pthread_spin_lock(&spin) : pthread_spin_unlock(&spin));
}

/* Locks that are held, forgotten, and begun anew at the same place. */
static void wiped(void)
{
    lock(&one);
    memset(&one, 0, sizeof one);
    as_if_held(a_mutex);
}

static void begun_anew(void)
{
    lock(&one);
    must(pthread_mutex_init(&one, NULL));
    as_if_held(a_mutex);
}

static void read_and_wiped(void)
{
    must(pthread_rwlock_rdlock(&table));
    memset(&table, 0, sizeof table);
    as_if_held(a_writer);
}

static void written_and_begun_anew(void)
{
    must(pthread_rwlock_wrlock(&table));
    must(pthread_rwlock_init(&table, NULL));
    as_if_held(a_writer);
}

static void spun_and_begun_anew(void)
{
    must(pthread_spin_init(&spin, 0));
    must(pthread_spin_lock(&spin));
    must(pthread_spin_init(&spin, 0));
    as_if_held(a_spin_lock);
}

/* The same from another thread, which is gone or not. */
static void *takes_all(void *unused)
{
    lock(&one);
    must(pthread_rwlock_rdlock(&table));
    must(pthread_spin_lock(&spin));
    return unused;
}

static void left_by_a_thread(void)
{
    must(pthread_spin_init(&spin, 0));
    must(pthread_join(begin(takes_all, NULL), NULL));
    must(pthread_mutex_init(&one, NULL));
    must(pthread_rwlock_init(&table, NULL));
    must(pthread_spin_init(&spin, 0));
    as_if_held(a_mutex);
    atomic_store(&stage, 0);
    as_if_held(a_writer);
    atomic_store(&stage, 0);
    as_if_held(a_spin_lock);
}

/* A child begins with locks that its parent's thread held, and makes them anew. */
static void in_a_child(void)
{
    lock(&one);
    must(pthread_rwlock_wrlock(&table));
    pid_t child = fork();
    if (child == 0) {
        must(pthread_mutex_init(&one, NULL));
        must(pthread_rwlock_init(&table, NULL));
        as_if_held(a_mutex);
        atomic_store(&stage, 0);
        as_if_held(a_writer);
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) != child || status != 0);
    unlock(&one);
    must(pthread_rwlock_unlock(&table));
}

/* Another process gives back what this one took. */
static pthread_rwlock_t *shared;

static void a_shared_writer(int on)
{
    must(on ? pthread_rwlock_wrlock(shared) : pthread_rwlock_unlock(shared));
}

static void between_processes(void)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_rwlockattr_t attribute;
    must(pthread_rwlockattr_init(&attribute));
    must(pthread_rwlockattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED));
    must(pthread_rwlock_init(shared, &attribute));
    must(pthread_rwlock_rdlock(shared));
    pid_t child = fork();
    if (child == 0) {
        must(pthread_rwlock_unlock(shared));
        _exit(0);
    }
    must(waitpid(child, NULL, 0) != child);
    as_if_held(a_shared_writer);
}

/* What a parent holds and shares with its child, the child waits for. */
static void parents(void)
{
    struct {
        pthread_mutex_t mutex;
        pthread_rwlock_t table;
        pthread_spinlock_t spin;
    } *all = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t of_mutex;
    pthread_rwlockattr_t of_table;
    must(pthread_mutexattr_init(&of_mutex));
    must(pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED));
    must(pthread_mutex_init(&all->mutex, &of_mutex));
    must(pthread_rwlockattr_init(&of_table));
    must(pthread_rwlockattr_setpshared(&of_table, PTHREAD_PROCESS_SHARED));
    must(pthread_rwlock_init(&all->table, &of_table));
    must(pthread_spin_init(&all->spin, PTHREAD_PROCESS_SHARED));
    lock(&all->mutex);
    must(pthread_rwlock_wrlock(&all->table));
    must(pthread_spin_lock(&all->spin));
    pid_t child = fork();
    if (child == 0) {
        lock(&all->mutex);
        must(pthread_rwlock_wrlock(&all->table));
        must(pthread_spin_lock(&all->spin));
        _exit(0);
    }
    nap(LASTS);
    unlock(&all->mutex);
    nap(LASTS);
    must(pthread_rwlock_unlock(&all->table));
    nap(LASTS);
    must(pthread_spin_unlock(&all->spin));
    int status;
    must(waitpid(child, &status, 0) != child || status != 0);
}

int main(int argc, char **argument)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {
        {"wiped", wiped},
        {"begun-anew", begun_anew},
        {"read-and-wiped", read_and_wiped},
        {"written-and-begun-anew", written_and_begun_anew},
        {"spun-and-begun-anew", spun_and_begun_anew},
        {"left-by-a-thread", left_by_a_thread},
        {"in-a-child", in_a_child},
        {"between-processes", between_processes},
        {"parents", parents},
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
