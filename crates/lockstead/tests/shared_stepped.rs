//! A thread that tries to lock, stepped through instruction by instruction, while others
//! leave their slots and take them. A program of its own, since it forks.

use lockstead::shared::{Locked, Segment, SegmentOptions, Shareable, SharedError, SharedMutex};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

#[derive(Shareable)]
#[repr(C)]
struct Root {
    lock: SharedMutex<u64>,
    /// [`TRIES`] while the stepped one tries, then what came of it.
    stage: AtomicU32,
}

const TRIES: u32 = 1;
const IS_HELD: u32 = 2;
const ACQUIRED: u32 = 3;
const OWNER_DIED: u32 = 4;
const REFUSED: u32 = 5;

/// So many places at most, at which the first owner leaves.
const PLACES: u64 = 128;
/// Seconds that one attempt may take before the stepped process is ended.
const PATIENCE: u32 = 120;

/// A thread in a slot that has the lock, if it got it.
struct Owner {
    thread: JoinHandle<()>,
    go: Sender<()>,
    has_it: bool,
}

impl Owner {
    fn comes(segment: &'static Segment<Root>) -> Self {
        let (go, wait): (Sender<()>, Receiver<()>) = channel();
        let (tell, told) = channel();
        let thread = thread::spawn(move || {
            let got = segment.root().lock.try_lock();
            let told = match &got {
                Ok(Locked::Acquired(_)) => Ok(true),
                Err(SharedError::Held) => Ok(false),
                Ok(_) => Err("an owner died, of whom nobody did".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            tell.send(told).expect("somebody asks");
            // Where the test fails, nobody tells it.
            let _ = wait.recv();
        });
        let has_it = told.recv().expect("it tells").expect("the lock is in order");
        Owner { thread, go, has_it }
    }

    /// Has the owner release and its thread end, which leaves its slot.
    fn leaves(self) {
        self.go.send(()).expect("it waits");
        self.thread.join().expect("it ends");
    }
}

/// Tries again and again, in the child, and stops before each time.
fn stepped(root: &Root) -> ! {
    // SAFETY: calls without memory; the child ends by itself, by the alarm, or by its parent.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
            libc::_exit(1);
        }
    }
    loop {
        // SAFETY: the calls take numbers; the child stops until its parent lets it go on.
        unsafe {
            libc::raise(libc::SIGSTOP);
            libc::alarm(PATIENCE);
        }
        root.stage.store(TRIES, Ordering::SeqCst);
        let got = root.lock.try_lock();
        let came = match &got {
            Ok(Locked::Acquired(_)) => ACQUIRED,
            Ok(Locked::OwnerDied(_)) => OWNER_DIED,
            Err(SharedError::Held) => IS_HELD,
            _ => REFUSED,
        };
        root.stage.store(came, Ordering::SeqCst);
        drop(got);
    }
}

/// The child, as its parent sees it.
struct Stepped<'a> {
    pid: libc::pid_t,
    root: &'a Root,
    /// Where the kernel's own code lies in it.
    vdso: Range<u64>,
}

impl Stepped<'_> {
    fn stage(&self) -> u32 {
        self.root.stage.load(Ordering::SeqCst)
    }

    /// Waits until it stops; with which signal. `None`: it has ended.
    fn stops(&self) -> Option<libc::c_int> {
        let mut status = 0;
        // SAFETY: the child is our own, and the kernel writes into `status`, which lives.
        let done = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
        assert_eq!(done, self.pid, "{}", std::io::Error::last_os_error());
        libc::WIFSTOPPED(status).then(|| libc::WSTOPSIG(status))
    }

    fn resume(&self, how: libc::c_uint) -> libc::c_int {
        // SAFETY: the child is stopped and traced by us; it gets no signal.
        let done = unsafe { libc::ptrace(how, self.pid, 0, 0) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        self.stops().expect("it lives")
    }

    /// Makes one instruction, or all of the kernel's code, where that reads a clock. Returns false if the
    /// child has come to its end meanwhile.
    fn step(&self) -> bool {
        self.traps(libc::PTRACE_SINGLESTEP);
        let registers = self.registers();
        if self.vdso.contains(&place(&registers)) {
            self.run_to(self.returns_to(&registers));
        }
        self.stage() == TRIES
    }

    /// Resumes it up to its next trap.
    fn traps(&self, how: libc::c_uint) {
        let signal = self.resume(how);
        if signal != libc::SIGTRAP {
            let at = place(&self.registers());
            panic!("signal {signal} at {at:#x}, where the code is {:02x?}", self.read(at));
        }
    }

    /// Goes to an address without a step. The kernel's code reads a clock again and again until no tick has
    /// come between: stepped through on a slow machine it never comes to its end.
    fn run_to(&self, address: u64) {
        let code = self.read(address);
        let mut stops = code;
        stops[..BREAKPOINT.len()].copy_from_slice(&BREAKPOINT);
        self.write(address, stops);
        self.traps(libc::PTRACE_CONT);
        self.write(address, code);
        let mut registers = self.registers();
        // Some processors stop behind the instruction.
        let behind = place(&registers) - address;
        assert!(behind == 0 || behind == BREAKPOINT.len() as u64, "it stopped elsewhere");
        *place_mut(&mut registers) = address;
        self.exchange_registers(libc::PTRACE_SETREGSET, &mut registers);
    }

    /// Returns where the function returns to of which it has made no instruction yet.
    fn returns_to(&self, registers: &libc::user_regs_struct) -> u64 {
        #[cfg(target_arch = "x86_64")]
        return u64::from_ne_bytes(self.read(registers.rsp));
        #[cfg(target_arch = "aarch64")]
        registers.regs[30]
    }

    fn registers(&self) -> libc::user_regs_struct {
        // SAFETY: the structure is plain bits, for which zeros are a value.
        let mut registers = unsafe { core::mem::zeroed() };
        self.exchange_registers(libc::PTRACE_GETREGSET, &mut registers);
        registers
    }

    fn exchange_registers(&self, how: libc::c_uint, registers: &mut libc::user_regs_struct) {
        let size = size_of_val(registers);
        let mut place = libc::iovec { iov_base: ptr::from_mut(registers).cast(), iov_len: size };
        // SAFETY: the kernel reads or writes the structure, which lives; the child is stopped.
        let done = unsafe { libc::ptrace(how, self.pid, libc::NT_PRSTATUS, &raw mut place) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    /// Returns eight bytes of its memory.
    fn read(&self, address: u64) -> [u8; 8] {
        // SAFETY: the call takes numbers; the kernel reads the child's memory, not ours.
        unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.pid, address, 0) }.to_ne_bytes()
    }

    fn write(&self, address: u64, bytes: [u8; 8]) {
        let word = u64::from_ne_bytes(bytes);
        // SAFETY: the call takes numbers; the kernel writes to a copy that the child alone has.
        let done = unsafe { libc::ptrace(libc::PTRACE_POKETEXT, self.pid, address, word) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    /// Goes to the beginning of its attempt.
    fn begin(&self) {
        self.root.stage.store(0, Ordering::SeqCst);
        while !self.step() {}
    }

    /// Tells whether its next instruction locks a line.
    fn is_about_to_lock(&self) -> bool {
        locks(&self.read(place(&self.registers())))
    }

    /// Goes to its end. Returns what came of it.
    fn finish(&self) -> u32 {
        while self.resume(libc::PTRACE_CONT) != libc::SIGSTOP {}
        self.stage()
    }
}

/// The instruction that stops whoever comes to it: `int3`, `brk`.
#[cfg(target_arch = "x86_64")]
const BREAKPOINT: [u8; 1] = [0xcc];
#[cfg(target_arch = "aarch64")]
const BREAKPOINT: [u8; 4] = 0xd420_0000_u32.to_le_bytes();

/// Returns where it goes on.
fn place(registers: &libc::user_regs_struct) -> u64 {
    let mut copy = *registers;
    *place_mut(&mut copy)
}

fn place_mut(registers: &mut libc::user_regs_struct) -> &mut u64 {
    #[cfg(target_arch = "x86_64")]
    return &mut registers.rip;
    #[cfg(target_arch = "aarch64")]
    &mut registers.pc
}

/// Returns where the kernel's own code lies in this process, and in those that are forked from it.
fn vdso() -> Range<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a process has one");
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else { return 0..0 };
    let range = line.split(' ').next().and_then(|range| range.split_once('-'));
    let address = |digits| u64::from_str_radix(digits, 16).expect("an address");
    range.map(|(from, to)| address(from)..address(to)).expect("a range")
}

/// Tells whether the instruction that begins with these bytes locks a line.
#[cfg(target_arch = "x86_64")]
fn locks(code: &[u8; 8]) -> bool {
    let code = match code[0] {
        0x40..=0x4f => &code[1..],
        _ => &code[..],
    };
    code[0] == 0xf0 || matches!(code[0], 0x86 | 0x87) && code[1] >> 6 != 3
}

/// Tells whether the instruction that these bytes begin with is one of LSE: on comparison, or of the
/// others but the load that is encoded among them.
#[cfg(target_arch = "aarch64")]
fn locks(code: &[u8; 8]) -> bool {
    let instruction = u32::from_le_bytes([code[0], code[1], code[2], code[3]]);
    instruction & 0x3fa0_7c00 == 0x08a0_7c00
        || instruction & 0x3f20_0c00 == 0x3820_0000 && instruction & 0x3fff_fc00 != 0x38bf_c000
}

/// Tells whether this processor can be stepped through an exchange: on aarch64 not where an exchange is a
/// loop of exclusive instructions, of which the second fails behind each stop.
fn can_be_stepped() -> bool {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the call takes and returns a number.
    return unsafe { libc::getauxval(libc::AT_HWCAP) } & libc::HWCAP_ATOMICS != 0;
    #[cfg(target_arch = "x86_64")]
    true
}

impl Drop for Stepped<'_> {
    fn drop(&mut self) {
        // SAFETY: the child is our own, and is killed once.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), libc::__WALL);
        }
    }
}

/// Keeps this thread, and who is started by it, on the processor that it runs on. Of two processes
/// that take turns by each instruction, one then hands the processor to the other, instead of waking
/// an idle one: in a virtual machine that makes it twenty times as fast.
fn stay_on_one_processor() {
    // SAFETY: the set is plain bits, for which zeros are a value, and the kernel reads it; the
    // other call takes nothing.
    unsafe {
        let mut one: libc::cpu_set_t = core::mem::zeroed();
        let here = usize::try_from(libc::sched_getcpu()).unwrap_or(usize::MAX);
        // Where this is not possible or not allowed the test takes longer.
        if here < libc::CPU_SETSIZE as usize {
            libc::CPU_SET(here, &mut one);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const one);
        }
    }
}

/// Makes one attempt: at instruction `leaves` of it the first owner leaves, and at the locked
/// instruction number `comes` from there the second one comes, into the same slot. Returns false if
/// there are not so many of those.
fn attempt(
    segment: &'static Segment<Root>,
    stepped: &Stepped<'_>,
    leaves: u64,
    comes: usize,
) -> bool {
    let first = Owner::comes(segment);
    assert!(first.has_it, "it is free");
    stepped.begin();
    // Not beyond its end: now and then it takes a longer way, and asks whether the owner lives.
    let _ = (0..leaves).take_while(|_| stepped.step()).count();
    first.leaves();
    let mut locked = 0;
    while stepped.stage() == TRIES {
        if stepped.is_about_to_lock() {
            if locked == comes {
                break;
            }
            locked += 1;
        }
        stepped.step();
    }
    let there_are_so_many = stepped.stage() == TRIES;
    let second = Owner::comes(segment);
    let (has_it, came) = (second.has_it, stepped.finish());
    let place = format!("left at {leaves}, came at {comes}");
    match came {
        IS_HELD => {}
        ACQUIRED => assert!(!has_it, "two owners: {place}"),
        OWNER_DIED => panic!("nobody has died; another owner: {has_it}; {place}"),
        _ => panic!("{came}: {place}"),
    }
    second.leaves();
    there_are_so_many
}

#[test]
fn a_slot_that_is_left_and_taken_again_makes_no_second_owner() {
    if !can_be_stepped() {
        return println!("skipped: exchanges of this processor cannot be stepped through");
    }
    let segment = Segment::<Root>::memfd("stepped", &SegmentOptions::new()).expect("a segment");
    // Threads have it that this one does not wait for if it fails.
    let segment: &'static Segment<Root> = Box::leak(Box::new(segment));
    let root = segment.root();
    stay_on_one_processor();
    // SAFETY: the child uses the segment alone, and no lock that another thread could have
    // had at the fork: there is none but that of the harness, which waits.
    let pid = match unsafe { libc::fork() } {
        -1 => panic!("{}", std::io::Error::last_os_error()),
        0 => {
            let record = segment.participate();
            assert!(record.is_ok());
            stepped(root)
        }
        pid => pid,
    };
    let stepped = Stepped { pid, root, vdso: vdso() };
    if stepped.stops().is_none() {
        println!("skipped: the system does not allow tracing (ptrace)");
        return;
    }
    // How long it is, of a lock that somebody has.
    let owner = Owner::comes(segment);
    assert!(owner.has_it);
    stepped.begin();
    let length = 1 + (0..1_000_000_u64).take_while(|_| stepped.step()).count() as u64;
    assert_eq!(stepped.finish(), IS_HELD);
    owner.leaves();

    let mut attempts = 0;
    for leaves in (0..length).step_by(length.div_ceil(PLACES) as usize) {
        attempts +=
            1 + (0..).take_while(|&comes| attempt(segment, &stepped, leaves, comes)).count();
    }
    println!("{length} instructions, {attempts} attempts");
}
