//! Where and when a report was made.

use serde::Serialize;
use std::ffi::CStr;
use std::fs;

/// The machine, as far as it bears on the speed of locks. What a system does
/// not tell is `None`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineFacts {
    /// The name of the processor.
    pub cpu: Option<String>,
    /// The architecture that lockstead was built for.
    pub arch: &'static str,
    /// The number of processors that this process may use.
    pub processors: usize,
    /// The release of the kernel.
    pub kernel: Option<String>,
    /// The C library and its version.
    pub libc: Option<String>,
    /// The frequency governor of the first processor.
    pub governor: Option<String>,
    /// Whether the processor reports a hypervisor.
    pub virtualised: Option<bool>,
    /// The load averages over 1, 5 and 15 minutes, when the measurement began.
    pub load: Option<[f64; 3]>,
    /// The date and time, in UTC, as `2026-01-31T12:00:00Z`.
    pub date: String,
    /// Whether the measuring code was built with optimisation and without checks; otherwise the
    /// figures mean nothing.
    pub optimised: bool,
}

impl MachineFacts {
    /// Describes the machine that this process runs on, now.
    #[must_use]
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok();
        Self {
            cpu: cpuinfo.as_deref().and_then(|text| field(text, "model name")),
            arch: std::env::consts::ARCH,
            processors: processors(),
            kernel: line("/proc/sys/kernel/osrelease"),
            libc: libc_version(),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            virtualised: cpuinfo.as_deref().and_then(|text| {
                field(text, "flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
            }),
            load: line("/proc/loadavg").and_then(|text| load(&text)),
            date: date(std::time::SystemTime::now()),
            optimised: cfg!(not(debug_assertions)),
        }
    }
}

/// Formats so many seconds after 1970 began as `2026-01-31T12:00:00Z`.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let end = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds));
    date(end.unwrap_or(std::time::UNIX_EPOCH))
}

fn date(time: std::time::SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Returns the number of processors that this process may use; at least 1.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Returns the first value of `name` in the `name : value` lines of `text`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

fn load(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split(' ').map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(one)), Some(Ok(five)), Some(Ok(fifteen))) => Some([one, five, fifteen]),
        _ => None,
    }
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Option<String> {
    // SAFETY: the C library returns a constant string of its own, which ends with a zero.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_string_lossy()))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_formats() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2: fast\nflags\t\t: fpu hypervisor\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU @ 2: fast"));
        assert_eq!(field(text, "absent"), None);
        assert_eq!(load("0.10 1.20 2.30 1/234 5678\n"), Some([0.1, 1.2, 2.3]));
        assert_eq!(load("nonsense"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_processors() {
        let here = MachineFacts::here();
        assert!(here.processors >= 1);
        assert!(here.kernel.is_some());
        assert!(here.date.ends_with('Z'), "{}", here.date);
    }
}
