//! `lockstead features`: what this machine offers to locks, what is in use,
//! and what happens without the rest.

use crate::measuring;
use clap::Args;
use lockstead_linux::features::{self, Features};
use lockstead_render::failure::Failure;
use lockstead_render::machine::MachineFacts;
use lockstead_render::output;
use lockstead_render::table::TextTable;
use serde_json::{Value, json};

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
        return output::print_json(&to_json(&found));
    }
    output::print(&render(&found))
}

fn to_json(found: &Features) -> Value {
    let facilities = found.facilities.iter().map(|facility| {
        json!({
            "name": facility.name,
            "offered": facility.offered,
            "in_use": facility.in_use,
            "detail": facility.detail,
            "fallback": facility.fallback,
        })
    });
    let capabilities = found
        .capabilities
        .iter()
        .map(|capability| json!({ "name": capability.name, "effective": capability.effective }));
    let locks = measuring::locks().unwrap_or_default();
    json!({
        "machine": MachineFacts::here(),
        "processors": {
            "online": found.processors.online,
            "affinity": found.processors.affinity,
            "quota": found.processors.quota,
            "effective": found.processors.effective,
            "cgroups": found.processors.cgroups,
        },
        "facilities": facilities.collect::<Value>(),
        "capabilities": capabilities.collect::<Value>(),
        "seccomp": found.seccomp,
        "locks": locks["locks"],
        "locks_absent": locks["locks_absent"],
    })
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
    let list = |name: &str| locks[name].as_array().cloned().unwrap_or_default();
    let names: Vec<_> =
        list("locks").iter().filter_map(|lock| Some(lock.as_str()?.to_owned())).collect();
    text += &format!("Locks to measure: {}.\n", names.join(", "));
    for absent in list("locks_absent") {
        text += &format!("  {}.\n", absent["why"].as_str().unwrap_or_default());
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
