/* An exact timer of mutexes: reads the clock at each acquisition and each release, waits
 * for conditions included. Preloaded below lockstead, so that both see the same run.
 * At the end it adds a line for each life of a mutex to the file $EXACT_TIMES:
 *   pid address, waits: number total longest, holds: number total longest
 * in nanoseconds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ENTRIES = 1 << 16 };

struct times {
    uint64_t number, total, longest;
};

/* Only who holds the mutex writes to what follows the address. */
static struct entry {
    _Atomic uintptr_t address;
    uint64_t began;
    unsigned depth;
    struct times waits, holds;
} table[ENTRIES];

static FILE *file;
static int (*real_lock)(pthread_mutex_t *), (*real_trylock)(pthread_mutex_t *),
    (*real_unlock)(pthread_mutex_t *), (*real_destroy)(pthread_mutex_t *),
    (*real_wait)(pthread_cond_t *, pthread_mutex_t *),
    (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

/* The generation of conditions that programs are built against. */
#ifdef __x86_64__
#define CONDITIONS "GLIBC_2.3.2"
#else
#define CONDITIONS "GLIBC_2.17"
#endif

static void *next(const char *name, const char *version)
{
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

static void resolve(void)
{
    if (real_timedwait)
        return;
    real_lock = next("pthread_mutex_lock", NULL);
    real_trylock = next("pthread_mutex_trylock", NULL);
    real_unlock = next("pthread_mutex_unlock", NULL);
    real_destroy = next("pthread_mutex_destroy", NULL);
    real_wait = next("pthread_cond_wait", CONDITIONS);
    real_timedwait = next("pthread_cond_timedwait", CONDITIONS);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct entry *entry_of(pthread_mutex_t *mutex)
{
    uintptr_t address = (uintptr_t)mutex;
    size_t at = (address >> 3) * 2654435761u % ENTRIES;
    for (size_t tries = 0; tries < ENTRIES; tries++, at = (at + 1) % ENTRIES) {
        uintptr_t found = table[at].address;
        if (!found && atomic_compare_exchange_strong(&table[at].address, &found, address))
            return &table[at];
        if (found == address)
            return &table[at];
    }
    abort();
}

static void add(struct times *times, uint64_t ns)
{
    times->number++;
    times->total += ns;
    if (times->longest < ns)
        times->longest = ns;
}

static void begins(struct entry *entry, uint64_t at)
{
    if (entry->depth++ == 0)
        entry->began = at;
}

static void ends(struct entry *entry)
{
    if (entry->depth && --entry->depth == 0)
        add(&entry->holds, now() - entry->began);
}

static void write_down(struct entry *entry)
{
    if (file && entry->holds.number)
        fprintf(file, "%d %lu %lu %lu %lu %lu %lu %lu\n", getpid(), entry->address,
                entry->waits.number, entry->waits.total, entry->waits.longest,
                entry->holds.number, entry->holds.total, entry->holds.longest);
    entry->waits = entry->holds = (struct times){0};
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    resolve();
    int answer = real_trylock(mutex);
    if (answer == 0) {
        begins(entry_of(mutex), now());
        return 0;
    }
    uint64_t since = now();
    answer = real_lock(mutex);
    if (answer == 0) {
        uint64_t at = now();
        add(&entry_of(mutex)->waits, at - since);
        begins(entry_of(mutex), at);
    }
    return answer;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    resolve();
    int answer = real_trylock(mutex);
    if (answer == 0)
        begins(entry_of(mutex), now());
    return answer;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    resolve();
    ends(entry_of(mutex));
    return real_unlock(mutex);
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    resolve();
    write_down(entry_of(mutex));
    return real_destroy(mutex);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    resolve();
    ends(entry_of(mutex));
    int answer = real_wait(condition, mutex);
    begins(entry_of(mutex), now());
    return answer;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    resolve();
    ends(entry_of(mutex));
    int answer = real_timedwait(condition, mutex, until);
    begins(entry_of(mutex), now());
    return answer;
}

__attribute__((constructor)) static void start(void)
{
    resolve();
    const char *name = getenv("EXACT_TIMES");
    file = name ? fopen(name, "ae") : NULL;
}

__attribute__((destructor)) static void finish(void)
{
    for (size_t at = 0; at < ENTRIES; at++)
        if (table[at].address)
            write_down(&table[at]);
    if (file)
        fclose(file);
    file = NULL;
}
