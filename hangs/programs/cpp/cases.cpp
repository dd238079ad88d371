// Threads that hang by each other's guards, in C++: each case is one way to have a guard alive.
#include "cases.hpp"
#include <array>
#include <functional>
#include <memory>
#include <vector>

using family::Guard;
using family::Mutex;
using namespace truth;

void crossing() {
    own("a", "one");
    own("b", "two");
    wait("one", "b");
    wait("two", "a");
}

namespace {

using Body = void (*)(Mutex &, Mutex &);

Mutex first, second, third;
int value;

void crossed(Body body) {
    place("a", first);
    place("b", second);
    crossing();
    start("one", [body] { body(first, second); });
    start("two", [body] { body(second, first); });
}

[[gnu::noinline]] void take(Mutex &other) {
    meet(2);
    Guard wanted(other);
    value++;
}

[[gnu::noinline]] void variable(Mutex &mine, Mutex &other) {
    Guard held(mine);
    meet(2);
    Guard wanted(other);
    value++;
}

struct Account {
    std::string name;
    Guard guard;
    int number;
};

[[gnu::noinline]] void member(Mutex &mine, Mutex &other) {
    Account account{"an account with a long name", Guard(mine), 7};
    use(account);
    take(other);
    value += account.number;
}

[[gnu::noinline]] void vector(Mutex &mine, Mutex &other) {
    std::vector<std::unique_ptr<Guard>> all;
    all.push_back(std::make_unique<Guard>(mine));
    use(all);
    take(other);
    value++;
}

[[gnu::noinline]] Guard taken(Mutex &mine) { return Guard(mine); }

[[gnu::noinline]] void returned(Mutex &mine, Mutex &other) {
    Guard held = taken(mine);
    take(other);
    value++;
}

[[gnu::noinline]] void consume(std::unique_ptr<Guard> held, Mutex &other) {
    use(held);
    take(other);
    value++;
}

[[gnu::noinline]] void argument(Mutex &mine, Mutex &other) {
    consume(std::make_unique<Guard>(mine), other);
    value++;
}

template <class F> [[gnu::noinline]] void call(F body) {
    body();
    value++;
}

[[gnu::noinline]] void lambda(Mutex &mine, Mutex &other) {
    Guard held(mine);
    call([&] { take(other); });
}

[[gnu::noinline]] void function(Mutex &mine, Mutex &other) {
    std::function<void()> body = [held = std::make_shared<Guard>(mine), &other] { take(other); };
    use(body);
    body();
    value++;
}

[[gnu::noinline]] int number(Mutex &other) {
    take(other);
    return value;
}

[[gnu::noinline]] void temporary(Mutex &mine, Mutex &other) {
    value += (static_cast<void>(Guard(mine)), number(other));
}

[[gnu::noinline]] int level(int depth, Mutex &other) {
    if (depth == 0) return number(other);
    std::string local(32, 'x');
    use(local);
    return level(depth - 1, other) + static_cast<int>(local.size());
}

[[gnu::noinline]] void deep(Mutex &mine, Mutex &other) {
    Guard held(mine);
    value += level(6, other);
}

[[gnu::noinline]] void behind_catch(Mutex &mine, Mutex &other) {
    Guard held(mine);
    try {
        take(other);
    } catch (const std::exception &error) {
        value += static_cast<int>(std::strlen(error.what()));
    }
}

[[gnu::noinline]] void take_or_end(Mutex &other) noexcept { take(other); }

// The call cannot throw, so that it has no landing pad of its own.
[[gnu::noinline]] void before_noexcept(Mutex &mine, Mutex &other) {
    Guard held(mine);
    value++;
    take_or_end(other);
    value++;
}

// Here another call before it can throw, and has one.
[[gnu::noinline]] void may_throw(int number) {
    if (number < 0) throw 1;
    use(number);
}

[[gnu::noinline]] void beside_noexcept(Mutex &mine, Mutex &other) {
    Guard held(mine);
    may_throw(value);
    take_or_end(other);
    may_throw(value);
}

[[gnu::noinline]] void link(Mutex &mine, Mutex &other) {
    Guard held(mine);
    meet(3);
    Guard wanted(other);
    value++;
}

void ring() {
    std::array<const char *, 3> names{"a", "b", "c"}, threads{"one", "two", "three"};
    static std::array<Mutex *, 3> all{&first, &second, &third};
    for (size_t at = 0; at < 3; at++) {
        size_t next = (at + 1) % 3;
        place(names[at], *all[at]);
        own(names[at], threads[at]);
        wait(threads[at], names[next]);
        start(threads[at], [at, next] { link(*all[at], *all[next]); });
    }
}

[[gnu::noinline]] void again(Mutex &mutex, Mutex &same) {
    Guard held(mutex);
    value++;
    Guard wanted(same);
    value++;
}

void twice() {
    place("a", first);
    own("a", "one");
    wait("one", "a");
    start("one", [] { again(first, first); });
}

} // namespace

const std::vector<Case> cases = {
    {"abba", [] { crossed(variable); }},
    {"member", [] { crossed(member); }},
    {"vector", [] { crossed(vector); }},
    {"returned", [] { crossed(returned); }},
    {"argument", [] { crossed(argument); }},
    {"lambda", [] { crossed(lambda); }},
    {"function", [] { crossed(function); }},
    {"temporary", [] { crossed(temporary); }},
    {"deep", [] { crossed(deep); }},
    {"behind_catch", [] { crossed(behind_catch); }},
    {"before_noexcept", [] { crossed(before_noexcept); }},
    {"beside_noexcept", [] { crossed(beside_noexcept); }},
    {"ring", ring},
    {"self", twice},
};

int main(int count, char **words) {
    std::string wanted = count > 1 ? words[1] : "--list";
    for (const auto *some : {&cases, &more, &units}) {
        for (const Case &each : *some) {
            if (wanted == "--list") {
                std::puts(each.name);
            } else if (wanted == each.name) {
                family::prepare();
                each.begin();
                end();
            }
        }
    }
    return wanted == "--list" ? 0 : 2;
}
