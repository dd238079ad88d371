/*
 * lockstead::once_flag and call_once: as the standard's, in 4 bytes.
 */
#ifndef LOCKSTEAD_CPP_ONCE_HPP
#define LOCKSTEAD_CPP_ONCE_HPP

#include "../once.h"
#include "base.hpp"

#include <utility>

namespace lockstead {

/* See lks_once. */
class once_flag {
public:
    constexpr once_flag() noexcept : raw_() {}
    once_flag(const once_flag &) = delete;
    once_flag &operator=(const once_flag &) = delete;

    lks_once *native_handle() noexcept { return &raw_; }

private:
    lks_once raw_;
};

namespace detail {

/* Leaves it to the next unless it was done: an exception passes by here. */
class turn {
public:
    explicit turn(lks_once *once) noexcept : once_(once), done_(false) {}
    ~turn()
    {
        if (done_)
            lks_once_done(once_);
        else
            lks_once_failed(once_);
    }
    turn(const turn &) = delete;
    turn &operator=(const turn &) = delete;
    void done() noexcept { done_ = true; }

private:
    lks_once *once_;
    bool done_;
};

} // namespace detail

/* Calls `make(arguments...)` unless that was done, and waits if another thread is at
 * it. If it throws, the next caller does it. From within itself, and where fork has
 * left behind who was at it, it could only wait for ever, and ends the process with a
 * message. */
template <class Make, class... Arguments>
void call_once(once_flag &flag, Make &&make, Arguments &&...arguments)
{
    const int result = lks_once_begin(flag.native_handle());
    if (LKS_LIKELY__(result == 0))
        return;
    if (result < 0)
        detail::hopeless(result == -EDEADLK
                             ? "call_once: recursion: this thread is at it already, and would wait "
                               "for itself for ever"
                             : "call_once: lost owner: fork left the thread behind that was at it");
    detail::turn turn(flag.native_handle());
    std::forward<Make>(make)(std::forward<Arguments>(arguments)...);
    turn.done();
}

} // namespace lockstead

#endif
