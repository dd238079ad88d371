//! Tables of text, and numbers as people read them.

use anstyle::Style;

const HEAD: Style = Style::new().bold();

/// A table of text, its first column to the left, the others to the right.
pub struct TextTable {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a table with these columns. A `\n` in a title breaks it.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        TextTable { head: head.iter().map(|&title| title.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row with one cell a column.
    ///
    /// # Panics
    /// If there are more or fewer cells than columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.head.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// Returns the table as lines of text, each with a newline.
    #[must_use]
    pub fn render(&self) -> String {
        let height = self.head.iter().map(|title| title.lines().count()).max().unwrap_or(0);
        let titles = (0..height).map(|line| {
            self.head
                .iter()
                .map(|title| {
                    let above = height - title.lines().count();
                    line.checked_sub(above).and_then(|n| title.lines().nth(n)).unwrap_or("")
                })
                .collect::<Vec<_>>()
        });
        let titles: Vec<_> = titles.collect();
        let rows = self.rows.iter().map(|row| row.iter().map(String::as_str).collect());
        let lines: Vec<Vec<&str>> = titles.into_iter().chain(rows).collect();
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| lines.iter().map(|line| width(line[column])).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate() {
            let mut out = String::from("  ");
            for (column, cell) in line.iter().enumerate() {
                let pad = " ".repeat(widths[column] - width(cell));
                match column {
                    0 => out += &format!("{cell}{pad}"),
                    _ => out += &format!("  {pad}{cell}"),
                }
            }
            let out = out.trim_end();
            if number < height {
                text += &format!("{HEAD}{out}{HEAD:#}\n");
            } else {
                text += &format!("{out}\n");
            }
        }
        text
    }
}

/// Returns the number of columns on a terminal, for the characters used here: one each.
fn width(text: &str) -> usize {
    text.chars().count()
}

/// Formats a count with its thousands apart: `84,153`.
#[must_use]
pub fn count(number: f64) -> String {
    let digits = (number.round().max(0.0) as u64).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a rate in three digits: `9.64M`, `853k`, `12.0`.
#[must_use]
pub fn rate(number: f64) -> String {
    scaled(number, &["", "k", "M", "G"])
}

/// Formats a count in three digits, whole below a thousand: `7`, `853`, `9.64M`.
#[must_use]
pub fn amount(number: u64) -> String {
    if number < 1000 { number.to_string() } else { rate(number as f64) }
}

/// Formats a time in three digits: `9.31 ns`, `1.20 ms`.
#[must_use]
pub fn time(ns: f64) -> String {
    scaled(ns, &[" ns", " µs", " ms", " s"])
}

/// Formats a ratio in three digits: `2.41x`, `0.97x`, `123x`; a dash where there is none.
#[must_use]
pub fn ratio(of: f64, to: f64) -> String {
    let ratio = of / to;
    if ratio.is_finite() { scaled(ratio, &["x"]) } else { "-".into() }
}

/// Formats a number in three digits, with the largest of `units`, steps of 1000, that leaves one
/// before the point.
fn scaled(number: f64, units: &[&str]) -> String {
    let (mut number, mut unit) = (number, 0);
    // 999.5 would print as four digits.
    while number.abs() >= 999.5 && unit + 1 < units.len() {
        number /= 1000.0;
        unit += 1;
    }
    let digits = match number.abs() {
        n if n == 0.0 || n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0.0, 999.0, 84153.4, 1e6].map(count), ["0", "999", "84,153", "1,000,000"]);
        assert_eq!(rate(9_640_000.0), "9.64M");
        assert_eq!(rate(999_600.0), "1.00M");
        assert_eq!([0, 7, 999, 1000].map(amount), ["0", "7", "999", "1.00k"]);
        assert_eq!(time(9.31), "9.31 ns");
        assert_eq!(time(0.0), "0 ns");
        assert_eq!(time(20_000.0), "20.0 µs");
        assert_eq!(time(5e12), "5000 s");
        assert_eq!(ratio(84153.0, 34713.0), "2.42x");
        assert_eq!(ratio(99.96, 1.0), "100x");
        assert_eq!(ratio(4406.49, 1.0), "4406x");
        assert_eq!(ratio(1.0, 0.0), "-");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut table = TextTable::new(&["lock", "loops\nper s"]);
        table.row(["a".into(), "5".into()]);
        table.row(["longer".into(), "12345678".into()]);
        let text = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(
            text,
            "             loops\n  lock       per s\n  a              5\n  longer  12345678\n"
        );
    }
}
