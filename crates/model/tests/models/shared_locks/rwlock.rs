//! The reader-writer lock that survives its owners: readers and writers are killed
//! before each of their steps.

use super::killing;
use super::segment::readers::*;
use crate::common::{deep, depth};

#[test]
fn shared_rwlock_2t() {
    readers(&[READS, WRITES]).verify("a reader, a writer", &killing(2));
    readers(&[BOTH, BOTH]).verify("2 of both", &killing(2));
}

#[test]
fn shared_rwlock_3t() {
    readers(&[READS, WRITES, WRITES]).verify("a reader, 2 writers", &killing(depth(1, 2)));
    readers(&[READS, READS, WRITES]).verify("2 readers, a writer", &killing(depth(0, 2)));
}

#[test]
fn shared_rwlock_reads_alone() {
    readers(&[ALONE, READS, WRITES]).verify("one without a claim", &killing(depth(0, 1)));
}

#[test]
fn shared_rwlock_times_out() {
    let times = |kills, out| killing(kills).timeouts(out);
    readers(&[MAY_READ, MAY_WRITE]).verify("2 threads", &times(2, 2));
    let kills = depth(0, 1);
    readers(&[READS, MAY_WRITE, WRITES]).verify("a writer gives up", &times(kills, 1));
    readers(&[MAY_READ, READS, WRITES]).verify("a reader gives up", &times(kills, 1));
    readers(&[READS, TRIES, WRITES]).verify("a writer tries", &killing(1));
    let config = times(1, 1).preemptions(depth(2, 4));
    readers(&[READS, WRITES_TWICE, MAY_WRITE]).verify("a writer dies meanwhile", &config);
}

#[test]
fn shared_rwlock_respawn() {
    let most = depth(1, 2);
    let config = killing(2).respawns(most);
    readers_again(&[READS, WRITES], WRITES).verify("a writer comes", &config);
    readers_again(&[READS, WRITES], READS).verify("a reader comes", &config);
}

#[test]
fn shared_rwlock_handoff() {
    let jumps = |kills, jumps| killing(kills).jumps(jumps, 5_000_000);
    readers(&[READS, WRITES]).verify("2 threads", &jumps(2, 2));
    readers(&[BOTH, BOTH]).verify("2 of both", &jumps(1, 2));
    readers(&[READS, READS, WRITES]).verify("3 threads", &jumps(depth(0, 1), 1));
    readers(&[READS, WRITES, WRITES]).verify("3 threads", &jumps(depth(0, 1), 1));
}

/// Who waits has the lock reserved at once, so that hand-off waiters follow each other, of which some
/// die: in two rounds of both, and where one reads that comes between two that write.
#[test]
fn shared_rwlock_hand_off_waiters_follow_each_other() {
    let eager = |kills| killing(kills).patience(0);
    readers(&[READS_TWICE, WRITES_TWICE]).verify("2 threads", &eager(2));
    let config = if deep() { eager(1) } else { eager(1).preemptions(2) };
    readers(&[READS, WRITES, WRITES]).verify("3 threads", &config);
    let config = if deep() { eager(0) } else { eager(0).preemptions(3) };
    readers(&[READS, WRITES_TWICE, WRITES]).verify("3 threads, longer", &config);
}

/// Who comes has the name of who has left.
#[test]
fn shared_rwlock_tenants_2t() {
    let most = depth(1, 2);
    come_and_go(&[READS_LEAVES_WRITES, WRITES]).verify("a writer stays", &killing(most));
    come_and_go(&[WRITES_LEAVES_READS, WRITES]).verify("a reader comes", &killing(most));
    come_and_go(&[TRIES, LEAVES_BETWEEN]).verify("a writer tries", &killing(2));
}

#[test]
fn shared_rwlock_tenants_3t() {
    let config = killing(depth(0, 1));
    come_and_go(&[WRITES, WRITES_AND_LEAVES, COMES_TO_READ]).verify("a reader comes", &config);
    come_and_go(&[READS, WRITES_AND_LEAVES, COMES_TO_WRITE]).verify("a writer comes", &config);
    come_and_go(&[TRIES, WRITES_AND_LEAVES, COMES_TO_WRITE]).verify("one tries", &killing(1));
}

/// A writer that waits for readers waits for those that came before it, and no others.
#[test]
fn shared_rwlock_writers_do_not_starve() {
    let config = if deep() { killing(0) } else { killing(0).preemptions(3) };
    readers_in(Turns::Drained, &[READS, READS_TWICE, WRITES])
        .verify("a reader comes again", &config);
}

/// Nobody has the lock before a reader or a writer for which it is reserved.
#[test]
fn shared_rwlock_is_handed_over() {
    let config = killing(0).patience(0).preemptions(2);
    readers_in(Turns::Handed, &[WRITES_TWICE, WRITES, WRITES]).verify("to a writer", &config);
    readers_in(Turns::Handed, &[READS, WRITES_TWICE, WRITES]).verify("to either", &config);
}
