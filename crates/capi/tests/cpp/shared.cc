// Real-time mutexes, and locks that survive their holders, with the standard library's
// wrappers.
#include "expect.hpp"

#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono;
namespace shm = lockstead::shared_memory;

template <class Call>
static std::errc error_of(Call call)
{
    try {
        call();
    } catch (const std::system_error &error) {
        return static_cast<std::errc>(error.code().value());
    }
    return std::errc();
}

static lockstead::rt_mutex rt;
static lockstead::recursive_rt_mutex recursive;
static long counter;

static void real_time()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            for (int round = 0; round < 5000; round++) {
                std::lock_guard<lockstead::rt_mutex> held(rt);
                std::lock_guard<lockstead::recursive_rt_mutex> first(recursive);
                std::lock_guard<lockstead::recursive_rt_mutex> again(recursive);
                counter += recursive.depth() == 2;
            }
        });
    for (auto &thread : threads)
        thread.join();
    EXPECT(counter == 20000);
    std::unique_lock<lockstead::rt_mutex> held(rt);
    std::unique_lock<lockstead::recursive_rt_mutex> held_too(recursive);
    EXPECT(error_of([] { rt.lock(); }) == std::errc::resource_deadlock_would_occur);
    EXPECT(error_of([] { (void)rt.try_lock_for(hours(1)); }) ==
           std::errc::resource_deadlock_would_occur);
    std::thread([] {
        lockstead::cancel_token token;
        token.cancel();
        EXPECT(!rt.try_lock() && rt.is_locked() && !rt.lock_killable(token));
        EXPECT(!rt.try_lock_for(milliseconds(1)));
        EXPECT(!rt.try_lock_until(system_clock::now() + milliseconds(1)));
        EXPECT(!recursive.try_lock() && !recursive.try_lock_for(milliseconds(1)));
        EXPECT(!recursive.try_lock_until(steady_clock::now()) && recursive.is_locked());
    }).join();
    held.unlock();
    EXPECT(rt.lock_interruptible());
    std::unique_lock<lockstead::rt_mutex> adopted(rt, std::adopt_lock);
    adopted.unlock();
    lockstead::rt_mutex other;
    std::lock(rt, other);
    rt.unlock();
    other.unlock();

    // Each ends with its own.
    lockstead::rt_mutex left;
    lockstead::recursive_rt_mutex left_too;
    std::thread([&] {
        left.lock();
        left_too.lock();
    }).join();
    EXPECT(error_of([&] { left.lock(); }) == std::errc::owner_dead);
    EXPECT(error_of([&] { (void)left.try_lock_for(hours(1)); }) == std::errc::owner_dead);
    EXPECT(error_of([&] { left_too.lock(); }) == std::errc::owner_dead);
    EXPECT(!left.try_lock());
}

struct Root {
    shm::mutex mutex;
    int64_t pair[2];
    shm::shared_mutex rates;
    shm::counting_semaphore clerks;
    shm::condition_variable changed;
};

static const lks_shm_type pair_type = LKS_SHM_ARRAY_OF(&lks_shm_i64, int64_t, 2);
static const lks_shm_field root_fields[] = {
    LKS_SHM_FIELD(Root, mutex, &lks_shm_mutex), LKS_SHM_FIELD(Root, pair, &pair_type),
    LKS_SHM_FIELD(Root, rates, &lks_shm_rwlock), LKS_SHM_FIELD(Root, clerks, &lks_shm_semaphore),
    LKS_SHM_FIELD(Root, changed, &lks_shm_cond)};
static const lks_shm_type root_type = LKS_SHM_STRUCT_OF("Root", Root, root_fields);
static_assert(std::is_standard_layout<Root>::value, "offsets mean something");

// A process that does this, and then is killed.
template <class Work>
static void die_after(Work work)
{
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        work();
        kill(getpid(), SIGKILL);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGKILL);
}

static void among_threads(Root &root)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            for (int round = 0; round < 5000; round++) {
                std::lock_guard<shm::mutex> held(root.mutex);
                root.pair[0]++;
                root.pair[1]++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    EXPECT(root.pair[0] == 20000);
    std::unique_lock<shm::mutex> held(root.mutex);
    EXPECT(error_of([&] { root.mutex.lock(); }) == std::errc::resource_deadlock_would_occur);
    std::thread([&] {
        EXPECT(!root.mutex.try_lock() && !root.mutex.try_lock_for(milliseconds(1)));
        EXPECT(!root.mutex.try_lock_until(system_clock::now() + milliseconds(1)));
        std::unique_lock<shm::mutex> late(root.mutex, std::try_to_lock);
        EXPECT(!late && root.mutex.is_locked());
    }).join();
    while (root.changed.wait_for(held, microseconds(1)))
        EXPECT(held.owns_lock());
    std::thread waker([&] {
        std::lock_guard<shm::mutex> also(root.mutex);
        root.pair[0] = -1;
        root.changed.notify_all();
    });
    root.changed.wait(held, [&] { return root.pair[0] == -1; });
    held.unlock();
    waker.join();
    EXPECT(root.mutex.lock_interruptible());
    root.mutex.unlock();
    std::lock(root.mutex, root.rates);
    root.mutex.unlock();
    std::thread([&] {
        EXPECT(!root.rates.try_lock() && !root.rates.try_lock_for(milliseconds(1)));
        EXPECT(!root.rates.try_lock_shared());
        EXPECT(!root.rates.try_lock_shared_for(milliseconds(1)));
        EXPECT(!root.rates.try_lock_until(steady_clock::now()));
        EXPECT(!root.rates.try_lock_shared_until(steady_clock::now()));
    }).join();
    root.rates.unlock();
#if __cplusplus >= 201402L
    std::shared_lock<shm::shared_mutex> reads(root.rates);
    std::thread([&] { std::shared_lock<shm::shared_mutex> also(root.rates); }).join();
#endif
    EXPECT(root.clerks.acquire() == 0 && root.clerks.try_acquire(2) && root.clerks.free() == 0);
    std::thread([&] { EXPECT(!root.clerks.try_acquire()); }).join();
    EXPECT(!root.clerks.try_acquire_for(1, milliseconds(1)) && !root.clerks.release(4));
    EXPECT(root.clerks.consume() && root.clerks.release(2) && root.clerks.total() == 2);
    root.clerks.add(1);
}

static void after_deaths(Root &root)
{
    root.pair[0] = root.pair[1] = 0;
    die_after([&] {
        root.mutex.lock();
        root.pair[0] = 1;
    });
    {
        std::unique_lock<shm::mutex> held(root.mutex);
        EXPECT(root.mutex.owner_died() && root.pair[0] != root.pair[1]);
        root.pair[1] = root.pair[0];
        root.mutex.mark_consistent();
        EXPECT(!root.mutex.owner_died());
    }
    die_after([&] {
        root.mutex.lock();
        root.rates.lock();
        root.clerks.acquire(2);
    });
    int repairs = 0;
    for (int round = 0; round < 2; round++) {
        shm::repaired_guard<shm::mutex> held(root.mutex, [&] { repairs++; });
        shm::repaired_guard<shm::shared_mutex> alone(root.rates, [&] { repairs++; });
    }
    EXPECT(repairs == 2 && !root.mutex.is_locked());
    EXPECT(root.clerks.acquire(3) == 2 && root.clerks.release(3));
    die_after([&] { root.rates.lock(); });
    root.rates.lock_shared();
    EXPECT(root.rates.owner_died());
    root.rates.mark_consistent();
    root.rates.unlock_shared();
    // A repair that fails leaves nothing to rely on.
    die_after([&] { root.mutex.lock(); });
    try {
        shm::repaired_guard<shm::mutex> held(root.mutex, [] { throw 7; });
        EXPECT(false);
    } catch (int) {
    }
    EXPECT(error_of([&] { root.mutex.lock(); }) == std::errc::state_not_recoverable);
    EXPECT(error_of([&] { (void)root.mutex.try_lock(); }) == std::errc::state_not_recoverable);
}

static void segments(shm::segment &segment)
{
    shm::segment same = shm::segment::from_fd(segment.fd(), &root_type);
    shm::segment moved = std::move(same);
    EXPECT(&moved.root<Root>() != &segment.root<Root>());
    moved.participate();
    EXPECT(moved.leave());
    static const lks_shm_type bytes = LKS_SHM_BYTES(8);
    EXPECT(error_of([&] { shm::segment::from_fd(segment.fd(), &bytes); }) ==
           std::errc::protocol_error);
    EXPECT(error_of([] { shm::segment::open("/nonexistent/segment"); }) ==
           std::errc::no_such_file_or_directory);
    shm::segment tiny = shm::segment::memfd("tiny", bytes);
    EXPECT(error_of([&] { (void)tiny.root<Root>(); }) == std::errc::protocol_error);
}

int main()
{
    real_time();
    lks_shm_options options = LKS_SHM_OPTIONS_INIT;
    options.fill = [](void *root, void *) { static_cast<Root *>(root)->clerks.init(3, true); };
    shm::segment segment = shm::segment::memfd("cpp", root_type, &options);
    Root &root = segment.root<Root>();
    among_threads(root);
    after_deaths(root);
    segments(segment);
    return 0;
}
