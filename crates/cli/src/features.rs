//! `lockstead features`: what this machine offers to locks, what is in use,
//! and what happens without the rest.

use crate::measuring::{self, AbsentLock, MeasurableLocks};
use clap::Args;
use lockstead_linux::features::{self, Capability, Facility, Features};
use lockstead_render::failure::Failure;
use lockstead_render::machine::MachineFacts;
use lockstead_render::output;
use lockstead_render::table::TextTable;
use serde::Serialize;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead features
  lockstead features --json")]
pub(crate) struct FeaturesFlags {
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Asks the system and prints.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &FeaturesFlags) -> Result<(), Failure> {
    let found = features::probe();
    if flags.json {
        return output::print_json(&FeaturesReport::new(found, measuring::locks()));
    }
    output::print(&render(&found))
}

/// What `lockstead features --json` writes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FeaturesReport {
    /// The machine that was asked.
    machine: MachineFacts,
    /// How many processors there are, and who limits them.
    processors: ProcessorsReport,
    /// One object for each thing of the system that locks can use.
    facilities: Vec<FacilityReport>,
    /// One object for each privilege that matters.
    capabilities: Vec<CapabilityReport>,
    /// The filtering of system calls: `off`, `strict`, `filter` or `unknown`.
    seccomp: &'static str,
    /// The locks that can be measured, by [their names](#names-of-locks); null without
    /// `lockstead-bench`.
    locks: Option<Vec<String>>,
    /// One object for each lock that is not built in; null without `lockstead-bench`.
    locks_absent: Option<Vec<AbsentLock>>,
}

/// How many processors there are, and who limits them.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ProcessorsReport {
    /// The number that is switched on.
    online: u32,
    /// The number that the affinity mask allows.
    affinity: u32,
    /// What the control groups allow, in processors; null without a limit.
    quota: Option<f64>,
    /// What the locks count on: the smallest of these, the quota rounded up.
    effective: u32,
    /// The control group hierarchies that the process is in: `unified`, `legacy`, `hybrid` or
    /// `none`.
    cgroups: &'static str,
}

/// Something of the system that locks can use.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FacilityReport {
    /// A name that stays the same.
    name: &'static str,
    /// Whether it is there and this process may use it.
    offered: bool,
    /// Whether the locks use it.
    in_use: bool,
    /// How that is known, or what the system answered.
    detail: String,
    /// What happens without it.
    fallback: &'static str,
}

/// A privilege that matters.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CapabilityReport {
    /// Its name, as in `capabilities(7)`.
    name: &'static str,
    /// Whether the process has it.
    effective: bool,
}

impl FeaturesReport {
    fn new(found: Features, measurable: Option<MeasurableLocks>) -> Self {
        let facility = |facility: Facility| FacilityReport {
            name: facility.name,
            offered: facility.offered,
            in_use: facility.in_use,
            detail: facility.detail,
            fallback: facility.fallback,
        };
        let capability = |capability: Capability| CapabilityReport {
            name: capability.name,
            effective: capability.effective,
        };
        let (locks, locks_absent) =
            measurable.map(|locks| (locks.locks, locks.locks_absent)).unzip();
        let processors = found.processors;
        FeaturesReport {
            machine: MachineFacts::here(),
            processors: ProcessorsReport {
                online: processors.online,
                affinity: processors.affinity,
                quota: processors.quota,
                effective: processors.effective,
                cgroups: processors.cgroups,
            },
            facilities: found.facilities.into_iter().map(facility).collect(),
            capabilities: found.capabilities.into_iter().map(capability).collect(),
            seccomp: found.seccomp,
            locks,
            locks_absent,
        }
    }
}

fn render(found: &Features) -> String {
    let mut table = TextTable::new(&["", "offered", "in use"]);
    for facility in &found.facilities {
        table.row([facility.name.into(), yes(facility.offered), yes(facility.in_use)]);
    }
    let mut text = format!("{}\n\n{}\n", system(found), table.render());
    for facility in &found.facilities {
        text += &format!("  {}: {}.\n", facility.name, sentence(&facility.detail));
        if !facility.in_use {
            text += &format!("    Instead: {}.\n", sentence(facility.fallback));
        }
    }
    let holds = |wanted: bool| {
        let names: Vec<&str> = found
            .capabilities
            .iter()
            .filter(|capability| capability.effective == wanted)
            .map(|capability| capability.name)
            .collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    };
    text += &format!(
        "\nPrivileges: {}; not: {}. Seccomp: {}.\n",
        holds(true),
        holds(false),
        found.seccomp
    );
    let Some(locks) = measuring::locks() else {
        return text + "Locks to measure: none, for there is no lockstead-bench.\n";
    };
    text += &format!("Locks to measure: {}.\n", locks.locks.join(", "));
    for absent in locks.locks_absent {
        text += &format!("  {}.\n", absent.why);
    }
    text
}

/// Returns kernel, libc and processors in two lines.
fn system(found: &Features) -> String {
    let processors = &found.processors;
    let quota = match processors.quota {
        Some(quota) => format!("{quota:.2} by the control group's quota"),
        None => format!("no quota, control groups: {}", processors.cgroups),
    };
    format!(
        "Linux {}, {}, {}\n{} processors online, {} by affinity, {quota}; locks count on {}",
        found.kernel,
        found.libc,
        found.architecture,
        processors.online,
        processors.affinity,
        processors.effective
    )
}

fn yes(so: bool) -> String {
    if so { "yes" } else { "no" }.into()
}

/// Returns a text without the full stop that it may end with.
fn sentence(text: &str) -> &str {
    text.trim_end_matches('.')
}
