//! What the parent of a storm finds when nobody is left, and what came of it all.

use super::driver::Storm;
use super::limits::STALL;
use super::report::{KindReport, RobustReport, StormCounts, StormRound, rate};
use super::tally::{StormLockKind, count, now_ns};
use super::{beside, semaphore};
use std::sync::atomic::{AtomicU64, Ordering};

impl Storm<'_> {
    /// Looks at every lock, when nobody is left.
    pub(super) fn inspect(&mut self) {
        let field = self.ground.segment.root();
        for &kind in &self.mix.kinds {
            let tally = self.control.tally(kind);
            for at in 0..self.mix.locks {
                let start = now_ns();
                let got = match kind {
                    StormLockKind::Mutex => {
                        let outcome = field.mutexes[at].lock_timeout(STALL);
                        tally.received(outcome).map(|got| got.is_some())
                    }
                    StormLockKind::RwLock => {
                        let outcome = field.rwlocks[at].write_timeout(STALL);
                        tally.received(outcome).map(|got| got.is_some())
                    }
                    StormLockKind::Condvar => {
                        let outcome = field.depots[at].turn.lock_timeout(STALL);
                        tally.received(outcome).map(|got| got.is_some())
                    }
                    StormLockKind::Semaphore => {
                        semaphore::inspect(tally, &field.semaphores[at], at)
                    }
                };
                match got {
                    Ok(true) => {}
                    Ok(false) => self.stalls[kind as usize] += 1,
                    // It is not recoverable, or refuses.
                    Err(_) => count(&tally.torn, 1),
                }
                tally.longest_wait_ns.fetch_max(now_ns() - start, Ordering::Relaxed);
            }
        }
        if let Some(others) = &self.others {
            self.stuck += beside::inspect(others, &self.control.robust);
        }
    }

    pub(super) fn report(&self) -> StormRound {
        let kinds: Vec<_> = self.mix.kinds.iter().map(|&kind| self.kind_report(kind)).collect();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let robust = &self.control.robust;
        let seconds = self.time.as_secs_f64();
        let counts = StormCounts {
            kills: self.kills,
            reaped: self.reaped,
            execs: self.execs,
            stops: self.stops,
            kills_per_s: rate(self.kills, seconds),
            owner_died: kinds.iter().map(|kind| kind.owner_died).sum(),
            torn: kinds.iter().map(|kind| kind.torn).sum(),
            stalls: kinds.iter().map(|kind| kind.stalls).sum(),
            longest_wait_ms: kinds.iter().fold(0.0, |max, kind| kind.longest_wait_ms.max(max)),
            unfounded: kinds.iter().map(|kind| kind.unfounded).sum(),
            lost: self.lost,
            operations: kinds.iter().map(|kind| kind.operations).sum(),
            kinds,
            robust: self.mix.beside_robust.then(|| RobustReport {
                owner_died: load(&robust.owner_died),
                torn: load(&robust.torn),
                stuck: self.stuck,
                operations: load(&robust.operations),
            }),
            quiet_phases: self.quiet_phases,
            seconds,
        };
        StormRound::new(self.mix.clone(), counts, self.broken.clone())
    }

    fn kind_report(&self, kind: StormLockKind) -> KindReport {
        let tally = self.control.tally(kind);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (owner_died, units) = (load(&tally.owner_died), load(&tally.units_returned));
        let told = if kind == StormLockKind::Semaphore { units } else { owner_died };
        KindReport {
            lock: kind,
            owner_died,
            units_returned: (kind == StormLockKind::Semaphore).then_some(units),
            torn: load(&tally.torn),
            unfounded: told.saturating_sub(self.deaths * kind.told_at_most()),
            stalls: self.stalls[kind as usize],
            longest_wait_ms: load(&tally.longest_wait_ns) as f64 / 1e6,
            operations: load(&tally.operations),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::course::{Course, Length};
    use super::super::field::StormField;
    use super::super::mix::Mix;
    use super::super::tally::FOR_A_SLOT;
    use super::*;
    use crate::Session;
    use lockstead::shared::Segment;
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    fn quiet<T>(run: impl FnOnce(&mut Session<'_>) -> T) -> T {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let mut progress = |_: u64, _: u64, _: &str| {};
        run(&mut Session::new(&stop, &mut progress))
    }

    /// Returns a storm in which nobody is killed, for nobody is there.
    fn still(mix: &Mix) -> Storm<'_> {
        let mut storm = Storm::new(mix, None).expect("memory");
        storm.ground.slots.take_slot(&storm.ground.segment).expect("room");
        storm
    }

    fn quiesce(storm: &mut Storm<'_>) {
        let length = Length::default();
        let course = Course::turn(&length, Instant::now(), (1, true), (0, 0)).expect("it begins");
        quiet(|session| storm.quiesce(&course, session)).expect("comes to an end");
    }

    fn all() -> Mix {
        Mix { kinds: StormLockKind::ALL.to_vec(), beside_robust: true, ..Mix::default() }
    }

    #[test]
    fn locks_that_nobody_has_touched_pass() {
        let mix = all();
        let mut storm = still(&mix);
        quiesce(&mut storm);
        let report = storm.report().counts;
        assert!(report.passed(), "{report:?}");
        assert_eq!(report.quiet_phases, 1);
    }

    #[test]
    fn what_was_left_torn_is_found_in_the_quiet_phase() {
        let mix = all();
        let mut storm = still(&mix);
        let field = storm.ground.segment.root();
        let mutex = field.mutexes[3].lock().expect("a free lock");
        mutex.acquired().expect("nobody died").first = 1;
        let rwlock = field.rwlocks[4].write().expect("a free lock");
        rwlock.acquired().expect("nobody died").inside = 7;
        quiesce(&mut storm);
        let report = storm.report().counts;
        assert_eq!((report.torn, report.stalls), (2, 0), "{report:?}");
        assert!(!report.passed());
    }

    #[test]
    fn deaths_that_there_were_not_are_unfounded() {
        let mix = all();
        let mut storm = still(&mix);
        storm.deaths = 3;
        for kind in StormLockKind::ALL {
            let tally = storm.control.tally(kind);
            for counter in [&tally.owner_died, &tally.units_returned] {
                counter.store(7, Ordering::Relaxed);
            }
        }
        let report = storm.report().counts;
        // Two, two, two and one for each death.
        assert_eq!(report.unfounded, 1 + 1 + 1 + 4, "{report:?}");
        assert!(!report.passed());
    }

    #[test]
    fn a_wait_is_a_stall_when_it_has_lasted_too_long() {
        let mix = Mix::default();
        let storm = still(&mix);
        let party = &storm.control.parties[2][0];
        let since = |ago: Duration| {
            party.waits_for.store(StormLockKind::RwLock as u32, Ordering::Relaxed);
            party.waits_since.store(now_ns() - ago.as_nanos() as u64, Ordering::Relaxed);
            storm.stalled(2)
        };
        assert_eq!(since(STALL - Duration::from_secs(1)), None);
        assert_eq!(since(STALL + Duration::from_millis(1)), Some(Some(StormLockKind::RwLock)));
        let longest = &storm.control.tally(StormLockKind::RwLock).longest_wait_ns;
        assert!(longest.load(Ordering::Relaxed) > 2_000_000_000);
        assert_eq!(storm.stalled(1), None);
    }

    #[test]
    fn the_time_in_which_somebody_was_stopped_is_no_wait() {
        let mix = Mix::default();
        let storm = still(&mix);
        let party = &storm.control.parties[0][0];
        let long = (STALL + Duration::from_millis(500)).as_nanos() as u64;
        let begin = now_ns() - long;
        party.waits_for.store(StormLockKind::Mutex as u32, Ordering::Relaxed);
        party.waits_since.store(begin, Ordering::Relaxed);
        assert_eq!(storm.stalled(0), Some(Some(StormLockKind::Mutex)));
        storm.control.stops.begin(begin);
        storm.control.stops.end(begin + 1_000_000_000);
        assert_eq!(storm.stalled(0), None);
        // Stopped before it began to wait.
        party.waits_stopped.store(900_000_000, Ordering::Relaxed);
        assert_eq!(storm.stalled(0), Some(Some(StormLockKind::Mutex)));
    }

    #[test]
    fn a_slot_that_is_not_to_be_had_is_lost() {
        let mix = Mix::default();
        let storm = still(&mix);
        let party = &storm.control.parties[0][0];
        let long = (STALL + Duration::from_millis(1)).as_nanos() as u64;
        party.waits_for.store(FOR_A_SLOT, Ordering::Relaxed);
        party.waits_since.store(now_ns() - long, Ordering::Relaxed);
        assert_eq!(storm.stalled(0), Some(None));
    }

    #[test]
    fn a_slot_that_is_taken_when_nobody_is_left_is_lost_and_the_storm_goes_on_without_it() {
        let mix = Mix::default();
        let mut storm = still(&mix);
        let there = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let segment = storm.ground.segment.as_fd().try_clone_to_owned().expect("a descriptor");
            let there = &there;
            scope.spawn(move || {
                let segment = Segment::<StormField>::from_fd(segment).expect("a segment");
                segment.participate().expect("room");
                there.wait();
                there.wait();
            });
            there.wait();
            quiesce(&mut storm);
            there.wait();
        });
        assert_eq!(storm.report().counts.lost, 1);
        assert!(!storm.report().counts.passed());
        quiesce(&mut storm);
        assert_eq!(storm.report().counts.lost, 1);
    }
}
