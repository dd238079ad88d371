//! A machine as a file, with what each number is.

use super::Machine;
use std::fmt::Write;

impl Machine {
    /// Returns the content of a machine's file that says the same.
    #[must_use]
    pub fn text(&self) -> String {
        let (layout, lines) = (&self.layout, &self.lines);
        let (scheduler, kernel) = (&self.scheduler, &self.kernel);
        let classes = lines.transfer.len();
        let mut text = format!("name = {:?}\nabout = {:?}\n\n[layout]\n", self.name, self.about);
        let _ = writeln!(
            text,
            "nodes = {}\ncaches = {}\ncores = {}\nthreads = {}\npace = {:?}",
            layout.nodes, layout.caches, layout.cores, layout.threads, layout.pace
        );
        if !layout.hops.is_empty() {
            let _ = writeln!(text, "hops = {:?}", layout.hops);
        }
        if let Some(used) = layout.used {
            let _ = writeln!(text, "used = {used} # of all cores");
        }
        text += "\n# Nanoseconds; lists by distance.\n[lines]\n";
        for (name, value, what) in [
            ("hit", lines.hit, "an access to a line at hand"),
            ("exchange", lines.exchange, "a locked instruction there"),
            ("sibling", lines.sibling, "between two threads of a core"),
            ("memory", lines.memory, "a line that nobody has"),
            ("hold_write", lines.hold_write, "how long an owner keeps it from a writer"),
            ("hold_read", lines.hold_read, "and from a reader"),
            ("hold_variation", lines.hold_variation, "by what share both vary"),
            ("preference", lines.preference, "the chance that the nearest goes first"),
            ("jitter", lines.jitter, "by what share transfers and calls vary"),
            ("pause", lines.pause, "one turn of a spin loop"),
        ] {
            let _ = writeln!(text, "{name} = {value:?} # {what}");
        }
        // What was filled up when the file was read stands behind the distances.
        let listed = |list: &[f64]| list[..list.len().min(classes)].to_vec();
        let _ = writeln!(
            text,
            "patience = {}\ntransfer = {:?}\noccupied = {:?}\ncontended = {:?}",
            lines.patience,
            lines.transfer,
            listed(&lines.occupied),
            listed(&lines.contended)
        );
        let _ = writeln!(text, "\n[smt]\nspeed = {:?}", self.smt.speed);
        let _ = writeln!(text, "exchanges = {:?} # the speed of those", self.smt.exchanges);
        text += "\n# Microseconds.\n[scheduler]\n";
        for (name, value, what) in [
            ("latency", scheduler.latency, "in which each ready task has its turn"),
            ("slice", scheduler.slice, "the least turn"),
            ("granularity", scheduler.granularity, "who wakes up waits for less than this"),
            ("credit", scheduler.credit, "how far a sleeper may be behind"),
            ("switch", scheduler.switch, "changing tasks"),
            ("wake", scheduler.wake, "waking a task, for who wakes it"),
            ("queue", scheduler.queue, "of that, with the queue locked; 0: queues have no locks"),
            ("kick", scheduler.kick, "the same, beyond that, if its processor is idle"),
            ("signal", scheduler.signal, "until that processor notices"),
            ("placement", scheduler.placement, "1: by nodes, caches and cores; 0: in a row"),
            ("finds", scheduler.finds, "the share of wake-ups that find an idle processor"),
            ("stay", scheduler.stay, "so many tasks start on the first node"),
            ("hot", scheduler.hot, "who ran less than so long ago is left where it is"),
            ("keeps", scheduler.keeps, "the share of wake-ups that leave a new turn alone"),
            ("balance", scheduler.balance, "between two looks of idle processors; 0: none"),
        ] {
            let _ = writeln!(text, "{name} = {value:?} # {what}");
        }
        let _ = writeln!(
            text,
            "leaving = {} # whether who wakes a task waits until it has left",
            scheduler.leaving
        );
        let idle: Vec<[f64; 2]> = scheduler.idle.iter().map(|&(a, b)| [a, b]).collect();
        let _ = writeln!(text, "idle = {idle:?} # after so much idleness, so much more");
        text += "\n# Nanoseconds.\n[kernel]\n";
        for (name, value, what) in [
            ("call", kernel.call, "a system call"),
            ("futex", kernel.futex, "finding an address's bucket"),
            ("bucket", kernel.bucket, "changing its queue; 0: buckets have no locks"),
            ("buckets", kernel.buckets, "so many; 0: 256 for each processor"),
            ("waking", kernel.waking, "1: whoever wakes has the bucket's lock, 0: not any more"),
            ("clock", kernel.clock, "reading the clock"),
            ("restart", kernel.restart, "restarting releases; 0: a release is an exchange"),
        ] {
            let _ = writeln!(text, "{name} = {value:?} # {what}");
        }
        text
    }
}
