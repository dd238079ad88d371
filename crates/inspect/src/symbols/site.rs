//! Which frame of a stack is *the* place.
//!
//! # Role
//! A lock is seldom taken by the function that calls into the C library: C++
//! and Rust have their own mutexes around it, and guards around those. The
//! place a reader wants is the first function that is none of these.

use crate::stack::{Frame, Stack};

/// Starts of the names of functions that take, make or wait for locks for
/// somebody else. C++ names are compared without return type, and with the
/// inline namespaces of the two standard libraries taken out.
const WRAPPERS: &[&str] = &[
    // The C library and what GCC puts around it.
    "pthread_",
    "__pthread_",
    "___pthread_",
    "mtx_",
    "cnd_",
    "call_once",
    "sem_",
    "__lll_",
    "__futex",
    "futex_",
    "__gthread_",
    "__gthrw_",
    "__glibcxx_rwlock_",
    "__new_sem_",
    // musl.
    "__syscall",
    "sccp",
    "__timedwait",
    "__wait",
    "__wake",
    // C++.
    "std::mutex::",
    "std::__mutex_base::",
    "std::timed_mutex::",
    "std::recursive_mutex::",
    "std::__recursive_mutex_base::",
    "std::recursive_timed_mutex::",
    "std::__timed_mutex_impl<",
    "std::shared_mutex::",
    "std::shared_timed_mutex::",
    "std::__shared_mutex_",
    "std::__shared_timed_mutex_base::",
    "std::lock_guard<",
    "std::unique_lock<",
    "std::scoped_lock<",
    "std::shared_lock<",
    "std::lock<",
    "std::try_lock<",
    "std::__detail::__lock_impl<",
    "std::__detail::__try_lock_impl<",
    "std::__lock_first<",
    "std::__lock_unlock_test",
    "std::condition_variable::",
    "std::condition_variable_any::",
    "std::__condvar::",
    "std::counting_semaphore<",
    "std::__semaphore_base::",
    "std::barrier<",
    "std::latch::",
    "std::call_once<",
    "std::thread::join",
    "boost::mutex::",
    "boost::recursive_mutex::",
    "boost::shared_mutex::",
    "boost::lock_guard<",
    "boost::unique_lock<",
    "boost::shared_lock<",
    "boost::condition_variable",
    "boost::posix::",
    "boost::asio::detail::posix_",
    "boost::asio::detail::conditionally_enabled_",
    "QMutex::",
    "QBasicMutex::",
    "QRecursiveMutex::",
    "QReadWriteLock::",
    "QSemaphore::",
    "QWaitCondition::",
    "leveldb::port::",
    "rocksdb::port::",
    "v8::base::Mutex::",
    "v8::base::RecursiveMutex::",
    "v8::base::SharedMutex::",
    "v8::base::Semaphore::",
    "v8::base::ConditionVariable::",
    "v8::base::LockGuard<",
    "node::MutexBase<",
    "node::ConditionVariableBase<",
    "node::LibuvMutexTraits::",
    // Java's virtual machine.
    "Mutex::",
    "MutexLocker::",
    "MonitorLocker::",
    "Monitor::Monitor(",
    "Monitor::wait",
    "Monitor::notify",
    "Semaphore::",
    "PosixSemaphore::",
    "ThreadCritical::",
    "os::PlatformMutex::",
    "os::PlatformMonitor::",
    "os::PlatformEvent::",
    // Libraries and big programs in C.
    "uv_mutex_",
    "uv_rwlock_",
    "uv_cond_",
    "uv_sem_",
    "uv__sem_",
    "uv_barrier_",
    "uv_thread_join",
    "g_mutex_",
    "g_rec_mutex_",
    "g_rw_lock_",
    "g_cond_",
    "PyThread_",
    "PyMUTEX_",
    "PyCOND_",
    "apr_thread_mutex_",
    "apr_thread_rwlock_",
    "apr_thread_cond_",
    "ngx_thread_mutex_",
    "ngx_thread_cond_",
    "CRYPTO_THREAD_",
    "sqlite3_mutex_",
    "pthreadMutex",
    "malloc_mutex_",
    "je_malloc_mutex_",
    "mythread_",
    "my_mutex_",
    "safe_mutex_",
    "inline_mysql_",
    "psi_mutex_",
    "SDL_LockMutex",
    "SDL_TryLockMutex",
    "SDL_CreateMutex",
    "SDL_SemWait",
    "SDL_CondWait",
    // Rust.
    "std::sync::",
    "std::sys::",
    "<std::sync::",
    "<std::sys::",
    "std::thread::JoinHandle<",
    "std::thread::JoinInner<",
    "std::thread::lifecycle::",
    "core::",
    "<core::",
    "std::thread::park",
    "std::thread::functions::park",
    "std::thread::thread::Thread::park",
    "<std::thread::thread::Thread>::park",
    "lock_api::",
    "parking_lot::",
    "parking_lot_core::",
    "<lock_api::",
    "<parking_lot::",
    "<parking_lot_core::",
    "usync::",
    "<usync::",
    // Locks and events of C++ on futex words.
    "std::__detail::__",
    "std::__atomic_",
    "std::atomic<",
    "std::__tree_barrier",
    "absl::",
    "AbslInternal",
    "folly::detail::",
    "folly::SharedMutexImpl",
    "folly::Baton",
    "lockstead_core::",
    "<lockstead_core::",
    "lockstead_linux::",
    "<lockstead_linux::",
    "lockstead_told::",
    "<lockstead_told::",
    "lockstead_std::",
    "<lockstead_std::",
    "lockstead_parking_lot::",
    "<lockstead_parking_lot::",
    "lockstead::biased::",
    "lockstead::check::",
    "lockstead::condvar::",
    "lockstead::guard::",
    "lockstead::lock_api::",
    "lockstead::mutex::",
    "lockstead::named::",
    "lockstead::once::",
    "lockstead::poison::",
    "lockstead::rt::",
    "lockstead::rwlock::",
    "lockstead::semaphore::",
    "lockstead::shared::",
    "lockstead::ww::",
    "<lockstead::",
    // Its library for C.
    "lks_",
    "lockstead_capi::",
];

/// Libraries that consist of such functions.
const WRAPPING_LIBRARIES: &[&str] = &[
    "libstdc++.so",
    "libc++.so",
    "libpthread.so",
    "libgcc_s.so",
    "liblockstead.so",
    "liblockstead-check.so",
];

/// Tells whether the frame only takes, makes or waits for a lock on behalf of the
/// function that called it, or is lockstead's own.
#[must_use]
pub fn is_lock_wrapper(frame: &Frame) -> bool {
    let library = frame.module.as_deref().and_then(|m| m.rsplit('/').next()).unwrap_or_default();
    if frame.is_lockstead() || frame.is_libc() {
        return true;
    }
    if WRAPPING_LIBRARIES.iter().any(|prefix| library.starts_with(prefix)) {
        return true;
    }
    let Some(function) = &frame.function else { return false };
    let function = plain(function);
    // The language's own adapter between a function or a closure and whoever calls it.
    if function.starts_with('<') && function.contains(" as core::ops::function::Fn") {
        return true;
    }
    // Of `<&dyn core::ops::function::Fn() as …>::call_once` the type that it is called of.
    let function = function.trim_start_matches(['<', '&']);
    let function = function.strip_prefix("mut ").unwrap_or(function);
    let function = function.strip_prefix("dyn ").unwrap_or(function);
    // In a static program it has no library of its own.
    function == "syscall" || WRAPPERS.iter().any(|prefix| function.starts_with(prefix))
}

/// Returns the frame that a reader would call the place: the first that is not a wrapper, or the
/// first at all where every frame is one.
#[must_use]
pub fn site(stack: &Stack) -> Option<&Frame> {
    let mut frames = stack.visible();
    let first = frames.clone().next();
    frames.find(|frame| !is_lock_wrapper(frame)).or(first)
}

/// Functions that start programs and threads: of the last frames of a stack.
const STARTERS: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
];
/// No stack starts with more frames than this.
const STARTING: usize = 4;

/// Returns the frames that a reader wants of a thread that waits: of those that are
/// [visible](Stack::visible), without the wrappers on both sides of the functions that are none, and
/// without those that start threads and programs. All that are visible, where nothing else would be
/// left.
#[must_use]
pub fn program_frames(stack: &Stack) -> Vec<&Frame> {
    let visible: Vec<&Frame> = stack.visible().collect();
    let starts = |(at, frame): (usize, &&Frame)| {
        let function = frame.function.as_deref().unwrap_or_default();
        function.contains("__rust_begin_short_backtrace")
            || visible.len() - at <= STARTING && STARTERS.contains(&function)
    };
    let end = visible.iter().enumerate().position(starts).unwrap_or(visible.len());
    let started = &visible[..end];
    let first = started.iter().position(|frame| !is_lock_wrapper(frame));
    let last = started.iter().rposition(|frame| !is_lock_wrapper(frame));
    match (first, last) {
        (Some(first), Some(last)) => started[first..=last].to_vec(),
        _ => visible,
    }
}

/// Returns a name without the return type that C++ mangles into those of function templates, and
/// without inline namespaces.
pub(crate) fn plain(function: &str) -> String {
    let mut depth = 0_u32;
    let mut start = 0;
    // A name of Rust may begin with a bracket, and has no return type.
    if !function.starts_with('<') {
        for (at, byte) in function.bytes().enumerate() {
            match byte {
                b'<' => depth += 1,
                b'>' => depth = depth.saturating_sub(1),
                b'(' if depth == 0 => break,
                b' ' if depth == 0 => start = at + 1,
                _ => {}
            }
        }
    }
    let name = &function[start..];
    // An operator's name may hold a space; such a function is no wrapper.
    ["std::__1::", "std::_V2::", "std::__cxx11::"]
        .iter()
        .fold(name.to_owned(), |name, inline| name.replace(inline, "std::"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackEnd;

    fn frame(function: &str, module: &str) -> Frame {
        Frame {
            function: (!function.is_empty()).then(|| function.into()),
            module: Some(module.into()),
            ..Frame::default()
        }
    }

    #[test]
    fn the_frames_of_the_program_are_between_wrappers_and_starters() {
        let shown = |functions: &[(&str, &str)]| {
            let frames = functions.iter().map(|(function, module)| frame(function, module));
            let stack = Stack { frames: frames.collect(), end: StackEnd::Bottom };
            let functions = program_frames(&stack).into_iter().map(|f| f.function.clone());
            functions.collect::<Option<Vec<_>>>().expect("all have names")
        };
        let (own, libc, preload) =
            ("/bin/prog", "/lib/libc.so.6", "/memfd:liblockstead_preload.so");
        let bottom = [("start_thread", libc), ("clone3", libc)];
        let named =
            [("__futex_wait", libc), ("std::mutex::lock()", own), ("work", own), ("run", own)];
        assert_eq!(shown(&[&named[..], &bottom].concat()), ["work", "run"]);
        let under = [("lock", preload), ("work", own), ("thread_start", preload)];
        assert_eq!(shown(&[&under[..], &bottom].concat()), ["work"]);
        let adapter = "<fn() as core::ops::function::FnOnce<()>>::call_once";
        assert_eq!(shown(&[("work", own), (adapter, own)]), ["work"], "as rustc 1.97 compiles it");
        assert_eq!(shown(&[("pause", libc), ("start_thread", libc)]), ["pause", "start_thread"]);
        assert_eq!(shown(&[("work", own), ("pthread_once", libc), ("main", own)]).len(), 3);
    }

    #[test]
    fn wrappers_are_known_by_the_start_of_their_names() {
        for name in [
            "pthread_mutex_lock",
            "__gthread_mutex_lock(pthread_mutex_t*)",
            "std::mutex::lock()",
            "std::__1::mutex::lock()",
            "std::lock_guard<std::mutex>::lock_guard(std::mutex&)",
            "std::unique_lock<std::timed_mutex>::lock()",
            "std::scoped_lock<std::mutex, std::mutex>::scoped_lock(std::mutex&, std::mutex&)",
            "void std::lock<std::mutex, std::mutex>(std::mutex&, std::mutex&)",
            "void std::_V2::condition_variable_any::wait<std::unique_lock<std::mutex> >(int)",
            "std::sys::sync::mutex::pthread::Mutex::lock",
            "<core::cell::RefCell<T> as core::fmt::Debug>::fmt",
            "<&dyn core::ops::function::Fn() as core::ops::function::FnOnce<()>>::call_once",
            "<&mut dyn core::ops::function::FnMut() as core::ops::function::FnOnce<()>>::call_once",
            "<fn() as core::ops::function::FnOnce<()>>::call_once",
            "<app::main::{closure#0} as core::ops::function::FnOnce<(u32,)>>::call_once",
            "parking_lot::raw_mutex::RawMutex::lock_slow",
            "__glibcxx_rwlock_wrlock(pthread_rwlock_t*)",
            "uv_mutex_lock",
            "PyThread_acquire_lock_timed",
            "Mutex::lock_contended(Thread*)",
        ] {
            assert!(is_lock_wrapper(&frame(name, "/bin/prog")), "{name}");
        }
        for name in [
            "worker",
            "my_pthread_pool(int)",
            "app::std::mutex_user()",
            "int app::run<std::lock_guard<std::mutex> >(std::mutex&)",
            "semaphore_init",
            "corelib::start",
            "<&dyn app::Task>::run",
            "<app::Job as core::ops::drop::Drop>::drop",
            "std::vector<int>::push_back(int)",
            "Monitor::run()",
            "Cache::Mutex::lock()",
            "take_gil",
            "",
        ] {
            assert!(!is_lock_wrapper(&frame(name, "/bin/prog")), "{name}");
        }
    }

    #[test]
    fn libraries_of_wrappers_are_passed_over_whole() {
        assert!(is_lock_wrapper(&frame("", "/lib/libc.so.6")));
        assert!(is_lock_wrapper(&frame("anything", "/lib/libstdc++.so.6.0.30")));
        assert!(is_lock_wrapper(&frame("x", "/memfd:liblockstead_preload.so")));
        assert!(!is_lock_wrapper(&frame("", "/lib/libcache.so")));
    }

    #[test]
    fn the_site_is_the_first_frame_of_the_program() {
        let own = frame("pthread_mutex_lock", "/memfd:liblockstead_preload.so");
        let guard = frame("std::lock_guard<std::mutex>::lock_guard(std::mutex&)", "/bin/prog");
        let find = frame("Cache::find(int)", "/bin/prog");
        let main = frame("main", "/bin/prog");
        let of = |frames: &[&Frame]| {
            let frames = frames.iter().map(|&f| f.clone()).collect();
            let found = Stack { frames, end: StackEnd::Bottom };
            site(&found).and_then(|f| f.function.clone())
        };
        assert_eq!(of(&[&own, &guard, &find, &main]).as_deref(), Some("Cache::find(int)"));
        assert_eq!(of(&[&guard]).as_deref(), guard.function.as_deref(), "better than none");
        assert_eq!(of(&[&own]), None);
        assert_eq!(of(&[]), None);
    }
}
