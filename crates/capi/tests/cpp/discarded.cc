// Must not compile: a guard that is gone at once, a result that nobody looks at.
#include <lockstead.hpp>

void discarded(lockstead::mutex &mutex)
{
#if defined(GUARD)
    lockstead::mutex_guard{mutex};
#elif defined(RESULT)
    mutex.try_lock();
#elif defined(C_RESULT)
    lks_mutex_lock_timeout(mutex.native_handle(), 1);
#else
    lockstead::mutex_guard kept(mutex);
#endif
}
