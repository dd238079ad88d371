//! The reviewer's questions, in our words, and what the figures of a run say.
//!
//! No conclusion is written beforehand: each sentence is chosen by comparing figures,
//! and a difference counts only where the rounds tell its sign
//! ([`RoundsFigure::is_clear`]).

use super::contended::{ExplainCell, IngredientEffect};
use super::figures::RoundsFigure;
use super::ingredients::Ingredient;
use super::report::ExplainReport;
use super::subjects::{ExplainedLock, OWNED, label};
use serde::Serialize;

/// A question and what the run says.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainAnswer {
    /// The question that was asked.
    pub question: &'static str,
    /// The sentences that the figures of the run chose.
    pub conclusions: Vec<String>,
}

/// Returns all questions, answered from the measured parts of `report`.
#[must_use]
pub fn from(report: &ExplainReport) -> Vec<ExplainAnswer> {
    let answer = |question, conclusions| ExplainAnswer { question, conclusions };
    vec![
        answer("The mutex is smaller. Does a semaphore need more than that?", size(report)),
        answer(
            "Where does smaller code come from, and can a semaphore's be as small?",
            text(report),
        ),
        answer(
            "What does each part of the fast path cost when nobody disputes the lock?",
            fast(report),
        ),
        answer("Why does the mutex get more done, and for less processor time?", scale(report)),
        answer("Can a semaphore be tuned to scale the same?", tuned(report)),
        answer("Could the checks be added to semaphores that are used as mutexes?", checks(report)),
        answer("What is there that only a mutex can give?", remains(report)),
    ]
}

/// Writes an estimate: `1.42x (1.30 to 1.55)`.
fn times(figure: &RoundsFigure) -> String {
    format!("{:.2}x ({:.2} to {:.2})", figure.median, figure.low, figure.high)
}

fn size(report: &ExplainReport) -> Vec<String> {
    let bytes = |part: &str| {
        report.sizes.iter().find(|s| s.measured && s.lock.contains(part)).map(|size| size.bytes)
    };
    let (Some(mutex), Some(tuned), Some(classic)) =
        (bytes("lockstead's mutex"), bytes("every trick"), bytes("semaphore of 2005"))
    else {
        return vec!["The sizes are not known.".into()];
    };
    let mut said = vec![if mutex == tuned && tuned == classic {
        format!(
            "No: the mutex, the tuned semaphore and that of 2005 rebuilt here take {mutex} bytes \
             each. What made a structure large was the list of waiters and the lock that \
             guarded it, which the kernel's futex queue keeps outside of it, for both alike."
        )
    } else {
        format!(
            "The mutex takes {mutex} bytes, the tuned semaphore {tuned}, that of 2005 rebuilt \
             here {classic}."
        )
    }];
    if let Some(pthread) = bytes("the default kind") {
        said.push(format!("The C library's mutex takes {pthread} bytes."));
    }
    said
}

fn text(report: &ExplainReport) -> Vec<String> {
    let text = &report.text;
    let mut said = Vec::new();
    let sites = [ExplainedLock::Mutex, ExplainedLock::Semaphore, ExplainedLock::Semaphore2005]
        .map(|lock| text.site(lock));
    if let [Some(mutex), Some(tuned), Some(classic)] = sites {
        said.push(format!(
            "Compiled into its caller in this program, a pair takes {mutex:.0} bytes as a mutex, \
             {tuned:.0} as a tuned semaphore and {classic:.0} as that of 2005."
        ));
    }
    if let (Some(mutex), Some(semaphore), Some(called), Some(called_too)) = (
        text.object("mutex"),
        text.object("semaphore"),
        text.object("mutex, called"),
        text.object("semaphore, called"),
    ) {
        let saved = 100.0 * (semaphore.text_bytes as f64 - mutex.text_bytes as f64)
            / semaphore.text_bytes as f64;
        said.push(format!(
            "The same C source has {} bytes of .text with mutexes and {} with semaphores, \
             {saved:+.1}% saved (the announcement: {:+.2}% of a kernel), {:.0} and {:.0} bytes a \
             pair.",
            mutex.text_bytes,
            semaphore.text_bytes,
            announced_saving(),
            mutex.bytes_per_pair,
            semaphore.bytes_per_pair
        ));
        said.push(if called.text_bytes == called_too.text_bytes {
            let why = if mutex.text_bytes < semaphore.text_bytes {
                "a semaphore's call sites can be as small as a mutex's: a count needs its second \
                 try somewhere, not at each call site"
            } else {
                "a mutex's call sites can be as small as a semaphore's: what makes its release \
                 fast takes room, but not at each call site"
            };
            format!(
                "Both come from what is compiled into the caller. Behind a call a pair takes {:.0} \
                 bytes of either kind, so {why}.",
                called.bytes_per_pair
            )
        } else {
            format!(
                "Behind a call a pair takes {:.0} bytes as a mutex and {:.0} as a semaphore.",
                called.bytes_per_pair, called_too.bytes_per_pair
            )
        });
    }
    if let Some(why) = &text.objects_absent {
        said.push(format!("No objects were built and compared: {why}."));
    }
    said
}

/// Returns what the announcement saved of a kernel's text, in per cent.
fn announced_saving() -> f64 {
    let rows = crate::published::size_2005();
    let text = rows.iter().find(|row| row.what == "kernel text bytes");
    text.map_or(f64::NAN, |row| {
        100.0 * (row.semaphore as f64 - row.mutex as f64) / row.semaphore as f64
    })
}

fn fast(report: &ExplainReport) -> Vec<String> {
    let pair = &report.uncontended;
    let named = |name: &str| pair.results.iter().find(|row| row.lock == name);
    let row = |lock, without| named(&label(lock, without));
    let called = Some(Ingredient::Inline);
    let (
        Some(mutex),
        Some(tuned),
        Some(mutex_called),
        Some(tuned_called),
        Some(nameless),
        Some(owned),
    ) = (
        row(ExplainedLock::Mutex, None),
        row(ExplainedLock::Semaphore, None),
        row(ExplainedLock::Mutex, called),
        row(ExplainedLock::Semaphore, called),
        row(ExplainedLock::Mutex, Some(Ingredient::Owner)),
        named(OWNED),
    )
    else {
        return vec!["The pair was not measured.".into()];
    };
    let instructions = |mine: Option<f64>, others: Option<f64>| match (mine, others) {
        (Some(mine), Some(others)) => format!(", {mine:.0} instructions against {others:.0}"),
        _ => String::new(),
    };
    vec![
        format!(
            "The owner's name: {:+.2} ns of a mutex's {:.2} ns ({:.2} ns with one number for all{}). \
             Written beside a semaphore it costs {:.2} ns more than its {:.2} ns{}.",
            mutex.ns - nameless.ns,
            mutex.ns,
            nameless.ns,
            instructions(mutex.instructions, nameless.instructions),
            owned.ns - tuned.ns,
            tuned.ns,
            instructions(owned.instructions, tuned.instructions)
        ),
        format!(
            "All else: {:.2} ns without a name, where two bare atomics on one word take {:.2} ns \
             ({:+.1}%{}).",
            nameless.ns,
            pair.limit_ns,
            100.0 * (nameless.ns / pair.limit_ns - 1.0),
            instructions(nameless.instructions, pair.limit_instructions)
        ),
        format!(
            "A count instead of an owner: {:.2} ns for the tuned semaphore, {:+.1}% of the \
             mutex{}.",
            tuned.ns,
            100.0 * (tuned.ns / mutex.ns - 1.0),
            instructions(tuned.instructions, mutex.instructions)
        ),
        format!(
            "The call: {:.2} ns of a mutex's {:.2} ns, {:.2} ns of a semaphore's {:.2} ns.",
            mutex_called.ns - mutex.ns,
            mutex_called.ns,
            tuned_called.ns - tuned.ns,
            tuned_called.ns
        ),
    ]
}

/// Returns the ingredients of a lock by what they give, the largest first, and those of which
/// nothing clear can be said.
fn shares(
    cell: &ExplainCell,
    lock: ExplainedLock,
    of: fn(&IngredientEffect) -> &RoundsFigure,
) -> String {
    let mut effects: Vec<&IngredientEffect> =
        cell.effects.iter().filter(|e| e.lock == lock).collect();
    effects.sort_by(|a, b| of(b).median.total_cmp(&of(a).median));
    let (clear, unclear): (Vec<&IngredientEffect>, Vec<&IngredientEffect>) =
        effects.into_iter().partition(|effect| of(effect).is_clear());
    let mut said = if clear.is_empty() {
        "no ingredient has a clear share".to_owned()
    } else {
        let clear = clear.iter().map(|e| format!("{} {}", e.ingredient.name(), times(of(e))));
        clear.collect::<Vec<_>>().join(", ")
    };
    if !unclear.is_empty() && !clear.is_empty() {
        let names: Vec<&str> = unclear.iter().map(|effect| effect.ingredient.name()).collect();
        said += &format!("; within the spread: {}", names.join(", "));
    }
    said
}

fn scale(report: &ExplainReport) -> Vec<String> {
    let mut said = Vec::new();
    for cell in &report.cells {
        if let Some(versus) = cell.versus(ExplainedLock::Semaphore2005) {
            said.push(format!(
                "With {} threads the mutex does {} the work of the semaphore of 2005, and per \
                 second of processor time {}.",
                cell.threads,
                times(&versus.throughput),
                times(&versus.efficiency)
            ));
        }
        said.push(format!(
            "Of its throughput with {} threads: {}.",
            cell.threads,
            shares(cell, ExplainedLock::Mutex, |effect| &effect.throughput)
        ));
        said.push(format!(
            "Of its work per second of processor time: {}.",
            shares(cell, ExplainedLock::Mutex, |effect| &effect.efficiency)
        ));
        if let Some(handoff) = cell.effect(ExplainedLock::Mutex, Ingredient::Handoff) {
            said.push(format!(
                "The longest wait with {} threads: with the hand-over {} of that without.",
                cell.threads,
                times(&handoff.longest_wait)
            ));
        }
    }
    said
}

fn tuned(report: &ExplainReport) -> Vec<String> {
    let mut said = Vec::new();
    for cell in &report.cells {
        let Some(versus) = cell.versus(ExplainedLock::Semaphore) else { continue };
        let compared = |figure: &RoundsFigure, what: &str| {
            let verdict = if !figure.is_clear() {
                "the same within the spread"
            } else if figure.median > 1.0 {
                "the mutex stays ahead"
            } else {
                "the semaphore is ahead"
            };
            format!("{what}: {verdict}, {} of the mutex's over the semaphore's", times(figure))
        };
        said.push(format!(
            "With {} threads, {}; {}.",
            cell.threads,
            compared(&versus.throughput, "throughput"),
            compared(&versus.efficiency, "work per second of processor time")
        ));
        said.push(format!(
            "The semaphore owes of its throughput with {} threads: {}.",
            cell.threads,
            shares(cell, ExplainedLock::Semaphore, |effect| &effect.throughput)
        ));
    }
    said
}

fn checks(report: &ExplainReport) -> Vec<String> {
    let all = report.owners.len();
    let only = report.owners.iter().filter(|trial| trial.only_mutex).count();
    let first = if only == 0 {
        format!("Yes, as far as {all} trials tell: both kinds of lock answered alike.")
    } else {
        format!(
            "Not these: {only} of {all} trials take an owner, and a semaphore that keeps one, and \
             lets nobody else release it, is a mutex."
        )
    };
    let each = report.owners.iter().map(|trial| {
        format!(
            "When {}: mutex, {}; semaphore, {}.{}",
            trial.trial,
            trial.mutex,
            trial.semaphore,
            if trial.only_mutex { " It takes an owner to tell." } else { "" }
        )
    });
    std::iter::once(first).chain(each).collect()
}

fn remains(report: &ExplainReport) -> Vec<String> {
    let mut said: Vec<String> = report
        .owners
        .iter()
        .filter(|trial| trial.only_mutex)
        .map(|trial| format!("{}.", capital(trial.gives)))
        .collect();
    for cell in &report.cells {
        if let Some(effect) = cell.effect(ExplainedLock::Mutex, Ingredient::OwnerRunning) {
            said.push(format!(
                "Asking whether the owner runs is worth {} of the throughput and {} of the work \
                 per second of processor time with {} threads{}.",
                times(&effect.throughput),
                times(&effect.efficiency),
                cell.threads,
                if effect.throughput.is_clear() || effect.efficiency.is_clear() {
                    ""
                } else {
                    ", nothing clear on this machine"
                }
            ));
        }
    }
    said
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(median: f64) -> RoundsFigure {
        let (min, max) = (median - 0.1, median + 0.1);
        RoundsFigure { median, min, max, low: min, high: max }
    }

    fn cell(spinning: f64, queue: f64) -> ExplainCell {
        let effect = |ingredient, value| IngredientEffect {
            lock: ExplainedLock::Mutex,
            ingredient,
            throughput: figure(value),
            efficiency: figure(value),
            longest_wait: figure(value),
        };
        ExplainCell {
            cell: "crowded",
            threads: 4,
            section_ns: 1,
            think_ratio: 0.0,
            foreign_cpu_percent: None,
            results: Vec::new(),
            effects: vec![effect(Ingredient::Queue, queue), effect(Ingredient::Spinning, spinning)],
            versus: Vec::new(),
        }
    }

    #[test]
    fn shares_follow_the_figures() {
        let of: fn(&IngredientEffect) -> &RoundsFigure = |effect| &effect.throughput;
        let said = shares(&cell(2.0, 1.05), ExplainedLock::Mutex, of);
        assert_eq!(said, "spinning 2.00x (1.90 to 2.10); within the spread: queue");
        let said = shares(&cell(1.2, 1.5), ExplainedLock::Mutex, of);
        assert!(said.starts_with("queue 1.50x") && said.contains("spinning 1.20x"), "{said}");
        assert_eq!(
            shares(&cell(1.0, 1.0), ExplainedLock::Mutex, of),
            "no ingredient has a clear share"
        );
    }

    #[test]
    fn the_announced_saving_is_the_announcements() {
        assert!((announced_saving() - 0.76).abs() < 0.01);
    }
}
