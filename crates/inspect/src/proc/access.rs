//! Why a process does not let itself be read, and what helps.
//!
//! # Role
//! The kernel answers "not permitted" for many reasons. They are told apart
//! here by what anybody may read, so that the advice fits.

use super::status::StatusFile;

/// What stands between the reader and a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// The process belongs to another user.
    OtherUser {
        /// The user that it belongs to.
        uid: u64,
    },
    /// Yama lets processes be read by their ancestors alone.
    Yama {
        /// The value of `kernel.yama.ptrace_scope`.
        scope: u32,
    },
    /// The process is marked as not to be read: it changed its user, or asked
    /// for it.
    NotDumpable,
    /// Another process traces it, or a filter, a container or the kernel's
    /// lockdown forbids it.
    Other,
}

impl Barrier {
    /// Returns what keeps this process from reading the process `pid`.
    #[must_use]
    pub fn of(pid: u32, status: &StatusFile) -> Barrier {
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0);
        // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
        let me = u64::from(unsafe { libc::geteuid() });
        // Of the folder itself the kernel shows the user in any case.
        let owner = std::fs::metadata(format!("/proc/{pid}/stat"))
            .ok()
            .map(|meta| u64::from(std::os::unix::fs::MetadataExt::uid(&meta)));
        Barrier::judge(me, status, owner, scope)
    }

    fn judge(me: u64, status: &StatusFile, owner: Option<u64>, scope: u32) -> Barrier {
        let uid = status.number("Uid");
        match uid {
            Some(uid) if uid != me && me != 0 => Barrier::OtherUser { uid },
            // The kernel gives the files of a process that is not to be read
            // to root.
            Some(uid) if owner.is_some_and(|owner| owner != uid) => Barrier::NotDumpable,
            _ if scope > 0 => Barrier::Yama { scope },
            _ => Barrier::Other,
        }
    }

    /// Says in one sentence what is missing.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Barrier::OtherUser { uid } => format!("it belongs to another user (uid {uid})"),
            Barrier::Yama { scope: 1 } => {
                "kernel.yama.ptrace_scope is 1: only its ancestors may read it".into()
            }
            Barrier::Yama { scope } => {
                format!(
                    "kernel.yama.ptrace_scope is {scope}: only privileged processes may read it"
                )
            }
            Barrier::NotDumpable => {
                "it is marked as not to be read (it changed its user, or asked for that)".into()
            }
            Barrier::Other => "the kernel does not permit it (a seccomp filter, a container \
                               without CAP_SYS_PTRACE, or another process that traces it)"
                .into(),
        }
    }

    /// Says in one sentence what to do.
    #[must_use]
    pub fn advice(&self, pid: u32) -> String {
        let sudo = format!("sudo lockstead dump {pid}");
        match self {
            Barrier::OtherUser { .. } | Barrier::NotDumpable => format!("try: {sudo}"),
            Barrier::Yama { scope: 1 } => format!(
                "try: {sudo}; or: sudo sysctl kernel.yama.ptrace_scope=0; or start the program \
                 under `lockstead run`"
            ),
            Barrier::Yama { scope: 2 } => {
                format!("try: {sudo}; or start the program under `lockstead run`")
            }
            // Scope 3 holds for root too, until the next boot.
            Barrier::Yama { .. } => "start the program under `lockstead run`; this setting cannot \
                                     be changed until the next boot"
                .into(),
            Barrier::Other => format!(
                "try: {sudo}, on the host if this is a container; or start the program under \
                 `lockstead run`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_user(uid: u32) -> StatusFile {
        StatusFile::parse(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"))
    }

    #[test]
    fn the_reason_fits_what_can_be_seen() {
        let judge = |me, uid, owner, scope| Barrier::judge(me, &of_user(uid), Some(owner), scope);
        assert_eq!(judge(1000, 33, 33, 1), Barrier::OtherUser { uid: 33 });
        assert_eq!(judge(1000, 1000, 0, 1), Barrier::NotDumpable);
        assert_eq!(judge(1000, 1000, 1000, 1), Barrier::Yama { scope: 1 });
        assert_eq!(judge(1000, 1000, 1000, 0), Barrier::Other);
        assert_eq!(judge(0, 33, 33, 3), Barrier::Yama { scope: 3 });
    }

    #[test]
    fn the_advice_names_commands_that_help() {
        assert!(Barrier::OtherUser { uid: 3 }.advice(9).contains("sudo lockstead dump 9"));
        let yama = Barrier::Yama { scope: 1 };
        assert!(yama.reason().contains("kernel.yama.ptrace_scope is 1"));
        assert!(yama.advice(9).contains("sudo sysctl kernel.yama.ptrace_scope=0"));
        let locked = Barrier::Yama { scope: 3 };
        assert!(!locked.advice(9).contains("sudo"), "root does not help: {}", locked.advice(9));
    }
}
