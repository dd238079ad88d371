//! Accounts in a file that any number of processes share, and any may be killed.

use lockstead::shared::{Locked, Segment, SegmentOptions, Shareable, SharedMutex};

#[derive(Shareable)]
#[repr(C)]
struct Bank {
    accounts: [SharedMutex<i64>; 100],
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bank = Segment::<Bank>::open_or_create("/dev/shm/bank", &SegmentOptions::new())?;
    match bank.root().accounts[3].lock()? {
        Locked::Acquired(mut account) => *account += 20,
        // Somebody died while it had the lock: look what it left, then say so.
        Locked::OwnerDied(account) => *account.mark_consistent() += 20,
        Locked::NotRecoverable => eprintln!("somebody did not say so"),
    }
    Ok(())
}
