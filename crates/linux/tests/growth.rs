//! The table of threads grows. In a program of its own, for it stays grown,
//! and other tests look at how high the slot numbers go.

mod common;

use common::{Counter, Watchdog, my_slot};

/// Runs more threads at the same time than a chunk has slots.
#[test]
fn the_table_grows() {
    const THREADS: usize = 1500;
    static COUNTER: Counter = Counter::new();
    let _watchdog = Watchdog::new(60);
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let barrier = barrier.clone();
            std::thread::Builder::new()
                .stack_size(64 * 1024)
                .spawn(move || {
                    COUNTER.add();
                    barrier.wait();
                    COUNTER.add();
                    my_slot()
                })
                .expect("a thread")
        })
        .collect();
    let mut slots: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), THREADS, "two living threads on one slot");
    assert_eq!(COUNTER.total(), 2 * THREADS as u64);
}
