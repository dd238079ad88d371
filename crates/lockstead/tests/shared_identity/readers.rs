//! Beside who may only read the file, and moves those who sleep at its words.

#[path = "../../../linux/tests/common/thief.rs"]
mod thief;

use crate::support::{Child, LONG, Named, Root};
use lockstead::shared::Segment;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Returns a page that this process and its children share, zeroed.
fn shared_page() -> &'static [AtomicU32; 8] {
    let (rights, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a mapping of this function's own, never unmapped, valid when it is all zeroes.
    unsafe {
        let page = libc::mmap(core::ptr::null_mut(), 4096, rights, kind, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        &*page.cast()
    }
}

fn is_asleep(child: &Child) -> Option<bool> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    Some(after.trim_start().starts_with('S'))
}

/// Each wake-up is taken away. The first one is missed for a second; who has met that does not
/// sleep so long again.
#[test]
fn who_takes_all_wake_ups_away_delays_and_no_more() {
    /// More than there are seconds in the deadline.
    const TIMES: u32 = 40;
    let named = Named::new("stolen");
    let (path, root) = (&named.path, named.segment.root());
    let word = named.segment.header().root as usize + core::mem::offset_of!(Root, mutex);
    let file = File::open(path).expect("it may read");
    let [rounds, ..] = shared_page();
    let thief = Child::new(|| thief::steal(&file, &[word, word + 4], rounds));
    let end = Instant::now() + LONG;
    let mut held = root.mutex.lock().expect("a slot");
    let waiter = Child::new(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        let root = segment.root();
        for time in 1..=TIMES {
            root.stage.store(2 * time - 1, SeqCst);
            drop(root.mutex.lock().expect("a slot"));
            root.stage.store(2 * time, SeqCst);
            root.await_stage(100 + time);
        }
    });
    for time in 1..=TIMES {
        root.await_stage(2 * time - 1);
        let waits = || {
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, word as u64).expect("the word");
            u32::from_ne_bytes(bytes) >> 31 == 1
        };
        loop {
            assert!(Instant::now() < end, "missed wake-ups took too long, at {time} of {TIMES}");
            match is_asleep(&waiter) {
                None => return println!("skipped: no /proc here"),
                Some(true) if waits() => break,
                Some(_) => std::thread::sleep(Duration::from_micros(200)),
            }
        }
        let before = rounds.load(SeqCst);
        while rounds.load(SeqCst) < before + 2 {
            assert!(Instant::now() < end, "the thief does not run");
            std::thread::yield_now();
        }
        drop(held);
        while root.stage.load(SeqCst) != 2 * time {
            assert!(Instant::now() < end, "missed wake-ups took too long, at {time} of {TIMES}");
            std::thread::sleep(Duration::from_micros(200));
        }
        held = root.mutex.lock().expect("it has been given back");
        root.stage.store(100 + time, SeqCst);
    }
    waiter.ends();
    thief.kill();
}
