//! Which callers belong to a run.

use lockstead_inspect::ledger::passing::SocketPeer;
use lockstead_inspect::proc::status::StatusFile;

/// Returns whether a caller is a process of the run of the program `child`: one of the same user, or a
/// descendant of the program that has become somebody else.
pub(super) fn belongs(child: libc::pid_t, peer: &SocketPeer) -> bool {
    // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
    if peer.user == unsafe { libc::geteuid() } {
        return true;
    }
    let mut pid = peer.pid;
    for _ in 0..64 {
        if pid == child.unsigned_abs() {
            return true;
        }
        let Ok(status) = StatusFile::read(&format!("/proc/{pid}/status")) else { return false };
        match status.number("PPid").and_then(|parent| u32::try_from(parent).ok()) {
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}
