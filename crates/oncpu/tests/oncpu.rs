//! The table of who runs where: started, used, stopped; what it says must be true
//! where that can be known, and what it is asked by others must be harmless.
//!
//! All in children with a `/run` of their own: nothing of the machine's is touched, and
//! nothing is left behind, not even by a test that fails.

#[path = "../../linux/tests/common/mod.rs"]
mod common;

use common::{
    Watchdog, apart, ask, beside, count_with, in_child, my_slot, pin, spin, until, until_asleep,
};
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use lockstead_core::{OnCpu, Platform, Slot};
use lockstead_linux::Linux;
use lockstead_linux::oncpu::{layout::FOLDER, status};
use lockstead_linux::owner::{Oracle, set_oracle};
use lockstead_oncpu::{start, stop};
use std::path::Path;
use std::time::{Duration, Instant};

fn folder() -> &'static Path {
    Path::new(FOLDER.to_str().expect("plain text"))
}

/// Runs `body` again in a process with a `/run` of its own, where the table can be
/// started; skips with the reason where it cannot.
fn with_table(name: &str, body: impl FnOnce()) {
    let _watchdog = Watchdog::new(100);
    apart(name, || match start() {
        Ok(_) => {
            until("the table is kept", || status().expect("readable").expect("there").kept);
            body();
            stop().expect("what was started is stopped");
        }
        Err(why) => println!("skipped: {why}"),
    });
}

/// Waits until the table knows the calling thread. It may deny it for as long as the thread
/// stays where it is, when the switch to it was not told.
fn known() {
    let me = Slot::new(my_slot()).expect("a slot");
    until("the table knows who asks", || Linux::on_cpu(me) == OnCpu::Yes);
}

#[test]
fn nothing_is_left_of_a_table_that_is_stopped() {
    with_table("nothing_is_left_of_a_table_that_is_stopped", || {
        let first = status().expect("readable").expect("there");
        assert_eq!(start().expect("a second start finds the first"), first);
        assert!(first.kept && first.processors > 0 && first.threads >= 1024, "{first:?}");
        assert!(stop().expect("stopped"));
        assert!(!folder().exists() && !folder().parent().expect("above").exists());
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("readable");
        assert!(!mounts.contains("lockstead"), "{mounts}");
        assert_eq!(status(), Ok(None));
        assert!(!stop().expect("a second stop has nothing to do"));
        // And once more, over what a killed start has left.
        std::fs::create_dir_all(folder()).expect("a folder");
        assert!(start().expect("started again").kept);
    });
}

/// Knows the ground truth of `owner.rs`, without the patience of a clock.
#[test]
fn the_table_knows_who_runs() {
    with_table("the_table_knows_who_runs", || {
        set_oracle(Oracle::Table);
        // Asleep: never.
        beside(common::sleep, |slot| {
            until_asleep(slot);
            known();
            let [yes, no, unknown] = ask(slot, 50);
            assert_eq!(yes, 0, "a sleeping thread runs");
            assert!(no > 20 * unknown, "{no} no, {unknown} unknown");
        });
        // Alone on a processor: found at once.
        if lockstead_linux::features::probe().processors.affinity >= 2 {
            let runner = |stop: &AtomicBool| {
                known();
                spin(stop);
            };
            beside(runner, |slot| until("it runs beside us", || ask(slot, 5)[0] > 0));
        }
        // On one processor whoever asks is the one who runs.
        std::thread::spawn(|| {
            assert!(pin(0));
            let pinned = |stop: &AtomicBool| {
                assert!(pin(0));
                spin(stop);
            };
            beside(pinned, |slot| {
                known();
                let [yes, no, unknown] = ask(slot, 300);
                assert!(yes == 0 && no > 20 * unknown, "{yes} yes, {no} no, {unknown} unknown");
            });
        })
        .join()
        .expect("right");
    });
}

/// Both are asked about a thread that is switched out and in all the time by a hog on
/// its processor. They are asked one after the other, so near a switch they may differ.
#[test]
fn clock_and_table_agree() {
    with_table("clock_and_table_agree", || {
        if lockstead_linux::features::probe().processors.affinity < 2 {
            println!("skipped: with one processor the one who asks is in the way");
            return;
        }
        let hog_stops = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(pin(1));
                spin(&hog_stops);
            });
            let owner = |stop: &AtomicBool| {
                assert!(pin(1));
                spin(stop);
            };
            assert!(pin(0));
            beside(owner, |slot| {
                let slot = Slot::new(slot).expect("a slot");
                let (mut same, mut differ, mut seen) = (0, 0, [0; 2]);
                let end = Instant::now() + Duration::from_secs(2);
                while Instant::now() < end {
                    let by = |oracle| {
                        set_oracle(oracle);
                        Linux::on_cpu(slot)
                    };
                    let before = by(Oracle::Table);
                    let clock = by(Oracle::Clock);
                    let after = by(Oracle::Table);
                    // A switch in between, or the clock's patience.
                    if before != after || clock == OnCpu::Unknown || before == OnCpu::Unknown {
                        continue;
                    }
                    seen[usize::from(before == OnCpu::Yes)] += 1;
                    *(if clock == before { &mut same } else { &mut differ }) += 1;
                }
                println!("same {same}, different {differ}; off, on: {seen:?}");
                assert!(seen.iter().all(|&count| count > 0), "never switched: {seen:?}");
                assert!(same > 20 * differ, "{same} agree, {differ} do not");
            });
            hog_stops.store(true, Relaxed);
        });
    });
}

#[test]
fn locks_exclude_with_the_table_and_after_it() {
    with_table("locks_exclude_with_the_table_and_after_it", || {
        set_oracle(Oracle::Chain);
        count_with(8, 10_000);
        beside(spin, |slot| {
            set_oracle(Oracle::Table);
            assert_ne!(ask(slot, 20), [0; 3]);
            assert!(stop().expect("stopped"));
            let [yes, no, unknown] = ask(slot, 20);
            assert!(yes == 0 && no == 0 && unknown > 0, "an old table is believed");
            set_oracle(Oracle::Chain);
            let clock = |slot| ask(slot, 20)[..2] != [0, 0];
            until("the clock answers instead", || clock(slot));
        });
        count_with(8, 10_000);
        let _ = start();
    });
}

/// The names are taken away by hand, and the table stays as it was for good. Who ran at
/// that moment may be deceived as long as it does not move; nobody else is.
#[test]
fn a_table_that_nobody_keeps_is_noticed() {
    with_table("a_table_that_nobody_keeps_is_noticed", || {
        set_oracle(Oracle::Table);
        let (joined, gone) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let slept = scope.spawn(|| {
                my_slot();
                joined.store(true, Relaxed);
                until("the program is gone", || gone.load(Relaxed));
                beside(spin, |slot| {
                    let [yes, no, _] = ask(slot, 20);
                    assert_eq!((yes, no), (0, 0), "an old table is believed");
                });
            });
            until("the other thread has joined", || joined.load(Relaxed));
            std::fs::remove_file(folder().join("link")).expect("removed");
            let kept = || status().expect("readable").expect("there").kept;
            until("a new thread is unknown to it", || {
                !std::thread::spawn(kept).join().expect("an answer")
            });
            gone.store(true, Relaxed);
            slept.join().expect("right");
        });
    });
}

#[test]
fn those_without_privileges_may_read_and_not_write() {
    with_table("those_without_privileges_may_read_and_not_write", || {
        in_child("as nobody", || {
            assert!(common::become_nobody(), "privileges can be given up");
            set_oracle(Oracle::Table);
            count_with(4, 1_000);
            known();
            assert!(start().is_ok(), "what is there need not be started");
            assert!(stop().is_err(), "nobody stops it");
            assert!(!writable(c"/run/lockstead/oncpu/table"), "nobody can change it");
            assert!(status().expect("readable").expect("there").kept);
            true
        });
    });
}

/// Tells whether the map of this name can be mapped for writing, or changed by a call.
fn writable(path: &CStr) -> bool {
    #[repr(C)]
    struct Open {
        path: *const libc::c_char,
        file: u32,
        flags: u32,
    }
    #[repr(C)]
    struct Update {
        map: u32,
        key: *const u32,
        value: *const u8,
        flags: u64,
    }
    const MAP_UPDATE_ELEM: i32 = 2;
    const OBJ_GET: i32 = 7;
    let bytes = status().expect("readable").expect("there").bytes;
    let open = Open { path: path.as_ptr(), file: 0, flags: 0 };
    let value = vec![0_u8; bytes.next_multiple_of(8)];
    // SAFETY: the kernel reads live structures, and writes nothing of ours.
    unsafe {
        let map = libc::syscall(libc::SYS_bpf, OBJ_GET, &raw const open, size_of::<Open>());
        assert!(map >= 0, "it can be opened");
        let map = map as i32;
        let page = libc::mmap(
            core::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            map,
            0,
        );
        let key = 0;
        let update =
            Update { map: map as u32, key: &raw const key, value: value.as_ptr(), flags: 0 };
        let size = size_of::<Update>();
        let updated = libc::syscall(libc::SYS_bpf, MAP_UPDATE_ELEM, &raw const update, size);
        libc::close(map);
        page != libc::MAP_FAILED || updated == 0
    }
}

/// In another PID namespace threads have other numbers than in the table.
#[test]
fn threads_of_another_pid_namespace_learn_their_names() {
    with_table("threads_of_another_pid_namespace_learn_their_names", || {
        // SAFETY: takes flags; the next child is the first of a new namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
            println!("skipped: no new PID namespace: {}", std::io::Error::last_os_error());
            return;
        }
        in_child("in another namespace", || {
            assert!(common::gettid() < 10, "a new namespace");
            set_oracle(Oracle::Table);
            static SLOT: AtomicU32 = AtomicU32::new(0);
            static RIGHT: AtomicU32 = AtomicU32::new(0);
            common::in_threads(2, &|| {
                if SLOT.compare_exchange(0, my_slot(), Relaxed, Relaxed).is_ok() {
                    until("the other has asked", || RIGHT.load(Relaxed) != 0);
                } else {
                    until("there is a slot", || SLOT.load(Relaxed) != 0);
                    // It sleeps most of the time, and is known: no, not unknown.
                    let slot = SLOT.load(Relaxed);
                    until("it is known", || ask(slot, 5)[1] > 0);
                    RIGHT.store(1, Relaxed);
                }
            });
            count_with(4, 1_000);
            true
        });
    });
}
