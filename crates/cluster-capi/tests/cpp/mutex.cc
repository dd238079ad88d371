// What lockstead_cluster.hpp promises, against the etcd whose endpoints are the first argument.
#include "lockstead_cluster.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cluster = lockstead::cluster;

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            std::fprintf(stderr, "%s:%d: not so: %s (reason: %s)\n", __FILE__, __LINE__,          \
                         #condition, lks_cluster_reason());                                       \
            std::exit(1);                                                                         \
        }                                                                                         \
    } while (0)

// Returns the errno that a call throws, 0 for none.
template <typename Call> static int thrown(Call call)
{
    try {
        call();
    } catch (const std::system_error &error) {
        CHECK(std::strlen(error.what()) > 0);
        return error.code().value();
    }
    return 0;
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    lks_cluster_options options = LKS_CLUSTER_OPTIONS_INIT;
    options.lease_s = 1;
    CHECK(thrown([&] { cluster::session session(options); }) == EINVAL);
    options.lease_s = 10;
    options.endpoints = argv[1];
    cluster::session one(options), two(options);
    cluster::mutex first(one, "cpp"), second(two, "cpp");

    std::uint64_t token = 0;
    {
        cluster::guard guard = first.lock();
        CHECK(guard && !guard.owner_died());
        token = guard.token();
        guard.check();
        guard.confirm();
        guard.put("data/cpp", "written");
        CHECK(guard.safe_for().count() > 0 && guard.deadline() > 0);
        CHECK(thrown([&] { guard.consistent(); }) == EINVAL);
        CHECK(!second.try_lock());
        const auto begun = std::chrono::steady_clock::now();
        CHECK(!second.try_lock_for(std::chrono::milliseconds(20)));
        CHECK(std::chrono::steady_clock::now() - begun >= std::chrono::milliseconds(20));
        lks_cluster_cancel *fired = lks_cluster_cancel_new();
        lks_cluster_cancel_fire(fired);
        CHECK(!second.lock_killable(fired));
        lks_cluster_cancel_free(fired);
        cluster::guard moved = std::move(guard);
        CHECK(moved && !guard);
    }
    {
        cluster::guard guard = second.try_lock();
        CHECK(guard && guard.token() > token);
        guard.unlock();
        CHECK(!guard);
    }
    cluster::guard left;
    {
        cluster::session dead(options);
        left = cluster::mutex(dead, "cpp").lock();
        CHECK(dead.lease() != one.lease() && dead.lost_fd() >= 0);
    }
    CHECK(thrown([&] { left.check(); }) == ESTALE);
    CHECK(thrown([&] { left.unlock(); }) == ESTALE);
    // Who is told and does not repair leaves it to the next one.
    CHECK(first.lock().owner_died());
    cluster::guard told = second.lock();
    CHECK(told.owner_died());
    told.consistent();
    CHECK(!told.owner_died());
    told.unlock();
    CHECK(!first.lock().owner_died());
    return 0;
}
