//! Two threads that take two locks in opposite orders: the program of the picture in the README.

use std::sync::{Barrier, Mutex};

static STOCK: Mutex<u32> = Mutex::new(9);
static TILL: Mutex<u64> = Mutex::new(0);
static BOTH: Barrier = Barrier::new(2);

fn sell() {
    let mut stock = STOCK.lock().unwrap();
    BOTH.wait();
    *TILL.lock().unwrap() += 250;
    *stock -= 1;
}

fn count() {
    let till = TILL.lock().unwrap();
    BOTH.wait();
    println!("{} pieces, {} cents", STOCK.lock().unwrap(), till);
}

fn main() {
    let start = |name: &str, work: fn()| {
        std::thread::Builder::new().name(name.into()).spawn(work).expect("a thread")
    };
    for thread in [start("seller", sell), start("counter", count)] {
        let _ = thread.join();
    }
}
