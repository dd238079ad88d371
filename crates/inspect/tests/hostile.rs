//! A ledger that the program has written all over. Whatever is in it, the
//! command's readers come to an end, without a panic and without using up the
//! machine.

use lockstead_inspect::ledger::{MappedLedger, code};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::report::live::LiveSample;
use lockstead_inspect::report::{
    LedgerProcess, ProcessFacts, ReportOptions, Sort, describe_process,
};
use lockstead_inspect::symbols::Symbolizer;
use lockstead_inspect::waits::blocked::WaitPatience;
use lockstead_inspect::waits::detect::{DetectionContext, Detector};
use lockstead_inspect::waits::observe::{LastingWaiter, Observer};
use lockstead_inspect::waits::verify::verify;
use lockstead_inspect::waits::words::WordOwners;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::thread::{self, state};
use lockstead_ledger::{Birth, Ledger, LedgerLayout, LedgerPart};
use std::alloc::{Layout as Memory, alloc_zeroed, dealloc};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

/// The number of damages to try.
const SEEDS: u64 = 300;
/// The time for all of them together. They take seconds: what takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(300);
/// What the program has of each part.
const THREADS: u64 = 12;
const LOCKS: u64 = 40;

/// A ledger in ordinary memory.
struct Area {
    base: *mut u8,
    memory: Memory,
}

/// Repeats by its seed (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

impl Area {
    /// Makes an area as the library's side fills it: threads that wait in circles and hold, locks
    /// with statistics, stacks, a module.
    fn new() -> Area {
        let memory = Memory::from_size_align(LedgerLayout::SMALLEST as usize, 4096).unwrap();
        // SAFETY: the layout, made above, has a size that is not zero.
        let base = unsafe { alloc_zeroed(memory) };
        assert!(!base.is_null());
        let area = Area { base, memory };
        // SAFETY: the allocator has just returned zeros of that size, page-aligned.
        let ledger =
            unsafe { Ledger::create(base, LedgerLayout::divide(LedgerLayout::SMALLEST), 42, 1) };
        for number in 0..LOCKS {
            let kinds =
                [ObjectKind::Mutex, ObjectKind::RwLock, ObjectKind::Spin, ObjectKind::Semaphore];
            let stack = ledger.intern_stack(&[0x5000 + number, 0x6000, 0x7000], number as u32 % 6);
            let birth = Birth {
                address: address(number),
                kind: kinds[number as usize % kinds.len()],
                attributes: attribute::KNOWN,
                init_stack: if number % 3 == 0 { stack } else { 0 },
                first_stack: stack,
                module: number as u32 % 2,
            };
            let index = ledger.init_lock(&birth).unwrap();
            let statistics = ledger.extension(index).unwrap();
            statistics.wait.add(1000 * number, 1, stack);
            statistics.hold.add(100 * number, 3, stack);
            ledger.add_share(&statistics.waited_at, stack, 1, 1000);
            if number % 7 == 0 {
                ledger.destroy_lock(address(number));
            }
        }
        for number in 0..THREADS {
            let index = ledger.claim(LedgerPart::Threads, 1).unwrap();
            let thread = ledger.thread(index).unwrap();
            let record = thread.record;
            record.tid.store(100 + number as u32, Relaxed);
            record.handle.store(0x7000_0000 + number, Relaxed);
            record.began.store(1, Relaxed);
            record.state.store(state::LIVE, Relaxed);
            for held in 0..number % 4 {
                let holding = Holding {
                    address: address(number + held),
                    lock: (number + held) as u32 + 1,
                    flags: Flags(held as u32 % 2),
                    ..Holding::default()
                };
                thread.stack().push(&holding).unwrap();
            }
            // What the thread has acquired: small numbers and addresses.
            let first = (std::ptr::from_ref(record) as usize - base as usize) / 8;
            for at in first + 512..first + 1536 {
                let value = if at % 8 < 2 { address(at as u64 % LOCKS) } else { at as u64 % 7 };
                area.words()[at].store(value, Relaxed);
            }
            let hows = [
                WaitKind::MUTEX,
                WaitKind::WRITE,
                WaitKind::READ,
                WaitKind::JOIN,
                WaitKind::CONDITION,
                WaitKind::SPIN,
            ];
            let how = hows[number as usize % hows.len()];
            let target = match how {
                WaitKind::JOIN => 0x7000_0000 + (number + 1) % THREADS,
                _ => address((number + 1) % THREADS),
            };
            let (since, stack) = (5, 1);
            let companion = if how == WaitKind::CONDITION { address(3) } else { 0 };
            record.wait.begin(&Waiting { how, stack, target, since, deadline: 0, companion });
        }
        let module = ledger.claim(LedgerPart::Modules, 1).unwrap();
        ledger.modules()[module].write(0x5000, 0x9000, 0, 0, b"/bin/true");
        area
    }

    fn ledger(&self) -> Ledger<'_> {
        // SAFETY: made in `new`, lives as long as `self`. Its first words and its
        // layout are not damaged, or this would fail, which is tested elsewhere.
        unsafe { Ledger::open(self.base, LedgerLayout::SMALLEST) }.unwrap()
    }

    /// Returns the words of the file.
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: allocated in `new`, aligned; only ever used as atomics.
        unsafe { std::slice::from_raw_parts(self.base.cast(), LedgerLayout::SMALLEST as usize / 8) }
    }

    /// Returns the first words and the layout: what is checked when a ledger is opened.
    fn checked(&self) -> usize {
        let header = std::ptr::from_ref(&self.ledger().header().threads_used) as usize;
        (header - self.base as usize) / 8
    }

    /// Returns where something is: in each part alike, however large.
    fn place(&self, random: &mut Random) -> usize {
        let ledger = self.ledger();
        let layout = *ledger.layout();
        let stride = thread::stride(layout.held as usize) as u64;
        let thread = layout.threads.offset + random.below(THREADS) * stride;
        let (start, used) = match random.below(8) {
            0 => (self.checked() as u64 * 8, 4096 - self.checked() as u64 * 8),
            // What a thread is, waits for and knows; what it holds.
            1 => (thread, 4096 + 2048),
            2 => (thread + thread::held_offset() as u64, 256),
            3 => (layout.locks.offset, (LOCKS + 10) * 64),
            4 => (layout.extensions.offset, (LOCKS + 2) * 2048),
            5 => (layout.stacks.offset, LOCKS * 48),
            6 => (layout.modules.offset, 512),
            _ => (
                layout.classes.offset,
                (layout.stack_table.offset - layout.classes.offset).min(1 << 20),
            ),
        };
        ((start + random.below(used)) / 8) as usize
    }

    fn damage(&self, random: &mut Random) {
        let words = self.words();
        for _ in 0..1 + random.below(30) {
            let at = self.place(random);
            let length = match random.below(4) {
                0 => 1 + random.below(600) as usize,
                _ => 1,
            };
            let with = random.below(7);
            for word in words.iter().take(at + length).skip(at.max(self.checked())) {
                let old = word.load(Relaxed);
                word.store(
                    match with {
                        0 => old ^ 1 << random.below(64),
                        1 => u64::MAX,
                        2 => random.next(),
                        3 => old.wrapping_add(random.below(16)).wrapping_sub(8),
                        4 => address(random.below(LOCKS)),
                        5 => random.next() >> random.below(64),
                        _ => 0,
                    },
                    Relaxed,
                );
            }
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: `new` has allocated it with this layout, and nobody uses it any more.
        unsafe { dealloc(self.base, self.memory) };
    }
}

fn address(lock: u64) -> u64 {
    0x5550_0000 + lock * 64
}

/// Follows what the ledger says as far as it can.
struct Believing<'a>(Ledger<'a>);

impl DetectionContext for Believing<'_> {
    fn joined(&self, waiter: &LastingWaiter) -> Option<u32> {
        let handle = |thread: lockstead_ledger::thread::ThreadPart<'_>| {
            thread.record.handle.load(Relaxed) == waiter.waiting.target
        };
        self.0.threads().position(handle).map(|index| index as u32)
    }

    fn writers_first(&self, lock: u64) -> bool {
        let record = self.0.find_lock(lock).and_then(|index| self.0.lock(index));
        record.is_some_and(|record| record.shape().2 & attribute::WRITERS_FIRST != 0)
    }

    fn right_of(&self, held: u64) -> Option<u64> {
        lockstead_inspect::waits::surroundings::right_of(&self.0, held)
    }

    fn is_read_upgradably(&self, _: u64) -> bool {
        true
    }

    fn is_taking_back(&self, _: &LastingWaiter) -> bool {
        true
    }
}

/// Does all that the command does with a ledger, while the program goes on to damage it.
fn read_all(area: &Area, random: &mut Random, names: &mut Symbolizer) {
    let (mut observer, mut detector) = (Observer::default(), Detector::default());
    let mut patience = WaitPatience::new(1);
    let words = WordOwners::default();
    let mut samples = Vec::new();
    for round in 0..4 {
        let ledger = area.ledger();
        observer.look(&ledger);
        // The process does not exist; the numbers in the ledger lead nowhere. In one round they lead
        // into this very process.
        let pid = if round == 1 { std::process::id() } else { u32::MAX >> 2 };
        let waiters = words.complete(observer.waiters(), &ledger, pid);
        for found in detector.find(waiters.iter(), &Believing(ledger)) {
            let _ = verify(&found, &ledger, &words, (pid, round % 2 == 0));
            detector.note(&found);
        }
        let _ = patience.due(observer.waiters(), 1 << 40).len();
        samples.push(LiveSample::take(&ledger, 1 << 40));
        if let [.., before, after] = &samples[..] {
            let live = after.since(before, &ledger);
            assert!(live.locks.len() <= ledger.locks().len());
        }
        let _ = code::maps(b"", &code::modules(&ledger), Path::new("/bin/true"));
        if round % 2 == 0 {
            area.damage(random);
        }
    }
    for (by_class, sort) in [(false, Sort::Wait), (true, Sort::Name)] {
        let process = LedgerProcess {
            ledger: area.ledger(),
            facts: ProcessFacts::default(),
            names,
            python: None,
            holders: None,
        };
        let options = ReportOptions { top: 1000, sort, by_class, ..ReportOptions::default() };
        let report = describe_process(process, &options);
        assert!(report.is_none_or(|report| report.locks.len() <= 1000));
    }
}

#[test]
fn damage_ends_in_poorer_reports_and_no_worse() {
    static SEED: AtomicUsize = AtomicUsize::new(0);
    let (done, wait) = std::sync::mpsc::channel();
    let work = std::thread::spawn(move || {
        let mut names = Symbolizer::new(Modules::of(std::process::id()).expect("one's own"));
        for seed in 1..=SEEDS {
            SEED.store(seed as usize, Relaxed);
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let area = Area::new();
            area.damage(&mut random);
            read_all(&area, &mut random, &mut names);
        }
        let _ = done.send(());
    });
    let ended = wait.recv_timeout(DEADLINE);
    let seed = SEED.load(Relaxed);
    match ended {
        Ok(()) => work.join().expect("sent its last word"),
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("hangs with seed {seed}"),
        Err(_) => panic!("panicked with seed {seed}"),
    }
}

/// Returns a ledger as the library makes it, as large as can be.
fn file() -> (Ledger<'static>, OwnedFd) {
    let layout = LedgerLayout::divide(LedgerLayout::LARGEST);
    // SAFETY: a new memory file, and a mapping of all of it that stays until the
    // end; nobody else knows of it yet.
    unsafe {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let file = libc::memfd_create(c"damaged".as_ptr(), flags);
        assert!(file >= 0);
        let file = OwnedFd::from_raw_fd(file);
        assert_eq!(libc::ftruncate(file.as_raw_fd(), layout.size as i64), 0);
        assert_eq!(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK), 0);
        let base = libc::mmap(
            std::ptr::null_mut(),
            layout.size as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(base, libc::MAP_FAILED);
        (Ledger::create(base.cast(), layout, 42, 1), file)
    }
}

#[test]
fn counters_that_the_file_does_not_bear_out_are_not_believed() {
    let (ledger, file) = file();
    let copy = File::from(file.try_clone().expect("a descriptor"));
    let mapped = MappedLedger::new(file, false).expect("a ledger");
    let worker =
        ledger.thread(ledger.claim(LedgerPart::Threads, 1).expect("room")).expect("claimed");
    worker.record.state.store(state::LIVE, Relaxed);
    for number in 1..=20_000 {
        let stack = ledger.intern_stack(&[number % 100], 0);
        let (address, kind) = (address(number), ObjectKind::Mutex);
        let birth =
            Birth { address, kind, attributes: 0, init_stack: stack, first_stack: 0, module: 0 };
        let _ = ledger.init_lock(&birth).expect("room");
        if number % 1000 == 0 {
            assert_eq!(mapped.view().used(LedgerPart::Locks) as u64, number + 1);
        }
    }
    assert!(!mapped.is_damaged());
    let before = copy.metadata().expect("open").blocks();
    for counter in [&ledger.header().threads_used, &ledger.header().locks_used] {
        counter.store(u64::MAX, Relaxed);
        let view = mapped.view();
        assert!(mapped.is_damaged());
        assert_eq!((view.used(LedgerPart::Threads), view.used(LedgerPart::Locks)), (1, 20_001));
        let mut observer = Observer::default();
        observer.look(&view);
        let _ = LiveSample::take(&view, 1 << 40);
    }
    let after = copy.metadata().expect("open").blocks();
    assert!(after - before < 1000, "{before} blocks became {after}");
}
