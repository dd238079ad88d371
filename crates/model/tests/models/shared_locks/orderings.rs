//! Every labelled ordering of the shared locks: the models notice when it is weaker, or
//! it is shown not to matter.

use super::segment::all::{
    leaver_and_locker, lockers, newcomer_and_locker, newcomer_and_taker, newcomer_and_waiter,
    newcomer_and_writer, reader_and_writer, reader_and_writers, takers,
};
use crate::labels::{Part, weaker};
use crate::weakened::missed;
use lockstead_model::{Config, FailureKind};

fn small() -> Config {
    Config::new().spurious(0).preemptions(2).stale_reads(1)
}

/// Tells whether a failure is what comes of an order that is missing: the data are not in order, or the
/// numbers of a semaphore.
fn seen(kind: &FailureKind) -> bool {
    matches!(kind, FailureKind::Race | FailureKind::Deadlock)
}

#[test]
fn shared_mutex_misses_each_ordering() {
    let orderings =
        [("robust/mutex.rs", "SHR-1", Part::All), ("robust/mutex.rs", "SHR-2", Part::All)];
    missed(&lockers(2), &small(), &orderings, seen);
    // The release of processors that subtract no faster.
    let by_exchange = small().subtracts(false);
    missed(&lockers(2), &by_exchange, &[("robust/mutex.rs", "SHR-2", Part::All)], seen);
    missed(&lockers(3), &small(), &[("robust/wait.rs", "SHR-1", Part::All)], seen);
    // What a dead owner wrote.
    missed(&lockers(2), &small().kills(1), &[("robust/slot.rs", "SHR-3", Part::All)], seen);
}

/// Who waits sees that a newcomer lives before it sees its name.
#[test]
fn shared_mutex_misses_that_an_owner_lives() {
    let orderings =
        [("robust/mutex.rs", "SHR-1", Part::Release), ("robust/wait.rs", "SHR-5", Part::All)];
    missed(&newcomer_and_locker(), &small(), &orderings, seen);
}

/// A leave that is seen before the release in front of it retires a slot that need not be, and nothing
/// else comes of it.
#[test]
fn shared_mutex_is_as_safe_where_a_release_is_seen_late() {
    let config = small().preemptions(1);
    leaver_and_locker().verify("one comes again", &config);
    for (file, label) in [("robust/wait.rs", "SHR-3"), ("robust/slot.rs", "SHR-9")] {
        let weaker = weaker(&config, file, &[label], Part::All);
        leaver_and_locker().verify(&format!("one comes again, without {label}"), &weaker);
    }
}

/// Units of somebody who comes to a dead one's slot are seen to be held.
#[test]
fn shared_semaphore_counts_what_a_newcomer_has() {
    newcomer_and_taker().verify("one comes", &small());
}

/// Who asks whether the hand-off waiter lives sees that before it sees its name; or there are two, of
/// which a release wakes one, and nobody the other.
#[test]
fn shared_mutex_misses_that_the_handoff_waiter_lives() {
    let config = small().spurious(1).jumps(1, 5_000_000);
    missed(&newcomer_and_waiter(), &config, &[("robust/wait.rs", "SHR-10", Part::All)], seen);
}

/// A waiter that overlooks the hand-off waiter takes the lock from it, which is not fair, and
/// nothing else.
#[test]
fn shared_mutex_is_as_safe_without_the_handoff_ordering() {
    let config = small().jumps(1, 5_000_000);
    let weaker = weaker(&config, "robust/wait.rs", &["SHR-5"], Part::All);
    lockers(3).verify("without SHR-5", &weaker.preemptions(1));
}

#[test]
fn shared_rwlock_misses_each_ordering() {
    let orderings = [
        ("robust/rwlock.rs", "SHR-6", Part::All),
        ("robust/slot.rs", "SHR-6", Part::All),
        ("robust/slot.rs", "SHR-7", Part::All),
        ("robust/party.rs", "SHR-8", Part::All),
        ("robust/domain.rs", "SHR-8", Part::All),
    ];
    missed(&reader_and_writer(1), &small(), &orderings, seen);
    missed(&reader_and_writer(2), &small(), &[("robust/wait.rs", "SHR-6", Part::All)], seen);
}

/// A writer that has waited looks for claims after it has put itself into the word.
#[test]
fn shared_rwlock_misses_the_ordering_of_who_has_waited() {
    let orderings = [("robust/wait.rs", "SHR-1", Part::All)];
    missed(&reader_and_writers(), &small().preemptions(1), &orderings, seen);
}

/// Somebody who comes is alive before its claims, and who looks for claims sees that.
#[test]
fn shared_rwlock_misses_the_ordering_of_who_comes() {
    let orderings =
        [("robust/domain.rs", "SHR-8", Part::All), ("robust/slot.rs", "SHR-9", Part::All)];
    missed(&newcomer_and_writer(), &small(), &orderings, seen);
}

/// The semaphore's numbers and the claims on it are touched under its mutex, whose
/// orderings it misses; its own only say what they mean.
#[test]
fn shared_semaphore_misses_each_ordering() {
    let orderings =
        [("robust/mutex.rs", "SHR-1", Part::All), ("robust/mutex.rs", "SHR-2", Part::All)];
    missed(&takers(), &small(), &orderings, seen);
    for file in ["robust/semaphore/mod.rs", "robust/semaphore/sleep.rs"] {
        let weaker = weaker(&small().kills(1), file, &["SHR-7"], Part::All);
        takers().verify("without SHR-7", &weaker);
    }
}
