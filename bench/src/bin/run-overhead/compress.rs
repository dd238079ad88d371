//! pigz and xz with two threads: programs that rarely lock; and `true`, which
//! shows what the start and the end of a run cost.

use crate::tools::{self, Result, Tools};
use crate::{OverheadRow, QuotientTarget};
use std::io::Write;
use std::process::Stdio;

/// Makes text-like data of a fixed seed: words of a small vocabulary.
fn text(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(2005);
    let words: Vec<Vec<u8>> = (0..4096)
        .map(|_| (0..random.usize(2..12)).map(|_| random.u8(b'a'..=b'z')).collect())
        .collect();
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        let common = 64 << random.usize(0..7);
        text.extend_from_slice(&words[random.usize(..common)]);
        text.push(b' ');
    }
    text
}

pub(crate) fn measure(tools: &Tools, rounds: usize) -> Result<Vec<OverheadRow>> {
    let file = tools.folder.path().join("text");
    std::fs::File::create(&file)?.write_all(&text(48 << 20))?;
    let mut rows = Vec::new();
    let at_most = Some(QuotientTarget::AtMost(1.03));
    // xz is four times as slow.
    let programs: [(&str, &[&str], usize, Option<QuotientTarget>); 3] = [
        ("pigz", &["-1", "-p2", "-c"], 4, at_most),
        ("xz", &["-T2", "-0", "-c"], 1, at_most),
        ("true", &[], 1, None),
    ];
    for (name, arguments, times, target) in programs {
        let Some(program) = Tools::installed(name) else { continue };
        eprintln!("run-overhead: {name}");
        let run = |under_run: bool| -> Result<(f64, f64)> {
            let before = (tools::children_cpu(), std::time::Instant::now());
            let status = tools
                .command(under_run, &program)
                .args(arguments)
                .args(vec![&file; times])
                .stdout(Stdio::null())
                .status()?;
            if !status.success() {
                return Err(format!("{name} ended with {status}").into());
            }
            Ok((tools::children_cpu() - before.0, before.1.elapsed().as_secs_f64()))
        };
        run(false)?;
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (native, observed) = (run(false)?, run(true)?);
            cpu.push((native.0, observed.0));
            wall.push((native.1, observed.1));
        }
        rows.push(OverheadRow::of(&format!("{name} with the command"), "CPU s", &cpu, target));
        rows.push(OverheadRow::of(name, "wall s", &wall, target));
    }
    Ok(rows)
}
