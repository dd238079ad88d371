//! Describes what a system may offer, one by one.

/// One thing the system may offer.
#[derive(Clone, Debug)]
pub struct Facility {
    /// The name, which does not change between versions.
    pub name: &'static str,
    /// Whether the facility is there and permitted.
    pub offered: bool,
    /// How that is known, or what the kernel answered instead.
    pub detail: String,
    /// Whether lockstead's locks use it here.
    pub in_use: bool,
    /// What happens without it.
    pub fallback: &'static str,
}

/// A privilege of the kernel's capability scheme.
#[derive(Clone, Debug)]
pub struct Capability {
    /// Its name, as in `capabilities(7)`.
    pub name: &'static str,
    /// Whether the process has it now.
    pub effective: bool,
}
