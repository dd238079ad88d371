//! The one table from functions to what they sleep for.
//!
//! # Role
//! A row says how a function's name begins, in the form of [`normal`](super::normal), what else
//! must be in it, and what such a function sleeps for. The first row that fits counts. All names
//! are those of released versions; the tests have some as they are mangled.

use super::key::KeyPlace;
use super::{FutexRole, FutexUse, NameWeight};
use FutexRole::{Event, Exclusive, Once, Shared, Unknown};
use KeyPlace::{Before, Nowhere, Parked, Word};

/// Beginnings of names that may stand between a sleep and the function that tells what for.
const INSIDE: &[&str] = &[
    "absl::",
    "AbslInternal",
    "folly::",
    "usync::",
    "crossbeam_utils::",
    "crossbeam_channel::",
    "tokio::loom::",
    "tokio::runtime::park::",
    "tokio::runtime::scheduler::",
    "std::__",
    "std::barrier",
    "std::latch",
    "std::future",
    "std::atomic",
    "std::__atomic_base",
    "std::thread::",
    "std::io::",
    "gomp_",
    "GOMP_",
    "__kmp",
    "__cxa_guard",
    "event_listener::",
    "futures_executor::",
];

/// Tells whether a function is one of a library that sleeps for others.
pub(super) fn is_inside(name: &str) -> bool {
    INSIDE.iter().any(|start| name.starts_with(start))
}

/// Returns what a function of a C library sleeps for that the program has inside it.
pub(super) fn find_inside_program(name: &str) -> Option<&'static FutexUse> {
    let name = name.trim_start_matches('_');
    IN_PROGRAM.iter().find(|(start, _)| name.starts_with(start)).map(|(_, known)| *known)
}

/// Returns what the function with this name sleeps for.
pub(super) fn find(name: &str) -> Option<&'static FutexUse> {
    let fits = |row: &&Row| name.starts_with(row.0) && name[row.0.len()..].contains(row.1);
    ROWS.iter().find(fits).map(|row| row.2)
}

/// The beginning of a name, what else is in it, and what the function sleeps for.
type Row = (&'static str, &'static str, &'static FutexUse);

macro_rules! uses {
    ($($name:ident = $family:literal $text:literal $role:ident $key:expr, $weight:ident: $why:literal;)*) => {
        $(static $name: FutexUse = FutexUse {
            family: $family,
            name: $text,
            role: $role,
            why: $why,
            key: $key,
            weight: NameWeight::$weight,
        };)*
    };
}

uses! {
    STD_MUTEX = "Rust std" "Rust std::sync::Mutex" Exclusive Word, Object:
        "Rust's std::sync::Mutex has no owner in it: the holder cannot be told";
    STD_READ = "Rust std" "Rust std::sync::RwLock" Shared Word, Object:
        "Rust's std::sync::RwLock has no owner in it: the holders cannot be told";
    STD_WRITE = "Rust std" "Rust std::sync::RwLock" Exclusive Before(4), Object:
        "Rust's std::sync::RwLock has no owner in it: the holders cannot be told";
    STD_CONDVAR = "Rust std" "Rust std::sync::Condvar" Event Word, Object:
        "a condition variable: who will notify it cannot be told";
    STD_ONCE = "Rust std" "Rust std::sync::Once" Once Word, Object:
        "Rust's std::sync::Once has no owner in it: who runs the initialiser cannot be told";
    STD_PARKER = "Rust std" "parked thread" Event Nowhere, Object:
        "the thread has parked itself: who will unpark it cannot be told";
    STD_CHANNEL = "Rust std" "Rust std::sync::mpsc channel" Event Nowhere, Use:
        "the thread waits at a channel: who has its other end cannot be told";
    STD_BARRIER = "Rust std" "Rust std::sync::Barrier" Event Nowhere, Use:
        "the thread waits at a barrier until others have come";
    STD_SCOPE = "Rust std" "Rust std::thread::scope" Event Nowhere, Use:
        "the thread waits for the end of the threads of its scope";

    PARKING_LOT = "parking_lot" "parking_lot" Unknown Parked(0), Sleep:
        "the thread is parked by parking_lot, whose locks have no owners in them: the holder \
         cannot be told";
    PARKING_BUCKET = "parking_lot" "lock of parking_lot's own table" Exclusive Nowhere, Object:
        "the lock of a bucket of parking_lot's table has no owner in it: the holder cannot be told";
    PARKING_MUTEX = "parking_lot" "parking_lot Mutex" Exclusive Parked(0), Object:
        "parking_lot's Mutex has no owner in it: the holder cannot be told";
    PARKING_READ = "parking_lot" "parking_lot RwLock" Shared Parked(1), Object:
        "parking_lot's RwLock has no owner in it: the holders cannot be told";
    PARKING_WRITE = "parking_lot" "parking_lot RwLock" Exclusive Parked(1), Object:
        "parking_lot's RwLock has no owner in it: the holders cannot be told";
    PARKING_CONDVAR = "parking_lot" "parking_lot Condvar" Event Parked(0), Object:
        "a condition variable: who will notify it cannot be told";
    PARKING_ONCE = "parking_lot" "parking_lot Once" Once Parked(0), Object:
        "parking_lot's Once has no owner in it: who runs the initialiser cannot be told";

    USYNC = "usync" "usync" Unknown Nowhere, Sleep:
        "the thread is parked by usync, whose locks have no owners in them: neither lock nor \
         holder can be told";
    USYNC_LOCK = "usync" "usync lock" Exclusive Nowhere, Object:
        "usync's locks have no owners in them: neither lock nor holder can be told";
    USYNC_READ = "usync" "usync RwLock" Shared Nowhere, Object:
        "usync's locks have no owners in them: neither lock nor holder can be told";
    USYNC_CONDVAR = "usync" "usync Condvar" Event Nowhere, Object:
        "a condition variable: who will notify it cannot be told";

    CROSSBEAM_PARKER = "crossbeam" "crossbeam Parker" Event Nowhere, Use:
        "the thread has parked itself: who will unpark it cannot be told";
    CROSSBEAM_CHANNEL = "crossbeam" "crossbeam channel" Event Nowhere, Use:
        "the thread waits at a channel: who has its other end cannot be told";
    CROSSBEAM_GROUP = "crossbeam" "crossbeam WaitGroup" Event Nowhere, Use:
        "the thread waits until the other members of its group are dropped";
    TOKIO_PARK = "tokio" "tokio blocking park" Event Nowhere, Use:
        "the thread sleeps until tokio has something for it: a task, a timer, the end of a future";
    TOKIO_POOL = "tokio" "tokio blocking pool" Event Nowhere, Use:
        "an idle thread of tokio's pool for blocking calls: it waits for work";

    ABSL = "abseil" "abseil" Unknown Nowhere, Sleep:
        "the thread sleeps on a word of its own for a lock of abseil: neither can be told";
    ABSL_MUTEX = "abseil" "abseil Mutex" Exclusive Nowhere, Object:
        "abseil's threads sleep on words of their own: which Mutex it is, and who holds it, is not \
         in them";
    ABSL_READ = "abseil" "abseil Mutex (reader)" Shared Nowhere, Object:
        "abseil's threads sleep on words of their own: which Mutex it is, and who holds it, is not \
         in them";
    ABSL_WHEN = "abseil" "abseil Mutex condition" Event Nowhere, Use:
        "the thread waits with an abseil Mutex for a condition: who will make it true cannot be told";
    ABSL_CONDVAR = "abseil" "abseil CondVar" Event Nowhere, Object:
        "a condition variable: who will signal it cannot be told";
    ABSL_EVENT = "abseil" "abseil Notification, Barrier or BlockingCounter" Event Nowhere, Object:
        "the thread waits until others say so: who they are cannot be told";

    FOLLY = "folly" "folly" Unknown Word, Sleep:
        "a futex word of folly: who will wake it cannot be told";
    FOLLY_SHARED = "folly" "folly SharedMutex" Exclusive Word, Object:
        "folly's SharedMutex has no owner in it: the holders cannot be told";
    FOLLY_READ = "folly" "folly SharedMutex" Shared Word, Object:
        "folly's SharedMutex has no owner in it: the holders cannot be told";
    FOLLY_MICRO = "folly" "folly MicroLock" Exclusive Nowhere, Object:
        "folly's MicroLock has no owner in it: the holder cannot be told";
    FOLLY_DISTRIBUTED = "folly" "folly DistributedMutex" Exclusive Nowhere, Object:
        "folly's DistributedMutex has no owner in it: the holder cannot be told";
    FOLLY_BATON = "folly" "folly Baton" Event Word, Object:
        "a Baton: who will post it cannot be told";
    FOLLY_EVENT_COUNT = "folly" "folly EventCount" Event Nowhere, Object:
        "an event count: who will notify it cannot be told";

    CPP_ATOMIC = "C++20" "C++20 atomic wait" Event Word, Object:
        "the thread waits until an atomic variable is notified: who will do so cannot be told";
    CPP_SEMAPHORE = "C++20" "C++20 semaphore" Event Word, Use:
        "a C++20 semaphore has no owner in it: who will release it cannot be told";
    // The word is one of a table of libc++'s, which other objects sleep on as well.
    LIBCPP_SEMAPHORE = "C++20" "C++20 semaphore" Event Nowhere, Use:
        "a C++20 semaphore has no owner in it: who will release it cannot be told";
    CPP_LATCH = "C++20" "C++20 latch" Event Word, Use:
        "the thread waits until a latch is counted down";
    CPP_BARRIER = "C++20" "C++20 barrier" Event Nowhere, Use:
        "the thread waits at a barrier until others have come";
    CPP_FUTURE = "C++" "C++ std::future" Event Word, Object:
        "the thread waits for the result of a std::future: who will set it cannot be told";
    CPP_STATIC = "C++" "initialisation of a static variable" Once Nowhere, Object:
        "the guard of a static variable has no owner in it: who initialises it cannot be told";

    OPENMP_LOCK = "OpenMP" "OpenMP lock" Exclusive Word, Object:
        "a lock of OpenMP (a critical section, for instance) has no owner in it: the holder cannot \
         be told";
    OPENMP_BARRIER = "OpenMP" "OpenMP barrier" Event Word, Object:
        "a thread of OpenMP waits at a barrier, or for work, until the others of its team have come";

    GO = "Go" "Go runtime" Unknown Word, Object:
        "a thread of the Go runtime waits for work: goroutines and their locks cannot be seen \
         from here";
    GLIBC_ONCE = "glibc" "once" Once Word, Object:
        "a once has no owner in it: who runs the initialiser cannot be told";
    PTHREAD_MUTEX = "C library" "pthread mutex" Exclusive Word, Object:
        "a mutex of the C library that the program has inside it: the holder cannot be told";
    MUSL_MUTEX = "C library" "pthread mutex" Exclusive Before(4), Object:
        "a mutex of musl: a default one has no owner in it";
    PTHREAD_READ = "C library" "pthread rwlock" Shared Nowhere, Object:
        "a reader-writer lock of the C library that the program has inside it: the holders cannot be \
         told";
    PTHREAD_WRITE = "C library" "pthread rwlock" Exclusive Nowhere, Object:
        "a reader-writer lock of the C library that the program has inside it: the holders cannot be \
         told";
    PTHREAD_CONDITION = "C library" "condition variable" Event Nowhere, Object:
        "a condition variable: who will signal it cannot be told";
    PTHREAD_SEMAPHORE = "C library" "semaphore" Event Word, Object:
        "a semaphore has no owner in it: who will post it cannot be told";
    PTHREAD_BARRIER = "C library" "barrier" Event Nowhere, Object:
        "the thread waits at a barrier until others have come";
    PTHREAD_JOIN = "C library" "end of a thread" Event Nowhere, Object:
        "the thread waits for the end of another one";
    GLIBC_INSIDE = "glibc" "lock inside the C library" Exclusive Word, Object:
        "a lock inside the C library (malloc's, for instance) has no owner in it: the holder \
         cannot be told";
}

/// Functions of C libraries by how their names begin, without the underscores in front: of programs
/// that have such a library inside them, and of libraries that are not glibc. What sleeps inside of
/// glibc itself is known better, by its memory.
const IN_PROGRAM: &[(&str, &FutexUse)] = &[
    // A function of musl by this name sleeps for `pthread_mutex_lock` too; glibc's has 64 behind.
    ("pthread_mutex_timedlock64", &PTHREAD_MUTEX),
    ("pthread_mutex_timedlock", &MUSL_MUTEX),
    ("pthread_mutex_", &PTHREAD_MUTEX),
    ("mtx_", &PTHREAD_MUTEX),
    ("pthread_rwlock_rdlock", &PTHREAD_READ),
    ("pthread_rwlock_timedrdlock", &PTHREAD_READ),
    ("pthread_rwlock_clockrdlock", &PTHREAD_READ),
    ("pthread_rwlock_", &PTHREAD_WRITE),
    ("pthread_cond_", &PTHREAD_CONDITION),
    ("cnd_", &PTHREAD_CONDITION),
    ("sem_", &PTHREAD_SEMAPHORE),
    ("new_sem_", &PTHREAD_SEMAPHORE),
    ("pthread_barrier_", &PTHREAD_BARRIER),
    ("pthread_join", &PTHREAD_JOIN),
    ("pthread_timedjoin", &PTHREAD_JOIN),
    ("pthread_clockjoin", &PTHREAD_JOIN),
    ("thrd_join", &PTHREAD_JOIN),
];

/// A once of the C library that was recognised by its word.
pub(super) static ONCE: &FutexUse = &GLIBC_ONCE;

const ROWS: &[Row] = &[
    // Rust's std; its modules have moved twice since 1.62.
    ("std::sys::sync::mutex::futex::", "", &STD_MUTEX),
    ("std::sys::unix::locks::futex_mutex::", "", &STD_MUTEX),
    ("std::sys::pal::unix::locks::futex_mutex::", "", &STD_MUTEX),
    ("std::sys::sync::rwlock::futex::", "read_contended", &STD_READ),
    ("std::sys::sync::rwlock::futex::", "", &STD_WRITE),
    ("std::sys::unix::locks::futex_rwlock::", "read_contended", &STD_READ),
    ("std::sys::unix::locks::futex_rwlock::", "", &STD_WRITE),
    ("std::sys::pal::unix::locks::futex_rwlock::", "read_contended", &STD_READ),
    ("std::sys::pal::unix::locks::futex_rwlock::", "", &STD_WRITE),
    ("std::sys::sync::condvar::", "", &STD_CONDVAR),
    ("std::sys::unix::locks::futex_condvar::", "", &STD_CONDVAR),
    ("std::sys::pal::unix::locks::futex_condvar::", "", &STD_CONDVAR),
    ("std::sync::condvar::Condvar", "wait", &STD_CONDVAR),
    ("std::sync::poison::condvar::Condvar", "wait", &STD_CONDVAR),
    ("std::sys::sync::once::futex::", "", &STD_ONCE),
    ("std::sys_common::once::futex::", "", &STD_ONCE),
    ("std::sys::sync::thread_parking::", "", &STD_PARKER),
    ("std::sys_common::thread_parking::", "", &STD_PARKER),
    ("std::sys_common::thread_parker::", "", &STD_PARKER),
    ("std::thread::park", "", &STD_PARKER),
    ("std::thread::functions::park", "", &STD_PARKER),
    ("std::thread::current::park", "", &STD_PARKER),
    ("std::thread::thread::Thread", "park", &STD_PARKER),
    ("std::thread::Thread", "park", &STD_PARKER),
    ("std::sync::mpmc::", "", &STD_CHANNEL),
    ("std::sync::mpsc::", "", &STD_CHANNEL),
    ("std::sync::barrier::Barrier", "wait", &STD_BARRIER),
    ("std::thread::scoped::", "", &STD_SCOPE),
    // parking_lot.
    ("parking_lot_core::thread_parker::", "", &PARKING_LOT),
    ("parking_lot_core::parking_lot::park", "", &PARKING_LOT),
    ("parking_lot_core::parking_lot::with_thread_data", "", &PARKING_LOT),
    ("parking_lot_core::word_lock::", "", &PARKING_BUCKET),
    ("parking_lot::raw_mutex::RawMutex", "", &PARKING_MUTEX),
    ("parking_lot::raw_fair_mutex::", "", &PARKING_MUTEX),
    ("parking_lot::raw_rwlock::RawRwLock", "shared", &PARKING_READ),
    ("parking_lot::raw_rwlock::RawRwLock", "lock_common", &PARKING_WRITE),
    ("parking_lot::raw_rwlock::RawRwLock", "", &PARKING_WRITE),
    ("parking_lot::condvar::", "", &PARKING_CONDVAR),
    ("parking_lot::once::", "", &PARKING_ONCE),
    // usync, crossbeam, tokio.
    ("usync::shared::", "", &USYNC),
    ("usync::mutex::", "", &USYNC_LOCK),
    ("usync::rwlock::", "read", &USYNC_READ),
    ("usync::rwlock::", "shared", &USYNC_READ),
    ("usync::rwlock::", "", &USYNC_LOCK),
    ("usync::condvar::", "", &USYNC_CONDVAR),
    ("crossbeam_utils::sync::parker::", "park", &CROSSBEAM_PARKER),
    ("crossbeam_utils::sync::wait_group::", "wait", &CROSSBEAM_GROUP),
    ("crossbeam_channel::", "", &CROSSBEAM_CHANNEL),
    ("tokio::runtime::park::", "park", &TOKIO_PARK),
    ("tokio::runtime::scheduler::", "park", &TOKIO_PARK),
    ("tokio::runtime::blocking::pool::", "run", &TOKIO_POOL),
    // abseil.
    ("absl::synchronization_internal::", "", &ABSL),
    ("AbslInternalPerThreadSemWait", "", &ABSL),
    ("absl::Mutex::Await", "", &ABSL_WHEN),
    ("absl::Mutex::LockWhen", "", &ABSL_WHEN),
    ("absl::Mutex::ReaderLockWhen", "", &ABSL_WHEN),
    ("absl::Mutex::WriterLockWhen", "", &ABSL_WHEN),
    ("absl::Mutex::ReaderLock", "", &ABSL_READ),
    ("absl::Mutex::lock_shared", "", &ABSL_READ),
    ("absl::Mutex::Lock(", "", &ABSL_MUTEX),
    ("absl::Mutex::lock(", "", &ABSL_MUTEX),
    ("absl::Mutex::Block", "", &ABSL),
    ("absl::Mutex::DecrementSynchSem", "", &ABSL),
    ("absl::Mutex::LockSlow", "", &ABSL),
    ("absl::CondVar::", "", &ABSL_CONDVAR),
    ("absl::Notification::", "", &ABSL_EVENT),
    ("absl::BlockingCounter::", "", &ABSL_EVENT),
    ("absl::Barrier::", "", &ABSL_EVENT),
    // folly.
    ("folly::detail::futexWait", "", &FOLLY),
    ("folly::detail::Futex", "", &FOLLY),
    ("folly::detail::MemoryIdler::futexWait", "", &FOLLY),
    ("folly::SharedMutexImpl", "Shared", &FOLLY_READ),
    ("folly::SharedMutexImpl", "", &FOLLY_SHARED),
    ("folly::MicroLock", "", &FOLLY_MICRO),
    ("folly::detail::distributed_mutex::", "", &FOLLY_DISTRIBUTED),
    ("folly::Baton", "", &FOLLY_BATON),
    ("folly::EventCount", "", &FOLLY_EVENT_COUNT),
    // C++: libstdc++ and libc++, whose inline namespaces are gone from the names.
    ("std::__detail::__platform_wait", "", &CPP_ATOMIC),
    ("std::__detail::__waiter", "", &CPP_ATOMIC),
    ("std::__detail::__wait_", "", &CPP_ATOMIC),
    ("std::__wait_", "", &CPP_ATOMIC),
    ("std::__atomic_wait_address", "", &CPP_ATOMIC),
    ("std::atomic", "wait", &CPP_ATOMIC),
    ("std::__atomic_base", "wait", &CPP_ATOMIC),
    ("std::__libcpp_thread_poll_with_backoff", "__atomic_semaphore", &LIBCPP_SEMAPHORE),
    ("std::__libcpp_atomic_wait", "__atomic_semaphore", &LIBCPP_SEMAPHORE),
    ("std::__cxx_atomic_wait", "__atomic_semaphore", &LIBCPP_SEMAPHORE),
    ("std::__atomic_wait", "__atomic_semaphore", &LIBCPP_SEMAPHORE),
    ("std::__atomic_semaphore_base", "", &LIBCPP_SEMAPHORE),
    ("std::__libcpp_atomic_wait", "", &CPP_ATOMIC),
    ("std::__libcpp_platform_wait", "", &CPP_ATOMIC),
    ("std::__cxx_atomic_wait", "", &CPP_ATOMIC),
    ("std::__atomic_wait", "", &CPP_ATOMIC),
    ("std::counting_semaphore", "", &CPP_SEMAPHORE),
    ("std::__atomic_semaphore", "", &CPP_SEMAPHORE),
    ("std::latch", "", &CPP_LATCH),
    ("std::barrier", "", &CPP_BARRIER),
    ("std::__tree_barrier", "", &CPP_BARRIER),
    ("std::__atomic_futex_unsigned_base", "", &CPP_FUTURE),
    ("__cxa_guard_acquire", "", &CPP_STATIC),
    // OpenMP: libgomp, libomp.
    ("gomp_mutex_lock", "", &OPENMP_LOCK),
    ("gomp_ptrlock_get", "", &OPENMP_LOCK),
    ("GOMP_critical", "", &OPENMP_LOCK),
    ("gomp_set_lock", "", &OPENMP_LOCK),
    ("omp_set_lock", "", &OPENMP_LOCK),
    ("omp_set_nest_lock", "", &OPENMP_LOCK),
    ("__kmp_acquire_", "", &OPENMP_LOCK),
    ("gomp_", "barrier", &OPENMP_BARRIER),
    ("gomp_sem_wait", "", &OPENMP_BARRIER),
    ("gomp_thread_start", "", &OPENMP_BARRIER),
    ("__kmp_", "wait", &OPENMP_BARRIER),
    // The C library and Go.
    ("pthread_once", "", &GLIBC_ONCE),
    ("__pthread_once", "", &GLIBC_ONCE),
    ("call_once", "", &GLIBC_ONCE),
    ("__lll_lock_wait_private", "", &GLIBC_INSIDE),
    ("runtime.futex", "", &GO),
];
