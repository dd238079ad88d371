// Semaphores that are no locks: what one thread takes another puts there, several have units of
// one, or nobody has. Who *owns* one here is who would put a unit back.
#include "cases.hpp"

#ifdef FAMILY_SEMAPHORE
#include <semaphore>

using family::Guard;
using family::Mutex;
using namespace truth;

namespace {

Mutex first, second;
std::counting_semaphore<> signal_a{0}, signal_b{0}, pair{2};
int value;

// Puts a unit there when its scope ends, and has taken none.
class Signals {
    std::counting_semaphore<> &to;

  public:
    explicit Signals(std::counting_semaphore<> &to) : to(to) {}
    ~Signals() { to.release(); }
};

[[gnu::noinline]] void may_throw(int number) {
    if (number < 0) throw 1;
    use(number);
}

[[gnu::noinline]] void work_and_signal(std::counting_semaphore<> &to) {
    Signals at_end(to);
    arrive();
    pause_for_good();
    may_throw(value);
}

[[gnu::noinline]] void signal_after_work(std::counting_semaphore<> &to) {
    arrive();
    pause_for_good();
    to.release();
}

void signalled(void (*work)(std::counting_semaphore<> &)) {
    place("done", signal_a);
    own("done", "busy");
    wait("one", "done");
    start("busy", [work] { work(signal_a); });
    start("one", [] {
        after(1);
        signal_a.acquire();
        value++;
    });
}

// Each waits for the other's signal, and neither has sent its own.
[[gnu::noinline]] void answer(std::counting_semaphore<> &to, std::counting_semaphore<> &from) {
    for (int turn = 0; turn < 10; turn++) {
        from.acquire();
        value++;
        to.release();
    }
}

void both_listen() {
    place("a", signal_a);
    place("b", signal_b);
    own("a", "two");
    own("b", "one");
    wait("one", "a");
    wait("two", "b");
    start("one", [] { answer(signal_b, signal_a); });
    start("two", [] { answer(signal_a, signal_b); });
}

class Unit {
    std::counting_semaphore<> &of;

  public:
    explicit Unit(std::counting_semaphore<> &of) : of(of) { of.acquire(); }
    ~Unit() { of.release(); }
};

// Has one of two units and wants `b`, whose owner wants a unit: the other unit is enough.
void two_units() {
    place("a", pair);
    place("b", second);
    std::puts("ANY a");
    own("a", "one");
    own("a", "busy");
    own("b", "two");
    wait("one", "b");
    wait("two", "a");
    start("busy", [] {
        Unit held(pair);
        arrive();
        pause_for_good();
        may_throw(value);
    });
    start("one", [] {
        Unit held(pair);
        meet(3);
        Guard wanted(second);
        may_throw(value);
    });
    start("two", [] {
        Guard held(second);
        meet(3);
        Unit wanted(pair);
        may_throw(value);
    });
}

[[gnu::noinline]] void late_variable(Mutex &mine, Mutex &other) {
    Guard held(mine);
    meet(3);
    Guard wanted(other);
    may_throw(value);
}

// Two cross each other, and a third will put a unit there for one of them.
void somebody_else() {
    place("a", first);
    place("b", second);
    std::puts("ANY a");
    own("a", "one");
    own("a", "busy");
    own("b", "two");
    wait("one", "b");
    wait("two", "a");
    start("one", [] { late_variable(first, second); });
    start("two", [] { late_variable(second, first); });
    start("busy", [] {
        meet(3);
        pause_for_good();
        first.unlock();
    });
}

// Waits for a condition that is made of semaphores: it has given the mutex back.
[[gnu::noinline]] void wait_for_signal(Mutex &mutex, std::counting_semaphore<> &changed) {
    Guard held(mutex);
    may_throw(value);
    arrive();
    mutex.unlock();
    changed.acquire();
    mutex.lock();
    may_throw(value);
}

void condition_of_semaphores() {
    place("a", first);
    place("b", second);
    place("changed", signal_a);
    crossing();
    wait("past", "changed");
    start("past", [] { wait_for_signal(first, signal_a); });
    start("one", [] {
        after(1);
        late_variable(first, second);
    });
    start("two", [] { late_variable(second, first); });
}

// A number that grows, and is no semaphore: nobody takes from it.
struct Event {
    std::atomic<int> count{0};

    void await() { count.wait(0); }
    void tell() {
        if (count.fetch_add(1) == 0) count.notify_all();
    }
};
Event event;

struct Tells {
    ~Tells() { event.tell(); }
};

void no_semaphore() {
    place("event", event);
    wait("one", "event");
    start("busy", [] {
        Tells at_end;
        arrive();
        pause_for_good();
        may_throw(value);
    });
    start("one", [] {
        after(1);
        event.await();
    });
}

} // namespace

const std::vector<Case> units = {
    {"signals_at_end", [] { signalled(work_and_signal); }},
    {"signals_by_code", [] { signalled(signal_after_work); }},
    {"both_listen", both_listen},
    {"two_units", two_units},
    {"somebody_else", somebody_else},
    {"condition_of_semaphores", condition_of_semaphores},
    {"no_semaphore", no_semaphore},
};
#else
const std::vector<Case> units = {};
#endif
