/* What is known of an order does not hide what is new: another life of a lock,
 * another thread, and that there is one at all. Nor is what was known of a place
 * said of what lies there next. */
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

/* CASE condition-where-another-was
 *   silent even with --strict
 */
struct box {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
};

static struct box *box;

static struct box *new_box(void)
{
    struct box *made = malloc(sizeof *made);
    must(pthread_mutex_init(&made->mutex, NULL));
    must(pthread_cond_init(&made->filled, NULL));
    return made;
}

static void *free_box(struct box *old)
{
    must(pthread_mutex_destroy(&old->mutex));
    must(pthread_cond_destroy(&old->filled));
    free(old);
    return old;
}

static void signals_under_left(void)
{
    take(&left);
    must(pthread_cond_signal(&box->filled));
    give(&left);
}

static void waits_under_left(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 10);
    take(&left);
    take(&box->mutex);
    must(pthread_cond_timedwait(&box->filled, &box->mutex, &at) != ETIMEDOUT);
    give(&box->mutex);
    give(&left);
}

static void another_condition(void)
{
    box = new_box();
    in_a_thread("signals", signals_under_left);
    void *before = free_box(box);
    box = new_box();
    must(box != before);
    in_a_thread("waits", waits_under_left);
}

/* CASE handed-off-where-another-was
 *   RULE: unlock by another thread
 *     at: gives_anew() @given-anew
 */
extern void lockstead_handoff(void *) __attribute__((weak));

static pthread_mutex_t *handed;

static void takes(void)
{
    take(handed);
}

static void gives(void)
{
    give(handed);
}

static void gives_anew(void)
{
    give(handed); /* @given-anew */
}

static void handed_off(void)
{
    handed = malloc(sizeof *handed);
    must(pthread_mutex_init(handed, NULL));
    if (lockstead_handoff != NULL)
        lockstead_handoff(handed);
    in_turn({"owner", takes}, {"other", gives});
    must(pthread_mutex_destroy(handed));
    void *before = handed;
    free(handed);
    handed = malloc(sizeof *handed);
    must(handed != before);
    must(pthread_mutex_init(handed, NULL));
    in_turn({"owner", takes}, {"other", gives_anew});
}

/* CASE one-place-for-two-kinds
 *   silent
 */
static union {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
} place;

static void place_left(void)
{
    memset(&place, 0, sizeof place);
    take(&place.mutex);
    take(&left);
    give(&left);
    give(&place.mutex);
}

static void left_place(void)
{
    memset(&place, 0, sizeof place);
    take(&left);
    must(pthread_rwlock_wrlock(&place.rwlock));
    must(pthread_rwlock_unlock(&place.rwlock));
    give(&left);
}

static void two_kinds(void)
{
    in_turn({"one", place_left}, {"two", left_place}, {"three", place_left});
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"next-life-of-the-second", life_of_second},
        {"next-life-of-the-first", life_of_first},
        {"thread-that-nobody-has-made", made_by_libc},
        {"one-of-many-threads", among_many},
        {"condition-where-another-was", another_condition},
        {"handed-off-where-another-was", handed_off},
        {"one-place-for-two-kinds", two_kinds},
    };
    return run_case(argc, argument, all, COUNT(all));
}
