// Two threads cross two locks of the program's own, on C++20's atomic waits, under guards with
// names. Compiled with optimisation and debug information: only what follows the calls, and these
// variables, tell who holds what.
#include <atomic>
#include <mutex>
#include <thread>
#include <unistd.h>

class WordLock {
    std::atomic<int> word{0};

  public:
    void lock() {
        int free = 0;
        if (word.compare_exchange_strong(free, 1)) return;
        while (word.exchange(2) != 0) word.wait(2);
    }
    void unlock() {
        if (word.exchange(0) == 2) word.notify_one();
    }
};

static WordLock first, second;
static std::atomic<int> met{0};
static int value;

[[gnu::noinline]] static void cross(WordLock &mine, WordLock &other) {
    std::unique_lock<WordLock> gone(other, std::defer_lock);
    std::lock_guard<WordLock> kept(mine);
    met++;
    while (met < 2) usleep(1000);
    std::lock_guard<WordLock> wanted(other);
    value++;
}

int main() {
    std::thread one([] { cross(first, second); }), two([] { cross(second, first); });
    one.join();
    two.join();
}
