//! What the types leave open to misuse: checked with the feature `check`, as the
//! kernel does, and nothing at all without.

#[cfg(not(feature = "check"))]
pub(super) use off::{RuleContext, RuleLock};
#[cfg(feature = "check")]
pub(super) use on::{RuleContext, RuleLock};

/// Zero bytes, no instruction.
#[cfg(not(feature = "check"))]
mod off {
    use crate::Site;
    use crate::ww::{self, Class};

    pub(in crate::ww) struct RuleLock;

    impl RuleLock {
        pub(in crate::ww) const fn of(_class: &'static Class) -> Self {
            RuleLock
        }

        #[inline(always)]
        pub(in crate::ww) fn asked(&self, _address: usize, _context: &ww::Context, _here: Site) {}

        #[inline(always)]
        pub(in crate::ww) fn asked_alone(&self, _here: Site) {}
    }

    pub(in crate::ww) struct RuleContext;

    impl RuleContext {
        #[inline(always)]
        pub(in crate::ww) fn begun(_class: &'static Class, _here: Site) -> Self {
            RuleContext
        }

        #[inline(always)]
        pub(in crate::ww) fn acquired(&self) {}

        #[inline(always)]
        pub(in crate::ww) fn refused(&self, _address: usize, _here: Site) {}

        #[inline(always)]
        pub(in crate::ww) fn released(&self) {}

        #[inline(always)]
        pub(in crate::ww) fn slow(&self, _context: &ww::Context, _here: Site) {}

        #[inline(always)]
        pub(in crate::ww) fn done(&self, _context: &ww::Context, _here: Site) {}

        #[inline(always)]
        pub(in crate::ww) fn ended(&self, _context: &ww::Context) {}
    }
}

#[cfg(feature = "check")]
mod on {
    use crate::Site;
    use crate::check::{Rule, violation};
    use crate::ww::{self, Class};
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    /// A context as the thread's other calls see it.
    struct LiveContext {
        class: &'static Class,
        begun: Site,
        held: Cell<u32>,
    }

    thread_local! {
        /// The contexts of this thread.
        static LIVE: RefCell<Vec<Rc<LiveContext>>> = const { RefCell::new(Vec::new()) };
    }

    /// Returns a live context of the class on this thread.
    fn live(
        class: &'static Class,
        wanted: impl Fn(&LiveContext) -> bool,
    ) -> Option<Rc<LiveContext>> {
        let found = |live: &&Rc<LiveContext>| core::ptr::eq(live.class, class) && wanted(live);
        LIVE.try_with(|all| all.borrow().iter().find(found).cloned()).ok().flatten()
    }

    pub(in crate::ww) struct RuleLock {
        class: &'static Class,
    }

    impl RuleLock {
        pub(in crate::ww) const fn of(class: &'static Class) -> Self {
            RuleLock { class }
        }

        #[track_caller]
        pub(in crate::ww) fn asked(&self, address: usize, context: &ww::Context, here: Site) {
            let class = context.class();
            let (name, begun) = (class.name(), context.rules.live.begun);
            if !core::ptr::eq(class, self.class) {
                violation(
                    Rule::ContextOfOtherClass,
                    &format!(
                        "a lock of class `{}` at {address:#x} is asked for in a context of class \
                         `{name}`: nobody can say which of two such contexts is older",
                        self.class.name()
                    ),
                    &[("asked for", here), ("context begun", begun)],
                );
            }
            if let Some(done) = context.rules.done.get() {
                violation(
                    Rule::AcquisitionAfterDone,
                    &format!(
                        "a context of class `{name}` that has said that it needs no further lock \
                         asks for the one at {address:#x}"
                    ),
                    &[("asked for", here), ("done", done)],
                );
            }
            let Some((refused, at)) = context.rules.refused.get() else { return };
            if context.acquired() != 0 {
                violation(
                    Rule::NoBackingOff,
                    &format!(
                        "a context of class `{name}` was refused the lock at {refused:#x}, and \
                         asks for one while it still holds {}: others may wait for those",
                        context.acquired()
                    ),
                    &[("asked for", here), ("refused", at)],
                );
            } else if refused != address {
                violation(
                    Rule::OtherLockFirst,
                    &format!(
                        "a context of class `{name}` was refused the lock at {refused:#x}, and \
                         asks for the one at {address:#x} first: it may be refused again at once"
                    ),
                    &[("asked for", here), ("refused", at)],
                );
            }
        }

        #[track_caller]
        pub(in crate::ww) fn asked_alone(&self, here: Site) {
            if let Some(live) = live(self.class, |live| live.held.get() != 0) {
                violation(
                    Rule::AloneBesideContext,
                    &format!(
                        "a thread that holds {} lock(s) of class `{}` in a context asks for one \
                         without: it is never told to back off, and may wait for ever",
                        live.held.get(),
                        self.class.name()
                    ),
                    &[("asked for", here), ("context begun", live.begun)],
                );
            }
        }
    }

    pub(in crate::ww) struct RuleContext {
        live: Rc<LiveContext>,
        done: Cell<Option<Site>>,
        /// The lock that it was refused, and where.
        refused: Cell<Option<(usize, Site)>>,
    }

    impl RuleContext {
        #[track_caller]
        pub(in crate::ww) fn begun(class: &'static Class, here: Site) -> Self {
            if let Some(other) = live(class, |_| true) {
                violation(
                    Rule::SecondContext,
                    &format!(
                        "a thread begins a context of class `{}` while it has another one: the two \
                         may wait for each other",
                        class.name()
                    ),
                    &[("begun", here), ("the other begun", other.begun)],
                );
            }
            let live = Rc::new(LiveContext { class, begun: here, held: Cell::new(0) });
            // On a thread that ends, the list may be gone.
            let _ = LIVE.try_with(|all| all.borrow_mut().push(live.clone()));
            RuleContext { live, done: Cell::new(None), refused: Cell::new(None) }
        }

        pub(in crate::ww) fn acquired(&self) {
            self.refused.set(None);
            self.live.held.set(self.live.held.get() + 1);
        }

        pub(in crate::ww) fn refused(&self, address: usize, here: Site) {
            self.refused.set(Some((address, here)));
        }

        pub(in crate::ww) fn released(&self) {
            self.live.held.set(self.live.held.get() - 1);
        }

        #[track_caller]
        pub(in crate::ww) fn slow(&self, context: &ww::Context, here: Site) {
            if self.refused.get().is_none() {
                violation(
                    Rule::SlowWithoutRefusal,
                    &format!(
                        "a context of class `{}` waits for a lock that it was not refused: use lock",
                        context.class().name()
                    ),
                    &[("asked for", here), ("context begun", self.live.begun)],
                );
            }
        }

        #[track_caller]
        pub(in crate::ww) fn done(&self, context: &ww::Context, here: Site) {
            if let Some(before) = self.done.replace(Some(here)) {
                violation(
                    Rule::DoneTwice,
                    &format!(
                        "a context of class `{}` says again that it needs no further lock",
                        context.class().name()
                    ),
                    &[("done", here), ("done before", before)],
                );
            }
        }

        pub(in crate::ww) fn ended(&self, context: &ww::Context) {
            let _ = LIVE.try_with(|all| {
                all.borrow_mut().retain(|live| !Rc::ptr_eq(live, &self.live));
            });
            if context.acquired() != 0 && !std::thread::panicking() {
                violation(
                    Rule::EndedHolding,
                    &format!(
                        "a context of class `{}` has ended and holds {} lock(s): their guards were \
                         leaked",
                        context.class().name(),
                        context.acquired()
                    ),
                    &[("begun", self.live.begun)],
                );
            }
        }
    }
}
