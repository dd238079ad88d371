/*
 * lockstead::shared_mutex: many readers or one writer.
 */
#ifndef LOCKSTEAD_CPP_SHARED_MUTEX_HPP
#define LOCKSTEAD_CPP_SHARED_MUTEX_HPP

#include "../rwlock.h"
#include "mutex.hpp"

namespace lockstead {

/* 16 bytes; see lks_rwlock. Between the threads of one process, as the standard's of
 * this name. */
class LKS_TSA__(capability("shared_mutex")) shared_mutex {
public:
    typedef lks_rwlock *native_handle_type;

    constexpr shared_mutex() noexcept : raw_() {}
    ~shared_mutex()
    {
#ifdef LKS_DEBUG
        lks_rwlock_destroy(&raw_);
#endif
    }
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;

    void lock(LKS_SITE__) LKS_TSA__(acquire_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_rwlock_write, &raw_);
    }

    LKS_NODISCARD_CPP__ bool try_lock(LKS_SITE__) LKS_TSA__(try_acquire_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_rwlock_trywrite, &raw_) != 0;
    }

    void unlock(LKS_SITE__) LKS_TSA__(release_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_rwlock_unwrite, &raw_);
    }

    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool
    try_lock_for(const std::chrono::duration<Rep, Period> &time LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_rwlock_write_timeout, &raw_, detail::nanoseconds(time)) == 0;
    }

    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline LKS_AND_SITE__)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::until(deadline, [&](uint64_t left) {
            return LKS_CALL__(lks_rwlock_write_timeout, &raw_, left);
        });
    }

    void lock_shared(LKS_SITE__) LKS_TSA__(acquire_shared_capability())
        LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_rwlock_read, &raw_);
    }

    LKS_NODISCARD_CPP__ bool try_lock_shared(LKS_SITE__)
        LKS_TSA__(try_acquire_shared_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_rwlock_tryread, &raw_) != 0;
    }

    void unlock_shared(LKS_SITE__) LKS_TSA__(release_shared_capability())
        LKS_TSA__(no_thread_safety_analysis)
    {
        LKS_CALL__(lks_rwlock_unread, &raw_);
    }

    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool
    try_lock_shared_for(const std::chrono::duration<Rep, Period> &time LKS_AND_SITE__)
        LKS_TSA__(try_acquire_shared_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return LKS_CALL__(lks_rwlock_read_timeout, &raw_, detail::nanoseconds(time)) == 0;
    }

    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &deadline LKS_AND_SITE__)
        LKS_TSA__(try_acquire_shared_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::until(deadline, [&](uint64_t left) {
            return LKS_CALL__(lks_rwlock_read_timeout, &raw_, left);
        });
    }

    native_handle_type native_handle() noexcept { return &raw_; }

private:
    lks_rwlock raw_;
};

static_assert(sizeof(shared_mutex) == sizeof(lks_rwlock), "nothing is added to the C type");

/* Reads under a lock as long as it lives. */
template <class Lock>
class LKS_NODISCARD_CPP__ LKS_TSA__(scoped_lockable) shared_guard {
public:
    LKS_NODISCARD_NEW__ explicit shared_guard(Lock &lock LKS_AND_SITE__)
        LKS_TSA__(acquire_shared_capability(lock))
        : lock_(lock)
    {
        lock_.lock_shared(LKS_PASS__);
    }
    ~shared_guard() LKS_TSA__(release_generic_capability()) { lock_.unlock_shared(); }
    shared_guard(const shared_guard &) = delete;
    shared_guard &operator=(const shared_guard &) = delete;

private:
    Lock &lock_;
};

typedef guard<shared_mutex> write_guard;
typedef shared_guard<shared_mutex> read_guard;

} // namespace lockstead

#endif
