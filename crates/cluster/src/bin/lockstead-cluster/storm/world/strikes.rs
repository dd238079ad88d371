//! How a fault happens, and is counted if it does.

use super::{AGAIN, Due, World, lock};
use crate::storm::plan::{Fault, Moment};
use crate::storm::relay::{Hit, Strikes};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Strikes for World {
    fn reached(&self, client: usize, moment: Moment) -> Option<Hit> {
        if self.is_calm() {
            return None;
        }
        let whole = !self.hurt.load(Ordering::Acquire);
        let aim = self.lock_of(client).plan.reached(moment, whole)?;
        if aim.fault.of_members() && self.hurt.swap(true, Ordering::AcqRel) {
            return None;
        }
        let when = match (aim.fault.of_request(), moment) {
            (true, _) | (_, Moment::Holding | Moment::Writing) => "",
            _ if aim.after => ", when it was carried out",
            _ => ", before it arrives",
        };
        let what = format!("{moment:?}{when}: {}", aim.fault);
        Some(Hit { fault: aim.fault, after: aim.after, what })
    }

    fn strike(&self, client: usize, member: Option<usize>, hit: &Hit) -> bool {
        let calm = self.calm.read().unwrap_or_else(PoisonError::into_inner);
        let happens = !*calm && self.hurts(client, member, hit.fault);
        if happens {
            *lock(&self.hits).entry(hit.what.clone()).or_default() += 1;
        }
        happens
    }
}

impl World {
    /// Does what a fault says, and sees to its end; false if it cannot be done.
    fn hurts(&self, client: usize, member: Option<usize>, fault: Fault) -> bool {
        let leader = self.leader.load(Ordering::Relaxed);
        let who = &self.clients[client];
        match fault {
            Fault::KillClient => {
                let done = who.kill();
                self.later(AGAIN, Due::StartClient(client));
                done
            }
            Fault::StopClient(time) => {
                let done = who.stop(true);
                self.later(time, Due::ContinueClient(client));
                done
            }
            Fault::StopUntilNext(time) => {
                let done = who.stop(true);
                self.lock_of(client).stopped.push((client, time));
                // Should nobody come: whoever waits may be hurt as well.
                self.later(Duration::from_secs(5 * self.ttl), Due::ContinueClient(client));
                done
            }
            Fault::CutClient(time, reset) => {
                who.line.cut();
                self.later(time, Due::MendClient(client, reset));
                true
            }
            Fault::UnplugClient(time) => {
                let done = self.in_network(|network| network.plug_client(client, false));
                self.later(time, Due::PlugClient(client));
                done
            }
            Fault::KillMember(time) => {
                let member = member.unwrap_or(leader);
                lock(&self.members).kill(member);
                self.later(time, Due::StartMember(member));
                true
            }
            Fault::KillLeader(time) => {
                lock(&self.members).kill(leader);
                self.later(time, Due::StartMember(leader));
                true
            }
            Fault::PauseLeader(time) | Fault::StopLeader(time) => {
                lock(&self.members).stop(leader, true);
                self.later(time, Due::ContinueMember(leader));
                true
            }
            Fault::IsolateLeader(time) => {
                let done = self.in_network(|network| network.plug_peer(leader, false));
                self.later(time, Due::JoinMember(leader));
                done
            }
            Fault::SlowLeader(time) => {
                let done = self.in_network(|network| network.slow_peer(leader, true));
                self.later(time, Due::QuickMember(leader));
                done
            }
            Fault::LossyClient(time, percent) => {
                let done = self.in_network(|network| network.lossy_client(client, percent, true));
                self.later(time, Due::WholeClient(client, percent));
                done
            }
            Fault::LossyLeader(time, percent) => {
                let done = self.in_network(|network| network.lossy_member(leader, percent, true));
                self.later(time, Due::WholeMember(leader, percent));
                done
            }
            // The relay's own.
            Fault::LoseAnswer | Fault::Delay(_) | Fault::CopyLate(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storm::judge::Judge;
    use crate::storm::plan::Plan;
    use crate::storm::world::{Client, Lock};
    use lockstead_cluster::member::{self, Members};
    use std::sync::Arc;

    #[test]
    fn a_fault_that_comes_when_all_is_calm_does_not_happen_and_is_not_counted() {
        if member::program().is_none() {
            println!("skipped: etcd is not installed");
            return;
        }
        let members = Members::start(1).expect("etcd starts");
        let plan = Plan::new(1, Duration::from_secs(3), 1, false);
        let locks = vec![Lock::new(Judge::new(true), plan)];
        let world = Arc::new(World::new(members, None, vec![Client::of(0, 0)], locks, 3, None));
        let hit = |fault| Hit { fault, after: false, what: format!("{fault}") };
        // Nobody is there to be killed, and no network to be cut.
        assert!(!world.strike(0, None, &hit(Fault::KillClient)));
        assert!(!world.strike(0, None, &hit(Fault::UnplugClient(Duration::ZERO))));
        assert!(world.hits().is_empty(), "{:?}", world.hits());
        let cut = hit(Fault::CutClient(Duration::ZERO, true));
        for fault in [&cut, &hit(Fault::LoseAnswer)] {
            assert!(world.strike(0, None, fault));
        }
        assert_eq!(world.hits().values().sum::<u64>(), 2);
        *world.calm.write().unwrap_or_else(PoisonError::into_inner) = true;
        for fault in [&cut, &hit(Fault::LoseAnswer)] {
            assert!(!world.strike(0, None, fault), "after the calm");
        }
        assert_eq!(world.hits().values().sum::<u64>(), 2);
    }
}
