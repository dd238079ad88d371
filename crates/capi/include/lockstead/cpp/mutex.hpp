/*
 * lockstead::mutex and its guard.
 */
#ifndef LOCKSTEAD_CPP_MUTEX_HPP
#define LOCKSTEAD_CPP_MUTEX_HPP

#include "../mutex.h"
#include "base.hpp"

namespace lockstead {

/* Mutual exclusion, 8 bytes; see lks_mutex. Not recursive. */
class LKS_TSA__(capability("mutex")) mutex {
public:
    typedef lks_mutex *native_handle_type;

    constexpr mutex() noexcept : raw_() {}
    ~mutex()
    {
#ifdef LKS_DEBUG
        lks_mutex_destroy(&raw_);
#endif
    }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    void lock(LKS_SITE__) LKS_TSA__(acquire_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_mutex_lock, &raw_);
    }

    LKS_NODISCARD_CPP__ bool try_lock(LKS_SITE__) LKS_TSA__(try_acquire_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_mutex_trylock, &raw_) != 0;
    }

    void unlock(LKS_SITE__) LKS_TSA__(release_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_mutex_unlock, &raw_);
    }

    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool
    try_lock_for(const std::chrono::duration<Rep, Period> &time LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_mutex_lock_timeout, &raw_, detail::nanoseconds(time)) == 0;
    }

    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::until(deadline, [&](uint64_t left) {
            return LKS_CALL__(lks_mutex_lock_timeout, &raw_, left);
        });
    }

    /* False: a signal handler ran on this thread while it slept. */
    LKS_NODISCARD_CPP__ bool lock_interruptible(LKS_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_mutex_lock_interruptible, &raw_) == 0;
    }

    /* False: the token was fired. */
    LKS_NODISCARD_CPP__ bool lock_killable(const cancel_token &token LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_mutex_lock_killable, &raw_, token.native_handle()) == 0;
    }

    void lock_nested(unsigned subclass LKS_AND_SITE__) LKS_TSA__(acquire_capability())
        LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_mutex_lock_nested, &raw_, subclass);
    }

    bool is_locked() const noexcept { return lks_mutex_is_locked(&raw_) != 0; }
    native_handle_type native_handle() noexcept { return &raw_; }

private:
    lks_mutex raw_;
};

static_assert(sizeof(mutex) == sizeof(lks_mutex), "nothing is added to the C type");

/* Holds a lock as long as it lives. */
template <class Lock>
class LKS_NODISCARD_CPP__ LKS_TSA__(scoped_lockable) guard {
public:
    LKS_NODISCARD_NEW__ explicit guard(Lock &lock LKS_AND_SITE__)
        LKS_TSA__(acquire_capability(lock))
        : lock_(lock)
    {
        lock_.lock(LKS_PASS__);
    }
    ~guard() LKS_TSA__(release_capability()) { lock_.unlock(); }
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;

private:
    Lock &lock_;
};

typedef guard<mutex> mutex_guard;

} // namespace lockstead

#endif
