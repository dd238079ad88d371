#include "peer.h"

#include <absl/synchronization/mutex.h>

// A library built without NDEBUG, as distributions do, looks for deadlocks at
// every acquisition. That is not the lock that programs ship with.
struct Lock : absl::Mutex {
    Lock() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }
};
PEER(abseil, Lock, lock->Mutex::Lock(), lock->Unlock())
