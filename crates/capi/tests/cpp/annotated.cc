// What Clang's -Wthread-safety makes of the locks: right code, and one mistake at a
// time, by its name.
#include <lockstead.hpp>

#include <lockstead/migrate.h>

#define GUARDED_BY(lock) __attribute__((guarded_by(lock)))
#define REQUIRES(lock) __attribute__((requires_capability(lock)))

class account {
public:
    void pay(int amount)
    {
        lockstead::mutex_guard hold(mutex_);
        add(amount);
    }

    bool try_pay(int amount)
    {
        if (!mutex_.try_lock())
            return false;
        add(amount);
        mutex_.unlock();
        return true;
    }

    int read()
    {
        lock_.lock_shared();
        const int seen = rate_;
        lock_.unlock_shared();
        return seen;
    }

    void set(int rate)
    {
        lock_.lock();
        rate_ = rate;
        lock_.unlock();
    }

#ifdef UNGUARDED
    int peek() { return balance_; }
#endif
#ifdef NOT_HELD
    void pay_nothing() { add(0); }
#endif
#ifdef NEVER_RELEASED
    void keep() { mutex_.lock(); }
#endif
#ifdef NEVER_TAKEN
    void release() { mutex_.unlock(); }
#endif
#ifdef TAKEN_TWICE
    void twice()
    {
        lockstead::mutex_guard hold(mutex_);
        lockstead::mutex_guard again(mutex_);
    }
#endif
#ifdef WRITTEN_BY_A_READER
    void misread()
    {
        lock_.lock_shared();
        rate_ = 0;
        lock_.unlock_shared();
    }
#endif
#ifdef UNTRIED
    void hope()
    {
        if (!mutex_.try_lock())
            balance_ = 0;
        else
            mutex_.unlock();
    }
#endif

private:
    void add(int amount) REQUIRES(mutex_) { balance_ += amount; }

    lockstead::mutex mutex_;
    lockstead::shared_mutex lock_;
    int balance_ GUARDED_BY(mutex_) = 0;
    int rate_ GUARDED_BY(lock_) = 0;
};

// The calls of C, and of the kernel with a mutex.
static lks_mutex plain = LKS_MUTEX_INIT;
static int of_plain GUARDED_BY(plain);
static lks_fair_mutex fair = LKS_FAIR_MUTEX_INIT;
static int of_fair GUARDED_BY(fair);
static DEFINE_MUTEX(kernels);
static int of_kernels GUARDED_BY(kernels);

static void in_c()
{
    lks_mutex_lock(&plain);
    of_plain++;
    lks_mutex_unlock(&plain);
    if (lks_mutex_lock_interruptible(&plain) == 0) {
        of_plain++;
        lks_mutex_unlock(&plain);
    }
    lks_fair_mutex_lock(&fair);
    of_fair++;
    lks_fair_mutex_unlock(&fair);
    // By the other type: the same lock.
    lks_mutex_lock(lks_mutex_of_fair(&fair));
    of_fair++;
    lks_fair_mutex_unlock(&fair);
    lks_fair_mutex_lock(lks_fair_mutex_of(&plain));
    of_plain++;
    lks_mutex_unlock(&plain);
    down(&kernels);
    of_kernels++;
    up(&kernels);
    if (down_trylock(&kernels) == 0) {
        of_kernels++;
        up(&kernels);
    }
#ifdef C_UNGUARDED
    of_plain++;
#endif
#ifdef C_INTERRUPTED
    if (lks_mutex_lock_interruptible(&plain) != 0)
        of_plain++;
    else
        lks_mutex_unlock(&plain);
#endif
#ifdef FAIR_UNGUARDED
    of_fair++;
#endif
#ifdef FAIR_NEVER_RELEASED
    lks_mutex_lock(lks_mutex_of_fair(&fair));
#endif
#ifdef MIGRATED_UNGUARDED
    of_kernels++;
#endif
#ifdef MIGRATED_NEVER_RELEASED
    down(&kernels);
#endif
}

int main()
{
    account account;
    account.pay(1);
    account.set(account.read());
    in_c();
    return account.try_pay(-1) ? 0 : 1;
}
