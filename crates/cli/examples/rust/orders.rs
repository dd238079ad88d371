//! A shop with a deadlock in it.
//!
//!     rustc -O -g orders.rs
//!     lockstead run -- ./orders
//!
//! A sale locks the stock, then the till; the count in the evening locks the till, then the
//! stock. A third thread, the clerk, locks the stock and gives it back again and again until
//! both are at it, and then only refers to it.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

struct Shop {
    stock: Mutex<u32>,
    till: Mutex<u64>,
    /// Both have locked their first by now.
    noon: Barrier,
}

#[inline(never)]
fn sell(shop: &Shop) {
    let mut stock = shop.stock.lock().unwrap();
    shop.noon.wait();
    let mut till = shop.till.lock().unwrap();
    *stock -= 1;
    *till += 250;
}

#[inline(never)]
fn count(shop: &Shop) {
    let till = shop.till.lock().unwrap();
    shop.noon.wait();
    let stock = shop.stock.lock().unwrap();
    println!("{} pieces, {} cents", *stock, *till);
}

#[inline(never)]
fn look(shop: &Shop) {
    while shop.stock.try_lock().map(|mut stock| *stock += 1).is_ok() {
        thread::yield_now();
    }
    while !shop.stock.is_poisoned() {
        thread::sleep(Duration::from_millis(100));
    }
}

fn main() {
    let shop = Arc::new(Shop { stock: Mutex::new(9), till: Mutex::new(0), noon: Barrier::new(2) });
    let start = |name: &str, work: fn(&Shop)| {
        let shop = shop.clone();
        thread::Builder::new().name(name.into()).spawn(move || work(&shop)).unwrap()
    };
    let (clerk, seller, counter) =
        (start("clerk", look), start("seller", sell), start("counter", count));
    for thread in [seller, counter, clerk] {
        thread.join().unwrap();
    }
}
