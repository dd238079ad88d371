//! Every schedule of small scenes: threads call, are told of and may be killed; the command may be
//! killed before and after each thing that it asks of the kernel, and the heir goes on from there.
//!
//! The kernel is one made for this, with what the real one does to a call: it waits, is told, is
//! let go, or its thread is killed. A schedule fails if a living thread's call stands for ever.

use super::{Desk, Listener};
use crate::run::syscalls::filter::Notice;
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What unwinds the command when it is killed.
struct Killed;
/// What unwinds whoever waits for ever.
struct Stuck;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Waiting(u64),
    Told(u64),
}

#[derive(Clone, Debug, Default)]
struct Caller {
    call: Option<Call>,
    /// How many more calls it will make.
    left: u32,
}

/// The choices of one schedule, and how to come to the next one.
#[derive(Default)]
struct Choices {
    taken: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, of: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push((0, of));
        }
        let (choice, known) = self.taken[self.at];
        assert_eq!(known, of, "the scene is not the same when it is run again");
        self.at += 1;
        choice
    }

    fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((choice, of)) = self.taken.pop() {
            if choice + 1 < of {
                self.taken.push((choice + 1, of));
                return true;
            }
        }
        false
    }
}

/// A kernel, and the threads that call it.
struct World<'c> {
    choices: &'c RefCell<Choices>,
    callers: RefCell<Vec<Caller>>,
    ids: Cell<u64>,
    /// Whether the one who answers may still be killed.
    mortal: Cell<bool>,
    /// How many threads may still be killed.
    kills: Cell<u32>,
}

impl World<'_> {
    /// Lets the threads do something, or nothing, and perhaps kills the one who answers.
    fn moment(&self) {
        loop {
            let mut moves = Vec::new();
            for (index, caller) in self.callers.borrow().iter().enumerate() {
                if caller.call.is_none() && caller.left > 0 {
                    moves.push((index, false));
                }
                if caller.call.is_some() && self.kills.get() > 0 {
                    moves.push((index, true));
                }
            }
            let mortal = usize::from(self.mortal.get());
            let choice = self.choices.borrow_mut().choose(1 + mortal + moves.len());
            let Some(choice) = choice.checked_sub(1) else { return };
            match moves.get(choice) {
                Some(&(index, false)) => self.call(index),
                Some(&(index, true)) => {
                    self.kills.set(self.kills.get() - 1);
                    self.callers.borrow_mut()[index] = Caller::default();
                }
                None => {
                    self.mortal.set(false);
                    resume_unwind(Box::new(Killed));
                }
            }
        }
    }

    fn call(&self, index: usize) {
        self.ids.set(self.ids.get() + 1);
        let caller = &mut self.callers.borrow_mut()[index];
        caller.left -= 1;
        caller.call = Some(Call::Waiting(self.ids.get()));
    }
}

impl Listener for World<'_> {
    fn receive(&self, notice: &Cell<Notice>) -> bool {
        self.moment();
        assert_eq!(notice.get().id, 0, "the kernel refuses a notice that is not all zero");
        let told = self.callers.borrow_mut().iter_mut().find_map(|caller| match caller.call {
            Some(Call::Waiting(id)) => {
                caller.call = Some(Call::Told(id));
                Some(id)
            }
            _ => None,
        });
        let mut said = Notice::default();
        said.id = told.unwrap_or(0);
        notice.set(said);
        self.moment();
        told.is_some()
    }

    fn let_go(&self, id: u64) {
        self.moment();
        for caller in self.callers.borrow_mut().iter_mut() {
            if caller.call == Some(Call::Told(id)) {
                caller.call = None;
            }
        }
        self.moment();
    }

    fn wait(&self, _: RawFd, _: i32) -> Option<(bool, bool)> {
        self.moment();
        loop {
            let callers = self.callers.borrow().clone();
            if callers.iter().any(|caller| matches!(caller.call, Some(Call::Waiting(_)))) {
                return Some((true, false));
            }
            let idle = callers.iter().position(|caller| caller.call.is_none() && caller.left > 0);
            match idle {
                Some(index) => self.call(index),
                None if callers.iter().all(|caller| caller.call.is_none()) => return None,
                // Threads stand in calls that nobody answers any more.
                None => resume_unwind(Box::new(Stuck)),
            }
        }
    }
}

/// The two halves of the protocol.
#[derive(Clone, Copy)]
struct Protocol {
    serve: fn(&Desk, &World<'_>),
    inherit: fn(&Desk, &World<'_>),
}

const SHIPPED: Protocol = Protocol {
    serve: |desk, world| desk.serve(world, |_| {}),
    inherit: |desk, world| desk.inherit(world),
};

/// Runs every schedule of so many calls of each thread. Returns the number of schedules, or the
/// first that leaves a thread in its call.
fn run(protocol: Protocol, calls: &[u32]) -> Result<u64, String> {
    let choices = RefCell::new(Choices::default());
    let mut schedules = 0;
    loop {
        let desk = Desk::new().unwrap();
        let callers = calls.iter().map(|&left| Caller { call: None, left }).collect();
        let world = World {
            choices: &choices,
            callers: RefCell::new(callers),
            ids: Cell::new(0),
            mortal: Cell::new(true),
            kills: Cell::new(1),
        };
        let mut command = || {
            while world.wait(-1, 8).is_some() {
                (protocol.serve)(&desk, &world);
            }
            // It ends by itself.
            world.mortal.set(false);
        };
        let ended = match catch_unwind(AssertUnwindSafe(&mut command)) {
            Err(payload) if payload.is::<Killed>() => Ok(()),
            ended => ended,
        };
        let inherit = || (protocol.inherit)(&desk, &world);
        let ended = ended.and_then(|()| catch_unwind(AssertUnwindSafe(inherit)));
        match ended {
            Ok(()) => schedules += 1,
            Err(payload) if payload.is::<Stuck>() => {
                return Err(format!("{:?} after {:?}", world.callers, choices.borrow().taken));
            }
            Err(payload) => resume_unwind(payload),
        }
        if !choices.borrow_mut().next() {
            return Ok(schedules);
        }
    }
}

#[test]
fn no_call_stands_for_ever_wherever_the_command_is_killed() {
    for calls in [&[2][..], &[1, 1], &[2, 1]] {
        let schedules = run(SHIPPED, calls).unwrap();
        assert!(schedules > 100, "{schedules}");
    }
}

#[test]
fn the_scenes_find_what_would_break_it() {
    let broken = [
        (
            "the heir forgets what was told last",
            Protocol {
                inherit: |desk, world| {
                    while let Some((told, _)) = world.wait(-1, -1) {
                        if told {
                            desk.serve(world, |_| {});
                        }
                    }
                },
                ..SHIPPED
            },
        ),
        (
            "the heir looks at the desk too late",
            Protocol {
                inherit: |desk, world| {
                    if world.wait(-1, -1).is_some() {
                        desk.serve(world, |_| {});
                    }
                    desk.inherit(world);
                },
                ..SHIPPED
            },
        ),
        (
            "the kernel writes the notice into memory of the command's own",
            Protocol {
                serve: |desk, world| {
                    let own = Cell::new(Notice::default());
                    if world.receive(&own) {
                        desk.notice().set(own.get());
                        world.let_go(own.get().id);
                    }
                },
                ..SHIPPED
            },
        ),
        (
            "the desk is cleared before the call is let go",
            Protocol {
                serve: |desk, world| {
                    desk.notice().set(Notice::default());
                    if world.receive(desk.notice()) {
                        let told = desk.notice().replace(Notice::default());
                        world.let_go(told.id);
                    }
                },
                ..SHIPPED
            },
        ),
    ];
    for (what, protocol) in broken {
        assert!(run(protocol, &[2, 1]).is_err(), "not found: {what}");
    }
}
