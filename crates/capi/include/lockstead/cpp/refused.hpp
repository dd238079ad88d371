/*
 * What C++ makes of an errno that a lock's method has no other way to say.
 */
#ifndef LOCKSTEAD_CPP_REFUSED_HPP
#define LOCKSTEAD_CPP_REFUSED_HPP

#include "base.hpp"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace lockstead {
namespace detail {

/* Throws std::system_error with the errno, as the standard's mutexes do; where exceptions
 * are disabled, prints and aborts. `error` is negative. */
[[noreturn]] inline void refused(int error, const char *what)
{
#ifdef __EXCEPTIONS
    throw std::system_error(-error, std::generic_category(), what);
#else
    std::fprintf(stderr, "lockstead: %s: error %d\n", what, -error);
    std::abort();
#endif
}

} // namespace detail
} // namespace lockstead

#endif
