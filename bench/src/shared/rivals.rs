//! What people lock with between processes, side by side: what it costs, and what becomes of the
//! lock when its holder is killed, forks, or closes the file.
//!
//! # Role
//! Each behaviour is tried, and not known: a row says what this machine did.
//!
//! | module | what |
//! |---|---|
//! | `locks` | the locks, in one form |
//! | `cost` | the pair, and two processes |
//! | `trials` | what is tried with each |
//! | `lmdb` | LMDB's lock and readers, where that library is installed |
//! | `python` | the same for `multiprocessing.Lock`, where there is a Python |

mod cost;
mod lmdb;
mod locks;
mod python;
mod row;
mod trials;

use crate::contended::work::WorkPace;
use crate::shared::process::Namespaces;
use crate::{Error, Session, costs, options, stats};
pub use cost::Disputed;
use lmdb::Lmdb;
pub use lmdb::ReaderTable;
use locks::{
    Flock, GlibcRobust, OpenFile, Rival, RivalGround, RivalMutex, RivalRwLock, RivalSemaphore,
    Traditional,
};
use lockstead_render::machine::MachineFacts;
pub use row::RivalRow;
use serde::Serialize;
use std::time::Duration;
pub use trials::AfterKill;

/// How long to measure.
#[derive(Clone, Debug)]
pub struct RivalsOptions {
    /// The number of rounds; in each, every lock has its turn.
    pub rounds: usize,
    /// Time for a lock's pair in one round; two processes dispute it for ten times as long.
    pub slice: Duration,
}

impl Default for RivalsOptions {
    /// Returns options for 15 rounds of 5 ms.
    fn default() -> Self {
        RivalsOptions { rounds: 15, slice: Duration::from_millis(5) }
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RivalsReport {
    /// One object for each lock, lockstead's two first.
    pub locks: Vec<RivalRow>,
    /// Whether the two processes that dispute a lock had a processor each.
    pub processor_each: bool,
    /// LMDB's table of readers; null where that library is not installed.
    pub lmdb_readers: Option<ReaderTable>,
    /// What could not be tried, and why.
    pub left_out: Vec<LeftOut>,
    /// The machine on which all of it was measured and tried.
    pub machine: MachineFacts,
}

/// What could not be tried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The lock or the trial, by the name that the table has for it.
    pub what: &'static str,
    /// What is missing here for it.
    pub why: String,
}

/// What fills in the behaviours of a row.
type Trials<'g> = fn(&'g [RivalGround], Option<Namespaces>, &mut RivalRow) -> Result<(), Error>;

/// A lock, and what its rounds gave.
struct RivalSubject<'g> {
    name: &'static str,
    version: Option<String>,
    shares: bool,
    pair: fn(&'g RivalGround, Duration, bool) -> Result<f64, Error>,
    dispute: fn(&'g RivalGround, Duration, u64, &[usize]) -> Result<Disputed, Error>,
    try_all: Trials<'g>,
    pairs: Vec<f64>,
    share_pairs: Vec<f64>,
    disputes: Vec<Disputed>,
}

impl<'g> RivalSubject<'g> {
    fn new<R: Rival<'g>>(version: Option<String>) -> Self {
        RivalSubject {
            name: R::NAME,
            version,
            shares: R::SHARES,
            pair: cost::pair::<R>,
            dispute: cost::dispute::<R>,
            try_all: trials::all::<R>,
            pairs: Vec::new(),
            share_pairs: Vec::new(),
            disputes: Vec::new(),
        }
    }

    fn measure(
        &mut self,
        ground: &'g RivalGround,
        slice: Duration,
        steps: u64,
        processors: &[usize],
    ) -> Result<(), Error> {
        self.pairs.push((self.pair)(ground, slice, false)?);
        if self.shares {
            self.share_pairs.push((self.pair)(ground, slice, true)?);
        }
        self.disputes.push((self.dispute)(ground, slice * 10, steps, processors)?);
        Ok(())
    }

    fn row(&self, ours: &[f64]) -> RivalRow {
        let ratios: Vec<f64> = self.pairs.iter().zip(ours).map(|(own, ours)| own / ours).collect();
        let of =
            |figure: fn(&Disputed) -> f64| self.disputes.iter().map(figure).collect::<Vec<_>>();
        let disputed = Disputed {
            ops_per_s: stats::median(&of(|it| it.ops_per_s)),
            ops_per_cpu_s: stats::median(&of(|it| it.ops_per_cpu_s)),
            longest_wait_ms: stats::spread(&of(|it| it.longest_wait_ms)).1,
        };
        RivalRow {
            version: self.version.clone(),
            share_pair_ns: self.shares.then(|| stats::median(&self.share_pairs)),
            disputed: Some(disputed),
            ..RivalRow::new(self.name, stats::median(&self.pairs), stats::median(&ratios))
        }
    }
}

/// Measures and tries all of them.
///
/// # Errors
/// [`Error::Option`], [`Error::Process`], [`Error::Worker`], [`Error::Segment`],
/// [`Error::Broken`] if a lock does not exclude, [`Error::Interrupted`].
pub fn measure(options: &RivalsOptions, session: &mut Session<'_>) -> Result<RivalsReport, Error> {
    options::within("--rounds", options.rounds, 1..=10_000, "")?;
    options::within("--slice", options.slice.as_micros(), 100..=60_000_000, "us")?;
    let machine = MachineFacts::here();
    let steps = WorkPace::calibrated().steps(Duration::from_micros(1));
    let processors: Vec<usize> = costs::allowed().into_iter().take(2).collect();
    let processor_each = processors.len() == 2;
    let mut left_out = Vec::new();
    let namespaces = match Namespaces::find() {
        Ok(namespaces) => Some(namespaces),
        Err(error) => {
            left_out.push(LeftOut { what: "containers", why: error.to_string() });
            None
        }
    };
    let grounds =
        (0..=trials::GROUNDS).map(|_| RivalGround::new()).collect::<Result<Vec<_>, Error>>()?;
    let (ground, grounds) = grounds.split_first().expect("one more than trials");
    let mut subjects = vec![
        RivalSubject::new::<RivalMutex<'_>>(None),
        RivalSubject::new::<RivalRwLock<'_>>(None),
        RivalSubject::new::<GlibcRobust<'_>>(None),
        RivalSubject::new::<RivalSemaphore<'_>>(None),
        RivalSubject::new::<OpenFile>(None),
        RivalSubject::new::<Flock>(None),
        RivalSubject::new::<Traditional>(None),
    ];
    let lmdb = lmdb::version();
    match &lmdb {
        Ok(version) => subjects.push(RivalSubject::new::<Lmdb>(Some(version.clone()))),
        Err(why) => left_out.push(LeftOut { what: Lmdb::NAME, why: why.clone() }),
    }
    let all = (options.rounds * subjects.len() + subjects.len() + 2) as u64;
    let mut done = 0;
    let mut step = |session: &mut Session<'_>, name| {
        if session.stopped() {
            return Err(Error::Interrupted);
        }
        session.tell(done, all, name);
        done += 1;
        Ok(())
    };
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for _ in 0..options.rounds {
        fastrand::shuffle(&mut order);
        for &at in &order {
            step(session, subjects[at].name)?;
            subjects[at].measure(ground, options.slice, steps, &processors)?;
        }
    }
    let mut locks = Vec::new();
    for subject in &subjects {
        step(session, subject.name)?;
        let mut row = subject.row(&subjects[0].pairs);
        (subject.try_all)(grounds, namespaces, &mut row)?;
        locks.push(row);
    }
    step(session, "LMDB's readers")?;
    let lmdb_readers = match lmdb {
        Ok(_) => Some(lmdb::readers(&[RivalGround::new()?, RivalGround::new()?], namespaces)?),
        Err(_) => None,
    };
    step(session, python::NAME)?;
    match python::row(locks[0].pair_ns, session)? {
        Ok(row) => locks.push(row),
        Err(why) => left_out.push(LeftOut { what: python::NAME, why }),
    }
    Ok(RivalsReport { locks, processor_each, lmdb_readers, left_out, machine })
}
