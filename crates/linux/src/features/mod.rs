//! What this kernel, libc and privilege level offer, what is in use, and what
//! happens without.
//!
//! For people: allocates, opens files, and tries calls that may be refused. A
//! refused call is a result, not an error; nothing needs privileges.
//!
//! ```
//! let features = lockstead_linux::features::probe();
//! println!("Linux {}, {}", features.kernel, features.libc);
//! for facility in &features.facilities {
//!     println!("{}: {}", facility.name, facility.detail);
//! }
//! ```

mod facilities;
mod sharing;
mod status;

use crate::{cgroup, processors};
use core::ffi::{CStr, c_char, c_void};

/// What [`probe`] found.
#[derive(Clone, Debug)]
pub struct Features {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The libc and its version, if it tells: `glibc 2.36`, else `not glibc`.
    pub libc: String,
    /// The processor architecture this program was compiled for.
    pub architecture: &'static str,
    /// How many processors there are and how many may be used.
    pub processors: Processors,
    /// What locks use or could use.
    pub facilities: Vec<Facility>,
    /// Privileges that matter to lockstead.
    pub capabilities: Vec<Capability>,
    /// System call filtering: `off`, `strict`, `filter`, or `unknown`.
    pub seccomp: &'static str,
}

/// Processors, by who limits them.
#[derive(Clone, Debug)]
pub struct Processors {
    /// Switched on in the machine.
    pub online: u32,
    /// Allowed by the affinity masks of the calling and the main thread.
    pub affinity: u32,
    /// Allowed by the control groups, as a fraction of processors; `None`
    /// without a limit.
    pub quota: Option<f64>,
    /// What spinners count on: the smallest of these, the quota rounded up.
    pub effective: u32,
    /// Control group hierarchies the process is in: `unified`, `legacy`,
    /// `hybrid` or `none`.
    pub cgroups: &'static str,
}

/// One thing the system may offer.
#[derive(Clone, Debug)]
pub struct Facility {
    /// A stable name.
    pub name: &'static str,
    /// Whether it is there and permitted.
    pub offered: bool,
    /// How that is known, or what was answered instead.
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

/// Asks the system.
#[must_use]
pub fn probe() -> Features {
    let kernel = kernel_release();
    let mut facilities = facilities::all(&kernel);
    facilities.extend(sharing::all());
    Features {
        libc: libc_version(),
        architecture: std::env::consts::ARCH,
        processors: count_processors(),
        facilities,
        capabilities: status::capabilities(),
        seccomp: status::seccomp(),
        kernel,
    }
}

fn kernel_release() -> String {
    // SAFETY: a name is plain bytes, written by the call, which does not fail
    // on a valid buffer; the field ends in a zero.
    unsafe {
        let mut name: libc::utsname = core::mem::zeroed();
        libc::uname(&mut name);
        CStr::from_ptr(name.release.as_ptr()).to_string_lossy().into_owned()
    }
}

fn libc_version() -> String {
    // SAFETY: the name is a C string; no other library is opened.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"gnu_get_libc_version".as_ptr()) };
    if found.is_null() {
        return "not glibc".into();
    }
    // SAFETY: glibc's function of this name takes nothing and returns a
    // constant C string.
    let version = unsafe {
        let function: extern "C" fn() -> *const c_char =
            core::mem::transmute::<*mut c_void, _>(found);
        CStr::from_ptr(function())
    };
    format!("glibc {}", version.to_string_lossy())
}

fn count_processors() -> Processors {
    // SAFETY: takes a number, returns a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    Processors {
        online: u32::try_from(online).unwrap_or(0),
        affinity: processors::affinity(),
        quota: cgroup::quota().map(|quota| quota.time as f64 / quota.period as f64),
        effective: processors::effective(),
        cgroups: status::cgroups(),
    }
}
