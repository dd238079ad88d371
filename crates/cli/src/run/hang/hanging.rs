//! A run in which nothing moves, from the first look to the status.

use super::super::signals::ProgramEnd;
use super::ending::Ending;
use super::watch::{Hang, HangWatch};
use super::{HangOptions, OnHang, family};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// What to do about a hang.
pub(crate) struct HangTask {
    /// What was asked for.
    pub(crate) action: OnHang,
    /// Whether the picture has been printed.
    pub(crate) told: Arc<AtomicBool>,
}

/// What the supervisor knows of hanging.
pub(crate) struct Hanging {
    watch: HangWatch,
    program: u32,
    ending: Option<Ending>,
    /// Whether the picture of the last hang has been printed, for which threads are stopped; `None`
    /// once a look was made after that.
    picture: Option<Arc<AtomicBool>>,
    /// Whether the program hung at the last look before its end; others of the run may go on.
    when_ended: Option<bool>,
    /// Whether the program hung when somebody first asked it to end.
    when_asked: Option<bool>,
}

impl Hanging {
    /// Prepares to watch the run of `program`.
    pub(crate) fn new(options: HangOptions, program: u32, now: Instant) -> Self {
        let watch = HangWatch::new(options, now);
        Hanging { watch, program, ending: None, picture: None, when_ended: None, when_asked: None }
    }

    /// Returns when to come again.
    pub(crate) fn next(&self) -> Instant {
        let ending = self.ending.as_ref().and_then(Ending::next);
        ending.map_or(self.watch.next(), |due| due.min(self.watch.next()))
    }

    /// Does what is due; `live` are the processes that are watched. Returns a hang to be reported.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        live: impl Iterator<Item = u32>,
    ) -> Option<(Hang, HangTask)> {
        if let Some(ending) = &mut self.ending {
            ending.step(now);
        }
        let (is_due, was_hung) = (now >= self.watch.next(), self.watch.is_hung());
        let is_over = self.picture.as_ref().is_some_and(|told| told.load(Relaxed));
        self.watch.set_visited(self.picture.is_some());
        let hang = self.watch.tick(now, iter::once(self.program).chain(live));
        if is_due && is_over {
            self.picture = None;
        }
        // A program that ends moves, but not on. Asked after the look, which may have met its end.
        if is_due && family::ends(self.program) {
            self.when_ended.get_or_insert(was_hung);
        }
        let hang = hang?;
        if self.ending.is_some() {
            return None;
        }
        let action = self.watch.options().action.clone();
        let task = HangTask { action, told: Arc::default() };
        self.picture = Some(task.told.clone());
        if task.action == OnHang::Abort {
            self.ending = Some(Ending::new(&hang.pids, task.told.clone(), now));
        }
        Some((hang, task))
    }

    /// Notes that the program is asked to end. If another process did that, and not a person at the
    /// terminal, it counts whether the program hung then.
    pub(crate) fn asked_to_end(&mut self, is_sent: bool, live: impl Iterator<Item = u32>) {
        if self.when_asked.is_none() {
            if self.watch.is_hung() {
                self.watch.look(Instant::now(), iter::once(self.program).chain(live));
            }
            self.when_asked = Some(is_sent && self.watch.is_hung());
        }
    }

    /// Returns whether the program was ended while it hung, and did not end by itself.
    pub(crate) fn ended_program(&self, end: ProgramEnd) -> bool {
        let killed = matches!(end, ProgramEnd::Killed(_));
        self.ending.is_some()
            || self.when_asked.unwrap_or_else(|| {
                killed && self.when_ended.unwrap_or_else(|| self.watch.is_hung())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    const AFTER: Duration = Duration::from_secs(1);

    /// A program that waits for its input, and a watch to which the time is told.
    struct Watched {
        cat: Child,
        hanging: Hanging,
        now: Instant,
    }

    impl Watched {
        fn new() -> Self {
            let mut cat = Command::new("cat")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a program");
            // It has started when it says something, and then goes back to waiting.
            writeln!(cat.stdin.as_mut().expect("piped")).expect("it reads");
            cat.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("it writes");
            let deadline = Instant::now() + Duration::from_secs(60);
            let stat = format!("/proc/{}/stat", cat.id());
            while !std::fs::read_to_string(&stat).expect("it lives").contains(") S ") {
                assert!(Instant::now() < deadline, "it does not wait");
                std::thread::yield_now();
            }
            let now = Instant::now();
            let options = HangOptions { after: AFTER, action: OnHang::Report };
            Watched { hanging: Hanging::new(options, cat.id(), now), cat, now }
        }

        fn look(&mut self) -> Option<HangTask> {
            self.now = self.hanging.next().max(self.now);
            self.hanging.step(self.now, std::iter::empty()).map(|(_, task)| task)
        }

        /// Looks until it hangs.
        fn hangs(&mut self) -> HangTask {
            let deadline = Instant::now() + Duration::from_secs(60);
            loop {
                if let Some(task) = self.look() {
                    return task;
                }
                assert!(Instant::now() < deadline, "it does not hang");
            }
        }

        /// Sends a signal that ends or stops it, and waits until that has happened. It can still be
        /// waited for.
        fn send(&self, signal: libc::c_int) {
            // SAFETY: the signal goes to a child that has not been waited for; `info` is plain bits
            // of this frame, which the call fills in.
            let left = unsafe {
                libc::kill(self.cat.id() as libc::pid_t, signal);
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let how = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
                libc::waitid(libc::P_PID, self.cat.id(), &raw mut info, how)
            };
            assert_eq!(left, 0, "{}", std::io::Error::last_os_error());
        }

        fn is_ended_by_hang(&self) -> bool {
            self.hanging.ended_program(ProgramEnd::Killed(libc::SIGKILL))
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = self.cat.kill();
            let _ = self.cat.wait();
        }
    }

    #[test]
    fn a_look_that_meets_the_end_does_not_take_it_for_going_on() {
        let mut watched = Watched::new();
        watched.hangs();
        watched.send(libc::SIGKILL);
        watched.look();
        assert!(watched.is_ended_by_hang());
        let mut busy = Watched::new();
        busy.send(libc::SIGKILL);
        busy.look();
        assert!(!busy.is_ended_by_hang(), "it did not hang yet");
    }

    #[test]
    fn a_late_look_begins_no_standstill_and_ends_none() {
        let mut watched = Watched::new();
        watched.look();
        watched.now += AFTER * 100;
        assert!(watched.look().is_none(), "nobody looked for so long");
        watched.hangs();
        watched.now += AFTER * 100;
        watched.look();
        watched.send(libc::SIGKILL);
        assert!(watched.is_ended_by_hang());
    }

    #[test]
    fn threads_may_be_stopped_until_the_picture_is_printed_and_no_longer() {
        let mut watched = Watched::new();
        let task = watched.hangs();
        watched.send(libc::SIGSTOP);
        watched.look();
        assert!(watched.hanging.watch.is_hung(), "the picture may have stopped it");
        task.told.store(true, Relaxed);
        watched.look();
        assert!(watched.hanging.watch.is_hung(), "it was stopped before");
        watched.look();
        assert!(!watched.hanging.watch.is_hung(), "somebody else stops it");
    }
}
