//! Machines in files.

use super::Machine;
use crate::file::{FileError, FileReader, parse};

/// The machines that are built in: name and file.
pub const BUNDLED: [(&str, &str); 10] = [
    ("westmere-8x10", include_str!("../../machines/westmere-8x10.toml")),
    ("nehalem-ex-8x8", include_str!("../../machines/nehalem-ex-8x8.toml")),
    ("smp-8way-2005", include_str!("../../machines/smp-8way-2005.toml")),
    ("p4-2way-2005", include_str!("../../machines/p4-2way-2005.toml")),
    ("epyc-2x64", include_str!("../../machines/epyc-2x64.toml")),
    ("graviton4-2x96", include_str!("../../machines/graviton4-2x96.toml")),
    ("altra-80", include_str!("../../machines/altra-80.toml")),
    ("vm-2", include_str!("../../machines/vm-2.toml")),
    ("mesh-256", include_str!("../../machines/mesh-256.toml")),
    ("mesh-1024", include_str!("../../machines/mesh-1024.toml")),
];

/// The most logical processors, and the most last-level caches.
const MOST_CPUS: usize = 4096;
const MOST_CACHES: usize = 128;

impl Machine {
    /// Returns a machine that is built in.
    #[must_use]
    pub fn bundled(name: &str) -> Option<Machine> {
        let &(_, text) = BUNDLED.iter().find(|&&(known, _)| known == name)?;
        Some(Machine::parse(name, text).expect("the machines that are built in are right"))
    }

    /// Returns the machine in `text`, the content of `file`.
    ///
    /// # Errors
    /// What is wrong, where, and what was expected.
    pub fn parse(file: &str, text: &str) -> Result<Machine, FileError> {
        let mut machine: Machine = parse(file, text)?;
        let place = FileReader { file, text };
        machine.check(&place)?;
        machine.settle();
        Ok(machine)
    }

    fn check(&self, place: &FileReader<'_>) -> Result<(), FileError> {
        let layout = &self.layout;
        for (key, value) in [
            ("nodes", layout.nodes),
            ("caches", layout.caches),
            ("cores", layout.cores),
            ("threads", layout.threads),
        ] {
            place.expect(key, (1..=MOST_CPUS).contains(&value), "a number from 1 to 4096")?;
        }
        let used = layout.used.is_none_or(|used| (1..=layout.all_cores()).contains(&used));
        place.expect("used", used, "a number from 1 to that of all cores")?;
        place.expect(
            "nodes",
            layout.all_cores() * layout.threads <= MOST_CPUS,
            "at most 4096 processors in all",
        )?;
        place.expect(
            "nodes",
            layout.nodes * layout.caches <= MOST_CACHES,
            "at most 128 last-level caches in all",
        )?;
        place.expect("pace", layout.pace > 0.0 && layout.pace <= 1e3, "a factor above 0")?;
        let classes = self.lines.transfer.len();
        let enough = match (layout.nodes, layout.caches) {
            (1, 1) => 1,
            (1, _) => 2,
            _ => 3,
        };
        place.expect(
            "transfer",
            classes >= enough,
            "a time for each distance: within a last-level cache, between two of a node, between nodes",
        )?;
        let shape = layout.hops.is_empty()
            || layout.hops.len() == layout.nodes
                && layout.hops.iter().all(|row| row.len() == layout.nodes);
        place.expect("hops", shape, "a row for each node, with a number for each node")?;
        let mirrored = shape
            && (0..layout.hops.len())
                .all(|a| (0..a).all(|b| layout.hops[a][b] == layout.hops[b][a]));
        place.expect("hops", mirrored, "the same distance there and back")?;
        let known = layout.hops.iter().flatten().all(|&class| class < classes);
        place.expect("hops", known, "numbers of distances in `transfer`, counted from 0")?;
        let lines = &self.lines;
        place.expect(
            "occupied",
            lines.occupied.len() <= classes,
            "at most one for each transfer",
        )?;
        place.expect(
            "contended",
            lines.contended.len() <= classes,
            "at most one for each transfer",
        )?;
        let listed = lines.transfer.iter().chain(&lines.occupied).chain(&lines.contended);
        place.expect("transfer", listed.clone().all(|&v| fine(v)), TIME)?;
        for (key, value) in [
            ("hit", lines.hit),
            ("exchange", lines.exchange),
            ("sibling", lines.sibling),
            ("memory", lines.memory),
            ("hold_write", lines.hold_write),
            ("hold_read", lines.hold_read),
            ("pause", lines.pause),
            ("latency", self.scheduler.latency),
            ("slice", self.scheduler.slice),
            ("granularity", self.scheduler.granularity),
            ("credit", self.scheduler.credit),
            ("switch", self.scheduler.switch),
            ("wake", self.scheduler.wake),
            ("queue", self.scheduler.queue),
            ("kick", self.scheduler.kick),
            ("signal", self.scheduler.signal),
            ("stay", self.scheduler.stay),
            ("balance", self.scheduler.balance),
            ("call", self.kernel.call),
            ("futex", self.kernel.futex),
            ("bucket", self.kernel.bucket),
            ("clock", self.kernel.clock),
            ("restart", self.kernel.restart),
        ] {
            place.expect(key, fine(value), TIME)?;
        }
        place.expect("pause", lines.pause > 0.0, "more than 0: a spin loop has to end")?;
        place.expect("preference", (0.0..=1.0).contains(&lines.preference), SHARE)?;
        for (key, value) in [("jitter", lines.jitter), ("hold_variation", lines.hold_variation)] {
            place.expect(key, (0.0..=0.9).contains(&value), "a share from 0 to 0.9")?;
        }
        for (key, speed) in [("speed", self.smt.speed), ("exchanges", self.smt.exchanges)] {
            place.expect(key, speed > 0.0 && speed <= 1.0, "a speed above 0, and at most 1")?;
        }
        let buckets = self.kernel.buckets;
        place.expect("buckets", (0.0..=1e6).contains(&buckets), "a number from 0 to 1000000")?;
        place.expect("waking", (0.0..=1.0).contains(&self.kernel.waking), "0 or 1")?;
        place.expect("placement", (0.0..=1.0).contains(&self.scheduler.placement), "0 or 1")?;
        place.expect("finds", (0.0..=1.0).contains(&self.scheduler.finds), SHARE)?;
        place.expect("keeps", (0.0..=1.0).contains(&self.scheduler.keeps), SHARE)?;
        let rises = self.scheduler.idle.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fine = self.scheduler.idle.iter().all(|&(after, exit)| fine(after) && fine(exit));
        place.expect("idle", rises && fine, "pairs of times, the first ones rising")
    }
}

const TIME: &str = "a time from 0 to 1000000000";
const SHARE: &str = "a share from 0 to 1";

fn fine(value: f64) -> bool {
    (0.0..=1e9).contains(&value)
}
