//! Figures in Prometheus' text format, version 0.0.4.

use super::counted::CountedProcess;
use super::counters::SeriesLock;
use std::fmt::Write;

/// What the sums are called of all locks that have none of their own.
const OTHERS: &str = "[other locks]";

/// A family of figures that each lock has.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&SeriesLock) -> String,
}

/// Returns nanoseconds as seconds, whole to the last one.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// The families of locks in their order.
const FAMILIES: [Family; 6] = [
    Family {
        name: "lockstead_lock_acquisitions_total",
        kind: "counter",
        help: "How often the lock was acquired.",
        value: |lock| lock.sums.acquisitions.to_string(),
    },
    Family {
        name: "lockstead_lock_contended_acquisitions_total",
        kind: "counter",
        help: "How often the lock was found taken.",
        value: |lock| lock.sums.contended.to_string(),
    },
    Family {
        name: "lockstead_lock_wait_seconds_total",
        kind: "counter",
        help: "How long threads waited for the lock, all together.",
        value: |lock| seconds(lock.sums.waited_ns),
    },
    Family {
        name: "lockstead_lock_held_seconds_total",
        kind: "counter",
        help: "How long the lock was held, estimated where not every hold is timed.",
        value: |lock| seconds(lock.sums.held_ns),
    },
    Family {
        name: "lockstead_lock_waiters",
        kind: "gauge",
        help: "How many threads wait for the lock now.",
        value: |lock| lock.waiting.to_string(),
    },
    Family {
        name: "lockstead_lock_longest_wait_seconds",
        kind: "gauge",
        help: "The longest wait for the lock up to now.",
        value: |lock| seconds(lock.longest_ns),
    },
];

/// Returns all figures of some processes, and how many have ended of which there are none any more.
pub(super) fn render(processes: &[&CountedProcess], dropped: u64) -> String {
    let mut text = String::new();
    for family in &FAMILIES {
        head(&mut text, family.name, family.kind, family.help);
        for process in processes {
            for lock in &process.counters.worst {
                let (pid, program) = (process.pid, escaped(&process.program));
                let (name, kind) = (escaped(&lock.name), escaped(&lock.kind));
                let value = (family.value)(lock);
                let _ = writeln!(
                    text,
                    "{}{{process=\"{program}\",pid=\"{pid}\",lock=\"{name}\",kind=\"{kind}\",\
                     id=\"{}.{}\"}} {value}",
                    family.name, lock.id.0, lock.id.1,
                );
            }
            // Of the others no longest wait is known.
            if family.name != "lockstead_lock_longest_wait_seconds" {
                let (pid, program) = (process.pid, escaped(&process.program));
                let value = (family.value)(&process.counters.others);
                let _ = writeln!(
                    text,
                    "{}{{process=\"{program}\",pid=\"{pid}\",lock=\"{OTHERS}\",kind=\"\",id=\"\"}} \
                     {value}",
                    family.name,
                );
            }
        }
    }
    let mut of_processes = |name: &str, help: &str, value: fn(&CountedProcess) -> u64| {
        head(&mut text, name, "gauge", help);
        for process in processes {
            let (pid, program) = (process.pid, escaped(&process.program));
            let value = value(process);
            let _ = writeln!(text, "{name}{{process=\"{program}\",pid=\"{pid}\"}} {value}");
        }
    };
    of_processes("lockstead_process_threads", "How many threads the process has.", |process| {
        process.threads
    });
    of_processes(
        "lockstead_process_other_locks",
        "How many locks have no figures of their own and are in the sum of the others.",
        |process| process.unlisted,
    );
    let dropped_total = "lockstead_dropped_processes_total";
    head(
        &mut text,
        dropped_total,
        "counter",
        "How many processes have ended whose figures are not shown any more.",
    );
    let _ = writeln!(text, "{dropped_total} {dropped}");
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Returns a value of a label as the format has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_times_are_whole() {
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
        assert_eq!(seconds(1_000_000_001), "1.000000001");
        assert_eq!(seconds(0), "0.000000000");
    }
}
