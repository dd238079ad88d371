/*
 * A mutex over etcd, for programs that have outgrown one machine: first come, first served; with a
 * fencing token, a deadline, and the word of an owner's death. For C99 and C++11.
 *
 *     lks_cluster_options options = LKS_CLUSTER_OPTIONS_INIT;
 *     options.endpoints = "http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379";
 *     lks_cluster_session *session;
 *     if (lks_cluster_session_open(&session, &options) != 0)
 *         fail(lks_cluster_reason());
 *
 *     lks_cluster_guard *guard;
 *     int got = lks_cluster_mutex_lock(session, "reports/daily", &guard);
 *     if (got == -EOWNERDEAD) {
 *         repair();
 *         got = lks_cluster_guard_consistent(guard);
 *     }
 *     if (got != 0)
 *         fail(lks_cluster_reason());
 *     if (lks_cluster_guard_check(guard) == 0)
 *         write_report(lks_cluster_guard_token(guard));   (which refuses a smaller token than it has seen)
 *     if (lks_cluster_guard_unlock(guard) != 0)
 *         fail("the report may have met another one's");
 *     lks_cluster_session_close(session);
 *
 * What a lock over a network cannot promise: that what a program does after a check happens before the
 * lock is another one's. docs/cluster.md of the project says what holds when; read it before you rely on
 * one. Link with -llockstead-cluster; -llockstead, the locks in memory, is not needed.
 *
 * Results. Functions that return int return 0, or a negative errno, and then lks_cluster_reason() has
 * a sentence for people:
 *
 *     -EINVAL           arguments or options mean nothing; the sentence says what is allowed
 *     -EHOSTUNREACH     no endpoint answered in time
 *     -EACCES           etcd refused the user
 *     -EPROTO           etcd refused the request, or what answered is no etcd
 *     -ESTALE           the lease is lost, and with it all that the session holds
 *     -EIDRM            the lock was taken away by force, or a call that failed has released it
 *     -EBUSY            somebody else has the lock (lks_cluster_mutex_trylock)
 *     -ETIMEDOUT        the time was over
 *     -EINTR            a signal handler ran, or the token was fired
 *     -EAGAIN           the process can have no further thread now
 *     -EOWNERDEAD       the lock is yours, and its last owner's lease ended while it had it
 *     -ENOTRECOVERABLE  an owner died and nobody repaired what it left; nobody gets the lock before
 *                       `lockstead cluster release --force NAME`
 *
 * Times are in nanoseconds unless their name says otherwise. Moments are those of CLOCK_BOOTTIME, which goes
 * on while a machine is suspended.
 *
 * Threads. All functions may be called by any thread, and several may use a session and a guard at once;
 * those that end one (close, unlock, leave, free) are called once and by the last that uses it. A child
 * of fork has none of its parent's locks: what it calls with them fails with -ESTALE. A session has a thread
 * of its own, and each wait one for its time; they take no signals.
 */
#ifndef LOCKSTEAD_CLUSTER_H
#define LOCKSTEAD_CLUSTER_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if !defined(__linux__)
#error "lockstead_cluster.h is for Linux"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LKS_CLUSTER_NODISCARD__ __attribute__((warn_unused_result))
#else
#define LKS_CLUSTER_NODISCARD__
#endif

/* A lease of etcd and the thread that renews it. A program has one, or one for each part that may fail
 * by itself. */
typedef struct lks_cluster_session lks_cluster_session;
/* The ownership of a lock. */
typedef struct lks_cluster_guard lks_cluster_guard;
/* A switch that ends the waits it was given to. */
typedef struct lks_cluster_cancel lks_cluster_cancel;

/* What a session is like. Begins as LKS_CLUSTER_OPTIONS_INIT; what is null or zero is as usual. Strings are
 * UTF-8 and are copied. */
typedef struct lks_cluster_options {
    size_t size;           /* by LKS_CLUSTER_OPTIONS_INIT */
    const char *endpoints; /* members to ask, in this order: "URL,…"; http://127.0.0.1:2379 */
    const char *user;      /* a user of etcd */
    const char *password;
    const char *cacert; /* files, PEM: certificates of authorities, for https: endpoints; */
    const char *cert;   /* this client's certificate */
    const char *key;    /* and its key, where members ask for one */
    const char *root;   /* folder of the locks' keys in etcd: lockstead */
    uint64_t lease_s;   /* seconds of the lease, 2 or more: 10. So long at least others wait after a death */
    uint64_t margin_ns; /* by which the lease is called lost before etcd may: 1 s, the election timeout */
    uint64_t attempt_ns;  /* for one member's answer, before the next one is asked: 1 s */
    uint64_t patience_ns; /* after which a request has failed: 5 s */
} lks_cluster_options;

#define LKS_CLUSTER_OPTIONS_INIT \
    {sizeof(lks_cluster_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0}

/* Returns the version of the library, a string. */
const char *lks_cluster_version(void);

/* Returns why the calling thread's last call failed that did, a sentence; empty if none has. Valid until
 * its next call fails. */
const char *lks_cluster_reason(void);

/* Makes a lease and starts the thread that renews it. `options` may be null. Writes null to `session`
 * with an error: -EINVAL, -EHOSTUNREACH, -EACCES, -EPROTO, -EMFILE. */
int lks_cluster_session_open(lks_cluster_session **session, const lks_cluster_options *options)
    LKS_CLUSTER_NODISCARD__;

/* Ends a session: what it still holds is lost, and whoever takes that is told that its owner died.
 * -EHOSTUNREACH: the lease ends by itself then. The session is ended in any case; null is none. */
int lks_cluster_session_close(lks_cluster_session *session);

/* Returns the number of the lease, as etcd has it. */
int64_t lks_cluster_session_lease(const lks_cluster_session *session);

/* Says by the clock, without a request, whether the lease is held: 0 or -ESTALE. */
int lks_cluster_session_check(const lks_cluster_session *session) LKS_CLUSTER_NODISCARD__;

/* Returns for how long what the session holds is its own for sure; 0: it is lost. */
uint64_t lks_cluster_session_safe_for(const lks_cluster_session *session);

/* Returns for how long no endpoint has answered; 0: one does. */
uint64_t lks_cluster_session_unreachable_for(const lks_cluster_session *session);

/* Returns a descriptor for poll: readable once the lease is lost, or the session closed. It is the session's,
 * which closes it. */
int lks_cluster_session_lost_fd(const lks_cluster_session *session);

/* How an acquisition waits, and with each the argument. */
enum lks_cluster_how {
    LKS_CLUSTER_FOREVER = 0,       /* 0 */
    LKS_CLUSTER_TRY = 1,           /* 0 */
    LKS_CLUSTER_TIMEOUT = 2,       /* nanoseconds from now */
    LKS_CLUSTER_UNTIL = 3,         /* the address of a struct timespec of CLOCK_MONOTONIC */
    LKS_CLUSTER_INTERRUPTIBLE = 4, /* 0 */
    LKS_CLUSTER_KILLABLE = 5       /* the address of an lks_cluster_cancel, or 0: FOREVER */
};

/* Acquires the mutex `name` of all sessions of one etcd and root, as `how` says, and writes the ownership to
 * `guard`; null where it was not acquired. `place` is where the program asks, for `lockstead cluster
 * dump`; may be null. With 0 and -EOWNERDEAD the lock is the caller's. Not recursive: who has the
 * lock and asks again waits for itself.
 *
 * Requests that are under way are not cut off by the end of the wait: each ends after `patience_ns`.
 *
 * The macros below call it with the place of the call. */
int lks_cluster_mutex_acquire(lks_cluster_session *session, const char *name, unsigned how,
                              uint64_t argument, const char *place, lks_cluster_guard **guard)
    LKS_CLUSTER_NODISCARD__;

#define LKS_CLUSTER_TEXT_OF__(line) #line
#define LKS_CLUSTER_TEXT__(line) LKS_CLUSTER_TEXT_OF__(line)
#define LKS_CLUSTER_HERE__ __FILE__ ":" LKS_CLUSTER_TEXT__(__LINE__)
#define LKS_CLUSTER_ADDRESS__(pointer) ((uint64_t)(uintptr_t)(pointer))

/* Waits as long as it takes. */
#define lks_cluster_mutex_lock(session, name, guard) \
    lks_cluster_mutex_acquire(session, name, LKS_CLUSTER_FOREVER, 0, LKS_CLUSTER_HERE__, guard)
/* Does not wait: -EBUSY. (The locks in memory say 1 and 0.) */
#define lks_cluster_mutex_trylock(session, name, guard) \
    lks_cluster_mutex_acquire(session, name, LKS_CLUSTER_TRY, 0, LKS_CLUSTER_HERE__, guard)
/* Waits so many nanoseconds at most: -ETIMEDOUT, not before. */
#define lks_cluster_mutex_lock_timeout(session, name, nanoseconds, guard) \
    lks_cluster_mutex_acquire(session, name, LKS_CLUSTER_TIMEOUT, nanoseconds, LKS_CLUSTER_HERE__, \
                              guard)
/* Waits until a moment of CLOCK_MONOTONIC at most: -ETIMEDOUT, not before. */
#define lks_cluster_mutex_lock_until(session, name, timespec, guard) \
    lks_cluster_mutex_acquire(session, name, LKS_CLUSTER_UNTIL, LKS_CLUSTER_ADDRESS__(timespec), \
                              LKS_CLUSTER_HERE__, guard)
/* Waits until a signal handler runs on this thread: -EINTR. One that runs before the wait has begun, or
 * during a request, is not seen. */
#define lks_cluster_mutex_lock_interruptible(session, name, guard) \
    lks_cluster_mutex_acquire(session, name, LKS_CLUSTER_INTERRUPTIBLE, 0, LKS_CLUSTER_HERE__, guard)
/* Waits until the token is fired: -EINTR. */
#define lks_cluster_mutex_lock_killable(session, name, token, guard) \
    lks_cluster_mutex_acquire(session, name, LKS_CLUSTER_KILLABLE, LKS_CLUSTER_ADDRESS__(token), \
                              LKS_CLUSTER_HERE__, guard)

/* Makes a token that is not fired; never null. */
lks_cluster_cancel *lks_cluster_cancel_new(void) LKS_CLUSTER_NODISCARD__;
/* Fires it, for good: from any thread and from a signal handler. */
void lks_cluster_cancel_fire(lks_cluster_cancel *token);
/* Gives it back; null is none. */
void lks_cluster_cancel_free(lks_cluster_cancel *token);

/* Returns the fencing token: a number that grows from each owner of the lock to the next. Whatever the lock
 * protects outside of etcd refuses a smaller one than it has seen. 0, the smallest: a call that failed has
 * ended the guard. */
uint64_t lks_cluster_guard_token(const lks_cluster_guard *guard);

/* Returns the moment until which the lock is held for sure, as it is known now: renewals move it on. 0: the
 * lock is lost. */
uint64_t lks_cluster_guard_deadline(const lks_cluster_guard *guard);

/* Returns how long that is from now; 0: the lock is lost. */
uint64_t lks_cluster_guard_safe_for(const lks_cluster_guard *guard);

/* Says by the clock, without a request, whether the lock is still held: 0, -ESTALE, -EIDRM. To be called
 * before each step that must not be done without it. */
int lks_cluster_guard_check(const lks_cluster_guard *guard) LKS_CLUSTER_NODISCARD__;

/* Asks etcd, which knows also of removals by force: 0, -ESTALE, -EIDRM, -EHOSTUNREACH. */
int lks_cluster_guard_confirm(const lks_cluster_guard *guard) LKS_CLUSTER_NODISCARD__;

/* Writes a key of the same etcd, if the lock is held at that revision: without any clock, and refused
 * to an owner that was stopped for an hour. -ESTALE, -EIDRM: nothing was written. -EHOSTUNREACH: it was
 * or was not. */
int lks_cluster_guard_put(const lks_cluster_guard *guard, const char *key, const char *value)
    LKS_CLUSTER_NODISCARD__;

/* After -EOWNERDEAD: says that what the lock protects is in order again. -EINVAL: no owner died. -ESTALE,
 * -EIDRM, -EHOSTUNREACH: the lock was released and the next owner is told; the guard is still to be
 * given back. */
int lks_cluster_guard_consistent(lks_cluster_guard *guard) LKS_CLUSTER_NODISCARD__;

/* After -EOWNERDEAD: releases the lock so that the next owner is told in this one's stead, and ends the
 * guard. */
int lks_cluster_guard_leave(lks_cluster_guard *guard);

/* Releases the lock and ends the guard, whatever it returns: 0: it was held until then. -ESTALE, -EIDRM:
 * it was not. -EHOSTUNREACH: the session's thread repeats the release. After -EOWNERDEAD and without
 * lks_cluster_guard_consistent it makes the lock not recoverable. */
int lks_cluster_guard_unlock(lks_cluster_guard *guard);

#ifdef __cplusplus
}
#endif

#endif
