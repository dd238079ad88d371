//! Ledgers written by the library's side and read by the command's, in one
//! process that plays both.

use lockstead_inspect::ledger::{CallerRequest, Listener, MappedLedger, attach, passing};
use lockstead_inspect::waits::observe::Observer;
use lockstead_ledger::hello::{self, Hello};
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::{Ledger, LedgerLayout};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// Returns a ledger as the library makes it: a sealed memory file, mapped. The mapping stays until
/// the test ends.
fn ledger(token: &str, seals: libc::c_int) -> (Ledger<'static>, OwnedFd) {
    // An underscore is no part of a token: `attach` passes such names over.
    let name = CString::new(format!("lockstead-{token}")).unwrap();
    let layout = LedgerLayout::divide(LedgerLayout::SMALLEST);
    // SAFETY: a new memory file, and a mapping of all of it that is never
    // removed; nobody else knows of it yet.
    unsafe {
        let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        assert!(file >= 0);
        let file = OwnedFd::from_raw_fd(file);
        assert_eq!(libc::ftruncate(file.as_raw_fd(), layout.size as i64), 0);
        assert_eq!(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals), 0);
        let base = libc::mmap(
            ptr::null_mut(),
            layout.size as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(base, libc::MAP_FAILED);
        (Ledger::create(base.cast(), layout, std::process::id(), 1), file)
    }
}

const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

#[test]
fn what_one_side_writes_the_other_reads() {
    let (ledger, file) = ledger("readers_test", SEALS);
    let mapped = MappedLedger::new(file, true).expect("mapped");
    assert_eq!(mapped.view().header().pid.load(Relaxed), std::process::id());
    mapped.set_clock(77 << 30);
    assert_eq!(ledger.header().clock.0.load(Relaxed), 77 << 30);
    let id = ledger.intern_stack(&[0x11, 0x22], 0);
    let returns: Vec<u64> = mapped.view().stack(id).expect("stored").returns().collect();
    assert_eq!(returns, [0x11, 0x22]);
}

#[test]
fn a_file_that_could_shrink_is_refused() {
    let (_, file) = ledger("unsealed_test", libc::F_SEAL_GROW);
    let error = MappedLedger::new(file, false).expect_err("not sealed");
    assert!(error.to_string().contains("sealed"), "{error}");
    let file = File::open("/proc/self/exe").expect("opens");
    assert!(MappedLedger::new(file.into(), false).is_err(), "no memory file at all");
}

#[test]
fn a_file_that_is_no_ledger_is_refused() {
    let (ledger, file) = ledger("broken_test", SEALS);
    ledger.header().version.store(99, Relaxed);
    let error = MappedLedger::new(file.try_clone().unwrap(), false).expect_err("another version");
    assert!(error.to_string().contains("99"), "{error}");
    ledger.header().magic.store(0, Relaxed);
    assert!(MappedLedger::new(file, false).is_err());
}

#[test]
fn a_thread_that_stays_in_one_wait_is_seen_with_what_it_holds() {
    let (ledger, file) = ledger("observe_test", SEALS);
    let mapped = MappedLedger::new(file, false).expect("mapped");
    for _ in 0..2 {
        ledger.claim(LedgerPart::Threads, 1).expect("room");
    }
    let thread = ledger.thread(1).expect("claimed");
    thread.record.tid.store(42, Relaxed);
    let holding = Holding { address: 0x500, flags: Flags::READ, ..Holding::default() };
    thread.stack().push(&holding).expect("room");
    let how = WaitKind::MUTEX;
    let wait = Waiting { how, stack: 3, target: 0x600, since: 5, deadline: 0, companion: 0 };
    let mut observer = Observer::default();
    let view = mapped.view();
    assert!(!observer.look(&view), "nobody waits");
    thread.record.wait.begin(&wait);
    assert!(!observer.look(&view), "the first look is not enough");
    assert!(observer.look(&view));
    assert!(!observer.look(&view), "no news");
    let seen: Vec<_> = observer.waiters().cloned().collect();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].thread, seen[0].tid, seen[0].waiting), (1, 42, wait));
    assert_eq!(seen[0].held, [holding]);
    // The same wait once more is another episode.
    thread.record.wait.end();
    thread.record.wait.begin(&wait);
    assert!(!observer.look(&view));
    assert_eq!(observer.waiters().count(), 0);
    assert!(observer.look(&view));
    assert_ne!(observer.waiters().next().expect("again").episode, seen[0].episode);
    thread.record.wait.end();
    assert!(!observer.look(&view));
    assert_eq!(observer.waiters().count(), 0);
}

#[test]
fn a_ledger_is_handed_to_the_command_and_on_to_whoever_asks() {
    let mut listener = Listener::new().expect("listens");
    let (ledger, file) = ledger(listener.token(), SEALS);
    let (name, length) = hello::socket_name(listener.token().as_bytes());
    assert!(listener.calls().is_empty());

    // The library's part.
    let connection = passing::connect(&name[..length]).expect("connects");
    let pid = std::process::id();
    let hello = Hello { pid, size: ledger.layout().size, ..Hello::EMPTY };
    passing::send(connection.as_fd(), hello.as_bytes(), Some(file.as_fd())).expect("sent");
    drop((connection, file));
    let calls = listener.calls();
    let [CallerRequest::Hello { hello, peer, .. }] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((hello.pid, peer.pid), (pid, pid));
    let Some(CallerRequest::Hello { file, .. }) = calls.into_iter().next() else { unreachable!() };
    let mapped = MappedLedger::new(file, true).expect("mapped");

    // `lockstead dump` of this very process.
    let asking = std::thread::spawn(move || attach(pid));
    let calls = loop {
        let calls = listener.calls();
        if !calls.is_empty() {
            break calls;
        }
        std::thread::yield_now();
    };
    let [CallerRequest::Question { pid: asked, caller }] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((*asked, caller.peer.pid), (pid, pid));
    caller.give(mapped.file());
    let theirs = asking.join().unwrap().expect("given").expect("under a run");
    ledger.header().threads_used.store(5, Relaxed);
    assert_eq!(theirs.view().used(LedgerPart::Threads), 5);
    theirs.set_clock(u64::MAX);
    assert_ne!(ledger.header().clock.0.load(Relaxed), u64::MAX, "only the command keeps the clock");

    // Refused, and with nobody there.
    let asking = std::thread::spawn(move || attach(pid));
    let calls = loop {
        let calls = listener.calls();
        if !calls.is_empty() {
            break calls;
        }
        std::thread::yield_now();
    };
    let [CallerRequest::Question { caller, .. }] = &calls[..] else { panic!("{calls:?}") };
    caller.refuse("not here");
    assert_eq!(asking.join().unwrap().expect_err("refused").to_string(), "not here");
    drop(listener);
    let gone = attach(pid).expect_err("nobody listens").to_string();
    assert!(gone.contains("has gone"), "{gone}");
}
