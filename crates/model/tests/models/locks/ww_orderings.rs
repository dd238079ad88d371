//! Every labelled ordering of the wait/wound mutex: the models notice when it is weaker, or it is
//! shown not to matter.

use super::wait_wound::{beside_one_alone, ended, opposite};
use crate::common::{Sleeps, depth};
use crate::labels::{Part, sleeps, weaker};
use crate::weakened::missed;
use lockstead_core::ww::Scheme;
use lockstead_model::Config;

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
