// Two std::mutex, both orders; members of objects on the heap.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace bank {

struct Account {
    std::mutex guard;
    long balance = 0;
};

class Transfer {
  public:
    Transfer(Account &from, Account &to) : from(from), to(to) {}
    void run(std::atomic<int> &met);

  private:
    Account &from;
    Account &to;
};

void Transfer::run(std::atomic<int> &met)
{
    std::lock_guard<std::mutex> first(from.guard); // @cpp-holds
    met++;
    while (met < 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::lock_guard<std::mutex> second(to.guard); // @cpp-waits
    from.balance--;
    to.balance++;
}

static Account savings, checking;

} // namespace bank

int main()
{
    std::atomic<int> met{0};
    std::thread forth([&] { bank::Transfer(bank::savings, bank::checking).run(met); });
    std::thread back([&] { bank::Transfer(bank::checking, bank::savings).run(met); });
    forth.join();
    back.join();
}
