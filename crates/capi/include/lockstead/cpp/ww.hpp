/*
 * lockstead::ww_mutex: any set of locks, in any order, without deadlock.
 */
#ifndef LOCKSTEAD_CPP_WW_HPP
#define LOCKSTEAD_CPP_WW_HPP

#include "../ww.h"
#include "base.hpp"
#include "refused.hpp"

#include <initializer_list>
#include <vector>

namespace lockstead {

/* Locks that are taken together; see lks_ww_class. */
class ww_class {
public:
    constexpr explicit ww_class(lks_ww_scheme scheme) noexcept
        : raw_ LKS_WW_CLASS_INIT(static_cast<uint8_t>(scheme))
    {
    }
    ww_class(const ww_class &) = delete;
    ww_class &operator=(const ww_class &) = delete;
    lks_ww_class *native_handle() noexcept { return &raw_; }

private:
    lks_ww_class raw_;
};

/* One thread's attempt to take several locks. Ends the process with a message if it is the
 * thread's fifth. */
class ww_context {
public:
    explicit ww_context(ww_class &of LKS_AND_SITE__) noexcept
    {
        if (LKS_CALL__(lks_ww_ctx_init, &raw_, of.native_handle()) == -EBUSY)
            detail::hopeless("ww_context: this thread has four contexts already, as many as it can "
                             "have at a time: let one end before the next begins");
    }
    ~ww_context() { lks_ww_ctx_fini(&raw_); }
    ww_context(const ww_context &) = delete;
    ww_context &operator=(const ww_context &) = delete;

    void done(LKS_SITE__) noexcept { LKS_CALL__(lks_ww_ctx_done, &raw_); }
    lks_ww_ctx *native_handle() noexcept { return &raw_; }

private:
    lks_ww_ctx raw_;
};

/* See lks_ww_mutex, for the results as well. */
class LKS_TSA__(capability("ww_mutex")) ww_mutex {
public:
    constexpr ww_mutex() noexcept : raw_() {}
    ~ww_mutex()
    {
#ifdef LKS_DEBUG
        lks_ww_mutex_destroy(&raw_);
#endif
    }
    ww_mutex(const ww_mutex &) = delete;
    ww_mutex &operator=(const ww_mutex &) = delete;

    LKS_NODISCARD_CPP__ int lock(ww_context &context LKS_AND_SITE__) noexcept
        LKS_TSA__(try_acquire_capability(0)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_ww_mutex_lock, &raw_, context.native_handle());
    }
    LKS_NODISCARD_CPP__ int lock_interruptible(ww_context &context LKS_AND_SITE__) noexcept
        LKS_TSA__(try_acquire_capability(0)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_ww_mutex_lock_interruptible, &raw_, context.native_handle());
    }
    void lock_slow(ww_context &context LKS_AND_SITE__) noexcept LKS_TSA__(acquire_capability())
        LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_ww_mutex_lock_slow, &raw_, context.native_handle());
    }
    LKS_NODISCARD_CPP__ bool try_lock(ww_context &context LKS_AND_SITE__) noexcept
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_ww_mutex_trylock, &raw_, context.native_handle()) != 0;
    }
    /* Alone, as any mutex: Lockable. */
    void lock(LKS_SITE__) noexcept LKS_TSA__(acquire_capability())
        LKS_TSA__(no_thread_safety_analysis)
    {
        const int result = LKS_CALL__(lks_ww_mutex_lock, &raw_, nullptr);
        if (result == -EOWNERDEAD)
            detail::hopeless("ww_mutex::lock: lost owner: a thread holds it that has ended, or that "
                             "fork left behind. It can never be released");
        if (result != 0)
            detail::hopeless("ww_mutex::lock: it was refused for what was reported before");
    }
    LKS_NODISCARD_CPP__ bool try_lock(LKS_SITE__) noexcept LKS_TSA__(try_acquire_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_ww_mutex_trylock, &raw_, nullptr) != 0;
    }
    void unlock(LKS_SITE__) noexcept LKS_TSA__(release_capability())
        LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_ww_mutex_unlock, &raw_);
    }
    lks_ww_mutex *native_handle() noexcept { return &raw_; }

private:
    lks_ww_mutex raw_;
};

/* Holds all of some locks as long as it lives, with all backing off done. Throws
 * std::system_error if one of them will never be free. */
class LKS_NODISCARD_CPP__ ww_guard {
public:
    LKS_NODISCARD_NEW__ ww_guard(ww_class &of,
                                 std::initializer_list<ww_mutex *> locks LKS_AND_SITE__)
        : context_(of LKS_AND_PASS__)
    {
        locks_.reserve(locks.size());
        for (ww_mutex *lock : locks)
            locks_.push_back(lock->native_handle());
        const int result =
            LKS_CALL__(lks_ww_lock_all, context_.native_handle(), locks_.data(), locks_.size());
        if (result != 0)
            detail::refused(result, "lockstead::ww_guard");
    }
    ~ww_guard() { lks_ww_unlock_all(locks_.data(), locks_.size()); }
    ww_guard(const ww_guard &) = delete;
    ww_guard &operator=(const ww_guard &) = delete;

private:
    ww_context context_;
    std::vector<lks_ww_mutex *> locks_;
};

} // namespace lockstead

#endif
