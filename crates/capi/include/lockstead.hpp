/*
 * lockstead for C++11 and later: the locks of lockstead.h as types that work with
 * the standard library's.
 *
 * `lockstead::mutex` and `lockstead::fair_mutex` meet Lockable and TimedLockable,
 * `lockstead::shared_mutex` the same for readers: std::unique_lock, std::scoped_lock,
 * std::shared_lock and std::condition_variable_any take them. Guards of its own carry [[nodiscard]] and
 * the attributes of Clang's -Wthread-safety.
 *
 * Nothing here throws but what the standard's own wrappers throw, and
 * std::system_error by the types whose holders may have died: rt_mutex, and those of
 * shared_memory. A call that could only wait for ever, such as locking twice on one
 * thread, otherwise aborts with a message.
 */
#ifndef LOCKSTEAD_HPP
#define LOCKSTEAD_HPP

#include "lockstead.h"

#include "lockstead/cpp/base.hpp"
#include "lockstead/cpp/mutex.hpp"
#include "lockstead/cpp/fair_mutex.hpp"
#include "lockstead/cpp/shared_mutex.hpp"
#include "lockstead/cpp/counting_semaphore.hpp"
#include "lockstead/cpp/condition_variable.hpp"
#include "lockstead/cpp/once.hpp"
#include "lockstead/cpp/ww.hpp"
#include "lockstead/cpp/rt.hpp"
#include "lockstead/cpp/shared_memory.hpp"

#endif
