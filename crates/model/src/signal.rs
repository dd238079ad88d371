//! Signal handlers that interrupt a thread at any of its steps.

use crate::choices::Lean;
use crate::engine::{Phase, check, point, with};
use crate::report::{ModelStep, Site};

/// Runs `body` in the calling thread; before any of its steps, and while it
/// sleeps, `handler` may interrupt it, as often as
/// [`Config::signals`](crate::Config::signals) says.
pub fn with_handler<R>(handler: impl Fn(), body: impl FnOnce() -> R) -> R {
    let handler: &dyn Fn() = &handler;
    // SAFETY: only the lifetime is erased: this function takes the pointer out again below,
    // before `handler` goes away, and `Engine::reset` forgets the threads of an execution
    // that has ended early, whose strands run no more.
    let handler: &'static dyn Fn() = unsafe { std::mem::transmute(handler) };
    with(|engine| {
        let me = engine.current;
        engine.threads[me].handler = Some(handler);
    });
    let result = body();
    with(|engine| {
        let me = engine.current;
        engine.threads[me].handler = None;
    });
    result
}

/// Lets a signal come before a step, and its handler run, here.
pub(crate) fn may_come(site: Site) {
    let comes = with(|engine| {
        let thread = &engine.threads[engine.current];
        if engine.phase != Phase::Run
            || engine.budget.signals == 0
            || thread.handler.is_none()
            || thread.in_handler
            || engine.choose(2, Lean::First(220)) == 0
        {
            return false;
        }
        engine.budget.signals -= 1;
        engine.learn(3);
        true
    });
    check();
    if comes {
        run(site);
        point(site);
    }
}

/// Runs the handler of the current thread.
pub(crate) fn run(site: Site) {
    let handler = with(|engine| {
        engine.event(site, ModelStep::Enter, 0, false);
        let thread = &mut engine.threads[engine.current];
        thread.in_handler = true;
        thread.in_section = false;
        thread.handler
    });
    if let Some(handler) = handler {
        // SAFETY: `with_handler` has not returned: it takes the pointer out before it does, and
        // keeps the handler until then.
        unsafe { (*handler)() };
    }
    with(|engine| {
        let me = engine.current;
        engine.threads[me].in_handler = false;
        engine.event(site, ModelStep::Leave, 0, false);
    });
}
