//! Who can end a wait in the kernel, in words.

use lockstead_inspect::proc::asleep::{Asleep, OtherProcess, WaitEnds};
use lockstead_render::words::clean;

/// Returns who holds what a thread waits for in the kernel, or has its other end, a line each;
/// `own` is the thread's process.
pub(crate) fn enders(on: &Asleep, own: u32) -> Vec<String> {
    let processes = match &on.ends {
        WaitEnds::Holders { processes } if processes.is_empty() => {
            return vec!["who holds it cannot be seen".into()];
        }
        WaitEnds::Holders { processes } | WaitEnds::Processes { processes } => processes,
        WaitEnds::Inside
        | WaitEnds::Child
        | WaitEnds::Signal
        | WaitEnds::Time
        | WaitEnds::Outside => {
            return Vec::new();
        }
    };
    let one = |other: &OtherProcess| {
        let name = other.name.as_deref().map(|name| format!(" \"{}\"", clean(name)));
        let ended = if other.name.is_none() { ", which has ended," } else { "" };
        let own = if other.pid == own { ", this one," } else { "" };
        let who = format!("process {}{}{own}{ended}", other.pid, name.unwrap_or_default());
        match &other.why {
            Some(why) => format!("{who} {why}"),
            None => format!("held by {}", who.trim_end_matches(',')),
        }
    };
    processes.iter().map(one).collect()
}
