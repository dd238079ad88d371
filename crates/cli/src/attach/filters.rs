//! Whether the filters of a process's system calls let the library come in and record.
//!
//! # Role
//! A filter that ends a process for a call that it does not know would end it for a call of ours. Most
//! do not: those of containers have the kernel refuse such a call, which the library is ready for. The
//! kernel hands out the programs of filters to the privileged, and here each is run through for each
//! call that may be made on our behalf, with arguments that nobody knows: both ways of every condition
//! that asks for one.
//!
//! The instructions are those of `linux/bpf_common.h` and `linux/filter.h`.

use super::arch::{self, MACHINE};
use super::refuse::{AttachRefusal, OUTSIDE};
use super::trace::{self, Held};
use lockstead_inspect::proc::calls;
use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

/// The time for a thread to stand still.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most steps in which all ways through a program are looked for.
const MOST_STEPS: usize = 1 << 20;
/// The words of the memory that a program has.
const MEMORY: usize = 16;
/// The number of a call that is not made: that the thread comes back is seen at one.
const NONE: u32 = u32::MAX;

/// The call by which locks sleep, which the command looks at and does not make.
pub(super) const FUTEX: libc::c_long = lockstead_inspect::arch::FUTEX;

/// The calls that the loader, the allocator and the library make on every processor where they come in, record and leave.
const CALLS: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_ftruncate,
    FUTEX,
    libc::SYS_getcwd,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_mincore,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_prctl,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_process_vm_readv,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_write,
];

/// Says whether the filters of these threads of a process end it for no call of ours.
///
/// # Errors
/// They may, or cannot be read.
pub(super) fn check(tids: Vec<u32>) -> Result<(), AttachRefusal> {
    let looked = trace::apart(move || look(&tids));
    match looked.flatten() {
        Ok(None) => Ok(()),
        Ok(Some(call)) => Err(AttachRefusal::new(
            format!("a seccomp filter is on it that does more about {call} than to refuse it"),
            format!("start it without the filter, if it is yours; {OUTSIDE}"),
        )),
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Err(AttachRefusal::new(
            "a seccomp filter is on it, which may end it for a call that it does not know; the kernel \
             shows filters to the privileged only",
            format!("run this as root, so that the filter can be read; {OUTSIDE}"),
        )),
        Err(error) => Err(AttachRefusal::new(
            format!("a seccomp filter is on it, and cannot be read: {error}"),
            format!("start it without the filter, if it is yours; {OUTSIDE}"),
        )),
    }
}

/// Returns the name of a call of ours for which one of the filters does more than to refuse it.
fn look(tids: &[u32]) -> io::Result<Option<String>> {
    let mut known = HashSet::new();
    for &tid in tids {
        let asked = match trace::Asked::new(tid) {
            Ok(asked) => asked,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
            Err(error) => return Err(error),
        };
        let Some((held, _)) = asked.stands(Instant::now() + PATIENCE)? else { continue };
        let filters = filters_of(&held)?;
        drop(held);
        for filter in filters {
            if known.contains(&filter) {
                continue;
            }
            if let Some(number) = harmful(&filter) {
                return Ok(Some(words(number)));
            }
            known.insert(filter);
        }
    }
    Ok(None)
}

fn words(number: u32) -> String {
    match (number, calls::name(number.into())) {
        (NONE, _) => "a call that does not exist".into(),
        (_, Some(name)) => name.into(),
        (_, None) => format!("system call {number}"),
    }
}

fn filters_of(held: &Held) -> io::Result<Vec<Vec<Instruction>>> {
    let mut all = Vec::new();
    loop {
        match held.filter(all.len())? {
            Some(words) => all.push(words.into_iter().map(Instruction::from).collect()),
            None => return Ok(all),
        }
    }
}

/// An instruction of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Instruction {
    code: u16,
    /// How many instructions are passed over where a condition is true, and where it is false.
    jumps: [u8; 2],
    value: u32,
}

impl From<libc::sock_filter> for Instruction {
    fn from(from: libc::sock_filter) -> Self {
        Instruction { code: from.code, jumps: [from.jt, from.jf], value: from.k }
    }
}

/// Where a program stands. `None` is a number that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Way {
    at: usize,
    a: Option<u32>,
    x: Option<u32>,
    memory: [Option<u32>; MEMORY],
}

/// Returns the numbers of all calls of ours.
fn all_calls() -> impl Iterator<Item = u32> {
    CALLS.iter().chain(arch::CALLS).map(|&call| call as u32)
}

/// Returns a call of ours for which a filter does more than to refuse it.
fn harmful(filter: &[Instruction]) -> Option<u32> {
    let mut numbers = all_calls().chain([NONE]);
    numbers.find(|&number| !is_harmless(filter, number))
}

/// Tells whether a filter lets a call pass, or has it refused, whatever its arguments.
fn is_harmless(filter: &[Instruction], number: u32) -> bool {
    let mut ways = vec![Way { at: 0, a: Some(0), x: Some(0), memory: [Some(0); MEMORY] }];
    let mut seen = HashSet::new();
    while let Some(way) = ways.pop() {
        if seen.len() == MOST_STEPS {
            return false;
        }
        if !seen.insert(way.clone()) {
            continue;
        }
        let Some(&instruction) = filter.get(way.at) else { return false };
        match step(instruction, way, number) {
            Some(Step::On(next)) => ways.extend(next),
            Some(Step::Answer(answer)) if passes(answer) => {}
            Some(Step::Answer(_)) | None => return false,
        }
    }
    true
}

/// Tells whether an answer lets the call pass or refuses it, and does nothing else.
fn passes(answer: Option<u32>) -> bool {
    const ALLOW: u32 = 0x7fff_0000;
    const LOG: u32 = 0x7ffc_0000;
    const REFUSE: u32 = 0x0005_0000;
    answer.is_some_and(|answer| [ALLOW, LOG, REFUSE].contains(&(answer & 0xffff_0000)))
}

/// What follows an instruction.
enum Step {
    On(Vec<Way>),
    Answer(Option<u32>),
}

/// Does one instruction; `None` if it is none that a filter can have.
fn step(instruction: Instruction, mut way: Way, number: u32) -> Option<Step> {
    /// The length of what a filter is given.
    const LENGTH: u32 = 64;
    let Instruction { code, jumps, value } = instruction;
    let (kind, code) = (code & 7, code & !7);
    let at = way.at + 1;
    way.at = at;
    let place = value as usize;
    match kind {
        // Loads, into the one register or the other.
        0 | 1 => {
            let loaded = match code {
                0x00 => Some(value),
                0x20 if kind == 0 => match value {
                    0 => Some(number),
                    4 => Some(MACHINE),
                    _ => None,
                },
                0x60 => *way.memory.get(place)?,
                0x80 => Some(LENGTH),
                _ => return None,
            };
            *(if kind == 0 { &mut way.a } else { &mut way.x }) = loaded;
        }
        // Stores.
        2 => *way.memory.get_mut(place)? = way.a,
        3 => *way.memory.get_mut(place)? = way.x,
        4 => {
            let operand = if code & 8 == 0 { Some(value) } else { way.x };
            way.a = match (way.a, operand) {
                (Some(a), Some(operand)) => Some(calculated(code & 0xf0, a, operand)?),
                _ => None,
            };
        }
        5 => {
            let operand = if code & 8 == 0 { Some(value) } else { way.x };
            if code & 0xf0 == 0 {
                way.at = at.checked_add(place)?;
                return Some(Step::On(vec![way]));
            }
            let is_true = match (way.a, operand) {
                (Some(a), Some(operand)) => Some(match code & 0xf0 {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    0x40 => a & operand != 0,
                    _ => return None,
                }),
                _ => None,
            };
            let ways = [(true, jumps[0]), (false, jumps[1])];
            let taken =
                ways.iter().filter(|(way, _)| is_true.is_none_or(|is_true| is_true == *way));
            return Some(Step::On(
                taken.map(|(_, jump)| Way { at: at + usize::from(*jump), ..way.clone() }).collect(),
            ));
        }
        6 => return Some(Step::Answer(if code & 0x18 == 0 { Some(value) } else { way.a })),
        _ => match code & 0xf8 {
            0x00 => way.x = way.a,
            0x80 => way.a = way.x,
            _ => return None,
        },
    }
    Some(Step::On(vec![way]))
}

/// Returns the result of an operation; `None` if there is no such one.
fn calculated(operation: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match operation {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        0x30 => a.checked_div(operand)?,
        0x40 => a | operand,
        0x50 => a & operand,
        0x60 => a.checked_shl(operand)?,
        0x70 => a.checked_shr(operand)?,
        0x80 => a.wrapping_neg(),
        0x90 => a.checked_rem(operand)?,
        0xa0 => a ^ operand,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0001;
    const KILL: u32 = 0x8000_0000;

    fn op(code: u16, value: u32, jumps: [u8; 2]) -> Instruction {
        Instruction { code, jumps, value }
    }

    /// Loads the word at `offset` of what is known of a call, and answers by whether it is `value`.
    fn by(offset: u32, value: u32, then: u32, otherwise: u32) -> Vec<Instruction> {
        vec![
            op(0x20, offset, [0, 0]),
            op(0x15, value, [0, 1]),
            op(6, then, [0, 0]),
            op(6, otherwise, [0, 0]),
        ]
    }

    #[test]
    fn a_call_is_judged_by_its_own_answer() {
        let filter = by(0, 319, KILL, ALLOW);
        assert!(is_harmless(&filter, 9));
        assert!(!is_harmless(&filter, 319));
        assert!(is_harmless(&by(0, 319, REFUSE, ALLOW), 319));
        assert!(is_harmless(&by(4, MACHINE, ALLOW, KILL), 1), "this machine's calls");
        assert!(!is_harmless(&by(4, 0x4000_0003, ALLOW, KILL), 1), "another's only");
    }

    #[test]
    fn all_calls_of_ours_are_asked_for_and_the_one_that_is_not_made() {
        for call in all_calls() {
            assert_eq!(harmful(&by(0, call, KILL, ALLOW)), Some(call));
        }
        assert_eq!(harmful(&by(0, NONE, KILL, ALLOW)), Some(NONE));
        assert_eq!(harmful(&by(0, NONE, REFUSE, ALLOW)), None);
    }

    #[test]
    fn an_argument_may_be_anything() {
        assert!(!is_harmless(&by(16, 4, ALLOW, KILL), 10));
        assert!(!is_harmless(&by(16, 4, KILL, ALLOW), 10));
        assert!(is_harmless(&by(16, 4, REFUSE, ALLOW), 10));
    }

    #[test]
    fn numbers_are_calculated_with_as_the_kernel_does() {
        // The number plus 2, by way of the memory and the other register, is 12; two ways lead to
        // where it is asked for.
        let filter = [
            op(0x20, 0, [0, 0]),
            op(0x04, 2, [0, 0]),
            op(0x02, 3, [0, 0]),
            op(0x61, 3, [0, 0]),
            op(0x20, 16, [0, 0]),
            op(0x45, 1, [1, 0]),
            op(0x05, 0, [0, 0]),
            op(0x87, 0, [0, 0]),
            op(0x15, 12, [0, 1]),
            op(0x06, ALLOW, [0, 0]),
            op(0x06, KILL, [0, 0]),
        ];
        assert!(is_harmless(&filter, 10));
        assert!(!is_harmless(&filter, 11));
    }

    #[test]
    fn what_is_not_understood_is_not_harmless() {
        assert!(!is_harmless(&[], 1), "no end");
        assert!(!is_harmless(&[op(0x30, 0, [0, 0]), op(6, ALLOW, [0, 0])], 1), "a byte");
        assert!(!is_harmless(&[op(0x34, 0, [0, 0]), op(6, ALLOW, [0, 0])], 1), "divided by zero");
        assert!(!is_harmless(&[op(0x20, 16, [0, 0]), op(0x16, 0, [0, 0])], 1), "any answer");
        assert!(!is_harmless(&[op(6, 0x7ff0_0000, [0, 0])], 1), "a tracer is asked");
    }
}
