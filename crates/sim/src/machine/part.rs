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

    /// Returns the same machine with so many cores in all: whole nodes and whole caches first.
    ///
    /// # Errors
    /// If there are fewer, or the number cannot be had in equal parts.
    pub fn with_cores(&self, cores: usize) -> Result<Machine, PartError> {
        within("cores", cores, self.cores())?;
        let node = self.layout.caches * self.layout.cores;
        let nodes = cores.div_ceil(node);
        let mut part = self.with_nodes(nodes)?;
        let caches = cores.div_ceil(nodes * self.layout.cores);
        part.layout.caches = caches;
        part.layout.cores = cores.div_ceil(nodes * caches);
        if part.cores() == cores {
            return Ok(part);
        }
        Err(PartError { what: "cores in equal parts", asked: cores, most: self.cores() })
    }
}
