//! Parts of machines: some nodes, without hyper-threads, so many cores.

use super::Machine;
use std::fmt;

/// A part that a machine does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartError {
    what: &'static str,
    asked: usize,
    most: usize,
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} asked for, and there are 1 to {}", self.asked, self.what, self.most)
    }
}

impl std::error::Error for PartError {}

fn within(what: &'static str, asked: usize, most: usize) -> Result<(), PartError> {
    if (1..=most).contains(&asked) { Ok(()) } else { Err(PartError { what, asked, most }) }
}

impl Machine {
    /// Returns the same machine with its first `nodes` nodes only.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn with_nodes(&self, nodes: usize) -> Result<Machine, PartError> {
        within("nodes", nodes, self.layout.nodes)?;
        let mut part = self.clone();
        part.layout.nodes = nodes;
        part.layout.hops.truncate(nodes);
        for row in &mut part.layout.hops {
            row.truncate(nodes);
        }
        // Of what is left all may be in use.
        part.layout.used = part.layout.used.filter(|&used| used < part.layout.all_cores());
        Ok(part)
    }

    /// Returns the same machine with so many threads a core.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn with_threads(&self, threads: usize) -> Result<Machine, PartError> {
        within("threads of a core", threads, self.layout.threads)?;
        let mut part = self.clone();
        part.layout.threads = threads;
        Ok(part)
    }

    /// Returns the same machine with so many cores in all, on as few nodes as have them: the same
    /// number of cores of each cache if that can be, else whole nodes and whole caches first, and
    /// of the last one what is left.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn with_cores(&self, cores: usize) -> Result<Machine, PartError> {
        within("cores", cores, self.cores())?;
        let node = self.layout.caches * self.layout.cores;
        let nodes = cores.div_ceil(node);
        let mut part = self.with_nodes(nodes)?;
        let caches = cores.div_ceil(nodes * self.layout.cores);
        let each = cores.div_ceil(nodes * caches);
        if nodes * caches * each == cores {
            (part.layout.caches, part.layout.cores) = (caches, each);
        }
        part.layout.used = (part.layout.all_cores() != cores).then_some(cores);
        Ok(part)
    }
}
