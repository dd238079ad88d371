//! The kernel's time-slice extension, where it is offered.
#![cfg(target_arch = "x86_64")]

mod common;

use common::{Counter, Watchdog, in_threads};
use lockstead_linux::features::{Facility, probe};
use lockstead_linux::slice::extensions;
use std::time::{Duration, Instant};

fn facility() -> Facility {
    let all = probe().facilities;
    all.into_iter().find(|f| f.name == "rseq_slice_extension").expect("it is listed")
}

#[test]
fn owners_are_granted_time_where_the_kernel_offers_it() {
    let _watchdog = Watchdog::new(100);
    let facility = facility();
    if !facility.in_use {
        println!("skipped: {}", facility.detail);
        assert!(!facility.detail.is_empty());
        common::count_with(4, 10_000);
        assert_eq!(extensions(), 0, "granted without being asked for");
        return;
    }
    // More threads than processors, so that the scheduler takes processors away from
    // owners; until it was asked not to, and agreed.
    let counter = Counter::new();
    let end = Instant::now() + Duration::from_secs(30);
    let adds = std::sync::atomic::AtomicU64::new(0);
    in_threads(8, &|| {
        let mut mine = 0;
        while extensions() == 0 && Instant::now() < end {
            counter.add_slowly(1_000);
            mine += 1;
        }
        adds.fetch_add(mine, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(counter.total(), adds.into_inner());
    assert!(extensions() > 0, "never granted: {}", facility.detail);
}
