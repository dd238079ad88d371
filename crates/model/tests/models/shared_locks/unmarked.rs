//! Deaths of which the machine leaves no trace: sleepers ask after a while, and mark the
//! dead themselves.

use super::killing;
use super::segment::{condition, mutexes, readers, units};
use crate::common::{deep, depth};
use lockstead_model::{Config, FailureKind};

/// Returns a search in which so many are killed at most, and so many of these are not marked; when
/// all sleep, the timer of the first one fires.
fn losing(kills: u32, unmarked: u32) -> Config {
    killing(kills).unmarked(unmarked).trust(1_000_000).rescue(true)
}

#[test]
fn unmarked_mutex() {
    use mutexes::*;
    locks(&[TWICE, TWICE]).verify("2 threads", &losing(2, 2));
    locks(&[ONE, ONE, ONE]).verify("3 threads", &losing(2, depth(1, 2)));
    locks(&[NESTED, ONE, OTHER]).verify("2 locks", &losing(1, 1));
    locks(&[MAYBE, ONE]).verify("one gives up", &losing(1, 1).timeouts(1));
}

/// Somebody comes in the slot of the dead one as soon as that has been declared dead,
/// when another one has just been told that it is.
#[test]
fn unmarked_mutex_respawn() {
    use mutexes::*;
    let config = losing(1, 1).respawns(1).timeouts(1);
    let config = config.preemptions(depth(2, 3));
    locks_again(&[ONE, ONE, ONE], ONE).verify("3 threads", &config);
}

/// Some are killed between ceasing to be known to the machine and leaving the slot.
#[test]
fn unmarked_mutex_tenants() {
    use mutexes::*;
    come_and_go(&[TRY, LEAVES_BETWEEN]).verify("one tries", &losing(2, 2));
    come_and_go(&[ONE, LEAVES_BETWEEN]).verify("2 threads", &losing(2, 2));
    let config = losing(1, 1).preemptions(depth(2, 3));
    come_and_go(&[ONE, ONE_AND_LEAVES, COMES]).verify("3 threads", &config);
}

#[test]
fn unmarked_semaphore() {
    use units::*;
    units(1, &[ONE, ONE]).verify("2 threads", &losing(1, 1));
    let config = losing(1, 1).preemptions(depth(1, 2));
    units(1, &[ONE, ONE, ONE]).verify("3 threads", &config);
    let config = losing(1, 1).respawns(1).preemptions(2);
    units_again(1, &[ONE, ONE], ONE).verify("one comes in the slot", &config);
}

/// Nobody but the writer that waits for a reader asks whether that one lives.
#[test]
fn unmarked_rwlock() {
    use readers::*;
    readers(&[READS, WRITES]).verify("2 threads", &losing(2, 2));
    readers(&[BOTH, BOTH]).verify("2 of both", &losing(2, 2));
    readers(&[READS, MAY_WRITE]).verify("one gives up", &losing(1, 1).timeouts(1));
    let config = losing(1, 1).respawns(1);
    readers_again(&[READS, WRITES], WRITES).verify("a writer comes", &config);
    let config = losing(depth(1, 2), 1).respawns(1);
    readers_again(&[READS, WRITES], READS).verify("a reader comes", &config);
    let config = losing(1, 1);
    let config = if deep() { config } else { config.preemptions(2) };
    readers(&[READS, WRITES, WRITES]).verify("a reader, 2 writers", &config);
    readers(&[READS, READS, WRITES]).verify("2 readers, a writer", &config);
}

#[test]
fn unmarked_condvar() {
    use condition::*;
    let config = losing(1, 1);
    let config = if deep() { config } else { config.preemptions(2) };
    tokens(1, &[PASSES, PASSES, PUTS]).verify("one is notified, and dies", &config);
}

misses! {
    in mutexes;
    compares_nothing: unmarked_whoever_sits_there_is_declared_dead, FailureKind::Panic(_),
        losing(1, 1).respawns(1).timeouts(1).preemptions(2), { locks_again(&[ONE, ONE, ONE], ONE) }
    asks_nobody: unmarked_nobody_is_asked_about, FailureKind::TooLong,
        losing(1, 1), { locks(&[ONE, ONE]) }
    trusts_for_ever: unmarked_sleepers_trust_for_ever, FailureKind::Deadlock,
        losing(1, 1), { locks(&[ONE, ONE]) }
}

misses! {
    in readers;
    writer_asks_nobody: unmarked_writer_asks_about_nobody, FailureKind::TooLong,
        losing(1, 1), { readers(&[READS, WRITES]) }
}
