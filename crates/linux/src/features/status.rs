//! Reads what `/proc/self` says about the process.

use super::offer::Capability;
use std::fs::read_to_string;

/// The numbers and names of some privileges of `capabilities(7)`.
const CAPABILITIES: [(u32, &str); 6] = [
    (14, "CAP_IPC_LOCK"),
    (19, "CAP_SYS_PTRACE"),
    (21, "CAP_SYS_ADMIN"),
    (23, "CAP_SYS_NICE"),
    (38, "CAP_PERFMON"),
    (39, "CAP_BPF"),
];

/// Returns the value of a line `name:\tvalue` of `/proc/self/status`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?;
        Some(value.trim().to_owned())
    })
}

fn status() -> String {
    read_to_string("/proc/self/status").unwrap_or_default()
}

/// Returns the privileges; none are effective where `/proc` is not mounted.
pub(super) fn capabilities() -> Vec<Capability> {
    let effective =
        field(&status(), "CapEff").and_then(|hex| u64::from_str_radix(&hex, 16).ok()).unwrap_or(0);
    CAPABILITIES.map(|(bit, name)| Capability { name, effective: effective >> bit & 1 != 0 }).into()
}

pub(super) fn seccomp() -> &'static str {
    match field(&status(), "Seccomp").as_deref() {
        Some("0") => "off",
        Some("1") => "strict",
        Some("2") => "filter",
        _ => "unknown",
    }
}

pub(super) fn cgroups() -> &'static str {
    kind_of_cgroups(&read_to_string("/proc/self/cgroup").unwrap_or_default())
}

fn kind_of_cgroups(list: &str) -> &'static str {
    let unified = list.lines().any(|line| line.starts_with("0::"));
    let legacy = list.lines().any(|line| !line.starts_with("0::"));
    match (unified, legacy) {
        (true, true) => "hybrid",
        (true, false) => "unified",
        (false, true) => "legacy",
        (false, false) => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "Seccomp_filters:\t3\nSeccomp:\t2\n";
        assert_eq!(field(text, "Seccomp").as_deref(), Some("2"));
        assert_eq!(field(text, "CapEff"), None);
    }

    #[test]
    fn hierarchies_are_told_apart() {
        assert_eq!(kind_of_cgroups("0::/\n"), "unified");
        assert_eq!(kind_of_cgroups("1:cpu:/\n0::/\n"), "hybrid");
        assert_eq!(kind_of_cgroups("1:cpu:/\n"), "legacy");
        assert_eq!(kind_of_cgroups(""), "none");
    }
}
