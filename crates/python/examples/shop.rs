//! The other side of the tests of Python's part: opens or makes a segment with the types of Rust.
//!
//! `shop make PATH` makes one, with a total of 1; `shop add PATH` adds 1 to the total, under the lock;
//! `shop die PATH` ends by a signal with the lock.

use lockstead::shared::{Segment, SegmentOptions, Shareable, SharedMutex, SharedSemaphore};
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
        Segment::<Shop>::create(path, &SegmentOptions::new())?;
        return Ok(());
    }
    let shop = Segment::<Shop>::open(path)?;
    let root = shop.root();
    let held = root.shelves[1].lock()?.recover(|()| println!("recovered"))?;
    println!("total {}", u64::from_le_bytes(root.total));
    if what == "die" {
        std::process::abort();
    }
    drop(held);
    Ok(())
}
