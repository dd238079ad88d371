// The half in C++ of threads that hang by locks of Rust and of C++.
#include <atomic>
#include <cstddef>
#include <mutex>

namespace {
std::mutex mutex;

// The lock of Drepper's paper, on C++20's atomic waits.
struct Waiting {
    std::atomic<int> word{0};
    void lock() {
        int free = 0;
        if (word.compare_exchange_strong(free, 1)) return;
        while (word.exchange(2) != 0) word.wait(2);
    }
    void unlock() {
        if (word.exchange(0) == 2) word.notify_one();
    }
} waiting;
} // namespace

extern "C" {
void *cpp_mutex() { return &mutex; }
void *cpp_waiting() { return &waiting; }

// Calls Rust with the lock held.
void cpp_call_with_mutex(void (*body)()) {
    std::lock_guard held(mutex);
    body();
}
void cpp_call_with_waiting(void (*body)()) {
    std::lock_guard held(waiting);
    body();
}
void cpp_take_mutex() { std::lock_guard held(mutex); }
void cpp_take_waiting() { std::lock_guard held(waiting); }
}
