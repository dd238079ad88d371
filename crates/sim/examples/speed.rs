//! How fast the simulator is: simulated events a second of processor time, of each machine
//! with each lock, for `storm` with a task for each processor, and 1,000 on 1024 of them.
//!
//! `cargo run --release -p lockstead-sim --example speed [MACHINE [MILLISECONDS]]`

use lockstead_sim::{LOCKS, MACHINES, Machine, RunSettings, SimLockName, Workload, run};

/// Simulated milliseconds, warm-up and all.
const LENGTH: f64 = 15.0;

/// Seconds of processor time that can be measured: it is told by the tick.
const ENOUGH: f64 = 0.15;

/// Returns the seconds of processor time that the calling thread has had.
fn used() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let first = times.split_whitespace().next().and_then(|time| time.parse::<f64>().ok());
    first.expect("nanoseconds") / 1e9
}

/// What was measured, as reports write it.
struct Speed {
    /// The number of events a second.
    events: f64,
    /// Reads and writes a second: most need no event where a task has a processor to itself.
    accesses: f64,
    /// Seconds of one run.
    took: f64,
}

/// Measures so many runs that they take long enough.
fn measure(machine: &Machine, lock: SimLockName, workload: &Workload, tasks: usize) -> Speed {
    let began = used();
    let (mut events, mut accesses, mut took, mut seed) = (0, 0, 0.0, 0);
    while took < ENOUGH {
        seed += 1;
        let figures =
            run(machine, lock, workload, tasks, RunSettings { seed, ..RunSettings::default() });
        events += figures.events;
        accesses += figures.accesses;
        took = used() - began;
    }
    let rate = |count: u64| count as f64 / took;
    Speed { events: rate(events), accesses: rate(accesses), took: took / seed as f64 }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next();
    let length: f64 = arguments.next().map_or(LENGTH, |text| text.parse().expect("a number"));
    for (name, _) in MACHINES {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let machine = Machine::bundled(name).expect("built in");
        let tasks = machine.cpus().min(1000);
        for compute in [0.2, 50.0] {
            let mut workload = Workload::bundled("storm").expect("built in");
            workload.compute = compute;
            workload.length = length - workload.warm_up;
            println!(
                "{name}, {} processors, {tasks} tasks, {compute} µs between sections, {length} \
                 simulated ms; million a second of processor time",
                machine.cpus()
            );
            let mut speeds = Vec::new();
            for (lock, lock_name, _) in LOCKS {
                let speed = measure(&machine, lock, &workload, tasks);
                let (events, accesses) = (speed.events / 1e6, speed.accesses / 1e6);
                println!(
                    "  {lock_name:20}{events:6.2} events {accesses:6.2} accesses {:8.4} s",
                    speed.took
                );
                speeds.push(speed);
            }
            speeds.sort_by(|one, other| one.events.total_cmp(&other.events));
            let events = |at: usize| speeds[at].events / 1e6;
            let longest = speeds.iter().map(|speed| speed.took).fold(0.0, f64::max);
            println!(
                "  events: least {:.2}, median {:.2}, most {:.2}; longest {longest:.4} s",
                events(0),
                events(speeds.len() / 2),
                events(speeds.len() - 1)
            );
        }
    }
}
