//! Locks of Rust's std in variables; prints their addresses, then sleeps.

use std::io::Write;
use std::sync::Mutex;

#[repr(align(64))]
struct Padded(Mutex<u64>);

struct Outer {
    number: u64,
    inner: Mutex<u64>,
}

static SHARDS: [Mutex<[u64; 3]>; 4] = [const { Mutex::new([0; 3]) }; 4];
static PADDED: [Padded; 2] = [const { Padded(Mutex::new(0)) }; 2];
static PAIRS: [(u64, Mutex<u64>); 4] = [const { (7, Mutex::new(0)) }; 4];
static OUTER: Mutex<Outer> = Mutex::new(Outer { number: 1, inner: Mutex::new(2) });

fn print<T>(name: &str, lock: &Mutex<T>) {
    println!("{name} {lock:p}");
}

fn main() {
    print("SHARDS[2]", &SHARDS[2]);
    print("PADDED[1]", &PADDED[1].0);
    print("PAIRS[3]", &PAIRS[3].1);
    let outer = OUTER.lock().expect("nobody panics");
    print("inside", &outer.inner);
    assert_eq!(outer.number, 1);
    drop(outer);
    println!("ready");
    std::io::stdout().flush().expect("somebody reads");
    loop {
        std::thread::park();
    }
}
