/*
 * lockstead: locks for Linux with bounded waiting, for C99 and C++.
 *
 * All of it. Each part can be included alone; see `lockstead(7)` and the
 * manual page of each call.
 *
 * The types are a few bytes, with no constructor: zeroes are a lock that nobody
 * holds. Calls that can fail return 0 or a negative errno; a call that could only
 * wait for ever, and cannot say so, prints what is wrong and aborts.
 *
 * With LKS_DEBUG defined, each call goes to the checks of `liblockstead-check`,
 * with its file and line. The types stay the same.
 */
#ifndef LOCKSTEAD_H
#define LOCKSTEAD_H

#include "lockstead/base.h"
#include "lockstead/mutex.h"
#include "lockstead/semaphore.h"
#include "lockstead/rwlock.h"
#include "lockstead/cond.h"
#include "lockstead/fair.h"
#include "lockstead/once.h"
#include "lockstead/ww.h"
#include "lockstead/rt.h"
#include "lockstead/shm.h"
#include "lockstead/shared.h"

#endif
