//! The futex waits among the system calls.
//!
//! # Role
//! From number and arguments of a call to: which word, what value it had, who
//! may wake it, until when. Numbers and bits are the kernel's binary interface.

use super::task::SleepingCall;
use crate::memory::ReadableMemory;

pub(crate) use crate::arch::FUTEX;
// Newer calls have the same number everywhere.
const WAITV: i64 = 449;
const WAKE2: i64 = 454;
const WAIT2: i64 = 455;

const PRIVATE: u64 = 128;
const REALTIME: u64 = 256;
/// `FUTEX2_PRIVATE`, the flag of the newer calls.
const PRIVATE2: u32 = 128;
/// The kernel's own limit for the words of one call.
const MOST_WORDS: u64 = 128;

/// The kind of a wait in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FutexWaitKind {
    /// It sleeps until woken; with `FUTEX_WAIT_BITSET` the bits of wake-ups it hears.
    Wait {
        /// All ones where the operation has none.
        bits: u32,
    },
    /// It sleeps until the kernel hands over a priority-inheritance lock.
    LockPi,
    /// It sleeps until moved to a priority-inheritance lock and handed it.
    RequeuePi,
    /// It sleeps until any of several words is woken.
    Several {
        /// The number of words.
        words: u32,
    },
}

/// The time at which a wait ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// The wait never ends by itself.
    None,
    /// It ends at a time of a clock; the time lies at this address.
    At {
        /// Whether that is the wall clock, not the monotonic one.
        realtime: bool,
        /// The address of the time.
        time: u64,
    },
    /// It ends some time after its start; the span lies at this address.
    After {
        /// The address of the span.
        span: u64,
    },
}

/// A thread's wait on a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutexWait {
    /// The word; with several, where their list is.
    pub address: u64,
    /// What the call compared the word with; 0 where it does not compare.
    pub expected: u32,
    /// The kind of the wait.
    pub operation: FutexWaitKind,
    /// Only threads of the process can wake it.
    pub private: bool,
    /// The time at which it gives up.
    pub limit: WaitLimit,
    /// The call's fifth argument, at which the kernel does not look in most waits.
    pub other: u64,
}

/// A call that wakes sleepers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutexWake {
    /// The word whose sleepers it wakes.
    pub address: u64,
    /// The most that it wakes.
    pub count: u64,
}

impl FutexWake {
    /// Returns what a call wakes, if it only wakes. Those that move sleepers to other words are none.
    #[must_use]
    pub fn decode(call: &SleepingCall) -> Option<FutexWake> {
        let [address, second, third, ..] = call.arguments;
        // The kernel takes the number as an `int`.
        let count = |value: u64| u64::from((value as u32).min(i32::MAX as u32));
        match (call.number, second & !(PRIVATE | REALTIME)) {
            // `FUTEX_WAKE`, `FUTEX_WAKE_BITSET`; `FUTEX_WAKE_OP` wakes of another word besides.
            (FUTEX, 1 | 10 | 5) => Some(FutexWake { address, count: count(third) }),
            // `FUTEX_UNLOCK_PI`.
            (FUTEX, 7) => Some(FutexWake { address, count: 1 }),
            // `futex_wake(address, mask, count, flags)`.
            (WAKE2, _) => Some(FutexWake { address, count: count(third) }),
            _ => None,
        }
    }
}

impl FutexWait {
    /// Tells whether the call is `FUTEX_WAIT` itself, by which parking_lot's threads sleep.
    #[must_use]
    pub fn is_plain(call: &SleepingCall) -> bool {
        call.number == FUTEX && call.arguments[1] & !(PRIVATE | REALTIME) == 0
    }

    /// Returns the wait that a call is, if it is one.
    #[must_use]
    pub fn decode(call: &SleepingCall) -> Option<FutexWait> {
        let [address, second, third, fourth, fifth, sixth] = call.arguments;
        match call.number {
            FUTEX => {
                let realtime = second & REALTIME != 0;
                let at = |realtime| match fourth {
                    0 => WaitLimit::None,
                    time => WaitLimit::At { realtime, time },
                };
                let (operation, limit) = match second & !(PRIVATE | REALTIME) {
                    0 => match fourth {
                        0 => (FutexWaitKind::Wait { bits: !0 }, WaitLimit::None),
                        span => (FutexWaitKind::Wait { bits: !0 }, WaitLimit::After { span }),
                    },
                    9 => (FutexWaitKind::Wait { bits: sixth as u32 }, at(realtime)),
                    6 => (FutexWaitKind::LockPi, at(true)),
                    13 => (FutexWaitKind::LockPi, at(realtime)),
                    11 => (FutexWaitKind::RequeuePi, at(realtime)),
                    _ => return None,
                };
                let compares = !matches!(operation, FutexWaitKind::LockPi);
                Some(FutexWait {
                    address,
                    expected: if compares { third as u32 } else { 0 },
                    operation,
                    private: second & PRIVATE != 0,
                    limit,
                    other: fifth,
                })
            }
            WAITV => {
                let words = second.min(MOST_WORDS) as u32;
                let limit = match fourth {
                    0 => WaitLimit::None,
                    time => WaitLimit::At { realtime: fifth == libc::CLOCK_REALTIME as u64, time },
                };
                let operation = FutexWaitKind::Several { words };
                Some(FutexWait { address, expected: 0, operation, private: false, limit, other: 0 })
            }
            WAIT2 => {
                let limit = match fifth {
                    0 => WaitLimit::None,
                    time => WaitLimit::At { realtime: sixth == libc::CLOCK_REALTIME as u64, time },
                };
                Some(FutexWait {
                    address,
                    expected: second as u32,
                    operation: FutexWaitKind::Wait { bits: third as u32 },
                    private: fourth as u32 & PRIVATE2 != 0,
                    limit,
                    other: 0,
                })
            }
            _ => None,
        }
    }

    /// Returns whether the wait ends by itself at some time.
    #[must_use]
    pub fn timed(&self) -> bool {
        self.limit != WaitLimit::None
    }

    /// Returns seconds and nanoseconds of the limit, read where the call left them.
    #[must_use]
    pub fn limit_time(&self, memory: &dyn ReadableMemory) -> Option<(i64, i64)> {
        let (WaitLimit::At { time: address, .. } | WaitLimit::After { span: address }) = self.limit
        else {
            return None;
        };
        let (seconds, nanos) =
            (memory.read_u64(address)? as i64, memory.read_u64(address.checked_add(8)?)? as i64);
        (0..1_000_000_000).contains(&nanos).then_some((seconds, nanos))
    }

    /// Returns the words of a wait on several, with what each was compared with.
    #[must_use]
    pub fn words(&self, memory: &dyn ReadableMemory) -> Vec<(u64, u32)> {
        let FutexWaitKind::Several { words } = self.operation else {
            return vec![(self.address, self.expected)];
        };
        (0..u64::from(words))
            .map_while(|n| {
                let at = self.address.checked_add(n * 24)?;
                Some((memory.read_u64(at.checked_add(8)?)?, memory.read_u64(at)? as u32))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    fn wait(number: i64, arguments: [u64; 6]) -> Option<FutexWait> {
        FutexWait::decode(&SleepingCall { number, arguments, sp: 0, pc: 0 })
    }

    #[test]
    fn each_operation_that_waits_is_known() {
        let plain = wait(FUTEX, [64, 128, 2, 0, 0, 0]).expect("a wait");
        assert_eq!(plain.operation, FutexWaitKind::Wait { bits: !0 });
        assert!(plain.private && !plain.timed() && plain.expected == 2);
        let relative = wait(FUTEX, [64, 0, 2, 512, 0, 0]).expect("a wait");
        assert_eq!(relative.limit, WaitLimit::After { span: 512 });
        assert!(!relative.private);
        let bits = wait(FUTEX, [64, 9 | 256, 2, 512, 0, 1]).expect("a wait");
        assert_eq!(bits.operation, FutexWaitKind::Wait { bits: 1 });
        assert_eq!(bits.limit, WaitLimit::At { realtime: true, time: 512 });
        let pi = wait(FUTEX, [64, 6 | 128, 77, 512, 0, 0]).expect("a wait");
        assert_eq!((pi.operation, pi.expected), (FutexWaitKind::LockPi, 0));
        assert_eq!(pi.limit, WaitLimit::At { realtime: true, time: 512 });
        let pi2 = wait(FUTEX, [64, 13, 0, 512, 0, 0]).expect("a wait");
        assert_eq!(pi2.limit, WaitLimit::At { realtime: false, time: 512 });
        let requeue = wait(FUTEX, [64, 11, 3, 0, 0, 0]).expect("a wait");
        assert_eq!(requeue.operation, FutexWaitKind::RequeuePi);
        let new = wait(WAIT2, [64, 3, 5, 130, 512, 0]).expect("a wait");
        assert_eq!(new.limit, WaitLimit::At { realtime: true, time: 512 });
        assert!(new.private && new.expected == 3);
    }

    #[test]
    fn wakes_and_other_calls_are_no_waits() {
        assert_eq!(wait(FUTEX, [64, 129, 1, 0, 0, 0]), None);
        assert_eq!(wait(0, [64, 0, 1, 0, 0, 0]), None);
    }

    #[test]
    fn several_words_are_read_from_their_list() {
        let found = wait(WAITV, [0x100, 2, 0, 0, 1, 0]).expect("a wait");
        let mut bytes = Vec::new();
        for value in [7_u64, 0x1000, 130, 8, 0x2000, 130] {
            bytes.extend(value.to_ne_bytes());
        }
        let memory = SavedMemory::new(0x100, bytes);
        assert_eq!(found.words(&memory), [(0x1000, 7), (0x2000, 8)]);
        assert!(
            wait(WAITV, [0x100, u64::MAX, 0, 0, 1, 0]).expect("a wait").words(&memory).len() < 3
        );
    }

    #[test]
    fn a_limit_that_is_no_time_is_none() {
        let found = wait(FUTEX, [64, 9, 2, 0x100, 0, 0]).expect("a wait");
        let time = |seconds: u64, nanos: u64| {
            let bytes = [seconds.to_ne_bytes(), nanos.to_ne_bytes()].concat();
            found.limit_time(&SavedMemory::new(0x100, bytes))
        };
        assert_eq!(time(5, 6), Some((5, 6)));
        assert_eq!(time(5, 1_000_000_000), None);
    }

    #[test]
    fn wakes_have_a_word_and_a_number() {
        let wake = |number, arguments| {
            let call = SleepingCall { number, arguments, sp: 0, pc: 0 };
            FutexWake::decode(&call).map(|wake| (wake.address, wake.count))
        };
        assert_eq!(wake(FUTEX, [64, 129, 1, 0, 0, 0]), Some((64, 1)));
        let all = i32::MAX as u64;
        assert_eq!(wake(FUTEX, [64, 10, u64::MAX, 0, 0, 1]), Some((64, all)));
        assert_eq!(wake(FUTEX, [64, 7 | 128, 99, 0, 0, 0]), Some((64, 1)));
        assert_eq!(wake(WAKE2, [64, 1, 3, 2, 0, 0]), Some((64, 3)));
        for other in [0, 3, 9] {
            assert_eq!(wake(FUTEX, [64, other, 1, 0, 0, 0]), None, "{other}");
        }
    }
}
