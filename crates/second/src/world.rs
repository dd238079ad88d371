//! What one execution has besides loom's memory: who runs, who sleeps, the time, and the choices of
//! the machine.
//!
//! # Words are handles
//! An atomic of the core must be a constant, and loom's atomics cannot be made in one. So a word of
//! a lock is a number, and the atomic behind it comes from a shelf that the main thread filled
//! before the others began. (Made at the first touch, an atomic would be made by one thread without
//! an order to the others, which loom reports.)
//!
//! # Choices
//! Loom knows no choice but who goes next and which store a load reads. So a choice of the machine
//! (a spurious wake-up, a timer, a signal, a jump of the clock, an answer of `on_cpu`) is a load of
//! a word of its own, to which the main thread stores a one after the others have begun: both
//! values can be read. Each thread has [`CHOICES`] of them in an execution; later questions are
//! answered by "nothing happens".
//!
//! # Everything else is plain
//! The lists of this module are changed in the same step as an access that loom sees, and each
//! module says by which. Loom, which reorders accesses only, then explores the orders of these
//! changes, too.

use crate::config::{Budget, Config};
use crate::needs::{Needs, begin_anew, needs};
use crate::participants::{Killed, Participants};
use crate::shelf::Shelf;
use crate::sleeper::{Sleeper, Watcher};
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The most threads that a scenario may have: loom has room for five, its main thread included.
pub(crate) const MOST_THREADS: usize = loom::MAX_THREADS - 1;

/// How many choices the machine has for one thread in one execution.
pub(crate) const CHOICES: usize = 16;

/// What a panic says when all sleep.
pub(crate) const DEADLOCK: &str = "deadlock: every thread sleeps or has ended";
/// What a panic says when threads spin for ever.
pub(crate) const LIVELOCK: &str = "livelock: threads spin, and nothing changes";
/// What a panic says when freed memory is touched.
pub(crate) const FREED: &str = "an access to freed memory";

/// Timers from here on never come to the rescue: a policy that never insists says so with a large number.
const NEVER: u64 = 1 << 60;

/// The number of turns of spinners for which nothing may change.
const QUIET: u32 = 400;

thread_local! {
    static ABOUT_MEMORY: Cell<bool> = const { Cell::new(false) };
    static EXECUTIONS: Cell<u64> = const { Cell::new(0) };
    static CURRENT: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// Does something in which loom can find that memory is touched and freed without an order.
pub(crate) fn about_memory(step: impl FnOnce()) {
    ABOUT_MEMORY.set(true);
    step();
    ABOUT_MEMORY.set(false);
}

/// Returns whether a panic came from within [`about_memory`], and forgets it.
pub(crate) fn forget_about_memory() -> bool {
    ABOUT_MEMORY.replace(false)
}

type Handler = &'static dyn Fn();

/// What one execution has besides loom's memory.
pub(crate) struct World {
    pub(crate) config: Config,
    /// The number of the execution among all of this thread of the operating system.
    pub(crate) number: u64,
    /// How many threads the scenario has. The next number is the main thread's.
    pub(crate) threads: usize,
    pub(crate) words: Shelf<AtomicU64>,
    pub(crate) narrow: Shelf<AtomicU32>,
    pub(crate) fields: Shelf<()>,
    pub(crate) sleepers: RefCell<Vec<Sleeper>>,
    /// Those that sleep on several words, or are about to.
    pub(crate) watchers: RefCell<Vec<Watcher>>,
    pub(crate) participants: Participants,
    /// The gate of each thread: whether it is in a section, see `section`.
    pub(crate) gates: Vec<AtomicU32>,
    pub(crate) fences: bool,
    /// The bell of each thread, which others ring when they have woken it, see `futex`.
    bells: Vec<AtomicU32>,
    me: Cell<usize>,
    ended: RefCell<Vec<bool>>,
    /// How much had changed when the turn of each thread that spins began.
    spins: RefCell<Vec<Option<u64>>>,
    /// How often each thread has yielded, as loom counts it.
    yields: RefCell<Vec<u64>>,
    changes: Cell<u64>,
    quiet: Cell<u32>,
    time: Cell<u64>,
    /// The clock, where it may move while others run.
    clock: Option<AtomicU64>,
    left: RefCell<Budget>,
    dice: Vec<AtomicU32>,
    thrown: RefCell<Vec<usize>>,
    handlers: RefCell<Vec<Option<Handler>>>,
    /// Whether the thread that runs notes something for the scenario's own checks, see `notes`.
    aside: Cell<bool>,
    /// What gives such notes an order.
    pub(crate) notes: AtomicU32,
}

/// Returns the execution that runs.
pub(crate) fn world() -> Rc<World> {
    CURRENT.with_borrow(|current| current.clone()).expect("only within a scenario")
}

/// Ends the execution that runs, if one does.
pub(crate) fn leave() {
    CURRENT.replace(None);
}

impl World {
    /// Begins an execution. Only the main thread of loom may do so.
    pub(crate) fn enter(config: &Config, threads: usize) -> Rc<World> {
        let Needs { shelf, fences, choices, ends } = needs();
        let number = EXECUTIONS.get() + 1;
        EXECUTIONS.set(number);
        let budget = config.budget;
        let moves = budget.jumps + budget.timeouts > 0;
        let chooses = budget != Budget { signals: budget.signals, ..Budget::NONE }
            || config.hint == crate::Hint::Either
            || choices;
        let dice = if chooses { threads * CHOICES } else { 0 };
        let gates = if config.sections || fences { threads + 1 } else { 0 };
        let world = Rc::new(World {
            config: config.clone(),
            number,
            threads,
            words: Shelf::new(shelf, config.orderings.is_some(), || AtomicU64::new(0)),
            narrow: Shelf::new(shelf, config.orderings.is_some(), || AtomicU32::new(0)),
            fields: Shelf::new(shelf, false, || ()),
            sleepers: RefCell::default(),
            watchers: RefCell::default(),
            participants: Participants::new(threads, ends),
            gates: (0..gates).map(|_| AtomicU32::new(0)).collect(),
            fences,
            bells: (0..threads).map(|_| AtomicU32::new(0)).collect(),
            me: Cell::new(threads),
            ended: RefCell::new(vec![false; threads]),
            spins: RefCell::new(vec![None; threads + 1]),
            yields: RefCell::new(vec![0; threads + 1]),
            changes: Cell::new(0),
            quiet: Cell::new(0),
            time: Cell::new(0),
            clock: moves.then(|| AtomicU64::new(0)),
            left: RefCell::new(budget),
            dice: (0..dice).map(|_| AtomicU32::new(0)).collect(),
            thrown: RefCell::new(vec![0; threads]),
            handlers: RefCell::new(vec![None; threads + 1]),
            aside: Cell::new(false),
            notes: AtomicU32::new(0),
        });
        CURRENT.replace(Some(Rc::clone(&world)));
        world
    }

    /// Gives each choice its second value. The main thread calls it after the others have begun.
    pub(crate) fn throw_dice(&self) {
        for die in self.dice.iter().chain(&self.participants.dice) {
            die.store(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of the thread that runs, from 0.
    pub(crate) fn me(&self) -> usize {
        self.me.get()
    }

    pub(crate) fn set_me(&self, thread: usize) {
        self.me.set(thread);
    }

    /// Does something at which loom may let others go first.
    pub(crate) fn visible<R>(&self, step: impl FnOnce() -> R) -> R {
        let me = self.me.get();
        let result = step();
        self.me.set(me);
        result
    }

    /// Notes that the thread has changed memory, which may get spinners on.
    pub(crate) fn changed(&self) {
        if self.is_aside() {
            return;
        }
        self.changes.set(self.changes.get() + 1);
        self.quiet.set(0);
    }

    /// Returns how much has changed so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Notes that a thread of the scenario has ended.
    pub(crate) fn end(&self, thread: usize) {
        self.ended.borrow_mut()[thread] = true;
        self.changed();
    }

    /// Tells whether a thread of the scenario can do anything but wait for others.
    fn can_go_on(&self, thread: usize) -> bool {
        !self.ended.borrow()[thread]
            && self.spins.borrow()[thread] != Some(self.changes.get())
            && !self.sleepers.borrow().iter().any(|s| s.sleeps(thread))
            && !self.watchers.borrow().iter().any(|w| w.sleeps(thread))
    }

    fn all_rest(&self) -> bool {
        !(0..self.threads).any(|thread| self.can_go_on(thread))
    }

    /// Lets others go first, because the calling thread has nothing to do until they have.
    ///
    /// Loom would explore threads that do so in turn, again and again, while another one can go
    /// on. An execution in which this thread has nothing new to see, more often than loom's own
    /// fairness makes it look, is not branched at any more.
    ///
    /// Nothing is lost by that. A look with nothing new to see is a yield, and no access: whatever it
    /// could find counts as a change ([`changed`](Self::changed): memory, sleepers, jumps of the
    /// clock, ends of threads), and dice are thrown at the first look after a change only. So an
    /// execution with such a look has the accesses of the one without it, in their order. Loom's own
    /// state is the same as well: a yield hides from the thread what it had read before an older one
    /// at most, and it has read nothing since the one before. The execution without the look is
    /// explored, too: the look came in where loom let another thread go first, and what follows that
    /// one is explored from the same place, at which loom branches still. It takes no more
    /// preemptions: to come to this thread costs what it costs to go on with any other, and to leave
    /// it is free. And it is not cut sooner, for it has fewer looks; so, by induction over them, what
    /// is cut here has been explored where there are none. (A wait at a gate, see `section`, ends by
    /// a change that may come later than the gate is free: that is as if the thread had come to the
    /// gate later, which is explored as well.)
    fn pause(&self, looks: &mut u64) {
        let (me, changes) = (self.me(), self.changes.get());
        self.yields.borrow_mut()[me] += 1;
        self.visible(loom::thread::yield_now);
        if self.changes.get() != changes {
            *looks = 0;
            return;
        }
        let yields = self.yields.borrow();
        let others = (0..self.threads).filter(|&t| t != me && self.can_go_on(t));
        let Some(most) = others.map(|t| yields[t]).max() else { return };
        *looks += 1;
        if *looks > 1 && yields[me] > most + 1 {
            loom::skip_branch();
        }
    }

    /// Makes one turn of a thread that sleeps. Where all do, fires the earliest timer if it may
    /// come to the rescue.
    ///
    /// # Panics
    /// If nothing can happen any more.
    pub(crate) fn sleep_on(&self, looks: &mut u64) {
        if self.all_rest() && !self.fire_earliest() {
            let spun = self.spins.borrow().iter().any(Option::is_some);
            assert!(spun, "{DEADLOCK}");
        }
        self.pause(looks);
    }

    /// Fires the earliest timer if its time has come, or if timers may come to the rescue.
    fn fire_earliest(&self) -> bool {
        let latest = if self.config.rescue { NEVER - 1 } else { self.time.get() };
        let (mut sleepers, mut watchers) = (self.sleepers.borrow_mut(), self.watchers.borrow_mut());
        let one = sleepers.iter_mut().filter_map(Sleeper::timer);
        let Some(first) = one
            .chain(watchers.iter_mut().filter_map(Watcher::timer))
            .filter(|timer| timer.deadline <= latest)
            .min_by_key(|timer| timer.deadline)
        else {
            return false;
        };
        let time = self.time.get().max(first.deadline);
        first.fire();
        drop((sleepers, watchers));
        self.pass_to(time);
        true
    }

    /// Makes one turn of a spin loop: it lasts until another thread has changed memory. Time passes
    /// when nobody can do anything but spin.
    ///
    /// # Panics
    /// If nothing changes for long.
    pub(crate) fn relax(&self) {
        let (me, changes) = (self.me(), self.changes.get());
        let mut looks = 0;
        self.spins.borrow_mut()[me] = Some(changes);
        while self.changes.get() == changes {
            if self.all_rest() {
                self.quiet.set(self.quiet.get() + 1);
                assert!(self.quiet.get() < QUIET, "{LIVELOCK}");
                self.pass_to(self.time.get() + self.config.tick);
                self.fire_earliest();
                self.changes.set(self.changes.get() + 1);
            }
            self.pause(&mut looks);
        }
        self.spins.borrow_mut()[me] = None;
    }

    /// Moves the clock to `time`, unless it is later.
    pub(crate) fn pass_to(&self, time: u64) {
        if let Some(clock) = &self.clock {
            self.visible(|| clock.fetch_max(time, Ordering::Relaxed));
        }
        self.time.set(self.time.get().max(time));
    }

    /// Returns the time as the clock shows it. A jump of the clock is a choice.
    pub(crate) fn now(&self) -> u64 {
        let Some(clock) = &self.clock else { return self.time.get() };
        if self.happens(|left| &mut left.jumps) {
            let jump = self.config.jump;
            let before = self.visible(|| clock.fetch_add(jump, Ordering::Relaxed));
            self.time.set(before + jump);
            self.changed();
            return before + jump;
        }
        // Relaxed: two processors' clocks may differ by what one has not seen yet.
        self.visible(|| clock.load(Ordering::Relaxed))
    }

    /// Tells whether the thread that runs only notes something.
    pub(crate) fn is_aside(&self) -> bool {
        self.aside.get()
    }

    /// Does something that is no step of a thread: what it reads and writes is plain memory.
    pub(crate) fn aside<R>(&self, note: impl FnOnce() -> R) -> R {
        let before = self.aside.replace(true);
        let result = note();
        self.aside.set(before);
        result
    }

    /// Rings the bell of a thread.
    pub(crate) fn ring_bell(&self, thread: usize) {
        self.visible(|| self.bells[thread].fetch_add(1, Ordering::Relaxed));
    }

    /// Has the calling thread hear its bell.
    pub(crate) fn hear_bell(&self, me: usize) {
        self.visible(|| self.bells[me].fetch_add(0, Ordering::Relaxed));
    }

    /// Chooses between two things. The first is "nothing happens".
    pub(crate) fn choose(&self) -> bool {
        let me = self.me();
        if me >= self.threads || self.dice.is_empty() {
            return false;
        }
        let throw = self.thrown.borrow()[me];
        if throw == CHOICES {
            return false;
        }
        self.thrown.borrow_mut()[me] = throw + 1;
        self.visible(|| self.dice[me * CHOICES + throw].load(Ordering::Relaxed)) == 1
    }

    /// Chooses whether something happens of which so much is left for this execution.
    pub(crate) fn happens(&self, which: impl Fn(&mut Budget) -> &mut u32) -> bool {
        if *which(&mut self.left.borrow_mut()) == 0 || !self.choose() {
            return false;
        }
        // Others may have used it up before the load of the choice.
        let mut left = self.left.borrow_mut();
        let happens = *which(&mut left) > 0;
        *which(&mut left) -= u32::from(happens);
        happens
    }

    /// Ends the participant of the calling thread, if that is what the machine chooses.
    pub(crate) fn may_end(&self) {
        let (me, people) = (self.me(), &self.participants);
        let may = me < self.threads && self.left.borrow().kills > 0;
        if !may || !people.with(me, |it| it.mortal) {
            return;
        }
        let die = people.die(me, self.yields.borrow()[me]);
        if self.visible(|| die.load(Ordering::Relaxed)) == 0 {
            return;
        }
        let mut left = self.left.borrow_mut();
        // Others may have ended before the load of the choice.
        if left.kills > 0 {
            left.kills -= 1;
            drop(left);
            // No panic: nothing has gone wrong, and nobody is told.
            std::panic::resume_unwind(Box::new(Killed));
        }
    }

    /// Lets a signal come before an access of a thread with a handler, which then runs.
    pub(crate) fn signal_may_come(&self) {
        let me = self.me();
        let Some(handler) = self.handlers.borrow()[me] else { return };
        if !self.happens(|left| &mut left.signals) {
            return;
        }
        self.handlers.borrow_mut()[me] = None;
        if let Some(gate) = self.gates.get(me) {
            // The handler restarts the section that it interrupts.
            self.visible(|| gate.swap(0, Ordering::AcqRel));
        }
        handler();
        self.handlers.borrow_mut()[me] = Some(handler);
    }
}

/// Runs `body` in the calling thread; before any of its accesses `handler` may interrupt it, as
/// often as [`Config::signals`] says.
pub fn with_handler<R>(handler: impl Fn(), body: impl FnOnce() -> R) -> R {
    let world = world();
    if !needs().choices {
        begin_anew(|needs| needs.choices = true);
    }
    let me = world.me();
    let handler: &dyn Fn() = &handler;
    // SAFETY: only the lifetime is erased. `Installed` takes the reference out of the list when
    // this function is left, by a panic also, before `handler` goes away.
    let handler: Handler = unsafe { std::mem::transmute(handler) };
    world.handlers.borrow_mut()[me] = Some(handler);
    let _installed = Installed(&world, me);
    body()
}

struct Installed<'a>(&'a World, usize);

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        self.0.handlers.borrow_mut()[self.1] = None;
    }
}
