/*
 * What the functions of lockstead_cluster.h promise, against the etcd whose endpoints are the first
 * argument. C, and C++ as well.
 *
 *   mutex ENDPOINTS              everything that goes well or is refused
 *   mutex ENDPOINTS lost         says "in", and waits for the loss of its lease
 */
#include "lockstead_cluster.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "%s:%d: not so: %s (reason: %s)\n", __FILE__, __LINE__, #condition,   \
                    lks_cluster_reason());                                                        \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static const char *endpoints;

static lks_cluster_session *opened(uint64_t lease_s)
{
    lks_cluster_options options = LKS_CLUSTER_OPTIONS_INIT;
    options.endpoints = endpoints;
    options.lease_s = lease_s;
    options.margin_ns = 500000000;
    lks_cluster_session *session;
    CHECK(lks_cluster_session_open(&session, &options) == 0);
    CHECK(session != NULL);
    return session;
}

static uint64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void owners_come_in_turn(void)
{
    lks_cluster_session *one = opened(10), *two = opened(10);
    lks_cluster_guard *guard, *other;
    CHECK(lks_cluster_session_lease(one) != lks_cluster_session_lease(two));
    CHECK(lks_cluster_mutex_lock(one, "c/basic", &guard) == 0);
    const uint64_t token = lks_cluster_guard_token(guard);
    CHECK(token > 0);
    CHECK(lks_cluster_guard_check(guard) == 0);
    CHECK(lks_cluster_guard_confirm(guard) == 0);
    const uint64_t safe = lks_cluster_guard_safe_for(guard);
    CHECK(safe > 0 && safe <= 10000000000u);
    CHECK(lks_cluster_guard_deadline(guard) > now(CLOCK_BOOTTIME));
    CHECK(lks_cluster_session_safe_for(one) > 0);
    CHECK(lks_cluster_session_unreachable_for(one) == 0);
    CHECK(lks_cluster_session_check(one) == 0);
    CHECK(lks_cluster_guard_put(guard, "data/c", "written") == 0);
    CHECK(lks_cluster_guard_put(guard, "", "written") == -EINVAL);
    CHECK(lks_cluster_guard_consistent(guard) == -EINVAL);

    CHECK(lks_cluster_mutex_trylock(two, "c/basic", &other) == -EBUSY);
    CHECK(other == NULL);
    uint64_t begun = now(CLOCK_MONOTONIC);
    CHECK(lks_cluster_mutex_lock_timeout(two, "c/basic", 30000000u, &other) == -ETIMEDOUT);
    CHECK(now(CLOCK_MONOTONIC) - begun >= 30000000u);
    begun = now(CLOCK_MONOTONIC) + 30000000u;
    struct timespec until;
    until.tv_sec = (time_t)(begun / 1000000000u);
    until.tv_nsec = (long)(begun % 1000000000u);
    CHECK(lks_cluster_mutex_lock_until(two, "c/basic", &until, &other) == -ETIMEDOUT);
    CHECK(now(CLOCK_MONOTONIC) >= begun);
    lks_cluster_cancel *token_of_waits = lks_cluster_cancel_new();
    lks_cluster_cancel_fire(token_of_waits);
    CHECK(lks_cluster_mutex_lock_killable(two, "c/basic", token_of_waits, &other) == -EINTR);
    lks_cluster_cancel_free(token_of_waits);
    CHECK(strlen(lks_cluster_reason()) > 0);

    CHECK(lks_cluster_guard_unlock(guard) == 0);
    CHECK(lks_cluster_mutex_trylock(two, "c/basic", &other) == 0);
    CHECK(lks_cluster_guard_token(other) > token);
    CHECK(lks_cluster_guard_unlock(other) == 0);
    CHECK(lks_cluster_session_close(one) == 0);
    CHECK(lks_cluster_session_close(two) == 0);
}

static volatile sig_atomic_t handled;

static void handler(int signal)
{
    (void)signal;
    handled = 1;
}

static lks_cluster_session *waiter_session;

static void *waits_until_a_signal(void *result)
{
    lks_cluster_guard *guard;
    *(int *)result = lks_cluster_mutex_lock_interruptible(waiter_session, "c/signal", &guard);
    return NULL;
}

static void a_signal_ends_a_wait(void)
{
    lks_cluster_session *one = opened(10);
    waiter_session = opened(10);
    lks_cluster_guard *guard;
    CHECK(lks_cluster_mutex_lock(one, "c/signal", &guard) == 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    int result = 1;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, waits_until_a_signal, &result) == 0);
    /* One that comes before the wait is not seen, so they come until it has ended. */
    struct timespec pause = {0, 2000000};
    const uint64_t end = now(CLOCK_MONOTONIC) + 60000000000u;
    struct timespec at_once = {0, 0};
    while (pthread_timedjoin_np(thread, NULL, &at_once) != 0) {
        CHECK(now(CLOCK_MONOTONIC) < end);
        pthread_kill(thread, SIGUSR1);
        nanosleep(&pause, NULL);
    }
    CHECK(handled);
    CHECK(result == -EINTR);
    CHECK(lks_cluster_guard_unlock(guard) == 0);
    CHECK(lks_cluster_session_close(one) == 0);
    CHECK(lks_cluster_session_close(waiter_session) == 0);
}

static void deaths_are_told(void)
{
    lks_cluster_session *dead = opened(10), *next = opened(10);
    lks_cluster_guard *left, *guard;
    CHECK(lks_cluster_mutex_lock(dead, "c/death", &left) == 0);
    const uint64_t token = lks_cluster_guard_token(left);
    struct pollfd lost = {lks_cluster_session_lost_fd(dead), POLLIN, 0};
    CHECK(poll(&lost, 1, 0) == 0);
    CHECK(lks_cluster_session_close(dead) == 0);
    CHECK(lks_cluster_guard_check(left) == -ESTALE);
    CHECK(lks_cluster_guard_put(left, "data/c", "late") == -ESTALE);
    CHECK(lks_cluster_guard_unlock(left) == -ESTALE);

    CHECK(lks_cluster_mutex_lock(next, "c/death", &guard) == -EOWNERDEAD);
    CHECK(guard != NULL && lks_cluster_guard_token(guard) > token);
    CHECK(lks_cluster_guard_leave(guard) == 0);
    CHECK(lks_cluster_mutex_lock(next, "c/death", &guard) == -EOWNERDEAD);
    CHECK(lks_cluster_guard_consistent(guard) == 0);
    CHECK(lks_cluster_guard_unlock(guard) == 0);
    CHECK(lks_cluster_mutex_lock(next, "c/death", &guard) == 0);
    CHECK(lks_cluster_guard_unlock(guard) == 0);

    dead = opened(10);
    CHECK(lks_cluster_mutex_lock(dead, "c/death", &left) == 0);
    CHECK(lks_cluster_session_close(dead) == 0);
    CHECK(lks_cluster_guard_unlock(left) == -ESTALE);
    CHECK(lks_cluster_mutex_lock(next, "c/death", &guard) == -EOWNERDEAD);
    CHECK(lks_cluster_guard_unlock(guard) == 0);
    CHECK(lks_cluster_mutex_lock(next, "c/death", &guard) == -ENOTRECOVERABLE);
    CHECK(guard == NULL);
    CHECK(lks_cluster_session_close(next) == 0);
}

static void a_child_has_nothing_of_its_parents(void)
{
    lks_cluster_session *session = opened(10);
    lks_cluster_guard *guard;
    /* The place is only shown: no name of a source file is refused. */
    CHECK(lks_cluster_mutex_acquire(session, "c/fork", LKS_CLUSTER_FOREVER, 0, "\xff.c:1", &guard) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        lks_cluster_guard *other;
        CHECK(lks_cluster_session_check(session) == -ESTALE);
        CHECK(lks_cluster_guard_check(guard) == -ESTALE);
        CHECK(lks_cluster_guard_deadline(guard) == 0);
        CHECK(lks_cluster_guard_put(guard, "data/fork", "the child's") == -ESTALE);
        CHECK(lks_cluster_mutex_trylock(session, "c/other", &other) == -ESTALE);
        CHECK(lks_cluster_guard_unlock(guard) == -ESTALE);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(lks_cluster_guard_put(guard, "data/fork", "the parent's") == 0);
    CHECK(lks_cluster_guard_unlock(guard) == 0);
    CHECK(lks_cluster_session_close(session) == 0);
}

static pthread_key_t ends;

static void fails_at_the_end(void *session)
{
    lks_cluster_guard *guard;
    CHECK(lks_cluster_mutex_acquire((lks_cluster_session *)session, "", LKS_CLUSTER_TRY, 0, "", &guard) ==
          -EINVAL);
    CHECK(lks_cluster_reason() != NULL);
}

static void *fails_and_ends(void *session)
{
    fails_at_the_end(session);
    CHECK(pthread_setspecific(ends, session) == 0);
    return NULL;
}

static void a_call_may_fail_while_its_thread_ends(void)
{
    lks_cluster_session *session = opened(10);
    pthread_t thread;
    CHECK(pthread_key_create(&ends, fails_at_the_end) == 0);
    CHECK(pthread_create(&thread, NULL, fails_and_ends, session) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(lks_cluster_session_close(session) == 0);
}

static void what_means_nothing_is_refused(void)
{
    lks_cluster_options options = LKS_CLUSTER_OPTIONS_INIT;
    lks_cluster_session *session;
    lks_cluster_guard *guard;
    options.size = 0;
    CHECK(lks_cluster_session_open(&session, &options) == -EINVAL);
    CHECK(strstr(lks_cluster_reason(), "LKS_CLUSTER_OPTIONS_INIT") != NULL);
    options.size = sizeof options;
    options.endpoints = "ftp://nowhere";
    CHECK(lks_cluster_session_open(&session, &options) == -EINVAL);
    options.endpoints = endpoints;
    options.user = "root";
    CHECK(lks_cluster_session_open(&session, &options) == -EINVAL);
    CHECK(strstr(lks_cluster_reason(), "password") != NULL);
    options.user = NULL;
    options.cert = "/none";
    CHECK(lks_cluster_session_open(&session, &options) == -EINVAL);
    options.cert = NULL;
    options.cacert = "/none/such";
    CHECK(lks_cluster_session_open(&session, &options) == -EINVAL);
    CHECK(strstr(lks_cluster_reason(), "/none/such") != NULL);
    options.cacert = NULL;
    options.lease_s = 1;
    CHECK(lks_cluster_session_open(&session, &options) == -EINVAL);
    CHECK(session == NULL);
    options.lease_s = 0;
    options.endpoints = "http://127.0.0.1:1";
    options.patience_ns = 50000000;
    CHECK(lks_cluster_session_open(&session, &options) == -EHOSTUNREACH);

    session = opened(10);
    CHECK(lks_cluster_mutex_lock(session, "", &guard) == -EINVAL);
    CHECK(lks_cluster_mutex_lock(session, NULL, &guard) == -EINVAL);
    CHECK(lks_cluster_mutex_acquire(session, "c/wrong", 99, 0, NULL, &guard) == -EINVAL);
    struct timespec wrong = {0, 2000000000};
    CHECK(lks_cluster_mutex_lock_until(session, "c/wrong", &wrong, &guard) == -EINVAL);
    CHECK(guard == NULL);
    CHECK(lks_cluster_session_close(session) == 0);
    CHECK(lks_cluster_session_close(NULL) == 0);
}

static void a_loss_is_told(void)
{
    lks_cluster_session *session = opened(3);
    lks_cluster_guard *guard;
    CHECK(lks_cluster_mutex_lock(session, "c/lost", &guard) == 0);
    printf("in\n");
    fflush(stdout);
    struct pollfd lost = {lks_cluster_session_lost_fd(session), POLLIN, 0};
    CHECK(poll(&lost, 1, 60000) == 1);
    CHECK(lks_cluster_session_check(session) == -ESTALE);
    CHECK(lks_cluster_session_safe_for(session) == 0);
    CHECK(lks_cluster_session_unreachable_for(session) > 0);
    CHECK(lks_cluster_guard_safe_for(guard) == 0);
    CHECK(lks_cluster_guard_unlock(guard) == -ESTALE);
    /* etcd is gone, too. */
    CHECK(lks_cluster_session_close(session) == -EHOSTUNREACH);
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    CHECK(strcmp(lks_cluster_version(), "0.1.0") == 0);
    endpoints = argv[1];
    if (argc > 2) {
        a_loss_is_told();
        return 0;
    }
    what_means_nothing_is_refused();
    owners_come_in_turn();
    a_signal_ends_a_wait();
    deaths_are_told();
    a_child_has_nothing_of_its_parents();
    a_call_may_fail_while_its_thread_ends();
    return 0;
}
