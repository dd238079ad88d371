//! What it means that both checkers notice a weaker ordering, and where only the first one does.
//!
//! Each use of [`missed`] in the shared files is a scenario, some labelled orderings, and the first
//! checker's verdict, which its own tests assert: the scenario passes as shipped, and fails so without each.
//! `cargo test -p lockstead-second --test agree orderings -- --nocapture` prints what this checker says.

use crate::agreement::Apart;
use crate::common::deep;
use crate::labels::{Part, Weakened, weaker};
use lockstead_model::{Config, FailureKind, Scenario};
use std::rc::Rc;
use std::time::Instant;

/// The orderings whose weakening the first checker notices and this one does not.
const APART: &[(Weakened, Apart)] = &[
    (("exchange.rs", "WORD-1", Part::Release), Apart::Preemptions),
    (("spin/queue.rs", "OSQ-3", Part::Release), Apart::Preemptions),
    (("spin/queue.rs", "OSQ-4", Part::All), Apart::Preemptions),
    (("spin/queue.rs", "OSQ-5", Part::Acquire), Apart::Preemptions),
    (("spin/queue.rs", "OSQ-3", Part::Acquire), Apart::Large),
    (("spin/queue.rs", "OSQ-5", Part::Release), Apart::Large),
    (("ww/wait.rs", "WW-2", Part::All), Apart::Preemptions),
    (("robust/wait.rs", "SHR-10", Part::All), Apart::Large),
];

/// Returns why this checker does not notice that an ordering is weaker.
fn apart(ordering: Weakened) -> Option<Apart> {
    APART.iter().find(|(one, _)| *one == ordering).map(|(_, why)| *why)
}

/// Returns to how many preemptions a scenario is searched as shipped: one more in deep runs. The reader of
/// the ledger, which reads many words, has more executions with one than most others have with two.
fn shipped(orderings: &[Weakened]) -> u32 {
    let of_the_ledger = orderings.iter().any(|(_, label, _)| label.starts_with("LED-"));
    let large = orderings.iter().any(|one| apart(*one) == Some(Apart::Large));
    u32::from(!of_the_ledger && !large) + u32::from(deep())
}

/// Checks that a scenario passes as shipped, and fails without each of these orderings within two
/// preemptions, in the way in which the first checker sees it fail; but for those of [`APART`].
pub(crate) fn missed<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    orderings: &[Weakened],
    kind: fn(&FailureKind) -> bool,
) {
    let (began, bound) = (Instant::now(), shipped(orderings));
    // By the same rules as without them: see `atomic` on sequential consistency.
    let as_shipped = config.clone().orderings(Rc::new(|_, _, order| order)).at_most(bound);
    match scenario.check(&as_shipped) {
        Ok(stats) => println!("as shipped: {stats}, {:.2} s", began.elapsed().as_secs_f64()),
        Err(failure) => panic!("{orderings:?}: the first checker passes it as shipped: {failure}"),
    }
    for &(file, label, part) in orderings {
        if let Some(why) = apart((file, label, part)) {
            println!("{file} {label}, {part:?}: the first checker alone notices it: {why:?}");
            continue;
        }
        let began = Instant::now();
        match scenario.check(&weaker(&config.clone().at_most(2), file, &[label], part)) {
            Ok(stats) => panic!("{file} {label}, {part:?}: not missed: {stats}"),
            Err(failure) => {
                assert!(kind(&failure.kind), "{file} {label}, {part:?}: {failure}");
                let (kind, after) = (&failure.kind, failure.executions);
                println!(
                    "{file} {label}, {part:?}: both notice it; {kind:?} in execution {after}, {:.2} s",
                    began.elapsed().as_secs_f64()
                );
            }
        }
    }
}
