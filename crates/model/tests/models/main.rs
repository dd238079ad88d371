//! What the model checker shows of the locks and of the ledger, that it notices when they are
//! broken, and that it can be believed.
//!
//! `checker` tests the checker itself; `locks`, `shared_locks` and `ledger` hold a model for
//! each property. Their modules called `broken` choose a fault by its name
//! ([`Config::broken`](lockstead_model::Config::broken)), those called `orderings` weaken an
//! ordering by its label.

#[macro_use]
mod common;
mod labels;
mod weakened;

mod checker {
    mod engine;
    mod litmus;
    mod toggled;
}

mod ledger {
    mod address_table;
    mod broken;
    mod orderings;
    mod publication;
    mod records;
    mod ring;
    mod scenes;
    mod shelf;
    mod world;
}

mod locks {
    mod biased;
    mod broken_biased;
    mod broken_family;
    mod broken_mutex;
    mod broken_rounds;
    mod broken_ww;
    mod condvar;
    mod condvar_fair;
    mod fairness;
    mod family_orderings;
    mod fifo;
    mod handler;
    mod lifetime;
    mod mutex;
    mod once;
    mod orderings;
    mod queue;
    mod rounds;
    mod rwlock;
    mod semaphore;
    mod upgrades;
    mod wait_wound;
    mod waits;
    mod ww;
    mod ww_fair;
    mod ww_orderings;
}

mod shared_locks {
    mod broken;
    mod broken_deep;
    mod condvar;
    mod interrupted;
    mod mixed;
    mod mutex;
    mod orderings;
    mod rwlock;
    mod segment;
    mod semaphore;
    mod unmarked;

    use lockstead_model::Config;

    /// Returns the settings of a search in which at most so many participants are killed.
    fn killing(most: u32) -> Config {
        Config::new().merged().kills(most)
    }
}
