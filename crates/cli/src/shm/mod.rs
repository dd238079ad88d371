//! `lockstead shm PATH`: who takes part in a segment, who holds and who waits for
//! what, who died; and help for those who are stuck.

mod cycles;
mod facts;
mod flags;
mod processes;
mod text;

pub(crate) use facts::SegmentFacts;
pub(crate) use flags::Shm;

use facts::RecoveredFacts;
use lockstead::shared::SegmentError;
use lockstead::shared::inspect::{LockState, Mended, Mender, SegmentView};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use std::time::Duration;

/// The time between two looks at participants that seem to wait for each other.
const STEADY: Duration = Duration::from_millis(100);

/// Looks, recovers if asked to, and prints.
///
/// # Errors
/// As [`Failure`]; a deadlock that was found is one.
pub(crate) fn run(flags: &Shm) -> Result<(), Failure> {
    let cannot =
        |why: SegmentError| Failure::Run(format!("cannot look at {}: {why}", flags.path.display()));
    let view = SegmentView::open(&flags.path).map_err(cannot)?;
    let recovered = if flags.recover { Some(recover(flags, &view)?) } else { None };
    let name = flags.path.display().to_string();
    let look = |recovered| SegmentFacts::collect(name.clone(), &view, flags.all, recovered);
    let mut facts = look(recovered).map_err(cannot)?;
    if !facts.cycles.is_empty() {
        // It was not all seen at the same time; what stays as it was is true.
        std::thread::sleep(STEADY);
        let again = look(None).map_err(cannot)?;
        facts.cycles.retain(|cycle| again.cycles.contains(cycle));
    }
    if flags.json {
        output::print_json(&facts)?;
    } else {
        output::print(&text::render(&facts, flags.all))?;
    }
    if facts.cycles.is_empty() { Ok(()) } else { Err(Failure::Deadlock) }
}

fn recover(flags: &Shm, view: &SegmentView) -> Result<RecoveredFacts, Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::Run(format!("cannot recover {}: {why}", flags.path.display()))
    };
    // Taking part maps the file, which anybody who may write to it can cut.
    lockstead::shared::survive_cuts().map_err(|why| refused(&why))?;
    let mender = Mender::open(&flags.path).map_err(|why| refused(&why))?;
    let mut recovered = RecoveredFacts {
        declared_dead: mender.declare_dead(),
        reset: Vec::new(),
        scrubbed: mender.scrub(),
    };
    if flags.reset {
        let people = view.people().map_err(|why| refused(&why))?;
        let mut lost = Vec::new();
        view.locks(&people, &mut |lock| {
            if lock.state == LockState::NotRecoverable {
                lost.push((lock.path.to_owned(), lock.offset, lock.kind));
            }
            true
        })
        .map_err(|why| refused(&why))?;
        for (path, offset, kind) in lost {
            if mender.mend(offset, kind, true).map_err(|why| refused(&why))? == Mended::Reset {
                recovered.reset.push(path);
            }
        }
    }
    Ok(recovered)
}
