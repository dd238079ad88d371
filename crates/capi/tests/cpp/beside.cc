// The standard library keeps the system's locks, wherever its headers come.
#ifdef STANDARD_FIRST
#include <condition_variable>
#include <mutex>
#endif
#ifdef DIRECTLY
#include <lockstead/pthread.h>
#endif
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#if __cplusplus >= 201703L
#include <shared_mutex>
#endif

static_assert(sizeof(pthread_mutex_t) == 16, "lockstead's");
static_assert(sizeof(std::mutex) >= 40, "the system's");

static std::mutex standard;
static std::recursive_mutex recursive;
static std::condition_variable condition;
static std::once_flag once;
static pthread_mutex_t ours = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t our_condition = PTHREAD_COND_INITIALIZER;
static pthread_once_t our_once = PTHREAD_ONCE_INIT;
static int done, times;

static void throws()
{
    if (times++ == 0)
        throw 7;
}

int main()
{
    auto task = std::async(std::launch::async, [] {
        std::call_once(once, [] {});
        std::lock_guard<std::recursive_mutex> again(recursive);
        std::lock_guard<std::mutex> hold(standard);
        pthread_mutex_lock(&ours);
        done = 1;
        pthread_cond_signal(&our_condition);
        pthread_mutex_unlock(&ours);
        condition.notify_all();
    });
    {
        std::unique_lock<std::mutex> hold(standard);
        while (!condition.wait_for(hold, std::chrono::seconds(60), [] { return done == 1; }))
            return 1;
    }
    pthread_mutex_lock(&ours);
    while (done != 1)
        pthread_cond_wait(&our_condition, &ours);
    pthread_mutex_unlock(&ours);
    task.get();
    // Left by an exception, it is somebody else's turn.
    for (int round = 0; round < 3; round++) {
        try {
            pthread_once(&our_once, throws);
        } catch (int) {
        }
    }
#ifdef HANDED_OVER
    pthread_mutex_lock(standard.native_handle());
#endif
    return times == 2 ? 0 : 2;
}
