//! The flags of the benchmarks that go over a grid: threads x section x think time.

use crate::values::{self, LocksFlag, ValueList};
use clap::{Args, ValueEnum};
use lockstead_bench::contended::{ContendedOptions, Sleep};
use lockstead_bench::explain::Ingredient;
use lockstead_render::machine;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench contended --quick
  lockstead bench contended --threads 16 --section 1us --think 1x --locks lockstead,pthread
  lockstead bench contended --threads 16 --section 1us --think 0 --seconds 20
                                              16 threads hammer one lock: its longest wait
  lockstead bench contended --foreign 2       beside two busy processes
  lockstead bench contended --quota 100       with the time of one processor, if there are more
  lockstead bench contended --sleep-in-section 50us
  lockstead bench contended --scaling --locks lockstead,std,pthread --section 1us --think 1x
  lockstead bench contended --json > grid.json && lockstead plot grid.json -o grid.svg
  lockstead bench map --from grid.json --svg map.svg")]
pub(crate) struct Contended {
    /// Numbers of threads, each 1 to 1024
    #[arg(long, default_value = "2,4,16,64", value_name = "LIST")]
    #[arg(value_parser = values::threads)]
    pub(crate) threads: ValueList<usize>,
    /// Critical sections: 0 or a length with ns, us or ms, at most 100ms
    #[arg(long, default_value = "0,50ns,1us,20us", value_name = "LIST")]
    #[arg(value_parser = values::sections)]
    pub(crate) section: ValueList<Duration>,
    /// Time between two sections of a thread: 0 or a multiple of the section
    #[arg(long, default_value = "0,1x,10x", value_name = "LIST")]
    #[arg(value_parser = values::thinks)]
    pub(crate) think: ValueList<f64>,
    /// Measure from one thread to twice as many as there are processors, pinned and not, and show
    /// a table of the throughput by threads
    #[arg(long, conflicts_with_all = ["threads", "pin"])]
    pub(crate) scaling: bool,
    #[command(flatten)]
    pub(crate) locks: LocksFlag,
    #[command(flatten)]
    pub(crate) conduct: Conduct,
    /// Count the threads' shares over so many seconds, three turns more for each lock in each cell
    /// [default: over the turns that count sections]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) shares_over: Option<Duration>,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench map --quick --svg map.svg
  lockstead bench map --threads 2,16 --section 50ns,1us,20us --think 0,1x
  lockstead bench contended --json > grid.json
  lockstead bench map --from grid.json --svg map.svg --html map.html")]
pub(crate) struct MapFlags {
    /// Measure nothing: take the cells from a report of `lockstead bench contended --json`
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["threads", "section", "locks", "seconds", "quick", "foreign"])]
    #[arg(conflicts_with_all = ["quota", "sleep_in_section", "pin"])]
    pub(crate) from: Option<PathBuf>,
    /// Numbers of threads, each 1 to 1024
    #[arg(long, default_value = "2,4,8,16,32,64", value_name = "LIST")]
    #[arg(value_parser = values::threads)]
    pub(crate) threads: ValueList<usize>,
    /// Critical sections: 0 or a length with ns, us or ms, at most 100ms
    #[arg(long, default_value = "50ns,200ns,1us,5us,20us,100us", value_name = "LIST")]
    #[arg(value_parser = values::sections)]
    pub(crate) section: ValueList<Duration>,
    /// Time between two sections of a thread: 0 or a multiple of the section; three panels for
    /// each [default: 1x, with --from all that are there]
    #[arg(long, value_name = "LIST", value_parser = values::thinks)]
    pub(crate) think: Option<ValueList<f64>>,
    #[command(flatten)]
    pub(crate) locks: LocksFlag,
    #[command(flatten)]
    pub(crate) conduct: Conduct,
    /// Draw the map into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the map and what it comes to as one page into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the map as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench frontier --quick
  lockstead bench frontier --threads 16 --section 1us --think 1x
  lockstead bench frontier --svg frontier.svg --json > frontier.json
  lockstead bench contended --json > grid.json
  lockstead bench frontier --from grid.json --svg frontier.svg")]
pub(crate) struct FrontierFlags {
    /// Measure nothing: take the cells from a report of `lockstead bench contended --json`
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["threads", "section", "think", "locks", "seconds", "quick"])]
    #[arg(conflicts_with_all = ["foreign", "quota", "sleep_in_section", "pin", "rounds"])]
    #[arg(conflicts_with = "shares_over")]
    pub(crate) from: Option<PathBuf>,
    /// Numbers of threads, each 1 to 1024
    #[arg(long, default_value = "4,16,64", value_name = "LIST")]
    #[arg(value_parser = values::threads)]
    pub(crate) threads: ValueList<usize>,
    /// Critical sections: 0 or a length with ns, us or ms, at most 100ms
    #[arg(long, default_value = "0,50ns,1us,20us", value_name = "LIST")]
    #[arg(value_parser = values::sections)]
    pub(crate) section: ValueList<Duration>,
    /// Time between two sections of a thread: 0 or a multiple of the section
    #[arg(long, default_value = "0,1x,10x", value_name = "LIST")]
    #[arg(value_parser = values::thinks)]
    pub(crate) think: ValueList<f64>,
    #[command(flatten)]
    pub(crate) locks: LocksFlag,
    /// Rounds, of whose longest waits the median counts
    #[arg(long, default_value = "7", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    #[command(flatten)]
    pub(crate) conduct: Conduct,
    /// Count the threads' shares over so many seconds, three turns more for each lock in each cell
    /// [default: 1; with --quick over the turns that count sections]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) shares_over: Option<Duration>,
    /// Draw a picture of each cell into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the frontier as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench ablation --quick
  lockstead bench ablation --threads 16 --section 1us --think 0,1x
  lockstead bench ablation --ingredients spinning,queue --foreign 2 --json")]
pub(crate) struct Ablation {
    /// Numbers of threads, each 1 to 1024
    #[arg(long, default_value = "2,4,16", value_name = "LIST")]
    #[arg(value_parser = values::threads)]
    pub(crate) threads: ValueList<usize>,
    /// Critical sections: 0 or a length with ns, us or ms, at most 100ms
    #[arg(long, default_value = "50ns,1us,20us", value_name = "LIST")]
    #[arg(value_parser = values::sections)]
    pub(crate) section: ValueList<Duration>,
    /// Time between two sections of a thread: 0 or a multiple of the section
    #[arg(long, default_value = "0,1x", value_name = "LIST")]
    #[arg(value_parser = values::thinks)]
    pub(crate) think: ValueList<f64>,
    /// Only these, in this order
    #[arg(long, value_name = "LIST", value_parser = values::ingredients)]
    #[arg(help = values::ingredients_help())]
    pub(crate) ingredients: Option<ValueList<Ingredient>>,
    #[command(flatten)]
    pub(crate) conduct: Conduct,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// How each cell is measured, and beside what.
#[derive(Debug, Args)]
pub(crate) struct Conduct {
    /// Seconds of counting for each lock in each cell, and half as much for its waits, in all rounds
    /// together [default: 0.1 for each round]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Make each cell short
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) quick: bool,
    /// Busy processes beside the run, 0 to 256; what they use does not spoil a round
    #[arg(long, default_value = "0", value_name = "N", value_parser = values::hogs)]
    pub(crate) foreign: usize,
    /// Limit the run to so many per cent of one processor, by a control group of its own that is
    /// removed at the end
    #[arg(long, value_name = "PERCENT", value_parser = values::quota)]
    pub(crate) quota: Option<u32>,
    /// Have the holder sleep inside its section, for example 50us; 1ms:100 in every 100th section
    #[arg(long, value_name = "TIME[:N]", value_parser = values::sleep)]
    pub(crate) sleep_in_section: Option<Sleep>,
    /// Pin each thread to a processor, in turn
    #[arg(long, value_name = "WHETHER", default_value = "off")]
    pub(crate) pin: Pin,
}

/// Which threads `--pin` pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pin {
    /// The scheduler places the threads
    Off,
    /// Each thread has its processor
    On,
    /// Measure both, one after the other
    Both,
}

impl Contended {
    /// Returns what the command is to measure.
    pub(crate) fn options(&self) -> ContendedOptions {
        let grid = (&self.threads, &self.section, &self.think);
        let mut options = self.conduct.options(grid, Some(&self.locks));
        options.shares = self.shares_over;
        if self.scaling {
            let last = 2 * machine::processors();
            let doubling = std::iter::successors(Some(1), |threads| Some(2 * threads));
            options.threads = doubling.take_while(|&threads| threads < last).collect();
            options.threads.push(last);
            options.pinned = vec![false, true];
        }
        options
    }
}

/// The time over which a frontier counts the threads' shares: each of 64 threads on two processors has
/// some ten slices of the scheduler's in it.
const SHARES_OVER: Duration = Duration::from_secs(1);

impl FrontierFlags {
    /// Returns what the command is to measure.
    pub(crate) fn options(&self) -> ContendedOptions {
        let grid = (&self.threads, &self.section, &self.think);
        let mut options = self.conduct.options(grid, Some(&self.locks));
        self.conduct.divide_among(self.rounds.into(), &mut options);
        options.shares = self.shares_over.or((!self.conduct.quick).then_some(SHARES_OVER));
        options
    }
}

impl Conduct {
    /// Returns the options for these cells with these locks, conducted so.
    pub(crate) fn options(
        &self,
        (threads, sections, thinks): (&ValueList<usize>, &ValueList<Duration>, &ValueList<f64>),
        locks: Option<&LocksFlag>,
    ) -> ContendedOptions {
        let mut options = ContendedOptions {
            threads: threads.0.clone(),
            sections: sections.0.clone(),
            thinks: thinks.0.clone(),
            foreign: self.foreign,
            quota: self.quota,
            sleep: self.sleep_in_section,
            pinned: match self.pin {
                Pin::Off => vec![false],
                Pin::On => vec![true],
                Pin::Both => vec![false, true],
            },
            ..ContendedOptions::default()
        };
        if let Some(locks) = locks.and_then(|locks| locks.locks.as_ref()) {
            options.locks.clone_from(&locks.0);
        }
        if self.quick {
            options = options.quick();
        }
        self.divide_among(options.rounds, &mut options);
        options
    }

    /// Has the seconds that were asked for, if any were, be those of so many rounds.
    fn divide_among(&self, rounds: usize, options: &mut ContendedOptions) {
        options.rounds = rounds;
        if let Some(seconds) = self.seconds {
            options.slice = seconds / u32::try_from(rounds).unwrap_or(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        flags: FrontierFlags,
    }

    #[test]
    fn the_seconds_of_a_frontier_are_those_of_all_its_rounds() {
        let of = |words: &[&str]| {
            let options = Cli::parse_from([&["frontier"], words].concat()).flags.options();
            let ms = |time: Duration| time.as_millis();
            (options.rounds, ms(options.slice), options.shares.map(ms))
        };
        assert_eq!(of(&[]), (7, 100, Some(1000)));
        assert_eq!(of(&["--seconds=1.4"]), (7, 200, Some(1000)));
        assert_eq!(of(&["--seconds=1.4", "--rounds=2", "--shares-over=3"]), (2, 700, Some(3000)));
        assert_eq!(of(&["--quick"]), (7, 20, None));
    }
}
