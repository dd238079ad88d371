//! What a storm has found, for people and for programs.

use super::judge::Found;
use lockstead_render::failure::Failure;
use lockstead_render::output;
use lockstead_render::table::TextTable;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) seconds: f64,
    pub(super) members: usize,
    pub(super) clients: usize,
    pub(super) locks: usize,
    pub(super) namespaces: bool,
    /// Links could be made slow and lossy.
    pub(super) slow_links: bool,
    /// Packets could be lost by chance.
    pub(super) lossy_links: bool,
    /// Packets that were lost by chance, as the kernel counted them; none where none can be, or where the count
    /// could not be read.
    pub(super) packets_lost: Option<u64>,
    pub(super) clocks: bool,
    /// Clients that had their lock once more after the faults.
    pub(super) served: usize,
    /// Clients that ended in good order.
    pub(super) ended: usize,
    /// Keys that nobody should have left.
    pub(super) left: Vec<String>,
    pub(super) found: Found,
    /// How often which fault met which moment.
    pub(super) faults: BTreeMap<String, u64>,
}

impl Report {
    /// Returns, in words, what must not be.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = self.found.wrong.clone();
        if self.served < self.clients {
            wrong.push(format!("{} clients were not served", self.clients - self.served));
        }
        if self.ended < self.clients {
            wrong.push(format!("{} clients did not end", self.clients - self.ended));
        }
        wrong.extend(self.left.iter().map(|key| format!("the key {key} is left behind")));
        wrong
    }

    /// Says of what this run is no evidence, since what would show it has not happened.
    fn no_evidence(&self) -> Vec<&'static str> {
        let found = &self.found;
        [
            (found.refused == 0, "no evidence of fencing: the register had no write to refuse"),
            (found.deaths == 0, "no evidence of owner death: no owner ended without a release"),
            (found.lost == 0, "no evidence of deadlines: no owner learnt of its loss"),
        ]
        .into_iter()
        .filter_map(|(nothing, text)| nothing.then_some(text))
        .collect()
    }

    /// Prints it, and fails if something did not hold.
    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        let wrong = self.wrong();
        if json {
            output::print_json(self)?;
        } else {
            output::print(&self.text())?;
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let shown = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
        let more = wrong.len().saturating_sub(20);
        Err(Failure::Run(if more == 0 { shown } else { format!("{shown}\nand {more} more") }))
    }

    fn text(&self) -> String {
        let found = &self.found;
        let mut table = TextTable::new(&["moment and fault", "times"]);
        for (what, times) in &self.faults {
            table.row([what.clone(), times.to_string()]);
        }
        let mut text = table.render();
        text += &format!(
            "\nseed {}, {:.0} s, {} members, {} clients, {} locks: {} faults\n{}\n",
            self.seed,
            self.seconds,
            self.members,
            self.clients,
            self.locks,
            self.faults.values().sum::<u64>(),
            found.summary()
        );
        text += &format!(
            "accepted writes of an old owner: {}; updates lost: {}; moments with two owners: {}; deaths not \
             told: {}\n{} of {} clients served at the end, {} ended in good order; {} keys left\n",
            found.old_accepted,
            found.lost_updates,
            found.overlaps,
            found.untold,
            self.served,
            self.clients,
            self.ended,
            self.left.len()
        );
        if self.namespaces && !self.slow_links {
            text += "links were not made slow: tc, or the kernel's sch_tbf, is missing\n";
        }
        match self.packets_lost {
            Some(number) => text += &format!("{number} packets were lost by chance\n"),
            None if self.lossy_links => {
                text +=
                    "how many packets were lost by chance is not known: iptables did not tell\n";
            }
            None if self.namespaces => {
                text += "no packets were lost by chance: iptables, or the kernel's xt_statistic, is missing\n";
            }
            None => {}
        }
        for line in self.no_evidence() {
            text += line;
            text += "\n";
        }
        text
    }
}
