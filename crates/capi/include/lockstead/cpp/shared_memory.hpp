/*
 * lockstead::shared_memory: segments that processes share, and the locks in them, which
 * survive their holders. See shm.h and shared.h.
 *
 * The locks are what C has, with methods: they lie in a segment's root, where zeroes are
 * free ones, and need neither be constructed nor destroyed.
 *
 * What a dead owner leaves is not an exception: `lock` has the lock then, as the next
 * one has to have it to put things in order. It is asked for,
 *
 *     std::unique_lock<shared_memory::mutex> held(account.lock);
 *     if (account.lock.owner_died()) {
 *         ... put in order ...
 *         account.lock.mark_consistent();
 *     }
 *
 * or handled by a guard that does this with a function: `repaired_guard`. Who asks
 * nothing unlocks it inconsistent, and the next `lock` throws std::system_error with
 * errc::state_not_recoverable; so does everything else that can go wrong, with its own
 * code, and nothing is held then.
 */
#ifndef LOCKSTEAD_CPP_SHARED_MEMORY_HPP
#define LOCKSTEAD_CPP_SHARED_MEMORY_HPP

#include "../shared.h"
#include "base.hpp"
#include "refused.hpp"

#include <memory>
#include <utility>

namespace lockstead {
namespace shared_memory {

namespace detail {

/* True: the lock is held. False: the wait was given up, or it was only tried. */
inline bool held(int result, const char *what)
{
    if (result >= 0 || result == -EOWNERDEAD)
        return true;
    if (result == -ETIMEDOUT || result == -EINTR || result == -EBUSY)
        return false;
    lockstead::detail::refused(result, what);
}

/* The same of what says 0 for a lock that somebody has. */
inline bool tried(int result, const char *what)
{
    return result != 0 && held(result, what);
}

/* For detail::until: 0, -ETIMEDOUT, or an exception. */
inline int timed(int result, const char *what)
{
    return held(result, what) ? 0 : -ETIMEDOUT;
}

} // namespace detail

/* See lks_shared_mutex. Lockable and TimedLockable. */
class LKS_TSA__(capability("mutex")) mutex {
public:
    mutex() = default;
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    void lock() LKS_TSA__(acquire_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        detail::held(lks_shared_mutex_lock(&raw_), "lockstead::shared_memory::mutex::lock");
    }
    LKS_NODISCARD_CPP__ bool try_lock() LKS_TSA__(try_acquire_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::tried(lks_shared_mutex_trylock(&raw_),
                             "lockstead::shared_memory::mutex::try_lock");
    }
    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return timeout(lockstead::detail::nanoseconds(time)) == 0;
    }
    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return lockstead::detail::until(deadline, [&](uint64_t left) { return timeout(left); });
    }
    /* False: a signal handler ran on this thread while it slept. */
    LKS_NODISCARD_CPP__ bool lock_interruptible() LKS_TSA__(try_acquire_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::held(lks_shared_mutex_lock_interruptible(&raw_),
                            "lockstead::shared_memory::mutex::lock_interruptible");
    }
    /* Nothing if the calling thread does not have it, as a forked child of one that has. */
    void unlock() noexcept LKS_TSA__(release_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        (void)lks_shared_mutex_unlock(&raw_);
    }

    /* Of a mutex that the calling thread has: whether an owner died, and what it left was
     * not declared consistent. */
    LKS_NODISCARD_CPP__ bool owner_died() const noexcept
    {
        return lks_shared_mutex_is_inconsistent(&raw_) != 0;
    }
    /* What it guards is in order again. */
    void mark_consistent() noexcept { (void)lks_shared_mutex_consistent(&raw_); }

    bool is_locked() const noexcept { return lks_shared_mutex_is_locked(&raw_) != 0; }
    lks_shared_mutex *native_handle() noexcept { return &raw_; }

private:
    int timeout(uint64_t nanoseconds)
    {
        return detail::timed(lks_shared_mutex_lock_timeout(&raw_, nanoseconds),
                             "lockstead::shared_memory::mutex::try_lock_for");
    }

    lks_shared_mutex raw_;
};

/* See lks_shared_rwlock. SharedLockable and SharedTimedLockable. After `lock_shared`, too,
 * `owner_died` may be true: then the calling thread has the lock alone. */
class LKS_TSA__(capability("shared_mutex")) shared_mutex {
public:
    shared_mutex() = default;
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;

    void lock() LKS_TSA__(acquire_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        detail::held(lks_shared_rwlock_write(&raw_), what());
    }
    LKS_NODISCARD_CPP__ bool try_lock() LKS_TSA__(try_acquire_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::tried(lks_shared_rwlock_trywrite(&raw_), what());
    }
    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return write_timeout(lockstead::detail::nanoseconds(time)) == 0;
    }
    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline)
        LKS_TSA__(try_acquire_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return lockstead::detail::until(deadline,
                                        [&](uint64_t left) { return write_timeout(left); });
    }
    void unlock() noexcept LKS_TSA__(release_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        (void)lks_shared_rwlock_unlock(&raw_);
    }

    void lock_shared() LKS_TSA__(acquire_shared_capability()) LKS_TSA__(no_thread_safety_analysis)
    {
        detail::held(lks_shared_rwlock_read(&raw_), what());
    }
    LKS_NODISCARD_CPP__ bool try_lock_shared() LKS_TSA__(try_acquire_shared_capability(true))
        LKS_TSA__(no_thread_safety_analysis)
    {
        return detail::tried(lks_shared_rwlock_tryread(&raw_), what());
    }
    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
        LKS_TSA__(try_acquire_shared_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return read_timeout(lockstead::detail::nanoseconds(time)) == 0;
    }
    template <class Clock, class Duration>
    LKS_NODISCARD_CPP__ bool
    try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &deadline)
        LKS_TSA__(try_acquire_shared_capability(true)) LKS_TSA__(no_thread_safety_analysis)
    {
        return lockstead::detail::until(deadline,
                                        [&](uint64_t left) { return read_timeout(left); });
    }
    void unlock_shared() noexcept LKS_TSA__(release_shared_capability())
        LKS_TSA__(no_thread_safety_analysis)
    {
        (void)lks_shared_rwlock_unlock(&raw_);
    }

    LKS_NODISCARD_CPP__ bool owner_died() const noexcept
    {
        return lks_shared_rwlock_is_inconsistent(&raw_) != 0;
    }
    void mark_consistent() noexcept { (void)lks_shared_rwlock_consistent(&raw_); }
    lks_shared_rwlock *native_handle() noexcept { return &raw_; }

private:
    static const char *what() noexcept { return "lockstead::shared_memory::shared_mutex"; }
    int write_timeout(uint64_t nanoseconds)
    {
        return detail::timed(lks_shared_rwlock_write_timeout(&raw_, nanoseconds), what());
    }
    int read_timeout(uint64_t nanoseconds)
    {
        return detail::timed(lks_shared_rwlock_read_timeout(&raw_, nanoseconds), what());
    }

    lks_shared_rwlock raw_;
};

/* Takes a mutex, or a shared_mutex alone, and holds it as long as it lives. If its owner
 * died `repair()` is called first, and the lock is consistent if that returns; if it
 * throws, not recoverable. */
template <class Lock>
class LKS_NODISCARD_CPP__ LKS_TSA__(scoped_lockable) repaired_guard {
public:
    template <class Repair>
    LKS_NODISCARD_NEW__ repaired_guard(Lock &lock, Repair &&repair)
        LKS_TSA__(acquire_capability(lock)) LKS_TSA__(no_thread_safety_analysis)
        : held_(lock)
    {
        if (lock.owner_died()) {
            std::forward<Repair>(repair)();
            lock.mark_consistent();
        }
    }
    ~repaired_guard() LKS_TSA__(release_capability()) LKS_TSA__(no_thread_safety_analysis) {}
    repaired_guard(const repaired_guard &) = delete;
    repaired_guard &operator=(const repaired_guard &) = delete;

private:
    /* A member, so that it is released as well if the repair throws. */
    struct hold {
        explicit hold(Lock &lock) LKS_TSA__(no_thread_safety_analysis) : lock_(lock)
        {
            lock_.lock();
        }
        ~hold() LKS_TSA__(no_thread_safety_analysis) { lock_.unlock(); }
        hold(const hold &) = delete;
        hold &operator=(const hold &) = delete;
        Lock &lock_;
    };

    hold held_;
};

/* See lks_shared_semaphore. Units belong to the thread that has taken them. */
class counting_semaphore {
public:
    counting_semaphore() = default;
    counting_semaphore(const counting_semaphore &) = delete;
    counting_semaphore &operator=(const counting_semaphore &) = delete;

    /* Of a semaphore that nobody else uses yet. */
    void init(uint32_t units, bool reports = false) noexcept
    {
        lks_shared_semaphore_init(&raw_, units, reports);
    }

    /* How many units the dead had of which nobody was told, if it reports that. */
    uint32_t acquire(uint32_t units = 1)
    {
        const int result = lks_shared_semaphore_acquire(&raw_, units);
        detail::held(result, what());
        return static_cast<uint32_t>(result);
    }
    LKS_NODISCARD_CPP__ bool try_acquire(uint32_t units = 1)
    {
        return detail::held(lks_shared_semaphore_tryacquire(&raw_, units), what());
    }
    template <class Rep, class Period>
    LKS_NODISCARD_CPP__ bool try_acquire_for(uint32_t units,
                                             const std::chrono::duration<Rep, Period> &time)
    {
        const uint64_t left = lockstead::detail::nanoseconds(time);
        return detail::held(lks_shared_semaphore_acquire_timeout(&raw_, units, left), what());
    }
    /* False: the calling thread has fewer. */
    bool release(uint32_t units = 1) noexcept
    {
        return lks_shared_semaphore_release(&raw_, units) == 0;
    }
    bool consume(uint32_t units = 1) noexcept
    {
        return lks_shared_semaphore_consume(&raw_, units) == 0;
    }
    void add(uint32_t units)
    {
        const int result = lks_shared_semaphore_add(&raw_, units);
        if (result != 0)
            lockstead::detail::refused(result, what());
    }
    uint32_t total() const noexcept { return lks_shared_semaphore_total(&raw_); }
    uint32_t free() const noexcept { return lks_shared_semaphore_free(&raw_); }
    lks_shared_semaphore *native_handle() noexcept { return &raw_; }

private:
    static const char *what() noexcept { return "lockstead::shared_memory::counting_semaphore"; }

    lks_shared_semaphore raw_;
};

/* See lks_shared_cond. `Lock` is std::unique_lock<shared_memory::mutex> or the like, and
 * holds; after an exception it does not hold any more. That an owner died meanwhile is to
 * be asked of the mutex. */
class condition_variable {
public:
    condition_variable() = default;
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    void notify_one() { (void)lks_shared_cond_notify_one(&raw_); }
    void notify_all() { (void)lks_shared_cond_notify_all(&raw_); }

    template <class Lock>
    void wait(Lock &lock)
    {
        (void)settle(lock, lks_shared_cond_wait(&raw_, lock.mutex()->native_handle()));
    }
    template <class Lock, class Predicate>
    void wait(Lock &lock, Predicate predicate)
    {
        while (!predicate())
            wait(lock);
    }
    /* False: the time is over. */
    template <class Lock, class Rep, class Period>
    bool wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &time)
    {
        const uint64_t left = lockstead::detail::nanoseconds(time);
        return settle(lock, lks_shared_cond_wait_timeout(&raw_, lock.mutex()->native_handle(),
                                                         left));
    }
    lks_shared_cond *native_handle() noexcept { return &raw_; }

private:
    template <class Lock>
    static bool settle(Lock &lock, int result)
    {
        if (result == -ENOTRECOVERABLE || result == -EPERM || result == -EFAULT) {
            (void)lock.release();
            lockstead::detail::refused(result, "lockstead::shared_memory::condition_variable");
        }
        return result != -ETIMEDOUT;
    }

    lks_shared_cond raw_;
};

static_assert(sizeof(mutex) == 8 && sizeof(shared_mutex) == 8 && sizeof(condition_variable) == 8 &&
                  sizeof(counting_semaphore) == sizeof(lks_shared_semaphore),
              "nothing is added to the C types");

/* See lks_shm_segment: a segment that is open as long as this lives, or longer where the
 * threads of the process still use it. */
class segment {
public:
    static segment create(const char *path, const lks_shm_type &root,
                          const lks_shm_options *options = nullptr)
    {
        return opened([&](lks_shm_segment **out) {
            return lks_shm_create(out, path, &root, options);
        });
    }
    static segment open_or_create(const char *path, const lks_shm_type &root,
                                  const lks_shm_options *options = nullptr)
    {
        return opened([&](lks_shm_segment **out) {
            return lks_shm_open_or_create(out, path, &root, options);
        });
    }
    static segment memfd(const char *name, const lks_shm_type &root,
                         const lks_shm_options *options = nullptr)
    {
        return opened([&](lks_shm_segment **out) {
            return lks_shm_memfd(out, name, &root, options);
        });
    }
    /* Without a root: whatever it is. */
    static segment open(const char *path, const lks_shm_type *root = nullptr)
    {
        return opened([&](lks_shm_segment **out) { return lks_shm_open(out, path, root); });
    }
    static segment from_fd(int fd, const lks_shm_type *root = nullptr)
    {
        return opened([&](lks_shm_segment **out) { return lks_shm_from_fd(out, fd, root); });
    }

    /* The root, of which the segment was made or opened as one. */
    template <class Root>
    Root &root() const
    {
        if (size() < sizeof(Root))
            lockstead::detail::refused(-EPROTO, "the segment's root is smaller");
        return *static_cast<Root *>(lks_shm_root(raw_.get()));
    }
    std::size_t size() const noexcept { return lks_shm_size(raw_.get()); }
    int fd() const noexcept { return lks_shm_fd(raw_.get()); }
    void participate()
    {
        const int result = lks_shm_participate(raw_.get());
        if (result != 0)
            lockstead::detail::refused(result, lks_shm_reason());
    }
    /* False: the calling thread holds a lock. */
    bool leave() noexcept { return lks_shm_leave(raw_.get()) == 0; }
    lks_shm_segment *native_handle() noexcept { return raw_.get(); }

private:
    struct close {
        void operator()(lks_shm_segment *segment) const noexcept { (void)lks_shm_close(segment); }
    };

    explicit segment(lks_shm_segment *raw) noexcept : raw_(raw) {}

    template <class Open>
    static segment opened(Open open)
    {
        lks_shm_segment *raw;
        const int result = open(&raw);
        if (result != 0)
            lockstead::detail::refused(result, lks_shm_reason());
        return segment(raw);
    }

    std::unique_ptr<lks_shm_segment, close> raw_;
};

} // namespace shared_memory
} // namespace lockstead

#endif
