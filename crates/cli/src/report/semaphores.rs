//! Which semaphores could be mutexes, as text.

use anstyle::{AnsiColor, Style};
use lockstead_inspect::report::model::ReportSite;
use lockstead_inspect::report::semaphores::model::{
    MissingEvidence, NoMutexReason, NoMutexWhy, SemaphoreAct, SemaphoreOrigin, SemaphoreThread,
    SemaphoreVerdict, Semaphores,
};
use lockstead_render::table::{count as amount, time};
use lockstead_render::words::{clean, fit, percent, plural};
use std::fmt::Write;
use std::path::Path;

const TITLE: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const NAME: Style = AnsiColor::Cyan.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// The page that describes the way from one to the other.
const GUIDE: &str = "docs/migration.md";
/// The narrowest column of places.
const NARROWEST: usize = 20;

struct SemaphoresPage {
    text: String,
    /// The columns of the terminal; none: lines are as long as they are.
    width: Option<usize>,
}

/// Returns the list for a terminal of this width, or for a file.
pub(super) fn render(semaphores: &Semaphores, width: Option<usize>) -> String {
    let mut page = SemaphoresPage { text: String::new(), width };
    let of = |verdict| semaphores.origins.iter().filter(move |origin| origin.verdict == verdict);
    page.head(semaphores);
    for (verdict, style, title) in [
        (
            SemaphoreVerdict::Mutex,
            GOOD,
            "Could be mutexes: who took them gave them back, one at a time",
        ),
        (SemaphoreVerdict::NoMutex, BAD, "Cannot be mutexes"),
        (SemaphoreVerdict::Unclear, WARNING, "Too little was seen"),
    ] {
        if of(verdict).next().is_some() {
            page.line(0, style, &format!("\n  {title}"));
        }
        for origin in of(verdict) {
            page.origin(origin);
        }
    }
    page.foot(semaphores);
    page.text
}

impl SemaphoresPage {
    fn line(&mut self, indent: usize, style: Style, text: &str) {
        let room = self.width.map(|width| width.saturating_sub(indent).max(NARROWEST));
        let text = room.map_or_else(|| text.to_owned(), |room| fit(text, room));
        let _ = writeln!(self.text, "{:indent$}{style}{text}{style:#}", "");
    }

    fn head(&mut self, semaphores: &Semaphores) {
        let counts =
            [SemaphoreVerdict::Mutex, SemaphoreVerdict::NoMutex, SemaphoreVerdict::Unclear].map(
                |verdict| {
                    let of = semaphores.origins.iter().filter(|origin| origin.verdict == verdict);
                    of.fold(0, |sum: u64, origin| sum.saturating_add(origin.semaphores))
                },
            );
        let whole = counts.into_iter().fold(0, u64::saturating_add);
        let [mutexes, others, unclear] = counts.map(|count| amount(count as f64));
        let text = match whole {
            0 => "lockstead: the program used no semaphore that can be seen".to_owned(),
            _ => format!(
                "lockstead: {}: could be mutexes {mutexes}, could not {others}, too little seen \
                 {unclear}",
                plural(whole, "semaphore", "semaphores"),
            ),
        };
        self.line(0, TITLE, &text);
    }

    fn origin(&mut self, origin: &SemaphoreOrigin) {
        let name = clean(&origin.name);
        let mut facts = Vec::new();
        if origin.semaphores != 1 {
            facts.push(plural(origin.semaphores, "semaphore", "semaphores"));
        }
        if let Some(exe) = &origin.exe {
            let name = Path::new(exe).file_name().map(|name| name.to_string_lossy().into_owned());
            facts.push(format!("in {}", clean(&name.unwrap_or_else(|| exe.clone()))));
        }
        match origin.processes[..] {
            [pid] => facts.push(format!("pid {pid}")),
            ref several => facts.push(plural(several.len() as u64, "process", "processes")),
        }
        let facts = facts.join(", ");
        let _ = writeln!(self.text, "    {NAME}{name}{NAME:#} {FAINT}({facts}){FAINT:#}");
        self.labelled("use", &usage(origin));
        self.labelled("made", &made(origin));
        self.sites("taken", &origin.taken_at);
        self.sites("given", &origin.given_at);
        if let (reads @ 1.., Some(place)) = (origin.count_reads, &origin.count_read_at) {
            self.labelled("count", &format!("asked for {}, at {place}", times(reads)));
        }
        for reason in &origin.reasons {
            self.reason(reason, origin.semaphores);
        }
        if origin.more_acts != 0 {
            let acts = plural(origin.more_acts, "act", "acts");
            self.labelled("", &format!("and {acts} at further places, which found no room"));
        }
        if let Some(missing) = origin.missing {
            self.labelled("why", missing_words(missing));
        }
        for (at, step) in origin.next.iter().enumerate() {
            self.labelled(if at == 0 { "next" } else { "" }, step);
        }
    }

    fn labelled(&mut self, label: &str, text: &str) {
        let room = self.width.map(|width| width.saturating_sub(14).max(NARROWEST));
        let text = clean(text);
        let text = room.map_or_else(|| text.clone(), |room| fit(&text, room));
        let _ = writeln!(self.text, "      {FAINT}{label:<6}{FAINT:#}  {text}");
    }

    fn sites(&mut self, label: &str, sites: &[ReportSite]) {
        for (at, site) in sites.iter().enumerate() {
            let text = format!("{:>6}  {}", percent(site.share_percent), site.site);
            self.labelled(if at == 0 { label } else { "" }, &text);
            // Of one caller alone there is nothing to tell apart.
            for caller in site.callers.iter().filter(|_| site.callers.len() > 1) {
                let text = format!("{:>6}  from {}", percent(caller.share_percent), caller.site);
                self.labelled("", &format!("  {text}"));
            }
        }
    }

    fn reason(&mut self, reason: &NoMutexReason, of: u64) {
        let mut text = why_words(reason.reason).to_owned();
        if of > 1 {
            text += &format!(" ({} of them)", amount(reason.semaphores as f64));
        }
        self.labelled("why", &text);
        for act in &reason.acts {
            self.labelled("", &act_words(reason.reason, act));
            if let Some(other) = &act.other {
                let place = act.other_at.as_deref().unwrap_or("a place that is not known");
                self.labelled("", &format!("  {} had taken it at {place}", thread_words(other)));
            }
        }
    }

    fn foot(&mut self, semaphores: &Semaphores) {
        if semaphores.not_recorded != 0 {
            let calls = plural(semaphores.not_recorded, "call", "calls");
            self.line(
                0,
                WARNING,
                &format!("warning: not recorded: {calls} for semaphores that found no room"),
            );
        }
        let has_mutexes =
            semaphores.origins.iter().any(|origin| origin.verdict == SemaphoreVerdict::Mutex);
        if has_mutexes {
            self.text.push('\n');
            let text = format!(
                "  How to go on: {GUIDE}. This is what one run did: the checking build of the \
                 mutex says when another one does otherwise."
            );
            let _ = writeln!(self.text, "{FAINT}{text}{FAINT:#}");
        }
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        _ => format!("{} times", amount(count as f64)),
    }
}

fn usage(origin: &SemaphoreOrigin) -> String {
    let mut text = format!("taken {}", times(origin.taken));
    if origin.taken != 0 {
        text += if origin.several_threads { " by several threads" } else { " by one thread" };
    }
    text += &format!(", given {}", times(origin.given));
    if origin.contended != 0 {
        text += &format!(
            "; {} waited, {} in all, {} at most",
            percent(origin.contended_percent),
            time(origin.waited_ns as f64),
            time(origin.longest_wait_ns as f64),
        );
    } else if origin.taken != 0 {
        text += "; nobody waited";
    }
    for (count, what) in [
        (origin.refused, "found no token"),
        (origin.timed_out, "gave up at a deadline"),
        (origin.interrupted, "ended by a signal handler"),
        (origin.left_taken, "still taken at the end"),
        (origin.unknown_calls, "by threads that are not known"),
    ] {
        if count != 0 {
            text += &format!("; {} {what}", amount(count as f64));
        }
    }
    text
}

fn made(origin: &SemaphoreOrigin) -> String {
    let place = origin.initialised.as_deref().map(|place| format!(" at {place}"));
    let place = place.unwrap_or_default();
    match (origin.value, origin.largest_value) {
        _ if origin.named => format!("opened by name{place}"),
        (None, _) => "before anybody looked: its initialisation was not seen".into(),
        (Some(least), Some(most)) if most > least => {
            format!("with {least} to {most} tokens{place}")
        }
        (Some(0), _) => format!("with no token{place}"),
        (Some(value), _) => {
            format!("with {}{place}", plural(u64::from(value), "token", "tokens"))
        }
    }
}

fn why_words(why: NoMutexWhy) -> &'static str {
    match why {
        NoMutexWhy::BeginsTaken => "it begins with no token",
        NoMutexWhy::BeginsAboveOne => "it begins with more than one token",
        NoMutexWhy::GivenByAnother => "another thread gives it than the one that took it",
        NoMutexWhy::RisesAboveOne => "its count rises above one",
        NoMutexWhy::TakenTwice => "it is taken while somebody has it",
        NoMutexWhy::InHandler => "it is used in a signal handler",
        NoMutexWhy::ProcessShared => "several processes can use it",
        NoMutexWhy::DestroyedTaken => "it is destroyed while somebody has it",
        NoMutexWhy::ThreadEnded => "a thread ended while it had it",
    }
}

fn act_words(why: NoMutexWhy, act: &SemaphoreAct) -> String {
    let place = act.at.as_deref().unwrap_or("a place that is not known");
    let (by, often) = (thread_words(&act.thread), times(act.count));
    match why {
        NoMutexWhy::BeginsTaken | NoMutexWhy::BeginsAboveOne | NoMutexWhy::ProcessShared => {
            format!("so at {place}, {often}")
        }
        NoMutexWhy::GivenByAnother => format!("given at {place}, {often}, first by {by}"),
        NoMutexWhy::RisesAboveOne => {
            format!("counted to {} at {place}, {often}, first by {by}", act.number)
        }
        NoMutexWhy::TakenTwice => format!("taken at {place}, {often}, first by {by}"),
        NoMutexWhy::InHandler => {
            format!("by the handler of signal {} at {place}, {often}, first in {by}", act.number)
        }
        NoMutexWhy::DestroyedTaken => format!("destroyed at {place}, {often}, first by {by}"),
        NoMutexWhy::ThreadEnded => format!("taken at {place}, {often}, by {by}"),
    }
}

fn thread_words(thread: &SemaphoreThread) -> String {
    match (&thread.name, thread.tid) {
        (Some(name), tid) => format!("thread \"{name}\" (tid {tid})"),
        (None, 0) => "a thread that has ended".into(),
        (None, tid) => format!("thread {tid}"),
    }
}

fn missing_words(missing: MissingEvidence) -> &'static str {
    match missing {
        MissingEvidence::NeverUsed => "it was never used",
        MissingEvidence::NeverTaken => "it was never taken",
        MissingEvidence::NeverGiven => "it was never given back",
        MissingEvidence::UnknownThreads => "threads used it that are not known",
    }
}
