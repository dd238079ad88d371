/*
 * The mutex of lockstead_cluster.h as types of C++11: what is forgotten is released, and errors are
 * exceptions, of the type std::system_error with the errno as its code.
 *
 *     namespace cluster = lockstead::cluster;
 *
 *     lks_cluster_options options = LKS_CLUSTER_OPTIONS_INIT;
 *     options.endpoints = "http://10.0.0.1:2379";
 *     cluster::session session(options);
 *     cluster::mutex mutex(session, "reports/daily");
 *     cluster::guard guard = mutex.lock();
 *     if (guard.owner_died()) {
 *         repair();
 *         guard.consistent();
 *     }
 *     guard.check();
 *     write_report(guard.token());
 *     guard.unlock();
 */
#ifndef LOCKSTEAD_CLUSTER_HPP
#define LOCKSTEAD_CLUSTER_HPP

#include "lockstead_cluster.h"

#include <chrono>
#include <string>
#include <system_error>
#include <utility>

namespace lockstead {
namespace cluster {

/* Throws for a result that is an error. */
inline void throw_if(int result)
{
    if (result < 0)
        throw std::system_error(-result, std::generic_category(), lks_cluster_reason());
}

/* A lease and the thread that renews it; moved, not copied. Outlives its mutexes. */
class session {
public:
    explicit session(const lks_cluster_options &options)
    {
        throw_if(lks_cluster_session_open(&handle_, &options));
    }
    session(session &&other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
    session &operator=(session &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    /* Ends the lease; where no endpoint answers it ends by itself. */
    ~session() { lks_cluster_session_close(handle_); }

    /* As the functions of C by these names. */
    std::int64_t lease() const { return lks_cluster_session_lease(handle_); }
    void check() const { throw_if(lks_cluster_session_check(handle_)); }
    int lost_fd() const { return lks_cluster_session_lost_fd(handle_); }
    std::chrono::nanoseconds safe_for() const
    {
        return std::chrono::nanoseconds(lks_cluster_session_safe_for(handle_));
    }
    std::chrono::nanoseconds unreachable_for() const
    {
        return std::chrono::nanoseconds(lks_cluster_session_unreachable_for(handle_));
    }
    /* Returns the handle of C, which stays this object's. */
    lks_cluster_session *get() const { return handle_; }

private:
    lks_cluster_session *handle_ = nullptr;
};

/* The ownership of a mutex, or of none; moved, not copied. What is forgotten is released. */
class guard {
public:
    guard() = default;
    guard(lks_cluster_guard *handle, bool died) noexcept : handle_(handle), died_(died) {}
    guard(guard &&other) noexcept : handle_(other.handle_), died_(other.died_)
    {
        other.handle_ = nullptr;
    }
    guard &operator=(guard &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        std::swap(died_, other.died_);
        return *this;
    }
    ~guard()
    {
        if (handle_ != nullptr && died_)
            lks_cluster_guard_leave(handle_); /* an exception is no repair: the next one is told */
        else if (handle_ != nullptr)
            lks_cluster_guard_unlock(handle_);
    }

    /* Tells whether a lock is held by this. */
    explicit operator bool() const { return handle_ != nullptr; }
    /* Tells whether the last owner died, and what it left was not called consistent. */
    bool owner_died() const { return died_; }

    /* As the functions of C by these names. Those that fail throw. */
    std::uint64_t token() const { return lks_cluster_guard_token(handle_); }
    std::uint64_t deadline() const { return lks_cluster_guard_deadline(handle_); }
    std::chrono::nanoseconds safe_for() const
    {
        return std::chrono::nanoseconds(lks_cluster_guard_safe_for(handle_));
    }
    void check() const { throw_if(lks_cluster_guard_check(handle_)); }
    void confirm() const { throw_if(lks_cluster_guard_confirm(handle_)); }
    void put(const std::string &key, const std::string &value) const
    {
        throw_if(lks_cluster_guard_put(handle_, key.c_str(), value.c_str()));
    }
    void consistent()
    {
        throw_if(lks_cluster_guard_consistent(handle_));
        died_ = false;
    }
    void leave() { throw_if(lks_cluster_guard_leave(release())); }
    void unlock() { throw_if(lks_cluster_guard_unlock(release())); }

private:
    lks_cluster_guard *release()
    {
        lks_cluster_guard *handle = handle_;
        handle_ = nullptr;
        return handle;
    }

    lks_cluster_guard *handle_ = nullptr;
    bool died_ = false;
};

/* A mutex of all sessions of one etcd; says where in the source it is acquired, by compilers that know. */
class mutex {
public:
    mutex(const session &session, std::string name) : session_(session.get()), name_(std::move(name)) {}

#if defined(__GNUC__) || defined(__clang__)
#define LKS_CLUSTER_PLACE__ const char *file = __builtin_FILE(), int line = __builtin_LINE()
#else
#define LKS_CLUSTER_PLACE__ const char *file = "", int line = 0
#endif
    /* Waits as long as it takes. */
    guard lock(LKS_CLUSTER_PLACE__) const
    {
        return acquire(LKS_CLUSTER_FOREVER, 0, 0, file, line);
    }
    /* Does not wait; no guard where somebody else has it. */
    guard try_lock(LKS_CLUSTER_PLACE__) const
    {
        return acquire(LKS_CLUSTER_TRY, 0, EBUSY, file, line);
    }
    /* Waits so long at most; no guard then. */
    guard try_lock_for(std::chrono::nanoseconds time, LKS_CLUSTER_PLACE__) const
    {
        const std::uint64_t count = time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
        return acquire(LKS_CLUSTER_TIMEOUT, count, ETIMEDOUT, file, line);
    }
    /* Waits until a signal handler runs on this thread; no guard then. */
    guard lock_interruptible(LKS_CLUSTER_PLACE__) const
    {
        return acquire(LKS_CLUSTER_INTERRUPTIBLE, 0, EINTR, file, line);
    }
    /* Waits until the token is fired; no guard then. */
    guard lock_killable(lks_cluster_cancel *token, LKS_CLUSTER_PLACE__) const
    {
        return acquire(LKS_CLUSTER_KILLABLE, LKS_CLUSTER_ADDRESS__(token), EINTR, file, line);
    }
#undef LKS_CLUSTER_PLACE__

private:
    guard acquire(unsigned how, std::uint64_t argument, int none, const char *file, int line) const
    {
        const std::string place = std::string(file) + ":" + std::to_string(line);
        lks_cluster_guard *handle = nullptr;
        const int result =
            lks_cluster_mutex_acquire(session_, name_.c_str(), how, argument, place.c_str(), &handle);
        if (none != 0 && result == -none)
            return guard();
        if (result != -EOWNERDEAD)
            throw_if(result);
        return guard(handle, result == -EOWNERDEAD);
    }

    lks_cluster_session *session_;
    std::string name_;
};

} // namespace cluster
} // namespace lockstead

#endif
