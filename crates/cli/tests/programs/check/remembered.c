/* What is known of an order does not hide what is new: another life of a lock,
 * another thread, and that there is one at all. */
#include "check.h"

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;

static void left_right(void)
{
    take(&left);  /* @left-held */
    take(&right); /* @right-wanted */
    give(&right);
    give(&left);
}

static void right_left(void)
{
    take(&right); /* @right-held */
    take(&left);  /* @left-wanted */
    give(&left);
    give(&right);
}

static void often(void)
{
    for (int i = 0; i < 20; i++)
        left_right();
}

static void begin_anew(pthread_mutex_t *mutex)
{
    must(pthread_mutex_destroy(mutex));
    must(pthread_mutex_init(mutex, NULL));
}

/* CASE next-life-of-the-second
 *   POTENTIAL: lock order inversion of 2 locks
 * CASE next-life-of-the-first
 *   POTENTIAL: lock order inversion of 2 locks
 */
static void second_anew(void)
{
    often();
    begin_anew(&right);
    often();
}

static void first_anew(void)
{
    often();
    begin_anew(&left);
    often();
}

static void life_of_second(void)
{
    in_turn({"one", second_anew}, {"two", right_left});
}

static void life_of_first(void)
{
    in_turn({"one", first_anew}, {"two", right_left});
}

/* CASE thread-that-nobody-has-made
 *   POTENTIAL: lock order inversion of 2 locks
 */
static atomic_int rung;

static void rings(union sigval unused)
{
    (void)unused;
    right_left();
    atomic_fetch_add(&rung, 1);
}

static void made_by_libc(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = rings};
    struct itimerspec once = {.it_value = {0, 1000000}};
    timer_t timer;
    often();
    must(timer_create(CLOCK_MONOTONIC, &event, &timer));
    must(timer_settime(timer, 0, &once, NULL));
    await(&rung, 1);
    often();
}

/* CASE one-of-many-threads
 *   POTENTIAL: lock order inversion of 2 locks
 */
enum { THREADS = 40, NEXT_OF_ITS_KIND = 32 };

static void *one_of_many(void *which)
{
    int mine = (int)(long)which;
    await(&turn, mine);
    if (mine % NEXT_OF_ITS_KIND == 1) {
        left_right();
        right_left();
    }
    atomic_fetch_add(&turn, 1);
    await(&turn, THREADS);
    return NULL;
}

static void among_many(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(one_of_many, (void *)i, "one-of-many");
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL));
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"next-life-of-the-second", life_of_second},
        {"next-life-of-the-first", life_of_first},
        {"thread-that-nobody-has-made", made_by_libc},
        {"one-of-many-threads", among_many},
    };
    return run_case(argc, argument, all, COUNT(all));
}
