// Threads that hang while others look like owners: guards that are gone, lost or not taken,
// waiters for conditions, readers, owners that sleep elsewhere.
#include "cases.hpp"
#include <memory>

using family::Guard;
using family::Mutex;
using namespace truth;

namespace {

Mutex first, second;
int value;

[[gnu::noinline]] void late_variable(Mutex &mine, Mutex &other, unsigned all) {
    Guard held(mine);
    meet(all);
    Guard wanted(other);
    value++;
}

// Lets `one` and `two` cross each other as soon as so many others have come.
void cross(unsigned others) {
    place("a", first);
    place("b", second);
    crossing();
    start("one", [others] {
        after(others);
        late_variable(first, second, others + 2);
    });
    start("two", [others] {
        after(others);
        late_variable(second, first, others + 2);
    });
}

[[gnu::noinline]] void want(Mutex &mutex) {
    meet(3);
    Guard wanted(mutex);
    value++;
}

[[gnu::noinline]] void dropped(Mutex &a, Mutex &b) {
    auto held = std::make_unique<Guard>(a);
    value++;
    held.reset();
    want(b);
}

[[gnu::noinline]] void scope_ended(Mutex &a, Mutex &b) {
    {
        Guard held(a);
        value++;
    }
    want(b);
}

[[gnu::noinline]] void give_back(std::unique_ptr<Guard> held) { use(held); }

[[gnu::noinline]] void moved_away(Mutex &a, Mutex &b) {
    auto held = std::make_unique<Guard>(a);
    use(held);
    give_back(std::move(held));
    want(b);
}

[[gnu::noinline]] void fail(Mutex &a) {
    Guard held(a);
    throw std::string("an error");
}

[[gnu::noinline]] void thrown(Mutex &a, Mutex &b) {
    try {
        fail(a);
    } catch (const std::string &text) {
        value += static_cast<int>(text.size());
    }
    want(b);
}

[[gnu::noinline]] void thrown_and_caught_here(Mutex &a, Mutex &b) {
    try {
        fail(a);
    } catch (const std::string &text) {
        want(b);
    }
}

[[gnu::noinline]] void tried(Mutex &a, Mutex &b) {
    meet(3);
    value += family::attempt(a);
    Guard wanted(b);
    value++;
}

// Wants `b` now, and will have and give back `a` after that.
[[gnu::noinline]] void later(Mutex &a, Mutex &b) {
    want(b);
    Guard held(a);
    value++;
}

// Takes and gives back one after the other, again and again.
[[gnu::noinline]] void in_turns(Mutex &a, Mutex &b) {
    for (int turn = 0; turn < 10; turn++) {
        {
            Guard held(a);
            value++;
        }
        if (turn == 0) meet(3);
        Guard wanted(b);
        value++;
    }
}

#if defined FAMILY_STD || defined FAMILY_ATOMIC || defined FAMILY_SEMAPHORE
[[gnu::noinline]] void deferred(Mutex &a, Mutex &b) {
    std::unique_lock<Mutex> later(a, std::defer_lock);
    want(b);
    later.lock();
    value++;
}

[[gnu::noinline]] void tried_and_kept(Mutex &a, Mutex &b) {
    meet(3);
    std::unique_lock<Mutex> attempt(a, std::try_to_lock);
    Guard wanted(b);
    value += attempt.owns_lock();
}

[[gnu::noinline]] void unlocked(Mutex &a, Mutex &b) {
    std::unique_lock<Mutex> held(a);
    value++;
    held.unlock();
    want(b);
}

// Has a guard all the time, and the mutex not while it calls.
[[gnu::noinline]] void unlocked_by_hand(Mutex &a, Mutex &b) {
    std::lock_guard<Mutex> held(a);
    value++;
    a.unlock();
    want(b);
    a.lock();
    value++;
}
#endif

// Lets a third thread have `a` for a while and then wait for `b`, behind two that cross.
void behind(void (*past)(Mutex &, Mutex &)) {
    wait("past", "b");
    cross(1);
    start("past", [past] { past(first, second); });
}

[[gnu::noinline]] void lose(Mutex &a, Mutex &b) {
    auto *lost = new Guard(a);
    use(lost);
    meet(2);
    Guard wanted(b);
    value++;
}

void leaked() {
    place("a", first);
    place("b", second);
    leak("a", "past");
    own("b", "one");
    wait("past", "b");
    wait("one", "a");
    start("past", [] { lose(first, second); });
    start("one", [] { late_variable(second, first, 2); });
}

[[gnu::noinline]] void stand_by(Mutex &a, Mutex &b) {
    Mutex *seen[] = {&a, &b};
    use(seen);
    meet(4);
    pause_for_good();
    value += family::attempt(*seen[0]);
}

[[gnu::noinline]] void own_pointers(std::shared_ptr<Mutex *> a, std::shared_ptr<Mutex *> b) {
    meet(4);
    pause_for_good();
    value += family::attempt(**a) + family::attempt(**b);
}

void bystander() {
    cross(2);
    start("by_reference", [] { stand_by(first, second); });
    start("by_pointer", [] {
        own_pointers(std::make_shared<Mutex *>(&first), std::make_shared<Mutex *>(&second));
    });
}

// Lets `one` wait for an owner that is in another call; nobody waits for that owner.
[[gnu::noinline]] void sleeps(Mutex &mutex) {
    Guard held(mutex);
    arrive();
    pause_for_good();
    value++;
}

void owner_sleeps() {
    place("a", first);
    own("a", "busy");
    wait("one", "a");
    start("busy", [] { sleeps(first); });
    start("one", [] {
        after(1);
        Guard wanted(first);
        value++;
    });
}

#if !defined FAMILY_SEMAPHORE
std::atomic<std::unique_ptr<Guard> *> place_of_guard{nullptr};

// Has a place for a guard, which another thread fills and empties.
[[gnu::noinline]] void lends_place(Mutex &b) {
    std::unique_ptr<Guard> kept;
    place_of_guard.store(&kept);
    want(b);
}

[[gnu::noinline]] void fills(Mutex &a) {
    std::unique_ptr<Guard> *kept;
    while (!(kept = place_of_guard.load())) sched_yield();
    *kept = std::make_unique<Guard>(a);
    meet(3);
    pause_for_good();
    kept->reset();
}

// Lets `one` have `a` by a guard that lies with `past`, who waits behind `two`.
void filled_by_another() {
    place("a", first);
    place("b", second);
    own("a", "one");
    own("b", "two");
    wait("past", "b");
    wait("two", "a");
    start("past", [] { lends_place(second); });
    start("one", [] { fills(first); });
    start("two", [] {
        Guard held(second);
        meet(3);
        Guard wanted(first);
        value++;
    });
}
#endif

#ifdef HAS_CONDITION
family::Condition changed;

[[gnu::noinline]] void wait_for_more(Mutex &mutex) {
    Guard held(mutex);
    arrive();
    while (value < 1000) family::wait(changed, mutex, held);
}

[[gnu::noinline]] void wait_once(Mutex &mutex) {
    Guard held(mutex);
    arrive();
    family::wait(changed, mutex, held);
    value++;
}

void condition(void (*waits)(Mutex &)) {
    wait("past", "changed");
    place("changed", changed);
    cross(1);
    start("past", [waits] { waits(first); });
}

void lost_wake_up() {
    place("a", first);
    place("changed", changed);
    wait("one", "changed");
    family::signal(changed);
    start("one", [] { wait_for_more(first); });
}
#endif

#ifdef HAS_SHARED
family::SharedMutex shared;

[[gnu::noinline]] void read_then_write(family::SharedMutex &lock, family::SharedMutex &same) {
    family::ReadGuard held(lock);
    value++;
    family::WriteGuard wanted(same);
    value++;
}

void upgrade() {
    place("a", shared);
    own("a", "one");
    wait("one", "a");
    start("one", [] { read_then_write(shared, shared); });
}

template <class First, class Second>
[[gnu::noinline]] void in_turn(auto &mine, auto &other, unsigned all) {
    First held(mine);
    meet(all);
    Second wanted(other);
    value++;
}

template <class Held, class Wanted> void with_readers(std::vector<const char *> holders) {
    place("a", shared);
    place("b", second);
    own("b", "two");
    wait("two", "a");
    unsigned all = static_cast<unsigned>(holders.size()) + 1;
    for (const char *name : holders) {
        own("a", name);
        wait(name, "b");
        start(name, [all] { in_turn<Held, Guard>(shared, second, all); });
    }
    start("two", [all] { in_turn<Guard, Wanted>(second, shared, all); });
}

void reader_waits() { with_readers<family::ReadGuard, family::WriteGuard>({"one"}); }
void two_readers() { with_readers<family::ReadGuard, family::WriteGuard>({"one", "three"}); }
void writer_waits() { with_readers<family::WriteGuard, family::ReadGuard>({"one"}); }
#endif

} // namespace

const std::vector<Case> more = {
    {"dropped", [] { behind(dropped); }},
    {"scope_ended", [] { behind(scope_ended); }},
    {"moved_away", [] { behind(moved_away); }},
    {"thrown", [] { behind(thrown); }},
    {"thrown_and_caught_here", [] { behind(thrown_and_caught_here); }},
    {"tried", [] { behind(tried); }},
    {"later", [] { behind(later); }},
    {"in_turns", [] { behind(in_turns); }},
#if defined FAMILY_STD || defined FAMILY_ATOMIC || defined FAMILY_SEMAPHORE
    {"deferred", [] { behind(deferred); }},
    {"tried_and_kept", [] { behind(tried_and_kept); }},
    {"unlocked", [] { behind(unlocked); }},
    {"unlocked_by_hand", [] { behind(unlocked_by_hand); }},
#endif
    {"leaked", leaked},
#if !defined FAMILY_SEMAPHORE
    {"filled_by_another", filled_by_another},
#endif
    {"bystander", bystander},
    {"owner_sleeps", owner_sleeps},
#ifdef HAS_CONDITION
    {"condition", [] { condition(wait_for_more); }},
    {"condition_once", [] { condition(wait_once); }},
    {"lost_wake_up", lost_wake_up},
#endif
#ifdef HAS_SHARED
    {"upgrade", upgrade},
    {"reader_waits", reader_waits},
    {"two_readers", two_readers},
    {"writer_waits", writer_waits},
#endif
};
