/* One text for semaphores and mutexes: the calls are chosen by the type of the lock. The
 * same file is C++, and has all its semaphores as mutexes if it is told so. */
#ifdef KERNEL_FIRST
#include <lockstead/kernel.h>
#endif
#include <lockstead/migrate.h>
#include <lockstead/kernel.h>

#include "expect.h"

static DECLARE_MUTEX(declared);
static DEFINE_SEMAPHORE(defined, 1);
static struct semaphore semaphore;
static struct mutex mutex;
static lks_semaphore bare_semaphore;
static lks_mutex bare_mutex;
/* Stays what it is, whatever `struct semaphore` is. */
static lks_semaphore places = LKS_SEMAPHORE_INIT(0);

static void *give(void *unused)
{
    up(&places);
    return unused;
}

/* What each call returns, and that the lock is held meanwhile. */
#define ONE_AT_A_TIME(lock)                                              \
    do {                                                                 \
        down(lock);                                                      \
        EXPECT(down_trylock(lock) == 1);                                 \
        up(lock);                                                        \
        EXPECT(down_trylock(lock) == 0);                                 \
        up(lock);                                                        \
        EXPECT(down_interruptible(lock) == 0);                           \
        up(lock);                                                        \
        EXPECT(down_killable(lock) == 0);                                \
        up(lock);                                                        \
        EXPECT(down_timeout(lock, HZ) == 0);                             \
        up(lock);                                                        \
    } while (0)

#define BY_EACH_NAME(lock)            \
    do {                              \
        sema_init(lock, 1);           \
        ONE_AT_A_TIME(lock);          \
        init_MUTEX(lock);             \
        ONE_AT_A_TIME(lock);          \
        init_MUTEX_LOCKED(lock);      \
        EXPECT(down_trylock(lock) == 1); \
        up(lock);                     \
        ONE_AT_A_TIME(lock);          \
    } while (0)

/* What another thread is told while the lock is held. */
#define REFUSES(lock)                                     \
    do {                                                  \
        lks_cancel token = LKS_CANCEL_INIT;               \
        EXPECT(down_trylock(lock) == 1);                  \
        EXPECT(down_timeout(lock, 1) == -ETIME);          \
        lks_cancel_fire(&token);                          \
        lockstead_kill_token(&token);                     \
        EXPECT(down_killable(lock) == -EINTR);            \
        lockstead_kill_token(NULL);                       \
    } while (0)

static void *refuses(void *unused)
{
    REFUSES(&semaphore);
    REFUSES(&mutex);
    REFUSES(&bare_semaphore);
    REFUSES(&bare_mutex);
    return unused;
}

static int is_a_mutex_inside(const lks_mutex *lock)
{
    return lks_mutex_is_mine(lock);
}

int main(int count, char **arguments)
{
    BY_EACH_NAME(&semaphore);
    BY_EACH_NAME(&mutex);
    BY_EACH_NAME(&bare_semaphore);
    BY_EACH_NAME(&bare_mutex);
    ONE_AT_A_TIME(&declared);
    ONE_AT_A_TIME(&defined);

    down(&semaphore);
    down(&mutex);
    down(&bare_semaphore);
    down(&bare_mutex);
#ifdef LKS_SEMAPHORES_ARE_MUTEXES
    EXPECT(is_a_mutex_inside(&semaphore.lks__));
#endif
    EXPECT(is_a_mutex_inside(&mutex.lks__) && is_a_mutex_inside(&bare_mutex));
    join(start(refuses, NULL));
    up(&bare_mutex);
    up(&bare_semaphore);
    up(&mutex);
    up(&semaphore);

    pthread_t giver = start(give, NULL);
    down(&places);
    join(giver);
    sema_init(&places, 2);
    down(&places);
    down(&places);
    EXPECT(down_trylock(&places) == 1);

    /* A count that the compiler does not know. */
    if (count > 1)
        sema_init(&mutex, atoi(arguments[1])); /* COUNTED */
    return 0;
}
