//! The published figures that lockstead is measured against, as data.
//!
//! The tables lie in `bench/data/published/`, with their sources and known
//! slips in the README there.

use serde::Deserialize;
use serde::Serialize;

/// A row of the announcement's `test-mutex V 16 10`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Vfs2005 {
    /// The machine, in the announcement's words.
    pub machine: String,
    /// The kind of lock: `semaphore` or `mutex`.
    pub lock: String,
    /// The number of tasks.
    pub tasks: u32,
    /// The number of seconds.
    pub seconds: u32,
    /// Average loops per second.
    pub loops_per_sec: f64,
    /// The processor use; 100 is all processors all the time.
    pub cpu_percent: f64,
}

/// A row of the announcement's sizes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Size2005 {
    /// The thing that was measured.
    pub what: String,
    /// The number of bytes with semaphores.
    pub semaphore: u64,
    /// The number of bytes with mutexes.
    pub mutex: u64,
}

/// Returns the rows of `test-mutex V 16 10` on two machines of 2005.
#[must_use]
pub fn vfs_2005() -> Vec<Vfs2005> {
    rows(include_str!("../data/published/vfs_2005.csv"))
}

/// Returns structure and kernel text sizes of 2005.
#[must_use]
pub fn size_2005() -> Vec<Size2005> {
    rows(include_str!("../data/published/size_2005.csv"))
}

fn rows<T: for<'a> Deserialize<'a>>(text: &'static str) -> Vec<T> {
    csv::Reader::from_reader(text.as_bytes())
        .into_deserialize()
        .collect::<Result<_, _>>()
        .expect("the tables are part of the program and their tests read them")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The announcement states its own ratios; they must follow from the rows.
    #[test]
    fn the_vfs_rows_give_the_announced_ratios() {
        let rows = vfs_2005();
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| (row.tasks, row.seconds) == (16, 10)));
        let gains: Vec<(f64, f64)> = rows
            .chunks(2)
            .map(|pair| {
                let (semaphore, mutex) = (&pair[0], &pair[1]);
                assert_eq!((&*semaphore.lock, &*mutex.lock), ("semaphore", "mutex"));
                assert_eq!(semaphore.machine, mutex.machine);
                let speed = mutex.loops_per_sec / semaphore.loops_per_sec;
                (speed, speed * semaphore.cpu_percent / mutex.cpu_percent)
            })
            .collect();
        let near = |value: f64, stated: f64| (value - stated).abs() < 0.08;
        assert!(near(gains[0].0, 2.4) && near(gains[0].1, 6.9), "{gains:?}");
        assert!(near(gains[1].0, 1.41) && near(gains[1].1, 4.1), "{gains:?}");
    }

    #[test]
    fn the_sizes_give_the_announced_savings() {
        let rows = size_2005();
        let row = |what: &str| rows.iter().find(|row| row.what == what).expect(what);
        assert_eq!(row("struct bytes on 32-bit x86").semaphore, 20);
        assert_eq!(row("struct bytes on 32-bit x86").mutex, 16);
        let text = row("kernel text bytes");
        assert_eq!(text.semaphore - text.mutex, 25_051);
        let data = row("kernel data bytes");
        assert_eq!(data.semaphore - data.mutex, 2_892);
    }
}
