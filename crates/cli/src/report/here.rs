//! The machine that a report is of.

use lockstead_render::machine::MachineFacts;
use serde::Serialize;
use std::fs;

/// The time and the machine of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Here {
    /// The name of the host.
    pub(super) host: Option<String>,
    /// The machine; its `date` is that of the start.
    pub(super) machine: MachineFacts,
}

impl Here {
    /// Returns this machine, now.
    pub(crate) fn now() -> Here {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
        Here { host: host.map(|name| name.trim().to_owned()), machine: MachineFacts::here() }
    }
}
