/*
 * lockstead::counting_semaphore, with the names of C++20's, in each C++.
 */
#ifndef LOCKSTEAD_CPP_COUNTING_SEMAPHORE_HPP
#define LOCKSTEAD_CPP_COUNTING_SEMAPHORE_HPP

#include "../semaphore.h"
#include "base.hpp"

namespace lockstead {

/* 8 bytes; see lks_semaphore. */
template <std::ptrdiff_t LeastMaximum = LKS_SEMAPHORE_MAX>
class counting_semaphore {
    static_assert(LeastMaximum >= 0 && LeastMaximum <= std::ptrdiff_t(LKS_SEMAPHORE_MAX),
                  "a semaphore counts to 1048575");

public:
    static constexpr std::ptrdiff_t max() noexcept { return LKS_SEMAPHORE_MAX; }

    constexpr explicit counting_semaphore(std::ptrdiff_t permits)
        : raw_{static_cast<uint64_t>(permits)}
    {
    }
    ~counting_semaphore()
    {
#ifdef LKS_DEBUG
        lks_semaphore_destroy(&raw_);
#endif
    }
    counting_semaphore(const counting_semaphore &) = delete;
    counting_semaphore &operator=(const counting_semaphore &) = delete;

    void acquire(LKS_SITE__) { LKS_CALL__(lks_semaphore_down, &raw_); }

    LKS_NODISCARD_CPP__ bool try_acquire(LKS_SITE__)
    {
        return LKS_CALL__(lks_semaphore_down_trylock, &raw_) == 0;
    }

    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool
    try_acquire_for(const std::chrono::duration<Rep, Period> &time LKS_AND_SITE__)
    {
        return LKS_CALL__(lks_semaphore_down_timeout, &raw_, detail::nanoseconds(time)) == 0;
    }

    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_acquire_until(const std::chrono::time_point<Clock, Duration> &deadline LKS_AND_SITE__)
    {
        return detail::until(deadline, [&](uint64_t left) {
            return LKS_CALL__(lks_semaphore_down_timeout, &raw_, left);
        });
    }

    /* False if it can count no more: then some of `update` were not given back. */
    bool release(std::ptrdiff_t update = 1 LKS_AND_SITE__)
    {
        for (; update > 0; update--)
            if (LKS_CALL__(lks_semaphore_up, &raw_) != 0)
                return false;
        return true;
    }

    lks_semaphore *native_handle() noexcept { return &raw_; }

private:
    lks_semaphore raw_;
};

typedef counting_semaphore<1> binary_semaphore;

static_assert(sizeof(binary_semaphore) == sizeof(lks_semaphore), "nothing is added to the C type");

} // namespace lockstead

#endif
