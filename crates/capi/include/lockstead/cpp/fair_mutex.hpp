/*
 * lockstead::fair_mutex: the mutex for those who serve requests.
 */
#ifndef LOCKSTEAD_CPP_FAIR_MUTEX_HPP
#define LOCKSTEAD_CPP_FAIR_MUTEX_HPP

#include "../fair.h"
#include "base.hpp"
#include "mutex.hpp"

namespace lockstead {

/* See lks_fair_mutex: a mutex whose longest waits are short. Lockable and TimedLockable;
 * lockstead::condition_variable waits with it. */
class LKS_TSA__(capability("mutex")) fair_mutex {
public:
    typedef lks_fair_mutex *native_handle_type;

    constexpr fair_mutex() noexcept : raw_() {}
    ~fair_mutex()
    {
#ifdef LKS_DEBUG
        lks_fair_mutex_destroy(&raw_);
#endif
    }
    fair_mutex(const fair_mutex &) = delete;
    fair_mutex &operator=(const fair_mutex &) = delete;

    void lock(LKS_SITE__) LKS_TSA__(acquire_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_fair_mutex_lock, &raw_);
    }

    LKS_NODISCARD_CPP__ bool try_lock(LKS_SITE__) LKS_TSA__(try_acquire_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_fair_mutex_trylock, &raw_) != 0;
    }

    void unlock(LKS_SITE__) LKS_TSA__(release_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_fair_mutex_unlock, &raw_);
    }

    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool
    try_lock_for(const std::chrono::duration<Rep, Period> &time LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_fair_mutex_lock_timeout, &raw_, detail::nanoseconds(time)) == 0;
    }

    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::until(deadline, [&](uint64_t left) {
            return LKS_CALL__(lks_fair_mutex_lock_timeout, &raw_, left);
        });
    }

    /* False: a signal handler ran on this thread while it slept. */
    LKS_NODISCARD_CPP__ bool lock_interruptible(LKS_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_fair_mutex_lock_interruptible, &raw_) == 0;
    }

    /* False: the token was fired. */
    LKS_NODISCARD_CPP__ bool lock_killable(const cancel_token &token LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_fair_mutex_lock_killable, &raw_, token.native_handle()) == 0;
    }

    void lock_nested(unsigned subclass LKS_AND_SITE__) LKS_TSA__(acquire_capability())
        LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_fair_mutex_lock_nested, &raw_, subclass);
    }

    bool is_locked() const noexcept { return lks_fair_mutex_is_locked(&raw_) != 0; }
    native_handle_type native_handle() noexcept { return &raw_; }

private:
    lks_fair_mutex raw_;
};

static_assert(sizeof(fair_mutex) == sizeof(lks_fair_mutex), "nothing is added to the C type");

typedef guard<fair_mutex> fair_mutex_guard;

} // namespace lockstead

#endif
