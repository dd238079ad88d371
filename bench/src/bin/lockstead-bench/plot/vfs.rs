//! The announcement's benchmark as bars: loops per second on the left, loops
//! per processor time on the right; this machine above the two of 2005.

use super::bars::{self, BarsPlace, PictureBar};
use super::canvas::{Align, Canvas, INK, OURS, PAST, Pen, THEIRS, sheet};
use super::frame::{MARGIN, footer, heading};
use super::report::{PlottedVfs, VfsResult};
use crate::compare::ours;
use crate::failure::Failure;
use crate::table;
use crate::vfs::efficiency;
use lockstead_bench::published::{Vfs2005, vfs_2005};

const TOP: i32 = 100;
const NAMES: i32 = 150;
const WIDTH: i32 = 260;
/// Room for the figure behind the longest bar.
const FIGURE: i32 = 130;
const COLUMN: i32 = NAMES + WIDTH + FIGURE;
const BLOCK_GAP: i32 = 58;

/// A set of bars that share a scale and a reference.
struct Block {
    title: String,
    rows: Vec<PlotVfsRow>,
    /// The titles above the two columns.
    columns: [&'static str; 2],
    /// The row that the ratios are to.
    reference: Option<usize>,
}

struct PlotVfsRow {
    name: String,
    figures: [f64; 2],
    past: bool,
}

pub(super) fn draw(vfs: &PlottedVfs) -> Result<String, Failure> {
    let blocks = blocks(vfs);
    let rows: usize = blocks.iter().map(|block| block.rows.len()).sum();
    let rows = i32::try_from(rows).unwrap_or(i32::MAX / 4096);
    let gaps = i32::try_from(blocks.len()).unwrap_or(0) * BLOCK_GAP;
    let height = TOP + rows * bars::ROW + gaps + 50;
    sheet((2 * MARGIN + 2 * COLUMN, height), |canvas| {
        heading(
            canvas,
            "lockstead bench vfs: creat + unlink + close by parallel tasks",
            "More is better. Ratios are to the classic semaphore of the same machine; \
             each machine has its own scale.",
        )?;
        let mut y = TOP;
        for block in &blocks {
            y = draw_block(canvas, block, y)? + BLOCK_GAP;
        }
        footer(canvas, &vfs.machine, height)
    })
}

/// Draws a block; the answer is where it ends.
fn draw_block(canvas: &Canvas<'_>, block: &Block, top: i32) -> Result<i32, Failure> {
    canvas.text(&block.title, (MARGIN, top), Align::Left, Pen::new(14, INK).bold())?;
    for (column, title) in block.columns.iter().enumerate() {
        let left = MARGIN + NAMES + if column == 0 { 0 } else { COLUMN };
        canvas.text(title, (left, top + 22), Align::Left, Pen::new(12, INK))?;
        let figure = |row: &PlotVfsRow| row.figures[column];
        let reference = block.reference.map(|index| figure(&block.rows[index]));
        let bars: Vec<PictureBar> = block
            .rows
            .iter()
            .map(|row| PictureBar {
                name: row.name.clone(),
                value: figure(row),
                figure: match reference {
                    Some(other) => {
                        let ratio = table::ratio(figure(row), other);
                        format!("{} ({ratio})", table::count(figure(row)))
                    }
                    None => table::count(figure(row)),
                },
                color: match (row.past, ours(&row.name)) {
                    (true, _) => PAST,
                    (false, true) => OURS,
                    (false, false) => THEIRS,
                },
                bold: row.name == "lockstead",
            })
            .collect();
        let most = block.rows.iter().map(figure).fold(0.0, f64::max);
        bars::draw(
            canvas,
            &bars,
            &BarsPlace { left, width: WIDTH, top: top + 34, line: None },
            most,
        )?;
    }
    Ok(top + i32::try_from(block.rows.len()).unwrap_or(i32::MAX / 4096) * bars::ROW)
}

fn blocks(vfs: &PlottedVfs) -> Vec<Block> {
    let here = Block {
        title: format!("This report: {} tasks, {} s for each lock", vfs.tasks, vfs.seconds),
        rows: vfs.results.iter().map(measured).collect(),
        columns: ["loops per second", "loops per CPU-second"],
        reference: vfs.results.iter().position(|result| result.lock == "semaphore-classic"),
    };
    let then = vfs_2005();
    let machines = then.chunk_by(|a, b| a.machine == b.machine).map(|rows| Block {
        title: format!("Published in 2005: {}, {} tasks", rows[0].machine, rows[0].tasks),
        rows: rows.iter().map(published).collect(),
        columns: ["loops per second", "loops per second for each 1% of CPU"],
        reference: rows.iter().position(|row| row.lock == "semaphore"),
    });
    std::iter::once(here).chain(machines).collect()
}

fn measured(result: &VfsResult) -> PlotVfsRow {
    let figures = [result.loops_per_s, result.loops_per_cpu_s];
    PlotVfsRow { name: result.lock.clone(), figures, past: false }
}

fn published(row: &Vfs2005) -> PlotVfsRow {
    PlotVfsRow { name: row.lock.clone(), figures: [row.loops_per_sec, efficiency(row)], past: true }
}
