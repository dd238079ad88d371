/* Uses all the keys of values for threads that there are, and says what comes of it. */

#include <errno.h>
#include <limits.h>
#include <threads.h>
#include "stops.h"

enum { MOST = 2048 };

static pthread_mutex_t late = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t keys[MOST];
static int count, calls[MOST], wrong;
static pthread_key_t again;
static int agains;
static unsigned long locked;

static void ends(void *value)
{
    size_t index = (size_t)value - 1;
    if (index >= (size_t)count || pthread_getspecific(keys[index]) != NULL)
        wrong++;
    else
        calls[index]++;
    locked++;
    if (pthread_mutex_lock(&late) || pthread_mutex_unlock(&late))
        abort();
}

static int quiet;
#define say(...) (quiet ? 0 : printf(__VA_ARGS__))

/* Sets its value again, as long as it is asked; or, for what it does to be seen, up to
 * the round before the last. */
static void ends_again(void *value)
{
    agains++;
    locked++;
    if ((!quiet || agains % 3) && pthread_setspecific(again, value))
        abort();
    if (pthread_mutex_lock(&late) || pthread_mutex_unlock(&late))
        abort();
}

static void *has_all(void *argument)
{
    for (int i = 0; i < count; i++)
        if (pthread_getspecific(keys[i]) != NULL || pthread_setspecific(keys[i], argument) ||
            pthread_setspecific(keys[i], (void *)(size_t)(i + 1)))
            abort();
    for (int i = 0; i < count; i++)
        if (pthread_getspecific(keys[i]) != (void *)(size_t)(i + 1))
            abort();
    return NULL;
}

static void *has_again(void *argument)
{
    if (pthread_getspecific(again) != NULL || pthread_setspecific(again, argument))
        abort();
    return NULL;
}

static void *exits(void *argument)
{
    has_again(argument);
    pthread_exit(NULL);
}

static void in_thread(void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, routine, argument) || pthread_join(thread, NULL))
        abort();
}

static void fill(void)
{
    int answer;
    while ((answer = pthread_key_create(&keys[count], ends)) == 0)
        count++;
    say("%d keys, then %d\n", count, answer);
}

int main(int argc, char **argv)
{
    (void)argv;
    quiet = argc > 1;
    pthread_key_t unused;
    /* Those that are nobody's. */
    int taken = 0;
    for (unsigned key = 0; key < PTHREAD_KEYS_MAX; key++)
        if (pthread_getspecific(key) != NULL || pthread_setspecific(key, NULL) != EINVAL)
            taken++;
    say("%d are taken at first\n", taken);
    fill();
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (keys[i] == keys[j])
                abort();
    in_thread(has_all, (void *)1);
    in_thread(has_all, (void *)1);
    int twice = 0;
    for (int i = 0; i < count; i++)
        twice += calls[i] == 2;
    say("%d destructors ran twice, %d wrongly\n", twice, wrong);

    /* Each key in turn is deleted and created anew: nobody finds the old value. */
    has_all((void *)1);
    for (int i = 0; i < count; i++) {
        pthread_key_t old = keys[i];
        if (pthread_key_delete(old) || pthread_key_delete(old) != EINVAL ||
            pthread_setspecific(old, &old) != EINVAL || pthread_getspecific(old) != NULL)
            abort();
        if (pthread_key_create(&keys[i], ends) || pthread_getspecific(keys[i]) != NULL)
            abort();
    }
    if (pthread_key_create(&unused, NULL) != EAGAIN)
        abort();
    /* The same by the other names; and one that is never content. */
    for (int i = 0; i < count; i++) {
        tss_t key;
        tss_delete(keys[i]);
        if (tss_create(&key, NULL) != thrd_success || tss_get(key) != NULL ||
            tss_set(key, &key) != thrd_success || tss_get(key) != &key ||
            tss_create(&unused, NULL) != thrd_error)
            abort();
        again = key;
        in_thread(has_again, (void *)1);
        tss_delete(key);
        if (tss_set(key, &key) != thrd_error || tss_get(key) != NULL)
            abort();
        if (pthread_key_create(&again, ends_again))
            abort();
        in_thread(i % 2 ? has_again : exits, (void *)1);
        keys[i] = again;
    }
    say("%d calls for %d threads\n", agains, count);
    if (quiet) {
        SHOW(late);
        show("locked", locked);
        stop("done");
    }
    return 0;
}
