//! The kernel's time-slice extension: where it is offered, and in an emulated machine that offers it.

mod common;
mod machine;

use common::{Counter, Watchdog, in_threads};
use core::panic::Location;
use lockstead_core::Platform;
use lockstead_linux::Linux;
use lockstead_linux::features::{Facility, probe};
use lockstead_linux::slice::extensions;
use machine::Machine;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn facility() -> Facility {
    let all = probe().facilities;
    all.into_iter().find(|f| f.name == "rseq_slice_extension").expect("it is listed")
}

/// Returns whether extensions are in use here; if not, says why, which skips the test.
fn in_use() -> bool {
    let facility = facility();
    if !facility.in_use {
        println!("skipped: {}", facility.detail);
        assert!(!facility.detail.is_empty());
    }
    facility.in_use
}

/// Reads request and grant of the calling thread, where the libc's area has them.
fn bytes() -> [u8; 2] {
    // SAFETY: the name is a C string; the libc returns an object of its own, of this type, or null.
    let offset = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) };
    assert!(!offset.is_null(), "a libc that has an area names it");
    let thread: *const u8;
    // SAFETY: on x86-64 the first word behind the thread pointer is the pointer itself; on aarch64 the
    // instruction reads no memory.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) thread);
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) thread);
    }
    // SAFETY: extensions are in use, so that the thread's area lies there and has the bytes.
    unsafe {
        let bytes = thread.offset(*offset.cast::<isize>() + 28);
        [bytes.read_volatile(), bytes.add(1).read_volatile()]
    }
}

#[test]
fn owners_are_granted_time_where_the_kernel_offers_it() {
    let _watchdog = Watchdog::new(100);
    if !in_use() {
        common::count_with(4, 10_000);
        assert_eq!(extensions(), 0, "granted without being asked for");
        return;
    }
    // More threads than processors, so that the scheduler takes processors away from
    // owners; until it was asked not to, and agreed.
    let counter = Counter::new();
    let end = Instant::now() + Duration::from_secs(30);
    let adds = AtomicU64::new(0);
    in_threads(8, &|| {
        let mut mine = 0;
        while extensions() == 0 && Instant::now() < end {
            counter.add_slowly(1_000);
            mine += 1;
        }
        adds.fetch_add(mine, Relaxed);
    });
    assert_eq!(counter.total(), adds.into_inner());
    assert!(extensions() > 0, "never granted: {}", facility().detail);
}

#[test]
fn a_request_stands_while_a_lock_is_held_for_which_others_fight() {
    let _watchdog = Watchdog::new(100);
    if in_use() {
        requests();
    }
}

/// Takes a lock that nobody wants, then one that it has to wait for.
fn requests() {
    let counter = Counter::new();
    let lock = || counter.lock.lock(Location::caller()).expect("no reason to fail");
    // SAFETY: called by a thread that has locked it.
    let unlock = || unsafe { counter.lock.unlock() };
    lock();
    assert_eq!(bytes(), [0, 0], "nobody wants the lock");
    unlock();

    let (slot, seen) = (AtomicU32::new(0), AtomicU32::new(0));
    for _ in 0..1_000 {
        lock();
        slot.store(0, Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                slot.store(Linux::me().get(), Relaxed);
                lock();
                // A request; or a grant, which the kernel may have revoked since.
                seen.fetch_add(u32::from(bytes() != [0, 0]), Relaxed);
                unlock();
                assert_eq!(bytes()[0], 0, "the release takes the request back");
            });
            common::until("the waiter has joined", || slot.load(Relaxed) != 0);
            common::until_asleep(slot.load(Relaxed));
            unlock();
        });
        if seen.load(Relaxed) != 0 {
            return;
        }
    }
    panic!("no owner asked");
}

/// A storm's sections, and how many of them took longer than a processor's loss of a moment.
struct Storm {
    sections: u64,
    long: u64,
}

/// Has eight threads fight for a lock for some seconds, now and then with another one inside or with
/// a system call, with or without extensions.
fn storm(seconds: u64, extended: bool) -> Storm {
    const LONG: Duration = Duration::from_millis(1);
    let (outer, inner) = (Counter::new(), Counter::new());
    let [sections, insides, long] = [const { AtomicU64::new(0) }; 3];
    let end = Instant::now() + Duration::from_secs(seconds);
    in_threads(8, &|| {
        Linux::me();
        // SAFETY: `PR_RSEQ_SLICE_EXTENSION` takes numbers: set, and whether it is on.
        let set = unsafe { libc::prctl(79, 2, libc::c_ulong::from(extended), 0, 0) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        let (mut mine, mut inside, mut slow) = (0_u64, 0, 0);
        while Instant::now() < end {
            outer.lock.lock(Location::caller()).expect("no reason to fail");
            let began = Instant::now();
            (0..200).for_each(|_| core::hint::spin_loop());
            if mine % 8 == 0 {
                inner.add();
                inside += 1;
            }
            if mine % 32 == 1 {
                common::gettid();
            }
            slow += u64::from(began.elapsed() > LONG);
            // SAFETY: this thread has taken the lock above.
            unsafe { outer.lock.unlock() };
            outer.add();
            mine += 1;
        }
        sections.fetch_add(mine, Relaxed);
        insides.fetch_add(inside, Relaxed);
        long.fetch_add(slow, Relaxed);
    });
    assert_eq!(outer.total(), sections.load(Relaxed));
    assert_eq!(inner.total(), insides.into_inner());
    Storm { sections: sections.into_inner(), long: long.into_inner() }
}

/// What an emulated machine runs; elsewhere nothing.
#[test]
fn inside() {
    if !machine::is_inside() {
        println!("skipped: not inside of an emulated machine");
        return;
    }
    machine::mount();
    // The harness has begun a line.
    println!();
    let facility = facility();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("proc is mounted");
    println!("machine: Linux {}: {}", release.trim(), facility.detail);
    if std::env::var_os("LOCKSTEAD_OFF").is_some() {
        assert!(!facility.offered && !facility.in_use);
        common::count_with(4, 10_000);
        assert_eq!(extensions(), 0, "granted where it is switched off");
        return;
    }
    assert!(facility.in_use);
    requests();
    // In a child the area stays registered, and the extension on.
    common::in_child("asks as its parent did", || {
        requests();
        true
    });
    for nanoseconds in ["5000", "50000"] {
        std::fs::write("/debug/rseq/slice_ext_nsec", nanoseconds).expect("the kernel's bounds");
        for extended in [false, true] {
            let before = (extensions(), statistics());
            let Storm { sections, long } = storm(20, extended);
            println!(
                "machine: {nanoseconds} ns, asking {extended}: {sections} sections, {long} longer \
                 than 1 ms, {} given back in time; the kernel:{}",
                extensions() - before.0,
                since(&before.1)
            );
        }
    }
    assert!(extensions() > 0, "never granted, or never given back in time");
}

/// Reads what the kernel counts of extensions, by name.
fn statistics() -> Vec<(String, i64)> {
    let text = std::fs::read_to_string("/debug/rseq/stats").expect("the kernel counts");
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let of = |(name, count): (&str, &str)| Some((name.to_owned(), count.trim().parse().ok()?));
    let named = ["sgrant", "sexpir", "srevok", "syield", "sabort"];
    pairs.filter(|(name, _)| named.contains(name)).filter_map(of).collect()
}

/// Says what was counted since then.
fn since(before: &[(String, i64)]) -> String {
    let now = statistics();
    now.iter().zip(before).map(|(now, then)| format!(" {} {}", now.0, now.1 - then.1)).collect()
}

/// Runs [`inside`] in a machine with the extension, whose kernel ends a thread that uses it wrongly,
/// and in one in which it is switched off.
#[test]
fn in_an_emulated_machine_owners_are_granted_time_and_give_it_back() {
    if machine::is_inside() {
        return;
    }
    let machine = match Machine::find() {
        Ok(machine) => machine,
        Err(missing) => {
            println!("skipped: {missing}");
            return;
        }
    };
    for kernel in ["rseq_debug=1", "rseq_slice_ext=0 LOCKSTEAD_OFF=1"] {
        let text = machine.run("inside", kernel);
        for line in text.lines().filter(|line| line.starts_with("machine: ")) {
            println!("{line}");
        }
        assert!(text.contains("test result: ok. 1 passed"), "{kernel}:\n{text}");
    }
}
