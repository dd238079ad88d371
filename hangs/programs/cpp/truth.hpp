// What a program says of itself before it hangs, one fact a line, and how its threads wait for
// each other until the locks are taken as the case wants them.
#pragma once
#include <atomic>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace truth {

inline std::atomic<unsigned> stage{0};

template <class T> void place(const char *name, const T &lock) {
    std::printf("LOCK %s %p %zu\n", name, static_cast<const void *>(&lock), sizeof lock);
}
inline void own(const char *lock, const char *thread) { std::printf("OWN %s %s\n", lock, thread); }
inline void wait(const char *thread, const char *lock) {
    std::printf("WAIT %s %s\n", thread, lock);
}
inline void leak(const char *lock, const char *thread) {
    std::printf("LEAK %s %s\n", lock, thread);
}

// Starts a thread with a name that the kernel knows too.
template <class Body> void start(const char *name, Body body) {
    std::thread([name, body] {
        pthread_setname_np(pthread_self(), name);
        body();
    }).detach();
}

inline void arrive() { stage.fetch_add(1); }
inline void after(unsigned count) {
    while (stage.load() < count) sched_yield();
}
inline void meet(unsigned count) {
    arrive();
    after(count);
}

// Sleeps for good, in a call that is no wait for a lock; the compiler does not know it.
[[gnu::noinline]] inline void pause_for_good() {
    static volatile bool always = true;
    while (always) ::pause();
}

[[noreturn]] inline void end() {
    std::puts("END");
    std::fflush(stdout);
    for (;;) ::pause();
}

// Keeps the compiler from knowing what becomes of a value.
template <class T> void use(T &value) { asm volatile("" : : "g"(&value) : "memory"); }

} // namespace truth
