//! The example of the README.

use lockstead::Mutex;
use std::time::Duration;

static ORDERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn main() {
    ORDERS.lock().push(7);
    match ORDERS.lock_timeout(Duration::from_millis(50)) {
        Ok(orders) => println!("{} order(s)", orders.len()),
        Err(late) => eprintln!("{late}: held by {:?}", ORDERS.owner()),
    }
}
