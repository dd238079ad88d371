//! Threads that hang by std's locks and by pthread's, which C code under them takes.

#[allow(dead_code, reason = "each program has its part of the facts")]
#[path = "../rust/truth.rs"]
mod truth;

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, RwLock};
use truth::{meet, start};

/// A `pthread_mutex_t` or a `pthread_rwlock_t`, as all zeros make one.
#[repr(C, align(8))]
struct Native(UnsafeCell<[u8; 56]>);

// SAFETY: only the C library touches the bytes, by functions that any thread may call.
unsafe impl Sync for Native {}

static MUTEX: Native = Native(UnsafeCell::new([0; 56]));
static LOCK: Native = Native(UnsafeCell::new([0; 56]));

unsafe extern "C" {
    safe fn pthread_mutex_lock(mutex: &Native) -> c_int;
    safe fn pthread_rwlock_wrlock(lock: &Native) -> c_int;
    safe fn pthread_rwlock_rdlock(lock: &Native) -> c_int;
}

fn main() {
    let wanted = std::env::args().nth(1).expect("the name of a case, or --list");
    match &wanted[..] {
        "--list" => return println!("mutex\nreader\nwriter\ncallback\nacross_c"),
        "mutex" => crossed(&MUTEX, || pthread_mutex_lock(&MUTEX)),
        "writer" => crossed(&LOCK, || pthread_rwlock_wrlock(&LOCK)),
        "reader" => reader(),
        "callback" => callback(),
        "across_c" => across_c(),
        _ => panic!("no case of this name"),
    }
    truth::end();
}

/// Lets `one` hold std's lock and want the native one, and `two` the other way round.
fn crossed(native: &'static Native, take: fn() -> c_int) {
    let mutex = Arc::new(Mutex::new(0));
    truth::lock("a", &*mutex);
    truth::lock("b", native);
    truth::own("a", "one");
    truth::own("b", "two");
    truth::wait("one", "b");
    truth::wait("two", "a");
    let same = mutex.clone();
    start("one", move || rust_first(&mutex, take));
    start("two", move || native_first(&same, take));
}

#[inline(never)]
fn rust_first(mutex: &Mutex<c_int>, take: fn() -> c_int) {
    let mut held = mutex.lock().unwrap();
    meet(2);
    *held += take();
}

#[inline(never)]
fn native_first(mutex: &Mutex<c_int>, take: fn() -> c_int) {
    take();
    meet(2);
    *mutex.lock().unwrap() += 1;
}

/// Lets `one` hold a std lock to read and want to write the native one, which `two` reads; who
/// reads that cannot be seen.
fn reader() {
    let lock = Arc::new(RwLock::new(0));
    truth::lock("a", &*lock);
    truth::lock("b", &LOCK);
    truth::own("a", "one");
    truth::wait("one", "b");
    truth::wait("two", "a");
    truth::leak("b", "two");
    let same = lock.clone();
    start("one", move || {
        let held = lock.read().unwrap();
        meet(2);
        pthread_rwlock_wrlock(&LOCK);
        drop(held);
    });
    start("two", move || {
        pthread_rwlock_rdlock(&LOCK);
        meet(2);
        *same.write().unwrap() += 1;
    });
}

unsafe extern "C" {
    /// Sorts in C, and so calls back from frames of C.
    fn qsort(
        base: *mut u64,
        count: usize,
        size: usize,
        compare: extern "C" fn(&u64, &u64) -> c_int,
    );
}

static FIRST: Mutex<u64> = Mutex::new(0);
static SECOND: Mutex<u64> = Mutex::new(0);

fn statics() {
    truth::lock("a", &FIRST);
    truth::lock("b", &SECOND);
    truth::own("a", "one");
    truth::own("b", "two");
    truth::wait("one", "b");
    truth::wait("two", "a");
}

/// Lets `one` wait in a function that C calls, with its guard in the frame below C.
fn across_c() {
    statics();
    start("one", || sort_under(&FIRST));
    start("two", || {
        let held = SECOND.lock().unwrap();
        meet(2);
        *FIRST.lock().unwrap() += *held;
    });
}

#[inline(never)]
fn sort_under(mutex: &Mutex<u64>) {
    let mut held = mutex.lock().unwrap();
    let mut numbers = [2, 1];
    // SAFETY: the array has two elements of eight bytes each.
    unsafe { qsort(numbers.as_mut_ptr(), 2, 8, compare) };
    *held += numbers[0];
}

extern "C" fn compare(left: &u64, right: &u64) -> c_int {
    meet(2);
    *SECOND.lock().unwrap() += 1;
    (left > right).into()
}

/// Lets `one` hold the guard in the function itself that C calls, which must not unwind.
fn callback() {
    statics();
    start("one", || {
        let mut numbers = [2, 1];
        // SAFETY: the array has two elements of eight bytes each.
        unsafe { qsort(numbers.as_mut_ptr(), 2, 8, hold_and_compare) };
        std::hint::black_box(numbers);
    });
    start("two", || {
        let held = SECOND.lock().unwrap();
        meet(2);
        *FIRST.lock().unwrap() += *held;
    });
}

extern "C" fn hold_and_compare(left: &u64, right: &u64) -> c_int {
    let mut held = FIRST.lock().unwrap();
    meet(2);
    *held += *SECOND.lock().unwrap();
    (left > right).into()
}
