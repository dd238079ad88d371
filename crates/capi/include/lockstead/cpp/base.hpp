/*
 * What the C++ types share: attributes, times, and where a call comes from.
 */
#ifndef LOCKSTEAD_CPP_BASE_HPP
#define LOCKSTEAD_CPP_BASE_HPP

#include "../base.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ratio>

#if __cplusplus >= 201703L
#define LKS_NODISCARD_CPP__ [[nodiscard]]
#else
#define LKS_NODISCARD_CPP__
#endif
/* On constructors, where C++20 has it. */
#if __cplusplus >= 202002L
#define LKS_NODISCARD_NEW__ [[nodiscard]]
#else
#define LKS_NODISCARD_NEW__
#endif

/* In the checking build each method knows who called it. */
#ifdef LKS_DEBUG
#define LKS_SITE__ const char *file_ = __builtin_FILE(), unsigned line_ = __builtin_LINE()
#define LKS_AND_SITE__ , LKS_SITE__
#define LKS_CALL__(function, ...) function##_dbg(__VA_ARGS__, file_, line_)
#define LKS_PASS__ file_, line_
#define LKS_AND_PASS__ , file_, line_
#else
#define LKS_SITE__
#define LKS_AND_SITE__
#define LKS_CALL__(function, ...) function(__VA_ARGS__)
#define LKS_PASS__
#define LKS_AND_PASS__
#endif

namespace lockstead {

namespace detail {

/* Says why, and ends the process: for calls that can only fail, and have no way to. */
[[noreturn]] inline void hopeless(const char *why)
{
    std::fprintf(stderr, "lockstead: %s\n", why);
    std::abort();
}

/* Rounded up, and no time for what has passed. More than 584 years is for ever. */
template <class Rep, class Period>
uint64_t nanoseconds(const std::chrono::duration<Rep, Period> &time)
{
    typedef std::chrono::duration<long double, std::nano> exact;
    const long double count = exact(time).count();
    if (!(count > 0))
        return 0;
    if (count >= 18446744073709551615.0L)
        return UINT64_MAX;
    const uint64_t whole = static_cast<uint64_t>(count);
    return static_cast<long double>(whole) < count ? whole + 1 : whole;
}

/* Asks `attempt(nanoseconds)` while it says -ETIMEDOUT and `deadline` has not passed by
 * its own clock, which may be set. */
template <class Clock, class Duration, class Attempt>
bool until(const std::chrono::time_point<Clock, Duration> &deadline, Attempt attempt)
{
    for (;;) {
        const auto now = Clock::now();
        const uint64_t left = now < deadline ? nanoseconds(deadline - now) : 0;
        const int result = attempt(left);
        if (result == 0)
            return true;
        if (result != -ETIMEDOUT || !(Clock::now() < deadline))
            return false;
    }
}

/* So much later; at the end of time if it is later than that. */
template <class Rep, class Period>
std::chrono::steady_clock::time_point after(const std::chrono::duration<Rep, Period> &time)
{
    typedef std::chrono::steady_clock clock;
    typedef std::chrono::duration<long double, clock::period> exact;
    const clock::time_point now = clock::now();
    if (!(exact(time) < exact(clock::time_point::max() - now)))
        return clock::time_point::max();
    return exact(time) > exact::zero() ? now + std::chrono::duration_cast<clock::duration>(time)
                                       : now;
}

} // namespace detail

/* A switch that ends the waits it was given to; see lks_cancel. */
class cancel_token {
public:
    constexpr cancel_token() noexcept : raw_() {}
    cancel_token(const cancel_token &) = delete;
    cancel_token &operator=(const cancel_token &) = delete;

    void cancel() noexcept { lks_cancel_fire(&raw_); }
    bool is_cancelled() const noexcept { return lks_cancel_is_fired(&raw_) != 0; }
    const lks_cancel *native_handle() const noexcept { return &raw_; }

private:
    lks_cancel raw_;
};

} // namespace lockstead

#endif
