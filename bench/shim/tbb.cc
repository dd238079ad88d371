#include "peer.h"

#include <oneapi/tbb/mutex.h>

using Lock = tbb::mutex;
PEER(tbb, Lock, lock->lock(), lock->unlock())
