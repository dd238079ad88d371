//! What the compiler must refuse to put into memory that processes share, and of its
//! locks. Each refusal stands beside a twin that differs in one place and compiles.
//!
//! # Pointers
//! ```
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { next: usize }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { next: *mut u64 }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { next: &'static u64 }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { next: Box<u64> }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { next: core::sync::atomic::AtomicPtr<u64> }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { next: Option<fn()> }
//! ```
//!
//! # Borrowed things
//! ```
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { data: u64 }
//! ```
//! ```compile_fail
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root<'a> { data: &'a u64 }
//! ```
//!
//! # Not every bit pattern
//! ```
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { set: u8 }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { set: bool }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { set: char }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { set: core::num::NonZeroU8 }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { set: core::sync::atomic::AtomicBool }
//! ```
//!
//! # Enums and unions
//! ```
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { kind: u32 }
//! ```
//! ```compile_fail
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! enum Root { Kind, Other }
//! ```
//! ```compile_fail
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! union Root { kind: u32 }
//! ```
//!
//! # A layout of the compiler's choice
//! ```
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C, align(64))]
//! struct Root { one: u8, two: u64 }
//! ```
//! ```compile_fail
//! #[derive(lockstead::shared::Shareable)]
//! struct Root { one: u8, two: u64 }
//! ```
//! ```compile_fail
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C, packed)]
//! struct Root { one: u8, two: u64 }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { both: (u8, u64) }
//! ```
//!
//! # What would have to be dropped
//! ```
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { file: i32 }
//! impl Root { fn close(&mut self) {} }
//! ```
//! ```compile_fail,E0080
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { file: i32 }
//! impl Drop for Root { fn drop(&mut self) {} }
//! ```
//! ```compile_fail,E0277
//! #[derive(lockstead::shared::Shareable)]
//! #[repr(C)]
//! struct Root { names: Vec<u8> }
//! ```
//!
//! # Parameters without a bound
//! ```
//! use lockstead::shared::{Shareable, SharedMutex};
//! #[derive(Shareable)]
//! #[repr(C)]
//! struct Slot<T: Shareable, const N: usize> { data: SharedMutex<[T; N]> }
//! let shape = <Slot<u32, 3> as Shareable>::SHAPE;
//! assert_eq!(shape.size(), 24);
//! ```
//! ```compile_fail,E0277
//! use lockstead::shared::{Shareable, SharedMutex};
//! #[derive(Shareable)]
//! #[repr(C)]
//! struct Slot<T: Send + Sync + 'static, const N: usize> { data: SharedMutex<[T; N]> }
//! ```
//!
//! # Locks of one process
//! ```
//! fn shareable<T: lockstead::shared::Shareable>() {}
//! shareable::<lockstead::shared::SharedMutex<u64>>();
//! ```
//! ```compile_fail,E0277
//! fn shareable<T: lockstead::shared::Shareable>() {}
//! shareable::<lockstead::Mutex<u64>>();
//! ```
//! ```compile_fail,E0277
//! fn shareable<T: lockstead::shared::Shareable>() {}
//! shareable::<lockstead::shared::SharedMutex<String>>();
//! ```
//! ```compile_fail,E0277
//! fn shareable<T: lockstead::shared::Shareable>() {}
//! shareable::<core::cell::Cell<u64>>();
//! ```
//!
//! # The root does not outlive its segment
//! ```
//! use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
//! let segment = Segment::<SharedMutex<u64>>::memfd("one", &SegmentOptions::new()).unwrap();
//! let guard = segment.root().lock().unwrap();
//! drop(guard);
//! drop(segment);
//! ```
//! ```compile_fail,E0505
//! use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
//! let segment = Segment::<SharedMutex<u64>>::memfd("one", &SegmentOptions::new()).unwrap();
//! let guard = segment.root().lock().unwrap();
//! drop(segment);
//! drop(guard);
//! ```
//!
//! # A guard is released on the thread that acquired
//! ```
//! use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
//! let segment = Segment::<SharedMutex<u64>>::memfd("one", &SegmentOptions::new()).unwrap();
//! let guard = segment.root().lock().unwrap().acquired().unwrap();
//! std::thread::scope(|s| { s.spawn(|| assert_eq!(*guard, 0)); });
//! ```
//! ```compile_fail,E0277
//! use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
//! let segment = Segment::<SharedMutex<u64>>::memfd("one", &SegmentOptions::new()).unwrap();
//! let guard = segment.root().lock().unwrap().acquired().unwrap();
//! std::thread::scope(|s| { s.spawn(move || assert_eq!(*guard, 0)); });
//! ```
//!
//! # A permit is given back on the thread that took it
//! ```compile_fail,E0277
//! use lockstead::shared::{OnDeath, SegmentOptions, Segment, SharedSemaphore};
//! let segment = Segment::<SharedSemaphore>::memfd("one", &SegmentOptions::new()).unwrap();
//! segment.root().add(1).unwrap();
//! let permit = segment.root().acquire(1).unwrap();
//! std::thread::scope(|s| { s.spawn(move || drop(permit)); });
//! ```
//!
//! # What a reader sees it does not change
//! ```
//! use lockstead::shared::{SegmentOptions, Segment, SharedRwLock};
//! let segment = Segment::<SharedRwLock<u64>>::memfd("one", &SegmentOptions::new()).unwrap();
//! *segment.root().write().unwrap().acquired().unwrap() += 1;
//! ```
//! ```compile_fail,E0594
//! use lockstead::shared::{SegmentOptions, Segment, SharedRwLock};
//! let segment = Segment::<SharedRwLock<u64>>::memfd("one", &SegmentOptions::new()).unwrap();
//! *segment.root().read().unwrap().acquired().unwrap() += 1;
//! ```
//! ```compile_fail,E0061
//! use lockstead::shared::{HeldGuard, SegmentOptions, Segment, SharedRwLock};
//! let segment = Segment::<SharedRwLock<u64>>::memfd("one", &SegmentOptions::new()).unwrap();
//! *HeldGuard::repair(&mut segment.root().read().unwrap().acquired().unwrap()) += 1;
//! ```
//! ```compile_fail,E0061
//! use lockstead::shared::HeldGuard;
//! fn change<G: HeldGuard>(guard: &mut G) -> &mut G::Target { guard.repair() }
//! ```
