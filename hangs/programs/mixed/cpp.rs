//! The half in Rust of threads that hang by locks of Rust and of C++.

#[allow(dead_code, reason = "each program has its part of the facts")]
#[path = "../rust/truth.rs"]
mod truth;

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};
use truth::{meet, start};

unsafe extern "C" {
    safe fn cpp_mutex() -> *const c_void;
    safe fn cpp_waiting() -> *const c_void;
}

unsafe extern "C-unwind" {
    safe fn cpp_call_with_mutex(body: extern "C-unwind" fn());
    safe fn cpp_call_with_waiting(body: extern "C-unwind" fn());
    safe fn cpp_take_mutex();
    safe fn cpp_take_waiting();
}

static OURS: Mutex<u64> = Mutex::new(0);

fn main() {
    let wanted = std::env::args().nth(1).expect("the name of a case, or --list");
    let (place, size, call, take): (_, _, fn(extern "C-unwind" fn()), fn()) = match &wanted[..] {
        "--list" => return println!("mutex\natomic_wait"),
        "mutex" => (cpp_mutex(), 40, |body| cpp_call_with_mutex(body), || cpp_take_mutex()),
        "atomic_wait" => (cpp_waiting(), 4, |body| cpp_call_with_waiting(body), || cpp_take_waiting()),
        _ => panic!("no case of this name"),
    };
    truth::lock("a", &OURS);
    println!("LOCK b {:#x} {size}", place as usize);
    truth::own("a", "one");
    truth::own("b", "two");
    truth::wait("one", "b");
    truth::wait("two", "a");
    start("one", move || ours_first(take));
    start("two", move || call(want_ours));
    truth::end();
}

#[inline(never)]
fn ours_first(take: fn()) {
    let mut held = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    meet(2);
    take();
    *held += 1;
}

extern "C-unwind" fn want_ours() {
    meet(2);
    *OURS.lock().unwrap() += 1;
}
