//! Names and numbers of a report in few characters.

use lockstead_inspect::report::holders::{HolderDoing, HolderPlace};
use lockstead_inspect::report::model::{
    Durations, LockReport, Losses, ProcessReport, ReportSite, ThreadReport, percent as part_of,
};
use lockstead_inspect::report::python::PythonPlace;
use lockstead_inspect::report::spread::{LockSpread, SpreadOf};
use lockstead_inspect::report::verdict::VerdictRule;
use lockstead_render::table::count;
use lockstead_render::words::{brief, clean, percent, plural};

/// Returns how many a row stands for: `4 locks`, `600 conditions`.
pub(crate) fn how_many(row: &LockReport) -> String {
    let (one, many) = match row.kind {
        "condition" => ("condition", "conditions"),
        "semaphore" => ("semaphore", "semaphores"),
        "barrier" => ("barrier", "barriers"),
        _ => ("lock", "locks"),
    };
    plural(row.locks, one, many)
}

/// Returns a place, and the program's own function that was called there to take the lock.
pub(crate) fn place(site: &ReportSite) -> String {
    match &site.through {
        Some(function) => format!("{}, by {}", brief(&site.site), brief(function)),
        None => brief(&site.site),
    }
}

/// Returns a place in Python, what of the library was called there, and what was waited for, unless
/// the row's name says that.
pub(crate) fn python_place(place: &PythonPlace, row: &str) -> String {
    let mut text = place.site.clone();
    if let Some(function) = &place.through {
        text += &format!(", by {function}");
    }
    let is_told = |kind: &&String| row.starts_with(kind.as_str());
    if let Some(kind) = place.waits_for.as_ref().filter(|kind| !is_told(kind)) {
        text += &format!(", for {kind}");
    }
    clean(&text)
}

/// Returns what a holder did, and where.
pub(crate) fn holder_place(place: &HolderPlace) -> String {
    let mut text = match (place.doing, &place.call, &place.lock) {
        (HolderDoing::Running, ..) => "ran".to_owned(),
        (HolderDoing::Ready, ..) => "was ready, without a processor".to_owned(),
        (HolderDoing::Stopped, ..) => "was stopped".to_owned(),
        (HolderDoing::Asleep, Some(call), _) => format!("was in {call}"),
        (HolderDoing::Asleep, None, _) => "slept".to_owned(),
        (HolderDoing::Waiting, _, Some(lock)) => format!("waited for {}", brief(lock)),
        (HolderDoing::Waiting, _, None) => "waited itself".to_owned(),
    };
    if let Some(site) = &place.site {
        let what = if place.acquired { ", acquired in" } else { ", in" };
        text += &format!("{what} {}", brief(site));
    }
    clean(&text)
}

/// The most locks of a group that are told one by one in a line.
const TOLD: usize = 3;

/// Returns how many locks of a row have the most of what it is listed for: `in 3 of 64`.
pub(crate) fn most(spread: &LockSpread, locks: u64) -> String {
    let of = match spread.of {
        SpreadOf::Waiting => "",
        SpreadOf::Holding => "of the holding ",
        SpreadOf::Acquisitions => "of the acquisitions ",
        SpreadOf::Contended => "of the contended acquisitions ",
    };
    let even = if spread.even { ", even" } else { "" };
    format!("{of}in {} of {}{even}", count(spread.most as f64), count(locks as f64))
}

/// Returns the same with the worst of the locks: `in 3 of 64: [17] 40.0%, …`.
pub(crate) fn spread(spread: &LockSpread, locks: u64) -> String {
    let worst = spread.worst.iter().take(TOLD);
    let worst = worst.map(|lock| format!("{} {}", lock.told(), percent(lock.share_percent)));
    clean(&format!("{}: {}", most(spread, locks), worst.collect::<Vec<_>>().join(", ")))
}

/// The most verdicts at the top of a process.
const VERDICTS: usize = 3;

/// Returns the verdicts on the locks of a process that were waited for longest: of those that are not
/// worth fixing only the first, where there is nothing else.
pub(crate) fn worst_verdicts(process: &ProcessReport) -> Vec<String> {
    let is_small = |lock: &&LockReport| {
        lock.verdict.as_ref().is_none_or(|verdict| verdict.rule == VerdictRule::Small)
    };
    let mut worst = process.rows();
    worst.sort_by_key(|lock| std::cmp::Reverse(lock.wait.total_ns));
    if worst.iter().all(is_small) {
        worst.truncate(1);
    } else {
        worst.retain(|lock| !is_small(lock));
    }
    worst.iter().take(VERDICTS).filter_map(|lock| verdict(lock, process)).collect()
}

/// Returns what to do about a lock, with the part that waiting for it had.
fn verdict(lock: &LockReport, process: &ProcessReport) -> Option<String> {
    let verdict = lock.verdict.as_ref()?;
    let share = part_of(lock.wait.total_ns, process.waiting.busy_ns());
    let threads = match process.threads.created {
        1 => "one thread was".to_owned(),
        many => format!("{many} threads were"),
    };
    Some(clean(&format!(
        "{} of the time that {threads} not idle went into waiting for {}; {}",
        percent(share),
        brief(&lock.name),
        verdict.text
    )))
}

/// Returns how exact times of holding are, where not all of them were timed.
pub(crate) fn exactness(hold: &Durations) -> Vec<String> {
    let mut notes = Vec::new();
    if hold.scaled_ns != 0 {
        notes.push(format!("holding {} scaled", percent(part_of(hold.scaled_ns, hold.total_ns))));
    }
    if hold.coarse != 0 {
        notes.push(format!("{} to some ms", plural(hold.coarse, "hold", "holds")));
    }
    notes
}

/// Returns what to call a process: as it was called, if that looks like a program (the file may be
/// one of many names: `redis-server` is a link to `redis-check-rdb`), else by its file; without the
/// path.
pub(crate) fn process_name(process: &ProcessReport) -> String {
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let usual = |name: &String| {
        name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
    };
    let called = process.command.first().map(|path| base(path)).filter(usual);
    let file = process.exe.as_deref().map(base).filter(|name| !name.is_empty());
    clean(&called.or(file).unwrap_or_else(|| "process".into()))
}

/// Returns what to call a thread: its name, what it began with, or its number alone.
pub(crate) fn thread_name(thread: &ThreadReport) -> String {
    let name = match (&thread.name, &thread.start) {
        (Some(name), Some(start)) => format!("{name} ({start}, {})", thread.tid),
        (Some(name), None) => format!("{name} ({})", thread.tid),
        (None, Some(start)) => format!("{start} ({})", thread.tid),
        (None, None) => format!("thread {}", thread.tid),
    };
    clean(&name)
}

/// Returns what could not be recorded, a line each.
pub(crate) fn losses(losses: &Losses) -> Vec<String> {
    [
        (losses.locks, "lock", "locks", "found no room and have no statistics"),
        (losses.statistics, "lock", "locks", "found no room for waiting and holding times"),
        (losses.stacks, "call stack", "call stacks", "found no room"),
        (losses.threads, "thread", "threads", "found no room: what they held is unknown"),
        (losses.modules, "library", "libraries", "found no room: their code has no names"),
        (losses.in_handlers, "call", "calls", "from signal handlers went unrecorded"),
        (losses.held, "held lock", "held locks", "found no room on the thread's list"),
    ]
    .into_iter()
    .filter(|(count, ..)| *count != 0)
    .map(|(count, one, many, what)| format!("not recorded: {} {what}", plural(count, one, many)))
    .collect()
}

/// What is said of a lock whose acquisitions nobody tells.
pub(crate) const WAITS_ONLY: &str = "only its waits are seen";

/// Returns what programs that destroy many locks lose, which takes nothing from the statistics of
/// the others.
pub(crate) fn late(acquisitions: u64) -> Option<String> {
    let count = plural(acquisitions, "acquisition", "acquisitions");
    (acquisitions != 0).then(|| format!("not recorded: which of the destroyed locks had {count}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_called_as_it_was_called() {
        let mut process = crate::report::sample::process(100, 0);
        process.exe = Some("/usr/bin/redis-check-rdb".into());
        for (called, name) in [
            (Some("/usr/bin/redis-server"), "redis-server"),
            (Some("-bash"), "redis-check-rdb"),
            (Some("sshd: /usr/sbin/sshd -D"), "redis-check-rdb"),
            (Some(""), "redis-check-rdb"),
            (None, "redis-check-rdb"),
        ] {
            process.command = called.into_iter().map(Into::into).collect();
            assert_eq!(process_name(&process), name, "{called:?}");
        }
        process.exe = None;
        assert_eq!(process_name(&process), "process");
    }

    #[test]
    fn every_loss_has_words() {
        let all = Losses {
            locks: 1,
            statistics: 2,
            stacks: 3,
            threads: 4,
            modules: 5,
            late_acquisitions: 6,
            in_handlers: 7,
            held: 8,
        };
        let lines = losses(&all);
        assert_eq!(lines.len(), 7);
        assert!(lines[0].starts_with("not recorded: 1 lock "), "{}", lines[0]);
        assert!(losses(&Losses::default()).is_empty());
        assert_eq!(
            late(1).as_deref(),
            Some("not recorded: which of the destroyed locks had 1 acquisition")
        );
        assert_eq!(late(0), None);
    }
}
