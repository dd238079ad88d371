#include "peer.h"

#include <absl/synchronization/mutex.h>

using Lock = absl::Mutex;
PEER(abseil, Lock, lock->Lock(), lock->Unlock())
