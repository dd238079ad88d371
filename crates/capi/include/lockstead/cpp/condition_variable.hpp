/*
 * lockstead::condition_variable, for locks of lockstead::mutex and lockstead::fair_mutex:
 * 8 bytes, where std::condition_variable_any has a mutex of its own.
 */
#ifndef LOCKSTEAD_CPP_CONDITION_VARIABLE_HPP
#define LOCKSTEAD_CPP_CONDITION_VARIABLE_HPP

#include "../cond.h"
#include "../fair.h"
#include "base.hpp"

namespace lockstead {

namespace detail {

/* The wait that the mutex's type has. */
inline void wait_with(lks_cond *cond, lks_mutex *mutex LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    LKS_ON__(lks_cond_wait, cond, mutex);
}

inline void wait_with(lks_cond *cond, lks_fair_mutex *mutex LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    LKS_ON__(lks_cond_wait_fair, cond, mutex);
}

inline int wait_with_for(lks_cond *cond, lks_mutex *mutex, uint64_t nanoseconds LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_ON__(lks_cond_wait_timeout, cond, mutex, nanoseconds);
}

inline int wait_with_for(lks_cond *cond, lks_fair_mutex *mutex, uint64_t nanoseconds LKS_AND_AT__)
    LKS_TSA__(no_thread_safety_analysis)
{
    return LKS_ON__(lks_cond_wait_fair_timeout, cond, mutex, nanoseconds);
}

} // namespace detail

/* See lks_cond. `Lock` below is std::unique_lock<lockstead::mutex> or the like, and
 * holds. */
class condition_variable {
public:
    constexpr condition_variable() noexcept : raw_() {}
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    void notify_one() noexcept { lks_cond_notify_one(&raw_); }
    void notify_all() noexcept { lks_cond_notify_all(&raw_); }

    template <class Lock>
    void wait(Lock &lock LKS_AND_SITE__) LKS_TSA__(no_thread_safety_analysis)
    {
        detail::wait_with(&raw_, lock.mutex()->native_handle() LKS_AND_PASS__);
    }

    template <class Lock, class Predicate>
    void wait(Lock &lock, Predicate predicate LKS_AND_SITE__)
    {
        while (!predicate())
            wait(lock LKS_AND_PASS__);
    }

    /* False: the time is over. */
    template <class Lock, class Rep, class Period>
    bool wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &time LKS_AND_SITE__)
        LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::wait_with_for(&raw_, lock.mutex()->native_handle(),
                                     detail::nanoseconds(time) LKS_AND_PASS__) == 0;
    }

    /* Whether the predicate holds. */
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &time,
                  Predicate predicate LKS_AND_SITE__)
    {
        return wait_until(lock, detail::after(time), predicate LKS_AND_PASS__);
    }

    /* False: the deadline has passed. May end before. */
    template <class Lock, class Clock, class Duration>
    bool wait_until(Lock &lock,
                    const std::chrono::time_point<Clock, Duration> &deadline LKS_AND_SITE__)
    {
        const auto now = Clock::now();
        if (now < deadline)
            wait_for(lock, deadline - now LKS_AND_PASS__);
        return Clock::now() < deadline;
    }

    /* Whether the predicate holds. */
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock &lock, const std::chrono::time_point<Clock, Duration> &deadline,
                    Predicate predicate LKS_AND_SITE__)
    {
        while (!predicate()) {
            const auto now = Clock::now();
            if (!(now < deadline))
                return false;
            wait_for(lock, deadline - now LKS_AND_PASS__);
        }
        return true;
    }

    lks_cond *native_handle() noexcept { return &raw_; }

private:
    lks_cond raw_;
};

static_assert(sizeof(condition_variable) == sizeof(lks_cond), "nothing is added to the C type");

} // namespace lockstead

#endif
