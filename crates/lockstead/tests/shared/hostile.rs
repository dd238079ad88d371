//! A peer that writes anything anywhere, at any time.

use crate::support::{Random, Watchdog};
use lockstead::shared::inspect::{Mender, SegmentView};
use lockstead::shared::{
    Busy, Locked, OnDeath, Segment, SegmentOptions, Shareable, SharedCondvar, SharedMutex,
    SharedRwLock, SharedSemaphore,
};
use lockstead_core::robust::word::{INCONSISTENT, RESERVED, UNTOUCHED, WAITERS};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Shareable)]
#[repr(C)]
struct Root {
    mutexes: [SharedMutex<[u64; 2]>; 4],
    rwlocks: [SharedRwLock<u64>; 2],
    semaphores: [SharedSemaphore; 2],
    changed: SharedCondvar,
}

const PARTICIPANTS: u32 = 12;
const LOCKERS: usize = 4;

/// The segment once more, as 32-bit words.
struct Words {
    base: *const AtomicU32,
    count: usize,
}

// SAFETY: the words lie in a mapping that is never unmapped, and are used as atomics only.
unsafe impl Sync for Words {}

impl Words {
    fn new(file: &File, bytes: u64) -> Words {
        let (protection, bytes) = (libc::PROT_READ | libc::PROT_WRITE, bytes as usize);
        let (nowhere, fd) = (core::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: the call makes a new mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(nowhere, bytes, protection, libc::MAP_SHARED, fd, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        Words { base: base.cast(), count: bytes / 4 }
    }

    fn all(&self) -> &[AtomicU32] {
        // SAFETY: `new` mapped so many words, which are used as atomics only and never unmapped.
        unsafe { core::slice::from_raw_parts(self.base, self.count) }
    }
}

/// Returns what may be written: anything, or what the protocol knows.
fn word(random: &mut Random) -> u32 {
    let slot = random.below(PARTICIPANTS as usize + 3) as u32;
    let generation = (random.below(4) as u32) << 14;
    let flags = [0, WAITERS, INCONSISTENT, RESERVED, UNTOUCHED, WAITERS | RESERVED, !0 << 28];
    match random.below(10) {
        0 => random.next() as u32,
        1 | 2 => 0,
        3 => u32::MAX,
        4 => 0xc000_0000,
        5 => 0x8000_0000 | random.below(100_000) as u32,
        6 => std::process::id() | 0x8000_0000,
        7 => 1 << random.below(32),
        _ => flags[random.below(flags.len())] | generation | slot,
    }
}

/// Does one lock operation with a limit, whatever comes of it. Tells whether it got a lock.
fn operate(root: &Root, random: &mut Random) -> bool {
    let limit = Duration::from_micros(random.next() % 3000);
    let mutex = &root.mutexes[random.below(4)];
    let (rwlock, semaphore) = (&root.rwlocks[random.below(2)], &root.semaphores[random.below(2)]);
    match random.below(12) {
        0 | 1 => {
            let Ok(Locked::Acquired(mut pair)) = mutex.lock_timeout(limit) else { return false };
            pair[0] = pair[0].wrapping_add(1);
            pair[1] = pair[0];
            true
        }
        2 | 3 => {
            let Ok(locked) = mutex.lock_timeout(limit) else { return false };
            locked.recover(|pair| pair[1] = pair[0]).is_ok()
        }
        4 => mutex.try_lock().is_ok(),
        5 => {
            let Ok(read) = rwlock.read_timeout(limit) else { return false };
            read.recover(|number| *number = 0).is_ok()
        }
        6 => {
            let Ok(written) = rwlock.write_timeout(limit) else { return false };
            written.recover(|number| *number = 0).is_ok()
        }
        7 => rwlock.try_read().is_ok() | rwlock.try_write().is_ok(),
        8 => semaphore.acquire_timeout(random.below(3) as u32, limit).is_ok(),
        9 => {
            let Ok(taken) = semaphore.try_acquire(1) else { return false };
            taken.permit().consume();
            semaphore.add(1).is_ok()
        }
        10 => {
            let Ok(Locked::Acquired(pair)) = mutex.lock_timeout(limit) else { return false };
            root.changed.wait_timeout(pair, limit).is_ok()
        }
        _ => {
            root.changed.notify_one();
            root.changed.notify_all();
            false
        }
    }
}

/// Looks at the segment, and mends it, from outside.
fn meddle(path: &Path, view: &SegmentView, mender: &Mender, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if let Ok(people) = view.people() {
            let mut locks = 0;
            let _ = view.locks(&people, &mut |lock| {
                locks += 1;
                let _ = mender.mend(lock.offset, lock.kind, true);
                true
            });
            assert_eq!(locks, 9);
        }
        let _ = mender.declare_dead();
        mender.scrub();
        let _ = SegmentView::open(path);
        let _ = Segment::<Root>::open(path);
        thread::sleep(Duration::from_millis(5));
    }
}

fn storm(seed: u64, time: Duration) {
    let options = SegmentOptions::new().participants(PARTICIPANTS).claims(4);
    let segment = Segment::<Root>::memfd_with("hostile", &options, |root| {
        root.semaphores = [const { OnDeath::Return }, OnDeath::Report]
            .map(|on_death| SharedSemaphore::new(3, on_death));
    });
    let segment = segment.expect("a segment");
    let file = File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    // Before anything is spoiled: afterwards it may not open any more.
    let view = SegmentView::open(&path).expect("a segment");
    let mender = Mender::open(&path).expect("a segment");
    let header = *segment.header();
    let words = Words::new(&file, header.total);
    let (over, started) = (AtomicBool::new(false), AtomicU32::new(0));
    let (operations, writes) = ([const { AtomicU64::new(0) }; 2], AtomicU64::new(0));
    let longest = AtomicU64::new(0);
    let end = Instant::now() + time;
    thread::scope(|s| {
        s.spawn(|| {
            started.fetch_add(1, Ordering::Relaxed);
            meddle(&path, &view, &mender, &over);
        });
        let (segment, over, started) = (&segment, &over, &started);
        let (operations, longest) = (&operations, &longest);
        for locker in 0..LOCKERS as u64 {
            s.spawn(move || {
                let mut random = Random::new(seed * 100 + locker);
                while !over.load(Ordering::Relaxed) {
                    // A new thread each time: it joins, and leaves or dies.
                    let seed = random.next();
                    thread::scope(|s| {
                        s.spawn(move || {
                            let mut random = Random::new(seed);
                            started.fetch_add(1, Ordering::Relaxed);
                            for _ in 0..200 {
                                if over.load(Ordering::Relaxed) {
                                    return;
                                }
                                let start = Instant::now();
                                let got = operate(segment.root(), &mut random);
                                let took = start.elapsed().as_millis() as u64;
                                longest.fetch_max(took, Ordering::Relaxed);
                                operations[usize::from(got)].fetch_add(1, Ordering::Relaxed);
                            }
                        });
                    });
                }
            });
        }
        let mut random = Random::new(seed);
        let (all, root) = (words.all(), header.root as usize / 4);
        let records = header.doorbell as usize / 4..header.claims_at as usize / 4;
        let records = records.start..records.end + PARTICIPANTS as usize * 8;
        while Instant::now() < end {
            for _ in 0..64 {
                let at = match random.below(8) {
                    0 => random.below(all.len()),
                    1..4 => records.start + random.below(records.len()),
                    _ => root + random.below(header.root_bytes as usize / 4),
                };
                all[at].store(word(&mut random), Ordering::Relaxed);
                writes.fetch_add(1, Ordering::Relaxed);
            }
            // Now and then it lets a slot be used, or a lock.
            let at = match random.below(3) {
                0 => root + random.below(header.root_bytes as usize / 32) * 8,
                _ => header.slots_at as usize / 4 + random.below(PARTICIPANTS as usize) * 32,
            };
            for word in &all[at..at + 8] {
                word.store(0, Ordering::Relaxed);
            }
            if started.load(Ordering::Relaxed) < 5 || random.below(3) == 0 {
                thread::sleep(Duration::from_micros(200));
            }
        }
        over.store(true, Ordering::Relaxed);
        // The peer leaves; what it leaves is a segment that was never used. Who sleeps
        // for ever by its own choice (to give units back) looks again within a second.
        for word in &all[header.doorbell as usize / 4..] {
            word.store(0, Ordering::Relaxed);
        }
    });
    let ([failed, got], writes) = (operations.map(AtomicU64::into_inner), writes.into_inner());
    assert!(failed > 100 && got > 100, "{failed}, {got}");
    assert!(writes > 1000, "{writes}");
    // And the locks are locks again.
    for word in &words.all()[header.doorbell as usize / 4..] {
        word.store(0, Ordering::Relaxed);
    }
    let root = segment.root();
    for mutex in &root.mutexes {
        assert!(matches!(mutex.lock().unwrap(), Locked::Acquired(_)));
    }
    for rwlock in &root.rwlocks {
        assert!(matches!(rwlock.write().unwrap(), Locked::Acquired(_)));
        assert!(matches!(rwlock.read().unwrap(), Locked::Acquired(_)));
    }
    // A hang would be one until the words were put in order. Who gives units back has no
    // limit of its own, and looks again every second.
    let longest = longest.into_inner();
    assert!(longest < 10_000, "{longest} ms for one operation");
    println!("{got} locks got, {failed} not; {writes} words written over; at most {longest} ms");
}

#[test]
fn nothing_that_a_peer_writes_does_harm() {
    let _watchdog = Watchdog::new("nothing_that_a_peer_writes_does_harm");
    for seed in 1..=3 {
        storm(seed, Duration::from_millis(1500));
    }
}

/// What a thread has it knows by itself.
#[test]
fn who_reads_or_has_units_is_a_participant_also_if_its_claims_are_erased() {
    let _watchdog = Watchdog::new("who_reads_or_has_units_is_a_participant_also_if_its");
    let segment = Segment::<Root>::memfd_with("erased", &SegmentOptions::new(), |root| {
        root.semaphores[0] = SharedSemaphore::new(1, OnDeath::Return);
    });
    let segment = segment.expect("a segment");
    let root = segment.root();
    let file = File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let header = *segment.header();
    let erase = || {
        let claims = vec![0; (header.root - header.claims_at) as usize];
        file.write_all_at(&claims, header.claims_at).expect("written");
    };
    let read = root.rwlocks[0].read().unwrap();
    erase();
    assert_eq!(segment.leave(), Err(Busy::Holds));
    drop(read);
    assert_eq!(segment.leave(), Ok(()));
    let permit = root.semaphores[0].acquire(1).unwrap();
    erase();
    assert_eq!(segment.leave(), Err(Busy::Holds));
    drop(permit);
    assert_eq!(segment.leave(), Ok(()));
}
