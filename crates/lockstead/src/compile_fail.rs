//! What the compiler must refuse. Each refusal stands beside a twin that
//! differs in one place and compiles, so that it cannot be refused for another
//! reason, whatever the compiler's version says about it. (The traits that
//! guards must not have are checked in `tests/locks/traits.rs`.)
//!
//! # A guard does not outlive its mutex
//! ```
//! let mutex = lockstead::Mutex::new(1);
//! let guard = mutex.lock();
//! drop(guard);
//! drop(mutex);
//! ```
//! ```compile_fail,E0505
//! let mutex = lockstead::Mutex::new(1);
//! let guard = mutex.lock();
//! drop(mutex);
//! drop(guard);
//! ```
//!
//! # The data does not outlive the guard
//! ```
//! let mutex = lockstead::Mutex::new(String::new());
//! let guard = mutex.lock();
//! let text: &str = &guard;
//! assert!(text.is_empty());
//! drop(guard);
//! ```
//! ```compile_fail,E0505
//! let mutex = lockstead::Mutex::new(String::new());
//! let guard = mutex.lock();
//! let text: &str = &guard;
//! drop(guard);
//! assert!(text.is_empty());
//! ```
//!
//! # A reader does not write
//! ```
//! let lock = lockstead::RwLock::new(1);
//! *lock.write() += 1;
//! ```
//! ```compile_fail,E0594
//! let lock = lockstead::RwLock::new(1);
//! *lock.read() += 1;
//! ```
//!
//! # A waiting guard lends nobody its data
//! ```
//! let (mutex, condvar) = (lockstead::Mutex::new(1), lockstead::Condvar::new());
//! let mut guard = mutex.lock();
//! let copy: i32 = *guard;
//! condvar.wait_while(&mut guard, |_| false);
//! assert_eq!(copy, 1);
//! ```
//! ```compile_fail,E0502
//! let (mutex, condvar) = (lockstead::Mutex::new(1), lockstead::Condvar::new());
//! let mut guard = mutex.lock();
//! let copy: &i32 = &*guard;
//! condvar.wait_while(&mut guard, |_| false);
//! assert_eq!(*copy, 1);
//! ```
//!
//! # A guard is released on the thread that acquired
//! ```
//! let mutex = lockstead::Mutex::new(0);
//! let guard = mutex.lock();
//! std::thread::scope(|s| { s.spawn(|| assert_eq!(*guard, 0)); });
//! ```
//! ```compile_fail,E0277
//! let mutex = lockstead::Mutex::new(0);
//! let guard = mutex.lock();
//! std::thread::scope(|s| { s.spawn(move || assert_eq!(*guard, 0)); });
//! ```
//!
//! # What must stay on one thread is not shared by a lock
//! ```
//! let mutex = lockstead::Mutex::new(std::sync::Arc::new(0));
//! std::thread::scope(|s| { s.spawn(|| assert_eq!(**mutex.lock(), 0)); });
//! ```
//! ```compile_fail,E0277
//! let mutex = lockstead::Mutex::new(std::rc::Rc::new(0));
//! std::thread::scope(|s| { s.spawn(|| assert_eq!(**mutex.lock(), 0)); });
//! ```
//!
//! # A mapped guard keeps its part to itself
//! ```
//! use lockstead::{Mutex, MutexGuard};
//! let mutex = Mutex::new((1, 2));
//! let mut seen = 0;
//! let part = MutexGuard::map(mutex.lock(), |both| { seen = both.0; &mut both.1 });
//! drop(part);
//! assert_eq!(seen, 1);
//! ```
//! ```compile_fail
//! use lockstead::{Mutex, MutexGuard};
//! let mutex = Mutex::new((1, 2));
//! let mut seen = &0;
//! let part = MutexGuard::map(mutex.lock(), |both| { seen = &both.0; &mut both.1 });
//! drop(part);
//! assert_eq!(*seen, 1);
//! ```
//!
//! # A semaphore is not made with more permits than it counts
//! ```
//! static SLOTS: lockstead::Semaphore = lockstead::Semaphore::new(1_048_575);
//! # drop(SLOTS.acquire());
//! ```
//! ```compile_fail,E0080
//! static SLOTS: lockstead::Semaphore = lockstead::Semaphore::new(1_048_576);
//! # drop(SLOTS.acquire());
//! ```
