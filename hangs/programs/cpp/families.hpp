// The locks, in the words of the cases: FAMILY_STD, FAMILY_ABSEIL, FAMILY_ATOMIC (a lock on C++20's
// atomic waits), FAMILY_SEMAPHORE (C++20's binary semaphore used as a lock).
#pragma once
#include <condition_variable>
#include <mutex>

#if defined FAMILY_STD
#include <shared_mutex>
#define HAS_SHARED 1
#define HAS_CONDITION 1
namespace family {
inline void prepare() {}
using Mutex = std::mutex;
using Guard = std::unique_lock<std::mutex>;
using Condition = std::condition_variable;
inline void wait(Condition &condition, Mutex &, Guard &guard) { condition.wait(guard); }
inline void signal(Condition &condition) { condition.notify_one(); }
inline bool attempt(Mutex &mutex) {
    if (!mutex.try_lock()) return false;
    mutex.unlock();
    return true;
}
using SharedMutex = std::shared_mutex;
using ReadGuard = std::shared_lock<std::shared_mutex>;
using WriteGuard = std::lock_guard<std::shared_mutex>;
} // namespace family

#elif defined FAMILY_ABSEIL
#include <absl/synchronization/mutex.h>
#define HAS_SHARED 1
#define HAS_CONDITION 1
namespace family {
// In debug builds it would end the program itself.
inline void prepare() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }
using Mutex = absl::Mutex;
struct Guard : absl::MutexLock {
    explicit Guard(Mutex &mutex) : absl::MutexLock(&mutex) {}
};
using Condition = absl::CondVar;
inline void wait(Condition &condition, Mutex &mutex, Guard &) { condition.Wait(&mutex); }
inline void signal(Condition &condition) { condition.Signal(); }
inline bool attempt(Mutex &mutex) {
    if (!mutex.TryLock()) return false;
    mutex.Unlock();
    return true;
}
using SharedMutex = absl::Mutex;
struct ReadGuard : absl::ReaderMutexLock {
    explicit ReadGuard(SharedMutex &mutex) : absl::ReaderMutexLock(&mutex) {}
};
struct WriteGuard : absl::WriterMutexLock {
    explicit WriteGuard(SharedMutex &mutex) : absl::WriterMutexLock(&mutex) {}
};
} // namespace family

#elif defined FAMILY_ATOMIC
#include <atomic>
namespace family {
inline void prepare() {}
// The lock of Drepper's paper: 0 free, 1 taken, 2 taken and waited for.
class Mutex {
    std::atomic<int> word{0};

  public:
    void lock() {
        int free = 0;
        if (word.compare_exchange_strong(free, 1)) return;
        while (word.exchange(2) != 0) word.wait(2);
    }
    bool try_lock() {
        int free = 0;
        return word.compare_exchange_strong(free, 1);
    }
    void unlock() {
        if (word.exchange(0) == 2) word.notify_one();
    }
};
using Guard = std::unique_lock<Mutex>;
inline bool attempt(Mutex &mutex) {
    if (!mutex.try_lock()) return false;
    mutex.unlock();
    return true;
}
} // namespace family

#elif defined FAMILY_SEMAPHORE
#include <semaphore>
namespace family {
inline void prepare() {}
class Mutex {
    std::binary_semaphore free{1};

  public:
    void lock() { free.acquire(); }
    bool try_lock() { return free.try_acquire(); }
    void unlock() { free.release(); }
};
using Guard = std::unique_lock<Mutex>;
inline bool attempt(Mutex &mutex) {
    if (!mutex.try_lock()) return false;
    mutex.unlock();
    return true;
}
} // namespace family
#else
#error "say which family"
#endif
