//! The semaphore that survives its holders: holders and waiters are killed before each
//! of their steps.

use super::killing;
use super::segment::units::*;
use crate::common::{deep, depth};

#[test]
fn shared_semaphore_2t() {
    units(1, &[ONE, ONE]).verify("1 unit", &killing(2));
    units(2, &[TWO, ONE]).verify("2 units", &killing(depth(1, 2)));
    units(1, &[YIELDS, ONE_AND_CANCELS]).verify("one is cancelled", &killing(1));
    units(1, &[USES, ADDS]).verify("made and used", &killing(0));
    units(1, &[USES_AT_ONCE, TRIES]).verify("used up at once", &killing(1));
}

/// Makes the searches of three participants that end in time: at most so many switches away from
/// one that could go on; deaths cost nothing.
#[test]
fn shared_semaphore_3t() {
    let config = killing(1).preemptions(depth(2, 3));
    units(1, &[ONE, ONE, ONE]).verify("3 threads, 1 unit", &config);
    let config = killing(0).preemptions(depth(1, 2));
    units(2, &[ONE, ONE, TWO]).verify("3 threads, 2 units", &config);
    let config = killing(0).preemptions(depth(2, 3));
    units(0, &[KEEPS, KEEPS, &[Op::Add(2)]]).verify("2 made", &config);
    units(1, &[YIELDS, ONE, ONE_AND_CANCELS]).verify("one is cancelled", &config);
}

/// One that wants more than there are does not keep others from what there is.
#[test]
fn shared_semaphore_wakes_who_can_have_it() {
    let config = if deep() { killing(0) } else { killing(0).preemptions(2) };
    units(0, &[TWO, ONE_AND_ADDS, ADDS]).verify("1 of 2 units", &config);
}

#[test]
fn shared_semaphore_times_out() {
    let times = |kills, out| killing(kills).timeouts(out);
    units(1, &[MAYBE, MAYBE]).verify("2 threads", &times(1, 1));
    units(1, &[TRIES, ONE]).verify("one tries", &times(1, 1));
    units(1, &[MAYBE, ONE, ONE]).verify("3 threads", &times(1, 1).preemptions(depth(2, 3)));
}

#[test]
fn shared_semaphore_respawn() {
    units_again(1, &[ONE, ONE], ONE)
        .verify("2 threads", &killing(1).respawns(1).preemptions(depth(2, 4)));
    let config = killing(1).respawns(1).preemptions(2);
    units_again(1, &[ONE, ONE], IDLE).verify("one comes and does nothing", &config);
    units_again(2, &[ONE, TWO], ONE).verify("2 units, one wants both", &config);
    // What a dead one had is lost once, whoever comes to its slot.
    let config = killing(1).respawns(1).preemptions(depth(1, 2));
    units_again(2, &[KEEPS, ONE, TWO_IF_THERE_ARE], IDLE).verify("units are lost", &config);
}

/// Who comes has the name of who has left.
#[test]
fn shared_semaphore_tenants_2t() {
    let most = depth(0, 1);
    come_and_go(1, &[ONE, LEAVES_BETWEEN]).verify("one comes again", &killing(most));
    come_and_go(1, &[TRIES, LEAVES_BETWEEN]).verify("one tries", &killing(most));
    let config = killing(1).preemptions(depth(3, 5));
    come_and_go(1, &[ONE, LEAVES_BETWEEN]).verify("one dies", &config);
}

#[test]
fn shared_semaphore_tenants_3t() {
    let config = killing(1).preemptions(depth(1, 2));
    come_and_go(1, &[ONE, ONE_AND_LEAVES, COMES]).verify("one comes as another", &config);
}
