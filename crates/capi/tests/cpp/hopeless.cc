// Calls that can only fail and have no way to say so: each ends the process with a message, which
// the test reads.
#include <lockstead.hpp>

#include <cstring>
#include <thread>

static lockstead::ww_class kind(LKS_WAIT_DIE);
static lockstead::ww_mutex left;
static lockstead::once_flag flag;

static void again()
{
    lockstead::call_once(flag, again);
}

int main(int count, char **arguments)
{
    const char *which = count > 1 ? arguments[1] : "";
    if (!std::strcmp(which, "contexts")) {
        lockstead::ww_context one(kind), two(kind), three(kind);
        lockstead::ww_context four(kind), five(kind);
    } else if (!std::strcmp(which, "once")) {
        lockstead::call_once(flag, again);
    } else if (!std::strcmp(which, "ended")) {
        std::thread([] { left.lock(); }).join();
        left.lock();
    } else if (!std::strcmp(which, "guard")) {
        std::thread([] { left.lock(); }).join();
        try {
            lockstead::ww_guard guard(kind, {&left});
        } catch (const std::system_error &error) {
            return error.code().value() == EOWNERDEAD ? 0 : 1;
        }
    }
    return 2;
}
