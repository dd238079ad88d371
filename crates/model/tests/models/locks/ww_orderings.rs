//! Every labelled ordering of the wait/wound mutex, and the one by which a thread that ends tells all: the
//! models notice when it is weaker, or it is shown not to matter.

use super::wait_wound::{beside_one_alone, ended, opposite};
use crate::common::{Sleeps, depth};
use crate::labels::{Part, sleeps, weaker};
use crate::weakened::missed;
use lockstead_core::ww::Scheme;
use lockstead_core::{Platform, WaitBounds};
use lockstead_model::{Config, FailureKind, Model, Ordering, Scenario, U32};

fn small() -> Config {
    Config::new().processors(4).spurious(0).preemptions(depth(2, 3)).stale_reads(depth(1, 2))
}

#[test]
fn model_ww_judges_without_ordering() {
    for scheme in [Scheme::WaitDie, Scheme::WoundWait] {
        let config = weaker(&small(), "ww/mod.rs", &["WW-1"], Part::All);
        let name = format!("ww, holder's ticket unordered, {scheme:?}");
        opposite::<Sleeps>(scheme).verify(&name, &config);
    }
}

#[test]
fn model_ww_misses_each_ordering() {
    // Where releases are restarted, that orders what the exchanges do, too.
    let config = small().preemptions(2).stale_reads(1).sections(false);
    let told = opposite::<Sleeps>(Scheme::WoundWait);
    let deposed = beside_one_alone::<Sleeps>(Scheme::WaitDie);
    missed(&told, &config, &[("ww/context.rs", "WW-3", Part::All)], sleeps);
    missed(&deposed, &config, &[("ww/wait.rs", "WW-2", Part::All)], sleeps);
}

/// A context that begins too late to be told of the end of a thread sees that it has ended.
#[test]
fn model_ww_misses_the_ordering_of_the_end_of_a_thread() {
    let config = small().preemptions(2).stale_reads(1).sections(false);
    let ended = ended::<Sleeps>(Scheme::WoundWait, false, |two| two.add_unless_lost(0));
    missed(&ended, &config, &[("ww/context.rs", "WW-4", Part::All)], sleeps);
}

/// What the end of a thread and a newcomer to the table of slots share.
struct Table {
    /// The highest slot that was ever taken: the newcomer's is 1.
    highest: U32,
    /// Whether the thread has ended, as the slot says that a waiter looks at.
    ended: U32,
    /// The word that tells the newcomer to look again.
    told: U32,
}

/// Makes the scenario in which a thread ends, and a newcomer raises the number of slots and waits for a
/// lock of that thread. `linux/src/table.rs` does the same with two calls of `fetch_max`; it is no source of the
/// core, so that its two steps are written again here, with these orderings of TAB-5.
fn end_and_newcomer(raises: Ordering, counts: Ordering) -> Scenario<Table> {
    Scenario::new(|| Table { highest: U32::ZERO, ended: U32::ZERO, told: U32::ZERO })
        .thread(move |table| {
            table.ended.store(1, Ordering::Relaxed);
            // As in the table, the raise changes nothing, and who is told is read after it.
            table.highest.fetch_add(0, counts);
            if table.highest.load(Ordering::Relaxed) == 1 {
                table.told.store(1, Ordering::Release);
                Model::wake(Model::address32(&table.told), u32::MAX);
            }
        })
        .thread(move |table| {
            table.highest.fetch_add(1, raises);
            if table.ended.load(Ordering::Relaxed) == 1 {
                return;
            }
            while table.told.load(Ordering::Acquire) == 0 {
                Model::wait32(&table.told, 0, &WaitBounds::FOREVER);
            }
            assert_eq!(table.ended.load(Ordering::Relaxed), 1, "told of the end");
        })
}

/// A thread that takes a slot too late to be told of the end of another one sees that it has ended.
#[test]
fn model_table_misses_the_ordering_of_the_end_of_a_thread() {
    let config = Config::new();
    let shipped = end_and_newcomer(Ordering::Acquire, Ordering::Release);
    shipped.verify("table, a thread ends", &config).must_be_complete();
    let weaker = [(Ordering::Relaxed, Ordering::Release), (Ordering::Acquire, Ordering::Relaxed)];
    for (raises, counts) in weaker {
        let result = end_and_newcomer(raises, counts).check(&config);
        assert_eq!(result.expect_err("TAB-5 is missed").kind, FailureKind::Deadlock);
    }
}
