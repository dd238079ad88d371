// The locks of C++, as programs use them.
#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

struct Account {
	std::mutex plain;
	std::recursive_mutex again;
	std::timed_mutex timed;
	std::shared_mutex shared;
	long value = 0;
};

static Account account;
static std::once_flag once;

static void work()
{
	std::call_once(once, [] { std::cout << "once" << std::endl; });
	for (int i = 0; i < 2000; i++) {
		{
			std::lock_guard guard(account.plain);
			account.value++;
		}
		{
			std::unique_lock outer(account.again);
			std::lock_guard inner(account.again);
		}
		if (account.timed.try_lock_for(60s))
			account.timed.unlock();
		if (i % 50 == 0)
			std::unique_lock guard(account.shared);
		else
			std::shared_lock guard(account.shared);
		std::scoped_lock both(account.plain, account.timed);
		account.value++;
	}
}

int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back(work);
	for (auto &thread : threads)
		thread.join();
	auto answer = std::async(std::launch::async, [] { return 42; });
	std::cout << account.value << " " << answer.get() << std::endl;
	try {
		std::unique_lock<std::mutex> none;
		none.lock();
	} catch (const std::system_error &error) {
		std::cout << "error " << error.code().value() << std::endl;
	}
	std::mutex local;
	std::unique_lock guard(local);
	std::condition_variable condition;
	std::cout << (condition.wait_for(guard, 10ms) == std::cv_status::timeout);
	std::shared_lock reader(account.shared);
	std::condition_variable_any any;
	std::cout << (any.wait_for(reader, 10ms) == std::cv_status::timeout) << std::endl;
	return 9;
}
