//! What an access costs is what the machine's file says; whose turn it is.

use super::calls::{at, now, pause};
use super::event::{Queue, Random, What};
use super::queue::Requests;
use super::set::Cpus;
use super::task::Activity;
use super::time::ps;
use super::words::{U32, U64};
use super::world::{RunSettings, SimWorld};
use crate::machine::Machine;
use std::collections::BTreeMap;

/// Returns two nodes of one core, with no chance in them.
fn pair() -> Machine {
    let mut machine = Machine::bundled("smp-8way-2005").expect("built in");
    assert!(machine.change("jitter", |_| 0.0));
    machine.with_nodes(2).expect("there are eight")
}

#[test]
fn a_ball_between_two_cores_takes_two_transfers() {
    const ROUNDS: u64 = 1000;
    let machine = pair();
    let mut world = SimWorld::new(&machine, RunSettings::default());
    let ball: &'static U64 = world.arena.place(U64::ZERO);
    let done: &'static U64 = world.arena.place(U64::ZERO);
    for side in 0..2 {
        world.spawn(move || {
            let began = now();
            for _ in 0..ROUNDS {
                while ball.read() % 2 != side {
                    pause();
                }
                ball.write(ball.get() + 1);
            }
            at(Activity::Think, || done.set(now() - began));
        });
    }
    world.run(ps(1e9));
    assert_eq!(ball.get(), 2 * ROUNDS);
    // Each hand-over: the other's copy is withdrawn, then it fetches the line.
    let each = done.get() as f64 / (2 * ROUNDS) as f64 / 1000.0;
    let transfer = machine.lines.transfer[2];
    assert!((each / (2.0 * transfer) - 1.0).abs() < 0.15, "{each} ns, transfer {transfer} ns");
}

#[test]
fn wakers_take_turns_at_a_queue_below_their_cache_and_leave_others_alone() {
    let mut machine = Machine::bundled("epyc-2x64").expect("built in");
    for (name, value) in [("queue", 0.4), ("wake", 1.0)] {
        assert!(machine.change(name, |_| value));
    }
    let held = ps(400.0);
    let (near, far) = (machine.cost.transfer[0], machine.cost.transfer[1]);
    let mut world = SimWorld::new(&machine, RunSettings::default());
    for _ in 0..2 {
        world.spawn(|| {});
    }
    // Two wakers of one cache, each on a core; the target is a third core there.
    (world.tasks[0].cpu, world.tasks[1].cpu) = (0, 2);
    world.current = 0;
    assert_eq!(world.turn_at_queue(4), near + held);
    world.current = 1;
    assert_eq!(world.turn_at_queue(4), near + 2 * held, "behind the first");
    // Its line is at hand now.
    world.now = ps(1e6);
    assert_eq!(world.turn_at_queue(4), held);
    // Below another cache of the node nobody waits.
    let other = machine.cpus_near(0).end;
    assert_eq!(world.turn_at_queue(other), far + held);
    world.current = 0;
    assert_eq!(world.turn_at_queue(other), far + held);
}

#[test]
fn what_shares_a_line_natively_shares_it_here() {
    #[repr(C, align(64))]
    struct Near(U32, U32);
    #[repr(C, align(64))]
    struct Far(U32, [u64; 8], U32);
    let time = |near: bool| {
        let mut world = SimWorld::new(&pair(), RunSettings::default());
        let words = if near {
            let both: &'static Near = world.arena.place(Near(U32::ZERO, U32::ZERO));
            [&both.0, &both.1]
        } else {
            let both: &'static Far = world.arena.place(Far(U32::ZERO, [0; 8], U32::ZERO));
            [&both.0, &both.2]
        };
        let last: &'static U64 = world.arena.place(U64::ZERO);
        for word in words {
            world.spawn(move || {
                for _ in 0..500 {
                    word.update(|value| value + 1);
                }
                last.set(last.get().max(now()));
            });
        }
        world.run(ps(1e9));
        last.get()
    };
    assert!(time(true) > 3 * time(false), "{} {}", time(true), time(false));
}

#[test]
fn an_exchange_sees_the_stores_before_it() {
    let mut world = SimWorld::new(&pair(), RunSettings::default());
    let (flag, data): (&'static U64, &'static U64) =
        (world.arena.place(U64::ZERO), world.arena.place(U64::ZERO));
    let seen: &'static U64 = world.arena.place(U64::ZERO);
    world.spawn(move || {
        for round in 1..200 {
            data.write(round);
            flag.write(round);
        }
    });
    world.spawn(move || {
        while flag.read() < 199 {
            let round = flag.read();
            // Stores become visible in their order.
            if data.read() < round {
                seen.set(seen.get() + 1);
            }
            pause();
        }
    });
    world.run(ps(1e9));
    assert_eq!(flag.get(), 199);
    assert_eq!(seen.get(), 0);
}

#[test]
fn events_come_by_time_and_those_of_one_time_as_they_were_announced() {
    let mut random = Random::new(3);
    let (mut queue, mut plain) = (Queue::new(), BTreeMap::new());
    let (mut now, mut order) = (0, 0);
    for _ in 0..20_000 {
        if random.unit() < 0.52 {
            // From none at all to days; often the same again.
            let after = random.next() >> (64 - random.next() % 60).min(63);
            queue.push(now + after, What::Timer(order, 0));
            plain.insert((now + after, order), ());
            order += 1;
        } else {
            let expected = plain.pop_first().map(|(key, ())| key);
            assert_eq!(queue.earliest(), expected.map_or(u64::MAX, |(at, _)| at));
            let found = queue.pop().map(|(at, what)| match what {
                What::Timer(order, _) => (at, order),
                _ => unreachable!("nothing else was announced"),
            });
            assert_eq!(found, expected);
            now = found.map_or(now, |(at, _)| at);
        }
    }
    assert!(order > 10_000);
}

#[test]
fn requests_are_taken_by_their_turn_or_by_cache() {
    let mut random = Random::new(4);
    let (mut queue, mut plain): (Requests<u32>, Vec<(usize, u32, usize)>) =
        (Requests::new(), Vec::new());
    for number in 0..20_000 {
        let cache = random.next() as usize % 128;
        if random.unit() < 0.5 {
            queue.push(cache, number);
            plain.push((cache, number, 0));
        } else if random.unit() < 0.3 {
            let first = (!plain.is_empty()).then(|| plain.remove(0).1);
            assert_eq!(queue.pop(), first);
        } else {
            let caches = 0xffff << cache;
            let at = plain.iter().position(|&(cache, ..)| caches >> cache & 1 != 0);
            plain.iter_mut().take(at.unwrap_or(0)).for_each(|request| request.2 += 1);
            assert_eq!(queue.pop_from(caches), at.map(|at| plain.remove(at).1));
        }
        assert_eq!(queue.len(), plain.len());
        assert_eq!(queue.passed_over(), plain.first().map_or(0, |&(.., passed)| passed));
    }
}

#[test]
fn a_set_has_what_was_added_within_any_range() {
    const MANY: usize = 200;
    let mut random = Random::new(5);
    let (mut set, mut plain) = (Cpus::all(MANY), [true; MANY]);
    assert!(Cpus::none(MANY).within(0..MANY).next().is_none());
    for _ in 0..20_000 {
        let (cpu, there) = (random.next() as usize % MANY, random.unit() < 0.5);
        set.set(cpu, there);
        plain[cpu] = there;
        assert_eq!(set.has(cpu), there);
        let end = random.next() as usize % (MANY + 1);
        let start = random.next() as usize % (end + 1);
        assert!(set.within(start..end).eq((start..end).filter(|&cpu| plain[cpu])));
    }
}
