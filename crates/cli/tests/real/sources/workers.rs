//! Rust's own locks, which are none of the C library's.

use std::sync::{Arc, Mutex, RwLock};

fn main() {
    let shared = Arc::new((Mutex::new(0u64), RwLock::new(1u64)));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                for _ in 0..5000 {
                    *shared.0.lock().unwrap() += *shared.1.read().unwrap();
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    println!("{}", shared.0.lock().unwrap());
    std::process::exit(8);
}
