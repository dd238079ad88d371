use super::*;
use std::sync::atomic::AtomicBool;

fn measured(stop: bool) -> Result<Costs, Error> {
    let stop = AtomicBool::new(stop);
    measure(&mut Session::new(&stop, &mut |_, _, _| {}))
}

#[test]
fn what_cannot_be_otherwise_is_so() {
    let costs = match measured(false) {
        Ok(costs) => costs,
        Err(why @ Error::Process { .. }) => {
            println!("skipped: {why}");
            return;
        }
        Err(why) => panic!("{why}"),
    };
    // Whatever else the machine does: no time is negative, none endless, and each of
    // these is there at all.
    let layout = &costs.layout;
    let processors = layout.nodes * layout.caches * layout.cores * layout.threads;
    assert_eq!(processors, lockstead_render::machine::processors());
    for (what, ns) in [
        ("hit", costs.hit),
        ("exchange", costs.exchange),
        ("pause", costs.pause),
        ("memory", costs.memory),
        ("call", costs.call),
        ("clock", costs.clock),
        ("switch", costs.switch),
        ("slice", costs.slice),
    ] {
        assert!(ns > 0.0 && ns < 1e9, "{what}: {ns}");
    }
    for ns in [costs.futex, costs.restart, costs.wake, costs.signal, costs.intrusion] {
        assert!((0.0..1e9).contains(&ns), "{costs:?}");
    }
    for share in [costs.finds, costs.keeps].into_iter().flatten() {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        assert!(is_share(share.least) && is_share(share.most), "{share:?}");
        assert!(share.least <= share.median && share.median <= share.most, "{share:?}");
        assert!((1..=5).contains(&share.counts), "{share:?}");
    }
    assert_eq!(costs.transfer.is_empty(), processors == layout.threads, "{costs:?}");
    assert!(costs.transfer.iter().all(|&ns| ns > 0.0 && ns < 1e9), "{costs:?}");
}

#[test]
fn a_share_is_the_median_of_those_counts_that_had_something_to_count() {
    let mut counts = [Some(0.9), None, Some(0.1), Some(0.4), None].into_iter();
    let share = CountedShare::of(|| Ok(counts.next().flatten())).expect("counted");
    let expected = CountedShare { median: 0.4, least: 0.1, most: 0.9, counts: 3 };
    assert_eq!(share, Some(expected));
    assert!(expected.is_uncertain());
    assert_eq!(CountedShare::of(|| Ok(None)).expect("counted"), None);
}

#[test]
fn a_session_that_is_stopped_measures_nothing() {
    assert!(matches!(measured(true), Err(Error::Interrupted)));
}

#[test]
fn the_median_is_the_middle_one() {
    assert_eq!(median(&mut [5.0, 1.0, 3.0]), 3.0);
    assert_eq!(median(&mut []), 0.0);
}
