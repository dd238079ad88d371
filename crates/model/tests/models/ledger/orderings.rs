//! Every labelled ordering of the publication protocol and of the table: the models notice when
//! it is weaker.

use super::scenes;
use super::shelf::same_key;
use crate::labels::{Part, Weakened, panics, races};
use crate::weakened::missed;
use lockstead_model::Config;

/// Returns both halves of the orderings with these labels.
fn halves(file: &'static str, labels: &[&'static str]) -> Vec<Weakened> {
    let of = |&label| [Part::Acquire, Part::Release].map(|part| (file, label, part));
    labels.iter().flat_map(of).collect()
}

#[test]
fn model_publication_misses_each_ordering() {
    const HELD: &str = "publish/held.rs";
    let config = Config::new().signals(0);
    let waits = halves("publish.rs", &["LED-1", "LED-2"]);
    missed(&scenes::story(), &config, &waits, panics);
    missed(&scenes::story(), &config, &halves(HELD, &["LED-3", "LED-5"]), panics);
    missed(&scenes::out_of_order(), &config, &halves(HELD, &["LED-3"]), panics);
    missed(&scenes::running(), &config, &halves(HELD, &["LED-4"]), panics);
    missed(&scenes::without_room(), &config, &halves(HELD, &["LED-18"]), panics);
    missed(&scenes::slept(), &config, &halves("futexes.rs", &["LED-14"]), panics);
}

#[test]
fn model_table_misses_its_ordering() {
    missed(&same_key(0), &Config::new(), &halves("table.rs", &["LED-7"]), races);
}
