/* The same in C++, whose mutexes are neither initialised nor destroyed by calls
 * that could be seen. The comments are those of check.h. */
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

/* Each in a thread of its own, one after the other; all of them are there. */
void in_turn(const std::vector<std::function<void()>> &parts)
{
    std::vector<std::thread> threads;
    std::mutex guard;
    std::condition_variable next;
    std::size_t turn = 0;
    for (std::size_t mine = 0; mine < parts.size(); mine++) {
        threads.emplace_back([&, mine] {
            {
                std::unique_lock<std::mutex> lock(guard);
                next.wait(lock, [&] { return turn == mine; });
            }
            parts[mine]();
            std::unique_lock<std::mutex> lock(guard);
            turn++;
            next.notify_all();
            next.wait(lock, [&] { return turn == parts.size(); });
        });
    }
    for (auto &thread : threads)
        thread.join();
}

} // namespace

namespace bank {
std::mutex savings;
std::mutex checking;
std::shared_mutex rates;
std::recursive_mutex audit;

/* CASE abba
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: bank::savings (mutex)
 *     has: bank::checking (mutex)
 *     at: bank::save() @save-has
 *     at: bank::save() @save-wants
 *     at: bank::spend() @spend-has
 *     at: bank::spend() @spend-wants
 *     lacks: rates
 * CASE scoped-lock
 *   silent even with --strict
 */
void save()
{
    checking.lock(); /* @save-has */
    savings.lock();  /* @save-wants */
    savings.unlock();
    checking.unlock();
}

void spend()
{
    savings.lock();  /* @spend-has */
    checking.lock(); /* @spend-wants */
    checking.unlock();
    savings.unlock();
}

void abba()
{
    in_turn({save, spend});
}

/* Takes the first and tries the others, beginning with another one each time. */
void transfer()
{
    std::scoped_lock both(savings, checking);
}

void transfer_back()
{
    std::scoped_lock both(checking, savings);
}

void scoped_lock()
{
    for (int i = 0; i < 20; i++)
        in_turn({transfer, transfer_back});
}

/* CASE shared-and-recursive
 *   silent even with --strict
 * CASE writers-and-readers
 *   POTENTIAL: lock order inversion of 2 locks
 *     has: bank::rates (rwlock)
 *     has: bank::savings (mutex)
 *     at: bank::quote() @quote-wants
 *     at: bank::set_rate() @rate-wants
 */
void counts()
{
    std::lock_guard<std::recursive_mutex> outer(audit);
    std::lock_guard<std::recursive_mutex> inner(audit);
    std::shared_lock<std::shared_mutex> reading(rates);
}

void shared_and_recursive()
{
    in_turn({counts, counts});
}

void quote()
{
    std::shared_lock<std::shared_mutex> reading(rates);
    savings.lock(); /* @quote-wants */
    savings.unlock();
}

void set_rate()
{
    savings.lock();
    rates.lock(); /* @rate-wants */
    rates.unlock();
    savings.unlock();
}

void writers_and_readers()
{
    in_turn({quote, set_rate});
}

/* CASE objects-in-the-same-place
 *   silent
 * CASE objects-of-one-life
 *   POTENTIAL: lock order inversion of 2 locks
 */
struct account {
    std::mutex front, back;
    long balance = 0;

    void forwards()
    {
        front.lock();
        back.lock();
        balance++;
        back.unlock();
        front.unlock();
    }

    void backwards()
    {
        back.lock();
        front.lock();
        balance--;
        front.unlock();
        back.unlock();
    }
};

void objects()
{
    const void *before = nullptr;
    for (int life = 0; life < 6; life++) {
        auto only = std::make_unique<account>();
        if (before != nullptr && before != only.get())
            std::terminate();
        before = only.get();
        in_turn({[&] { life % 2 ? only->forwards() : only->backwards(); }});
    }
}

void objects_of_one_life()
{
    account only;
    in_turn({[&] { only.forwards(); }, [&] { only.backwards(); }});
}

/* CASE deleted-while-held
 *   RULE: memory of a held lock freed
 *     at: bank::deletes() @deleted-held
 *     at: bank::deletes() @deleted-here
 */
void deletes()
{
    auto *held = new account;
    pthread_mutex_lock(held->front.native_handle()); /* @deleted-held */
    delete held;                                     /* @deleted-here */
}

void deleted_while_held()
{
    in_turn({deletes});
}

} // namespace bank

int main(int argc, char **argument)
{
    static const struct a_case {
        const char *name;
        void (*run)();
    } all[] = {
        {"abba", bank::abba},
        {"scoped-lock", bank::scoped_lock},
        {"shared-and-recursive", bank::shared_and_recursive},
        {"writers-and-readers", bank::writers_and_readers},
        {"objects-in-the-same-place", bank::objects},
        {"objects-of-one-life", bank::objects_of_one_life},
        {"deleted-while-held", bank::deleted_while_held},
    };
    for (const a_case &one : all) {
        if (argc == 2 && std::strcmp(argument[1], one.name) == 0) {
            one.run();
            std::puts("done");
            return 7;
        }
    }
    return 98;
}
