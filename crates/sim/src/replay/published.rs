//! The published tables, as they stand in the project's data.

/// The published tables, each with its name and content.
const TABLES: [(&str, &str); 8] = [
    ("mutex_spin_2010", include_str!("../../../../bench/data/published/mutex_spin_2010.csv")),
    ("high_systime_2013", include_str!("../../../../bench/data/published/high_systime_2013.csv")),
    (
        "slowpath_share_2013",
        include_str!("../../../../bench/data/published/slowpath_share_2013.csv"),
    ),
    ("aim7_patch2_2013", include_str!("../../../../bench/data/published/aim7_patch2_2013.csv")),
    ("fserver_2013", include_str!("../../../../bench/data/published/fserver_2013.csv")),
    (
        "fserver_profile_2013",
        include_str!("../../../../bench/data/published/fserver_profile_2013.csv"),
    ),
    ("aim7_patch3_2013", include_str!("../../../../bench/data/published/aim7_patch3_2013.csv")),
    ("vfs_2005", include_str!("../../../../bench/data/published/vfs_2005.csv")),
];

/// Returns the cells of a table, without its head.
///
/// # Panics
/// If there is no such table.
pub(super) fn rows(table: &str) -> Vec<Vec<&'static str>> {
    let (_, text) = TABLES.iter().find(|&&(name, _)| name == table).expect("a published table");
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

/// Returns a cell as a number.
///
/// # Panics
/// If it is none.
pub(super) fn number(cell: &str) -> f64 {
    cell.parse().expect("a number in a published table")
}
