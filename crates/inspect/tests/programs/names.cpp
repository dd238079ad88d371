// Locks of C++ and the frames of its standard library around them.
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace app {
class Cache {
  public:
    static std::mutex lock_;
    __attribute__((noinline)) int find(int key)
    {
        std::lock_guard<std::mutex> guard(lock_); // line 13
        return key + 1;
    }
};
std::mutex Cache::lock_;
struct Base {
    long entries;
};
struct Shard : Base {
    std::mutex lock;
};
Shard shards[4];
struct Counted {
    long count;
    std::mutex lock;
    static Counted all[3];
};
Counted Counted::all[3];
struct Empty {};
struct Second : Empty, Base, std::mutex {
    std::mutex own;
};
Second seconds[3];
struct Virtual : virtual Base {
    std::mutex lock;
};
Virtual virtuals[2];
} // namespace app

int main()
{
    static std::mutex local;
    app::Cache cache;
    app::Cache::lock_.lock();
    std::thread thread([&cache] { cache.find(1); });
    std::printf("lock_ %p\n", static_cast<void *>(&app::Cache::lock_));
    std::printf("shards[2].lock %p\n", static_cast<void *>(&app::shards[2].lock));
    std::printf("counted[1] %p\n", static_cast<void *>(&app::Counted::all[1].lock));
    std::printf("seconds[1] %p\n", static_cast<void *>(static_cast<std::mutex *>(&app::seconds[1])));
    std::printf("seconds[1].own %p\n", static_cast<void *>(&app::seconds[1].own));
    std::printf("virtuals[1].lock %p\n", static_cast<void *>(&app::virtuals[1].lock));
    std::printf("local %p\n", static_cast<void *>(&local));
    std::printf("ready\n");
    std::fflush(stdout);
    pause();
}
