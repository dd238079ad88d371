//! The other side of the tests of Python's part: opens or makes a segment with the types of Rust. What
//! it does `shop.c` does in C, but for adding.
//!
//! `shop make PATH` makes one; `shop add PATH` says the total, under a lock; `shop die PATH` ends
//! by a signal with the lock; `shop carts PATH` takes one of the semaphore's units and says how many are
//! left, and keeps it until its end.

use lockstead::shared::{
    OnDeath, Segment, SegmentOptions, Shareable, SharedMutex, SharedSemaphore,
};
use std::process::ExitCode;

/// What the segment consists of.
#[derive(Shareable)]
#[repr(C)]
struct Shop {
    orders: SharedMutex<()>,
    shelves: [SharedMutex<()>; 3],
    carts: SharedSemaphore,
    total: [u8; 8],
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, path] = arguments.as_slice() else { return ExitCode::from(2) };
    match run(what, path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shop: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(what: &str, path: &str) -> Result<(), Box<dyn std::error::Error>> {
    if what == "make" {
        Segment::<Shop>::create_with(path, &SegmentOptions::new(), |shop| {
            shop.carts = SharedSemaphore::new(2, OnDeath::Return);
        })?;
        return Ok(());
    }
    let shop = Segment::<Shop>::open(path)?;
    let root = shop.root();
    if what == "carts" {
        // Not given back: that its end does.
        std::mem::forget(root.carts.try_acquire(1)?);
        println!("carts {}", root.carts.free());
        return Ok(());
    }
    let held = root.shelves[1].lock()?.recover(|()| println!("recovered"))?;
    if what == "die" {
        std::process::abort();
    }
    println!("total {}", u64::from_le_bytes(root.total));
    drop(held);
    Ok(())
}
