use super::*;
use crate::stack::StackEnd;
use crate::symbols::demangled;

fn stack(functions: &[&str]) -> Stack {
    let frames = functions.iter().map(|function| Frame {
        function: (!function.is_empty()).then(|| demangled(function)),
        module: Some("/bin/prog".into()),
        ..Frame::default()
    });
    Stack { frames: frames.collect(), end: StackEnd::Bottom }
}

fn name(functions: &[&str]) -> Option<(&'static str, FutexRole)> {
    of_stack(&stack(functions)).map(|found| (found.name, found.role))
}

#[test]
fn names_of_rust_are_known_as_they_are_mangled() {
    use FutexRole::{Event, Exclusive, Once, Shared};
    // Manglings of Rust 1.95, and the older one of 1.62 and 1.80.
    for (function, known, role) in [
        (
            "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
            "Rust std::sync::Mutex",
            Exclusive,
        ),
        (
            "_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE",
            "Rust std::sync::Mutex",
            Exclusive,
        ),
        (
            "_ZN3std3sys4unix5locks11futex_mutex5Mutex14lock_contended17h0123456789abcdefE",
            "Rust std::sync::Mutex",
            Exclusive,
        ),
        (
            "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync6rwlock5futexNtB2_6RwLock14read_contended",
            "Rust std::sync::RwLock",
            Shared,
        ),
        (
            "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync6rwlock5futexNtB2_6RwLock15write_contended",
            "Rust std::sync::RwLock",
            Exclusive,
        ),
        (
            "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync7condvar5futexNtB2_7Condvar21wait_optional_timeout",
            "Rust std::sync::Condvar",
            Event,
        ),
        (
            "_RNvMs0_NtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync4once5futexNtB5_4Once4call",
            "Rust std::sync::Once",
            Once,
        ),
        ("_RNvMs_NtNtCsjrHSEGnQ3l9_3std6thread6threadNtB4_6Thread4park", "parked thread", Event),
        (
            "_ZN11parking_lot9raw_mutex8RawMutex9lock_slow17h0123456789abcdefE",
            "parking_lot Mutex",
            Exclusive,
        ),
        (
            "_ZN11parking_lot10raw_rwlock9RawRwLock16lock_shared_slow17hd066fbd9ca766fb2E",
            "parking_lot RwLock",
            Shared,
        ),
        (
            "_ZN11parking_lot10raw_rwlock9RawRwLock16wait_for_readers17h477cb80d7dc1819cE",
            "parking_lot RwLock",
            Exclusive,
        ),
        (
            "_ZN16parking_lot_core9word_lock8WordLock9lock_slow17h583bc8948e0a2713E",
            "lock of parking_lot's own table",
            Exclusive,
        ),
    ] {
        assert_eq!(name(&["syscall", function, "main"]), Some((known, role)), "{function}");
    }
}

#[test]
fn names_of_c_and_cpp_are_known() {
    for (functions, known) in [
        (
            &[
                "syscall",
                "absl::debian3::synchronization_internal::Waiter::Wait(absl::debian3::\
             synchronization_internal::KernelTimeout)",
                "AbslInternalPerThreadSemWait_debian3",
                "absl::debian3::Mutex::Block(absl::debian3::base_internal::PerThreadSynch*)",
                "absl::debian3::Mutex::LockSlowLoop(absl::debian3::SynchWaitParams*, int)",
                "absl::debian3::Mutex::LockSlow(absl::debian3::MuHowS const*, int)",
                "absl::debian3::Mutex::Lock()",
                "work(int)",
            ][..],
            "abseil Mutex",
        ),
        (
            &[
                "syscall",
                "AbslInternalPerThreadSemWait_lts_20240722",
                "absl::lts_20240722::Mutex::Block(absl::PerThreadSynch*)",
                "absl::lts_20240722::CondVar::WaitCommon(absl::Mutex*)",
            ],
            "abseil CondVar",
        ),
        (
            &[
                "AbslInternalPerThreadSemWait",
                "absl::Mutex::Block(X*)",
                "absl::Mutex::LockSlow(X*)",
                "absl::Mutex::LockWhen(absl::Condition const&)",
                "absl::Notification::Wait() const",
            ],
            "abseil Mutex condition",
        ),
        (
            &[
                "syscall",
                "_ZNSt8__detail15__platform_waitIiEEvPKT_i",
                "_ZNSt8__detail13__waiter_baseINS_13__waiter_poolEE12_S_wait_addrIiEEPiPKT_S4_",
                "_ZNKSt13__atomic_baseIiE4waitEiSt12memory_order",
                "main",
            ],
            "C++20 atomic wait",
        ),
        (
            &[
                "syscall",
                "_ZNSt8__detail15__platform_waitIiEEvPKT_i",
                "_ZNSt18counting_semaphoreILl4EE7acquireEv",
            ],
            "C++20 semaphore",
        ),
        (
            &[
                "syscall",
                "_ZNSt8__detail15__platform_waitIiEEvPKT_i",
                "_ZNSt7barrierISt18__empty_completionE15arrive_and_waitEv",
            ],
            "C++20 barrier",
        ),
        (
            &[
                "std::__1::__libcpp_atomic_wait(void const volatile*, long)",
                "std::__1::latch::wait() const",
            ],
            "C++20 latch",
        ),
        // Optimised code has only this left of it.
        (
            &[
                "syscall",
                "std::__1::__libcpp_atomic_wait(void const volatile*, int)",
                "bool std::__1::__libcpp_thread_poll_with_backoff<std::__1::\
                 __atomic_semaphore_base::acquire()::{lambda()#1} const&, std::__1::\
                 __libcpp_atomic_wait_backoff_impl<std::__1::__cxx_atomic_impl<long, std::__1::\
                 __cxx_atomic_base_impl<long> >, std::__1::__atomic_semaphore_base::acquire()::\
                 {lambda()#1}>&>(std::__1::__atomic_semaphore_base::acquire()::{lambda()#1} const&)",
                "void* std::__1::__thread_proxy<std::__1::tuple<main::$_0> >(void*)",
            ],
            "C++20 semaphore",
        ),
        (&["syscall", "__cxa_guard_acquire", "main"], "initialisation of a static variable"),
        (
            &[
                "folly::detail::futexWaitImpl(std::atomic<unsigned int> const*, unsigned int)",
                "folly::SharedMutexImpl<false, void>::lockExclusiveImpl(unsigned int)",
            ],
            "folly SharedMutex",
        ),
        (&["gomp_team_barrier_wait_end", "gomp_thread_start"], "OpenMP barrier"),
        (&["runtime.futex.abi0", "runtime.futexsleep"], "Go runtime"),
        (&["__pthread_once_slow", "std::call_once<void ()>(std::once_flag&)"], "once"),
    ] {
        assert_eq!(name(functions).map(|found| found.0), Some(known), "{functions:?}");
    }
}

#[test]
fn what_stands_above_says_what_an_event_is_for() {
    let park = "std::thread::functions::park";
    let parker = "std::sys::sync::thread_parking::futex::Parker::park";
    let wait = "std::sync::mpmc::context::Context::wait_until";
    let receive = "std::sync::mpmc::list::Channel<T>::recv";
    let condvar = "std::sys::sync::condvar::futex::Condvar::wait_optional_timeout";
    for (functions, known) in [
        (&[parker, park, wait, receive, "work"][..], "Rust std::sync::mpsc channel"),
        (&[parker, park, "work"], "parked thread"),
        (&[condvar, "<std::sync::barrier::Barrier>::wait"], "Rust std::sync::Barrier"),
        (&[condvar, "crossbeam_utils::sync::parker::Inner::park"], "crossbeam Parker"),
        (
            &[
                condvar,
                "tokio::loom::std::parking_lot::Condvar::wait",
                "tokio::runtime::park::Inner::park",
                "tokio::runtime::park::CachedParkThread::park",
            ],
            "tokio blocking park",
        ),
        // The program's own function stands between: tokio only called it.
        (
            &[parker, park, wait, receive, "work", "tokio::runtime::park::Inner::park"],
            "Rust std::sync::mpsc channel",
        ),
        // Getting the mutex back is no waiting for the condition.
        (
            &["std::sys::sync::mutex::futex::Mutex::lock_contended", condvar],
            "Rust std::sync::Mutex",
        ),
    ] {
        assert_eq!(name(functions).map(|found| found.0), Some(known), "{functions:?}");
    }
}

#[test]
fn what_has_called_the_programs_own_code_says_nothing() {
    let once = "_RNvMs0_NtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync4once5futexNtB5_4Once4call";
    assert_eq!(name(&["syscall", "my_lock", once]), None);
    assert_eq!(name(&["syscall", "", once]), None, "a function without a name may be anybody's");
    assert_eq!(name(&["app::run<std::sys::sync::mutex::futex::Mutex>", "main"]), None);
    assert_eq!(name(&[]), None);
}

#[test]
fn a_key_is_where_the_lock_lies() {
    let key = |function: &str, address: u64, beside: bool| {
        of_stack(&stack(&[function])).expect("known").key_recorded(address, beside)
    };
    let futex = "std::sys::sync::rwlock::futex::RwLock::";
    assert_eq!(key(&format!("{futex}read_contended"), 0x1020, false), Some(0x1020));
    assert_eq!(key(&format!("{futex}write_contended"), 0x1020, false), Some(0x101c), "two words");
    assert_eq!(key(&format!("{futex}read_contended"), 0x5000, true), None, "somebody's pointer");
    let parking = "parking_lot::raw_rwlock::RawRwLock::";
    assert_eq!(key(&format!("{parking}lock_shared_slow"), 0x5000, true), Some(0x5000));
    assert_eq!(key(&format!("{parking}wait_for_readers"), 0x5001, true), Some(0x5000));
    let mutex = "parking_lot::raw_mutex::RawMutex::lock_slow";
    assert_eq!(key(mutex, 0x5001, true), Some(0x5001));
    assert_eq!(key(mutex, 3, true), None);
    assert_eq!(key(mutex, 0x5001, false), None, "the word is the thread's");
    assert_eq!(key("std::thread::park", 0x5001, false), None);
}
