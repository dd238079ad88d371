//! What the storm does to whom and when: a fault and the moment of a turn that it waits for, by chance,
//! but in the same order for the same seed.

use std::fmt;
use std::time::Duration;

/// A moment of a client's turn at which something may happen to it, or to the member that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// It asks for the lock.
    Acquiring,
    /// It was next, and claims the lock.
    Claiming,
    /// It is in, and has read the register.
    Holding,
    /// It has looked at its deadline, and is about to write.
    Writing,
    /// It gives the lock back.
    Releasing,
    /// It renews its lease.
    Renewing,
}

/// What may happen then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    KillClient,
    /// The client is stopped for so long.
    StopClient(Duration),
    /// The client is stopped, and goes on so much after the next owner of the lock is in.
    StopUntilNext(Duration),
    /// What the client sends and gets stands still for so long; then it goes on, or its connections end.
    CutClient(Duration, bool),
    /// The client's link is down for so long; in namespaces alone.
    UnplugClient(Duration),
    /// The request is carried out, and its answer lost.
    LoseAnswer,
    /// The request arrives so late.
    Delay(Duration),
    /// The connection ends, so that the client sends the request to another member; it arrives all the
    /// same, so much later.
    CopyLate(Duration),
    /// The member that serves the client is killed, and started again so much later.
    KillMember(Duration),
    KillLeader(Duration),
    /// The leader is stopped for so long, within the margin that a session has.
    PauseLeader(Duration),
    /// The leader is stopped for longer than that.
    StopLeader(Duration),
    /// The leader's link to the other members is down for so long, that to clients is not; in namespaces
    /// alone.
    IsolateLeader(Duration),
    /// What the leader sends to the others is late, and partly lost; in namespaces alone.
    SlowLeader(Duration),
    /// So many in a hundred of the packets between the client and the relays are lost by chance, for so
    /// long; in namespaces alone.
    LossyClient(Duration, u8),
    /// So many in a hundred of the packets that reach or leave the leader are lost by chance.
    LossyLeader(Duration, u8),
}

impl Fault {
    /// Says whether it concerns a request, which there has to be one of.
    pub(super) fn of_request(self) -> bool {
        matches!(self, Fault::LoseAnswer | Fault::Delay(_) | Fault::CopyLate(_))
    }

    /// Says whether it concerns members, of which the majority has to stay.
    pub(super) fn of_members(self) -> bool {
        matches!(
            self,
            Fault::KillMember(_)
                | Fault::KillLeader(_)
                | Fault::PauseLeader(_)
                | Fault::StopLeader(_)
                | Fault::IsolateLeader(_)
                | Fault::SlowLeader(_)
                | Fault::LossyLeader(..)
        )
    }

    fn needs_namespaces(self) -> bool {
        matches!(
            self,
            Fault::UnplugClient(_)
                | Fault::IsolateLeader(_)
                | Fault::SlowLeader(_)
                | Fault::LossyClient(..)
                | Fault::LossyLeader(..)
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::KillClient => "client killed",
            Fault::StopClient(_) => "client stopped",
            Fault::StopUntilNext(_) => "client stopped until the next owner is in",
            Fault::CutClient(_, false) => "client's packets late",
            Fault::CutClient(_, true) => "client cut off, connections reset",
            Fault::UnplugClient(_) => "client's link down",
            Fault::LoseAnswer => "answer lost",
            Fault::Delay(_) => "request late",
            Fault::CopyLate(_) => "repeated, the first copy late",
            Fault::KillMember(_) => "serving member killed",
            Fault::KillLeader(_) => "leader killed",
            Fault::PauseLeader(_) => "leader stopped within the margin",
            Fault::StopLeader(_) => "leader stopped for longer",
            Fault::IsolateLeader(_) => "leader cut off from members",
            Fault::SlowLeader(_) => "leader's packets late and lost",
            Fault::LossyClient(..) => "client's packets lost by chance",
            Fault::LossyLeader(..) => "leader's packets lost by chance",
        })
    }
}

/// A fault that waits for its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aim {
    pub(super) moment: Moment,
    /// The fault waits until the member has answered the request, in place of before it gets it.
    pub(super) after: bool,
    pub(super) fault: Fault,
    /// The number of turns of the lock before it.
    gap: u64,
}

/// The faults at one lock.
pub(super) struct Plan {
    rng: fastrand::Rng,
    ttl: Duration,
    every: u64,
    namespaces: bool,
    /// The turns of the lock since the last fault.
    turns: u64,
    next: Aim,
}

impl Plan {
    pub(super) fn new(seed: u64, ttl: Duration, every: u64, namespaces: bool) -> Plan {
        let mut rng = fastrand::Rng::with_seed(seed);
        let next = choose(&mut rng, ttl, every, namespaces);
        Plan { rng, ttl, every, namespaces, turns: 0, next }
    }

    /// Counts a turn of the lock.
    pub(super) fn turn(&mut self) {
        self.turns += 1;
    }

    /// Returns the fault of this moment, if one waits for it; the next one waits then.
    pub(super) fn reached(&mut self, moment: Moment, whole: bool) -> Option<Aim> {
        let due = self.turns >= self.next.gap && self.next.moment == moment;
        if !due || (self.next.fault.of_members() && !whole) {
            return None;
        }
        self.turns = 0;
        let next = choose(&mut self.rng, self.ttl, self.every, self.namespaces);
        Some(std::mem::replace(&mut self.next, next))
    }
}

fn choose(rng: &mut fastrand::Rng, ttl: Duration, every: u64, namespaces: bool) -> Aim {
    let moment = match rng.u32(..100) {
        0..36 => Moment::Writing,
        36..46 => Moment::Holding,
        46..62 => Moment::Releasing,
        62..78 => Moment::Claiming,
        78..92 => Moment::Acquiring,
        _ => Moment::Renewing,
    };
    let gap = rng.u64(1..=2 * every);
    let after = rng.bool();
    let on_request = !matches!(moment, Moment::Writing | Moment::Holding);
    // What a token and a deadline are for: an old owner that goes on beside the new one.
    if !on_request && rng.bool() {
        let fault = Fault::StopUntilNext(Duration::from_millis(rng.u64(0..30)));
        return Aim { moment, after, fault, gap };
    }
    loop {
        let fault = fault(rng, ttl);
        let here = namespaces || !fault.needs_namespaces();
        if here && (on_request || !fault.of_request()) {
            return Aim { moment, after, fault, gap };
        }
    }
}

fn fault(rng: &mut fastrand::Rng, ttl: Duration) -> Fault {
    let ms = |rng: &mut fastrand::Rng, from: u64, to: u64| Duration::from_millis(rng.u64(from..to));
    // Longer than the lease mostly; etcd looks for leases that have ended twice a second.
    let pause = |rng: &mut fastrand::Rng| match rng.u32(..4) {
        0 => ttl.mul_f64(0.1 + 0.8 * rng.f64()),
        _ => ttl + Duration::from_millis(600) + ttl.mul_f64(0.5 * rng.f64()),
    };
    let short = |rng: &mut fastrand::Rng| ms(rng, 500, 3_000);
    match rng.u32(..110) {
        0..20 => Fault::KillClient,
        20..46 => Fault::StopClient(pause(rng)),
        46..54 => Fault::CutClient(pause(rng), rng.bool()),
        54..64 => Fault::UnplugClient(pause(rng)),
        64..71 => Fault::LoseAnswer,
        71..75 => Fault::Delay(ms(rng, 5, 1_500)),
        75..80 => Fault::CopyLate(ms(rng, 5, 4_000)),
        80..83 => Fault::KillMember(short(rng)),
        83..87 => Fault::KillLeader(short(rng)),
        87..90 => Fault::PauseLeader(ms(rng, 200, 900)),
        90..92 => Fault::StopLeader(ms(rng, 1_500, 5_000)),
        92..97 => Fault::IsolateLeader(ms(rng, 1_500, 6_000)),
        97..100 => Fault::SlowLeader(short(rng)),
        100..106 => Fault::LossyClient(pause(rng), rng.u8(5..50)),
        _ => Fault::LossyLeader(short(rng), rng.u8(5..50)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_faults_each_waiting_for_its_moment() {
        let all = |seed| {
            let mut plan = Plan::new(seed, Duration::from_secs(3), 1, true);
            let mut found = Vec::new();
            while found.len() < 200 {
                plan.turn();
                for moment in [Moment::Writing, Moment::Claiming, Moment::Releasing] {
                    found.extend(plan.reached(moment, true).inspect(|aim| {
                        assert_eq!(aim.moment, moment);
                        assert!(moment != Moment::Writing || !aim.fault.of_request());
                    }));
                }
                plan.turn();
                for moment in [Moment::Acquiring, Moment::Holding, Moment::Renewing] {
                    found.extend(plan.reached(moment, true));
                }
            }
            found
        };
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        let kinds: std::collections::BTreeSet<String> =
            all(7).iter().map(|aim| aim.fault.to_string()).collect();
        assert!(kinds.len() > 13, "{kinds:?}");
    }

    #[test]
    fn members_are_left_alone_while_one_is_hurt() {
        let mut plan = Plan::new(1, Duration::from_secs(3), 1, true);
        let mut hurt = 0;
        for turn in 0..2_000 {
            plan.turn();
            for moment in [Moment::Writing, Moment::Claiming, Moment::Acquiring, Moment::Renewing] {
                let whole = turn % 2 == 0;
                let Some(aim) = plan.reached(moment, whole) else { continue };
                assert!(whole || !aim.fault.of_members());
                hurt += u32::from(aim.fault.of_members());
            }
            for moment in [Moment::Holding, Moment::Releasing] {
                plan.reached(moment, true);
            }
        }
        assert!(hurt > 10, "{hurt}");
    }
}
