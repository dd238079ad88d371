/* Calls that may last, made under a lock: said with --sleepy only. */
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

static pthread_mutex_t desk = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lamp = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t rested = PTHREAD_COND_INITIALIZER;

/* CASE sleep with --sleepy
 *   RULE: blocking call under a lock
 *     has: desk (mutex)
 *     has: nanosleep
 *     has: thread "sleeper"
 *     at: naps() @sleep-holds
 *     at: naps() @sleep-here
 *     lacks: lamp
 * CASE sleep-unasked
 *   silent even with --strict
 */
static void naps(void)
{
    struct timespec short_time = {0, 1000000};
    take(&lamp);
    give(&lamp);
    take(&desk); /* @sleep-holds */
    must(nanosleep(&short_time, NULL)); /* @sleep-here */
    give(&desk);
}

static void sleep_under_lock(void)
{
    in_a_thread("sleeper", naps);
}

/* CASE poll with --sleepy
 *   RULE: blocking call under a lock
 *     has: desk (mutex)
 *     has: poll
 *     at: looks() @poll-here
 * CASE fsync with --sleepy
 *   RULE: blocking call under a lock
 *     has: desk (mutex)
 *     has: fsync
 *     at: saves() @fsync-here
 * CASE connect with --sleepy
 *   RULE: blocking call under a lock
 *     has: desk (mutex)
 *     has: connect
 *     at: rings_nobody() @connect-here
 * CASE usleep with --sleepy
 *   RULE: blocking call under a lock
 *     has: usleep
 *     at: dozes() @usleep-here
 */
static void looks(void)
{
    take(&desk);
    must(poll(NULL, 0, 5)); /* @poll-here */
    give(&desk);
}

static void poll_under_lock(void)
{
    in_a_thread("looker", looks);
}

static void saves(void)
{
    FILE *file = tmpfile();
    must(file == NULL);
    take(&desk);
    must(fsync(fileno(file))); /* @fsync-here */
    give(&desk);
    must(fclose(file));
}

static void fsync_under_lock(void)
{
    in_a_thread("syncer", saves);
}

static void rings_nobody(void)
{
    struct sockaddr_un nobody = {.sun_family = AF_UNIX, .sun_path = "/nobody/listens/here"};
    int end = socket(AF_UNIX, SOCK_STREAM, 0);
    must(end < 0);
    take(&desk);
    must(connect(end, (struct sockaddr *)&nobody, sizeof nobody) == 0); /* @connect-here */
    give(&desk);
    close(end);
}

static void connect_under_lock(void)
{
    in_a_thread("caller", rings_nobody);
}

static void dozes(void)
{
    take(&desk);
    must(usleep(1000)); /* @usleep-here */
    give(&desk);
}

static void usleep_under_lock(void)
{
    in_a_thread("sleeper", dozes);
}

/* CASE sleep-without-locks with --sleepy
 *   silent
 * CASE condition-with-its-mutex with --sleepy
 *   silent
 * CASE poll-without-waiting with --sleepy
 *   silent
 */
static void naps_outside(void)
{
    take(&desk);
    give(&desk);
    nap(1);
    must(poll(NULL, 0, 1));
}

static void sleep_outside(void)
{
    in_a_thread("sleeper", naps_outside);
}

static void rests(void)
{
    struct timespec at = soon(CLOCK_REALTIME, 10);
    take(&desk);
    must(pthread_cond_timedwait(&rested, &desk, &at) != ETIMEDOUT);
    give(&desk);
}

static void condition(void)
{
    in_a_thread("rester", rests);
}

static void looks_at_once(void)
{
    take(&desk);
    must(poll(NULL, 0, 0));
    give(&desk);
}

static void poll_at_once(void)
{
    in_a_thread("looker", looks_at_once);
}

int main(int argc, char **argument)
{
    static const struct a_case all[] = {
        {"sleep", sleep_under_lock},
        {"sleep-unasked", sleep_under_lock},
        {"poll", poll_under_lock},
        {"fsync", fsync_under_lock},
        {"connect", connect_under_lock},
        {"usleep", usleep_under_lock},
        {"sleep-without-locks", sleep_outside},
        {"condition-with-its-mutex", condition},
        {"poll-without-waiting", poll_at_once},
    };
    return run_case(argc, argument, all, COUNT(all));
}
