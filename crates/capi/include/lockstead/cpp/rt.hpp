/*
 * lockstead::rt_mutex and lockstead::recursive_rt_mutex: who waits lends the holder its
 * priority.
 */
#ifndef LOCKSTEAD_CPP_RT_HPP
#define LOCKSTEAD_CPP_RT_HPP

#include "../rt.h"
#include "base.hpp"
#include "refused.hpp"

namespace lockstead {

/* See lks_rt_mutex. Lockable and TimedLockable. Each method that takes it throws
 * std::system_error with errc::resource_deadlock_would_occur if the wait would never end
 * and with errc::owner_dead if the holder has ended; the mutex is not held then. */
class LKS_TSA__(capability("mutex")) rt_mutex {
public:
    typedef lks_rt_mutex *native_handle_type;

    constexpr rt_mutex() noexcept : raw_() {}
    ~rt_mutex()
    {
#ifdef LKS_DEBUG
        lks_rt_mutex_destroy(&raw_);
#endif
    }
    rt_mutex(const rt_mutex &) = delete;
    rt_mutex &operator=(const rt_mutex &) = delete;

    void lock(LKS_SITE__) LKS_TSA__(acquire_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        const int result = LKS_CALL__(lks_rt_mutex_lock, &raw_);
        if (result != 0)
            detail::refused(result, "lockstead::rt_mutex::lock");
    }

    LKS_NODISCARD_CPP__ bool try_lock(LKS_SITE__) LKS_TSA__(try_acquire_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_rt_mutex_trylock, &raw_) != 0;
    }

    void unlock(LKS_SITE__) LKS_TSA__(release_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_rt_mutex_unlock, &raw_);
    }

    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool
    try_lock_for(const std::chrono::duration<Rep, Period> &time LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return got(LKS_CALL__(lks_rt_mutex_lock_timeout, &raw_, detail::nanoseconds(time))) == 0;
    }

    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::until(deadline, [&](uint64_t left) {
            return got(LKS_CALL__(lks_rt_mutex_lock_timeout, &raw_, left));
        });
    }

    /* False: a signal handler has run on this thread. */
    LKS_NODISCARD_CPP__ bool lock_interruptible(LKS_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return got(LKS_CALL__(lks_rt_mutex_lock_interruptible, &raw_)) == 0;
    }

    /* False: the token was fired. */
    LKS_NODISCARD_CPP__ bool lock_killable(const cancel_token &token LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return got(LKS_CALL__(lks_rt_mutex_lock_killable, &raw_, token.native_handle())) == 0;
    }

    bool is_locked() const noexcept { return lks_rt_mutex_is_locked(&raw_) != 0; }
    native_handle_type native_handle() noexcept { return &raw_; }

private:
    static int got(int result)
    {
        if (result == -EDEADLK || result == -EOWNERDEAD)
            detail::refused(result, "lockstead::rt_mutex");
        return result;
    }

    lks_rt_mutex raw_;
};

/* See lks_rt_recursive_mutex; as rt_mutex, and its holder may take it again. */
class recursive_rt_mutex {
public:
    typedef lks_rt_recursive_mutex *native_handle_type;

    constexpr recursive_rt_mutex() noexcept : raw_() {}
    ~recursive_rt_mutex()
    {
#ifdef LKS_DEBUG
        lks_rt_recursive_mutex_destroy(&raw_);
#endif
    }
    recursive_rt_mutex(const recursive_rt_mutex &) = delete;
    recursive_rt_mutex &operator=(const recursive_rt_mutex &) = delete;

    void lock(LKS_SITE__)
    {
        const int result = LKS_CALL__(lks_rt_recursive_mutex_lock, &raw_);
        if (result != 0)
            detail::refused(result, "lockstead::recursive_rt_mutex::lock");
    }

    LKS_NODISCARD_CPP__ bool try_lock(LKS_SITE__)
    {
        return LKS_CALL__(lks_rt_recursive_mutex_trylock, &raw_) != 0;
    }

    void unlock(LKS_SITE__) { LKS_CALL__(lks_rt_recursive_mutex_unlock, &raw_); }

    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool
    try_lock_for(const std::chrono::duration<Rep, Period> &time LKS_AND_SITE__)
    {
        return got(LKS_CALL__(lks_rt_recursive_mutex_lock_timeout, &raw_,
                              detail::nanoseconds(time))) == 0;
    }

    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline LKS_AND_SITE__)
    {
        return detail::until(deadline, [&](uint64_t left) {
            return got(LKS_CALL__(lks_rt_recursive_mutex_lock_timeout, &raw_, left));
        });
    }

    bool is_locked() const noexcept { return lks_rt_recursive_mutex_is_locked(&raw_) != 0; }
    uint64_t depth() const noexcept { return lks_rt_recursive_mutex_depth(&raw_); }
    native_handle_type native_handle() noexcept { return &raw_; }

private:
    static int got(int result)
    {
        if (result != 0 && result != -ETIMEDOUT)
            detail::refused(result, "lockstead::recursive_rt_mutex");
        return result;
    }

    lks_rt_recursive_mutex raw_;
};

static_assert(sizeof(rt_mutex) == 8 && sizeof(recursive_rt_mutex) == 16,
              "nothing is added to the C types");

} // namespace lockstead

#endif
