/* What code is wrong about that uses the kernel's names, one case for each argument. */
#include <lockstead/kernel.h>

#include "expect.h"

static DEFINE_MUTEX(mutex);
static DECLARE_RWSEM(rwsem);
static DEFINE_SEMAPHORE(semaphore);

static void *takes_it(void *unused)
{
    mutex_lock(&mutex); /* BY OTHER */
    for (;;)
        pause();
    return unused;
}

static void guard_again(void)
{
    guard(mutex)(&mutex); /* GUARD AGAIN */
}

static struct mutex of_one[4], of_two[4];
static struct lock_class_key one_key, two_key;

static void in_order(struct mutex *first, struct mutex *second)
{
    mutex_lock(first);
    mutex_lock(second);
    mutex_unlock(second);
    mutex_unlock(first);
}

/* Code of its own: a function that takes any two locks has no order in mind. */
static void *backward(void *unused)
{
    int i;
    for (i = 2; i < 4; i++) {
        mutex_lock(&of_two[i]);
        mutex_lock(&of_one[i]);
        mutex_unlock(&of_one[i]);
        mutex_unlock(&of_two[i]);
    }
    return unused;
}

static void classes(int with_keys)
{
    int i;
    /* Each in a place of its own, which is its class if nothing else is said. */
    mutex_init(&of_one[0]);
    mutex_init(&of_one[1]);
    mutex_init(&of_one[2]);
    mutex_init(&of_one[3]);
    mutex_init(&of_two[0]);
    mutex_init(&of_two[1]);
    mutex_init(&of_two[2]);
    mutex_init(&of_two[3]);
    for (i = 0; with_keys && i < 4; i++) {
        lockdep_set_class(&of_one[i], &one_key);
        lockdep_set_class(&of_two[i], &two_key);
    }
    in_order(&of_one[0], &of_two[0]);
    in_order(&of_one[1], &of_two[1]);
    join(start(backward, NULL));
}

int main(int count, char **arguments)
{
    const char *which = count > 1 ? arguments[1] : "";
    if (!strcmp(which, "unheld")) {
        lockdep_assert_held(&mutex); /* UNHELD */
    } else if (!strcmp(which, "other")) {
        /* The thread stays: one that ended with the lock would be reported for that. */
        start(takes_it, NULL);
        while (!mutex_is_locked(&mutex))
            nap(1);
        lockdep_assert_held(&mutex); /* OF OTHER */
    } else if (!strcmp(which, "reads")) {
        down_read(&rwsem); /* READS */
        rwsem_assert_held(&rwsem);
        rwsem_assert_held_write(&rwsem); /* NO WRITER */
        up_read(&rwsem);
    } else if (!strcmp(which, "held")) {
        mutex_lock(&mutex); /* HELD HERE */
        lockdep_assert_not_held(&mutex); /* HELD */
        mutex_unlock(&mutex);
    } else if (!strcmp(which, "rwsem")) {
        rwsem_assert_held(&rwsem); /* RWSEM */
    } else if (!strcmp(which, "guard")) {
        guard(mutex)(&mutex); /* GUARD */
        guard_again();
    } else if (!strcmp(which, "scoped")) {
        scoped_guard(mutex, &mutex) /* SCOPED */
            scoped_guard(mutex, &mutex) /* SCOPED AGAIN */
                return 0;
    } else if (!strcmp(which, "killable")) {
        EXPECT(mutex_lock_killable(&mutex) == 0); /* KILLABLE */
        EXPECT(mutex_lock_killable_nested(&mutex, 1) == -EDEADLK); /* NESTED */
        mutex_unlock(&mutex);
    } else if (!strcmp(which, "semaphore")) {
        /* It has no owner: nobody can say. */
        down(&semaphore);
        lockdep_assert_held(&semaphore);
        up(&semaphore);
    } else if (!strcmp(which, "well")) {
        EXPECT(mutex_lock_killable(&mutex) == 0);
        EXPECT(lockdep_is_held(&mutex));
        lockdep_assert_held(&mutex);
        lockdep_assert_not_held(&rwsem);
        scoped_guard(rwsem_write, &rwsem) {
            lockdep_assert_held_write(&rwsem);
            lockdep_assert_held_once(&rwsem);
        }
        mutex_unlock(&mutex);
    } else if (!strcmp(which, "class") || !strcmp(which, "no-class")) {
        classes(!strcmp(which, "class"));
    } else if (!strcmp(which, "contexts")) {
        /* Of a class each: two of one class are another mistake. */
        static struct ww_class classes_of_them[5];
        static struct ww_acquire_ctx contexts[5];
        int i;
        for (i = 0; i < 5; i++)
            ww_acquire_init(&contexts[i], &classes_of_them[i]);
    } else if (!strcmp(which, "revived")) {
        refcount_t references = REFCOUNT_INIT(0);
        refcount_inc(&references);
        EXPECT(!refcount_dec_and_test(&references) && refcount_inc_not_zero(&references));
        EXPECT(!refcount_dec_and_mutex_lock(&references, &mutex) && !mutex_is_locked(&mutex));
    } else if (!strcmp(which, "dropped")) {
        refcount_t references = REFCOUNT_INIT(1);
        EXPECT(refcount_dec_and_test(&references) && !refcount_dec_and_test(&references));
    } else {
        return 2;
    }
    return 0;
}
