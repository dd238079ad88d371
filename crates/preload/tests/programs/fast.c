/* How much of the stack a call takes that is made again and again: the least of all calls, of which a few
 * have more to do. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEEP = 768, TIMES = 3000, LOCKS = 100, ROUNDS = 100, UNTOUCHED = 0xa5 };

typedef int (*function)(void *);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, tried = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t read_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t write_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t inner_read = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_mutex_t many[LOCKS];

/* An address just below the caller's stack pointer. */
__attribute__((noinline)) static unsigned char *below(void)
{
    unsigned char *frame = __builtin_frame_address(0);
    __asm__ volatile("" : "+r"(frame));
    return frame;
}

static size_t taken_by(function call, void *lock)
{
    volatile unsigned char *deepest = below() - DEEP;
    for (size_t i = 0; i < DEEP; i++)
        deepest[i] = UNTOUCHED;
    if (call(lock))
        abort();
    size_t untouched = 0;
    while (untouched < DEEP && deepest[untouched] == UNTOUCHED)
        untouched++;
    return DEEP - untouched;
}

static void keep_least(size_t *least, size_t taken)
{
    if (taken < *least)
        *least = taken;
}

static void measure(const char *name, function acquire, function release, void *lock)
{
    size_t acquires = DEEP, releases = DEEP;
    for (int i = 0; i < TIMES; i++) {
        keep_least(&acquires, taken_by(acquire, lock));
        keep_least(&releases, taken_by(release, lock));
    }
    printf("%s %zu\n%s_release %zu\n", name, acquires, name, releases);
}

int main(int count, char **arguments)
{
    function unlock = (function)pthread_mutex_unlock, unlock_rw = (function)pthread_rwlock_unlock;
    size_t enough = count > 1 ? strtoul(arguments[1], NULL, 10) : DEEP;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    measure("mutex", (function)pthread_mutex_lock, unlock, &mutex);
    measure("tried", (function)pthread_mutex_trylock, unlock, &tried);
    measure("read", (function)pthread_rwlock_rdlock, unlock_rw, &read_lock);
    measure("write", (function)pthread_rwlock_wrlock, unlock_rw, &write_lock);
    measure("spin", (function)pthread_spin_lock, (function)pthread_spin_unlock, (void *)&spin);
    pthread_mutex_lock(&outer);
    measure("inner", (function)pthread_mutex_lock, unlock, &inner);
    measure("inner_read", (function)pthread_rwlock_rdlock, unlock_rw, &inner_read);
    pthread_mutex_unlock(&outer);
    /* More locks at one place in the program than there are lines for such pairs. */
    unsigned char were_fast[LOCKS] = {0};
    size_t fast = 0;
    for (int i = 0; i < ROUNDS; i++)
        for (int j = 0; j < LOCKS; j++) {
            were_fast[j] |= taken_by((function)pthread_mutex_lock, &many[j]) <= enough;
            pthread_mutex_unlock(&many[j]);
        }
    for (int j = 0; j < LOCKS; j++)
        fast += were_fast[j];
    printf("many %zu\n", fast);
    return 0;
}
