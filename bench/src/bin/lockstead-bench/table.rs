//! Tables, and the words for the cells of a grid.

use lockstead_bench::contended::Disturbance;
pub(crate) use lockstead_render::table::*;

/// Returns a length of critical section as it is given: `0`, `50ns`, `1us`.
pub(crate) fn section(ns: u64) -> String {
    if ns == 0 {
        return "0".into();
    }
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (unit, name) =
        units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit)).unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}

/// Returns a think time as it is given: `0`, `1x`.
pub(crate) fn think(ratio: f64) -> String {
    if ratio == 0.0 { "0".into() } else { format!("{ratio}x") }
}

/// Returns what a table of one cell of a grid is headed with: how many of what, at which section
/// and think time.
pub(crate) fn cell_title(
    number: usize,
    (one, many): (&str, &str),
    (section_ns, think_ratio): (u64, f64),
) -> String {
    let unit = if number == 1 { one } else { many };
    format!("{number} {unit}, section {}, think {}", section(section_ns), think(think_ratio))
}

/// Returns the rest of such a heading: what disturbed the cell.
pub(crate) fn disturbance(by: &Disturbance) -> String {
    let mut text = String::new();
    if let Some(foreign) = by.foreign_cpu_percent {
        text += &format!("; others used {foreign:.0}% of the processors");
    }
    match by.rounds_discarded {
        0 => {}
        1 => text += "; 1 disturbed round thrown away",
        n => text += &format!("; {n} disturbed rounds thrown away"),
    }
    match by.rounds_disturbed {
        0 => {}
        n => text += &format!("; {n} that count were disturbed, too"),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_think_times_read_as_they_are_given() {
        assert_eq!(section(50), "50ns");
        assert_eq!(section(20_000), "20us");
        assert_eq!(think(0.0), "0");
        assert_eq!(think(10.0), "10x");
    }
}
