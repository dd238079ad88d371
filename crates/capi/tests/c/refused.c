/* What migrate.h does not let pass: one of these at a time, by its name. */
#include <lockstead/migrate.h>

static struct mutex mutex;
static struct semaphore semaphore;
static struct rw_semaphore tree;

#ifdef DECLARED_COUNT
static DEFINE_SEMAPHORE(places, 4);
#endif
#ifdef DECLARED_LOCKED
static DECLARE_MUTEX_LOCKED(done);
#endif

int main(void)
{
    sema_init(&semaphore, 1);
    sema_init(&mutex, 1);
#ifdef COUNTED_MUTEX
    sema_init(&mutex, 2);
#endif
#ifdef COUNTED_SEMAPHORE
    sema_init(&semaphore, 2);
#endif
#ifdef OTHER_TYPE
    down(&tree);
#endif
#ifdef MUTEX_CALL_ON_A_SEMAPHORE
    mutex_lock(&semaphore);
#endif
    (void)&tree;
    return 0;
}
