//! The machine that a report is of.

use lockstead_render::machine::Machine;
use serde::Serialize;
use std::fs;

/// When and where a run was made.
#[derive(Debug, Serialize)]
pub(crate) struct Here {
    /// The name of the host.
    pub(super) host: Option<String>,
    pub(super) machine: Machine,
}

impl Here {
    /// This machine, now.
    pub(crate) fn now() -> Here {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
        Here { host: host.map(|name| name.trim().to_owned()), machine: Machine::here() }
    }
}
