// The types with the standard library's wrappers, in each C++.
#include "expect.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif

using namespace std::chrono;

static lockstead::mutex global;
static long counter;

static void exclusion()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            for (int round = 0; round < 20000; round++) {
                lockstead::mutex_guard guard(global);
                counter++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    EXPECT(counter == 80000);
}

static void wrappers()
{
    lockstead::mutex a, b;
    static_assert(!std::is_copy_constructible<lockstead::mutex>::value, "stays where it is");
    std::unique_lock<lockstead::mutex> held(a);
    EXPECT(a.is_locked());
    std::thread([&] {
        EXPECT(!a.try_lock());
        EXPECT(!a.try_lock_for(milliseconds(1)));
        EXPECT(!a.try_lock_for(duration<double>(-1)));
        EXPECT(!a.try_lock_until(steady_clock::now() + microseconds(100)));
        EXPECT(!a.try_lock_until(system_clock::now() - hours(1)));
        std::unique_lock<lockstead::mutex> late(a, milliseconds(1));
        EXPECT(!late.owns_lock());
    }).join();
    held.unlock();
    EXPECT(a.try_lock_until(system_clock::now() + hours(1)));
    a.unlock();
    EXPECT(a.try_lock_for(hours::max()));
    a.unlock();
    std::lock(a, b);
    EXPECT(a.is_locked() && b.is_locked());
    a.unlock();
    b.unlock();
#if __cplusplus >= 201703L
    {
        std::scoped_lock both(a, b);
    }
#endif
    EXPECT(a.lock_interruptible());
    a.unlock();
    lockstead::cancel_token token;
    token.cancel();
    a.lock_nested(1);
#ifndef LKS_DEBUG
    // Its own: waiting would not help, and so it does not.
    const auto began = steady_clock::now();
    EXPECT(!a.try_lock_until(began + hours(1)) && !a.try_lock_for(hours(1)));
    EXPECT(steady_clock::now() - began < minutes(30));
#endif
    std::thread([&] { EXPECT(token.is_cancelled() && !a.lock_killable(token)); }).join();
    a.unlock();
}

// By both types in turns, on the word that they share.
static void fair()
{
    static_assert(!std::is_copy_constructible<lockstead::fair_mutex>::value, "stays where it is");
    lockstead::fair_mutex mutex;
    long count = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 20000; round++) {
                if ((round + i) % 2 == 0) {
                    lockstead::fair_mutex_guard guard(mutex);
                    count++;
                } else {
                    lks_mutex *plain = lks_mutex_of_fair(mutex.native_handle());
                    lks_mutex_lock(plain);
                    count++;
                    lks_mutex_unlock(plain);
                }
            }
        });
    for (auto &thread : threads)
        thread.join();
    EXPECT(count == 80000);
    std::unique_lock<lockstead::fair_mutex> held(mutex);
    EXPECT(mutex.is_locked());
    std::thread([&] {
        EXPECT(!mutex.try_lock() && !mutex.try_lock_for(milliseconds(1)));
        EXPECT(!mutex.try_lock_until(steady_clock::now() + microseconds(100)));
        lockstead::cancel_token token;
        token.cancel();
        EXPECT(!mutex.lock_killable(token));
    }).join();
    held.unlock();
    mutex.lock_nested(1);
    mutex.unlock();
    EXPECT(mutex.lock_interruptible());
    mutex.unlock();
}

template <class Condition, class Mutex>
static void conditions()
{
    Mutex mutex;
    Condition changed;
    int turn = 0;
    auto play = [&](int me) {
        for (int round = 0; round < 2000; round++) {
            std::unique_lock<Mutex> lock(mutex);
            changed.wait(lock, [&] { return turn == me; });
            turn = 1 - me;
            changed.notify_all();
        }
    };
    std::thread other(play, 1);
    play(0);
    other.join();
    std::unique_lock<Mutex> lock(mutex);
    EXPECT(!changed.wait_for(lock, milliseconds(2), [] { return false; }));
    EXPECT(lock.owns_lock() && mutex.is_locked());
}

static void long_waits()
{
    lockstead::mutex mutex;
    lockstead::condition_variable changed;
    bool said = false;
    std::unique_lock<lockstead::mutex> lock(mutex);
    std::thread speaker([&] {
        lockstead::mutex_guard guard(mutex);
        said = true;
        changed.notify_all();
    });
    EXPECT(changed.wait_for(lock, steady_clock::duration::max(), [&] { return said; }));
    EXPECT(changed.wait_for(lock, hours::max(), [&] { return said; }));
    EXPECT(!changed.wait_for(lock, hours::min(), [] { return false; }));
    EXPECT(!changed.wait_until(lock, system_clock::now() - hours(1)));
    EXPECT(!changed.wait_until(lock, steady_clock::time_point::min()));
    const auto soon = steady_clock::now() + milliseconds(2);
    while (changed.wait_until(lock, soon)) {
    }
    EXPECT(!(steady_clock::now() < soon));
    lock.unlock();
    speaker.join();
}

static void readers()
{
    lockstead::shared_mutex lock;
    long first = 0, second = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 5000; round++) {
                if (i == 0) {
                    lockstead::write_guard guard(lock);
                    first++;
                    second++;
                } else {
                    lockstead::read_guard guard(lock);
                    EXPECT(first == second);
                }
            }
        });
    for (auto &thread : threads)
        thread.join();
#if __cplusplus >= 201402L
    std::shared_lock<lockstead::shared_mutex> one(lock);
    std::thread([&] {
        std::shared_lock<lockstead::shared_mutex> two(lock, std::try_to_lock);
        EXPECT(two.owns_lock());
    }).join();
    std::thread([&] { EXPECT(!lock.try_lock() && !lock.try_lock_for(milliseconds(1))); }).join();
    std::thread([&] {
        std::shared_lock<lockstead::shared_mutex> three(lock, milliseconds(1));
        EXPECT(three.owns_lock());
    }).join();
#endif
}

static void semaphores()
{
    lockstead::counting_semaphore<> two(2);
    two.acquire();
    EXPECT(two.try_acquire() && !two.try_acquire());
    EXPECT(!two.try_acquire_for(milliseconds(1)));
    EXPECT(!two.try_acquire_until(steady_clock::now() + milliseconds(1)));
    std::thread([&] { EXPECT(two.release(2)); }).join();
    EXPECT(two.try_acquire_for(milliseconds(1)) && two.try_acquire());
    lockstead::binary_semaphore full(LKS_SEMAPHORE_MAX);
    EXPECT(!full.release());
}

static void once()
{
    lockstead::once_flag flag;
    int calls = 0;
    try {
        lockstead::call_once(flag, [&] {
            calls++;
            throw std::runtime_error("not yet");
        });
        EXPECT(false);
    } catch (const std::runtime_error &) {
    }
    for (int i = 0; i < 3; i++)
        lockstead::call_once(flag, [&](int by) { calls += by; }, 10);
    EXPECT(calls == 11);
}

static void wait_wound()
{
    lockstead::ww_class wounds(LKS_WOUND_WAIT);
    lockstead::ww_mutex a, b;
    int moved = 0;
    auto move = [&](lockstead::ww_mutex &first, lockstead::ww_mutex &second) {
        for (int round = 0; round < 2000; round++) {
            lockstead::ww_guard both(wounds, {&first, &second, &first});
            moved++;
        }
    };
    std::thread other(move, std::ref(b), std::ref(a));
    move(a, b);
    other.join();
    EXPECT(moved == 4000);
    std::unique_lock<lockstead::ww_mutex> alone(a);
    EXPECT(alone.owns_lock());
}

int main()
{
    wait_wound();
    exclusion();
    wrappers();
    fair();
    conditions<std::condition_variable_any, lockstead::mutex>();
    conditions<std::condition_variable_any, lockstead::fair_mutex>();
    conditions<lockstead::condition_variable, lockstead::mutex>();
    conditions<lockstead::condition_variable, lockstead::fair_mutex>();
    long_waits();
    readers();
    semaphores();
    once();
}
