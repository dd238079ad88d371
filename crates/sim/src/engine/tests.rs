//! What an access costs is what the machine's file says.

use super::atomics::{U32, U64};
use super::calls::{at, now, pause};
use super::world::{How, Place, World, ps};
use crate::machine::Machine;

/// Two nodes of one core, with no chance in them.
fn pair() -> Machine {
    let mut machine = Machine::bundled("smp-8way-2005").expect("built in");
    assert!(machine.change("jitter", |_| 0.0));
    machine.with_nodes(2).expect("there are eight")
}

#[test]
fn a_ball_between_two_cores_takes_two_transfers() {
    const ROUNDS: u64 = 1000;
    let machine = pair();
    let mut world = World::new(&machine, How::default());
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
            at(Place::Think, || done.set(now() - began));
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
fn what_shares_a_line_natively_shares_it_here() {
    #[repr(C, align(64))]
    struct Near(U32, U32);
    #[repr(C, align(64))]
    struct Far(U32, [u64; 8], U32);
    let time = |near: bool| {
        let mut world = World::new(&pair(), How::default());
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
    let mut world = World::new(&pair(), How::default());
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
