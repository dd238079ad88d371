//! Tells what this kernel, libc and privilege level offer, what is in use, and what
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
mod offer;
mod sharing;
mod status;

pub use offer::{Capability, Facility};

use crate::{cgroup, processors};
use core::ffi::{CStr, c_char, c_void};

/// The answers that [`probe`] found.
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
    /// The facilities that locks use or could use.
    pub facilities: Vec<Facility>,
    /// The privileges that matter to lockstead.
    pub capabilities: Vec<Capability>,
    /// The mode of system call filtering: `off`, `strict`, `filter`, or `unknown`.
    pub seccomp: &'static str,
}

/// The numbers of processors, by what limits them.
#[derive(Clone, Debug)]
pub struct Processors {
    /// The processors that are switched on in the machine.
    pub online: u32,
    /// The processors that are allowed by the affinity masks of the calling and the main thread.
    pub affinity: u32,
    /// The share that is allowed by the control groups, as a fraction of processors; `None`
    /// without a limit.
    pub quota: Option<f64>,
    /// The number that spinners count on: the smallest of these, the quota rounded up.
    pub effective: u32,
    /// The control group hierarchies that the process is in: `unified`, `legacy`,
    /// `hybrid` or `none`.
    pub cgroups: &'static str,
}

/// Asks the system what it offers.
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
    // SAFETY: a name is plain bytes, for which zeros are a value; the kernel writes it, which
    // does not fail on a valid buffer, and ends the field with a zero.
    unsafe {
        let mut name: libc::utsname = core::mem::zeroed();
        libc::uname(&mut name);
        CStr::from_ptr(name.release.as_ptr()).to_string_lossy().into_owned()
    }
}

fn libc_version() -> String {
    // SAFETY: the name is a static C string; the call opens no other library.
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
    // SAFETY: the call takes a number and returns a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    Processors {
        online: u32::try_from(online).unwrap_or(0),
        affinity: processors::affinity(),
        quota: cgroup::quota().map(|quota| quota.time as f64 / quota.period as f64),
        effective: processors::effective(),
        cgroups: status::cgroups(),
    }
}
