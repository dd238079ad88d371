//! What all pictures have: a title, the machine at the foot, figures in few characters.

use super::canvas::{Align, Canvas, FAINT, INK, Pen};
use crate::failure::Failure;
use serde_json::Value;

/// The distance of everything from the edges of the sheet.
pub(super) const MARGIN: i32 = 28;

/// Writes title and explanation at the top of every picture.
pub(super) fn heading(canvas: &Canvas<'_>, title: &str, explanation: &str) -> Result<(), Failure> {
    canvas.text(title, (MARGIN, 30), Align::Left, Pen::new(18, INK).bold())?;
    canvas.text(explanation, (MARGIN, 54), Align::Left, Pen::new(13, FAINT))
}

/// Writes the machine at the foot of every picture.
pub(super) fn footer(canvas: &Canvas<'_>, machine: &Value, height: i32) -> Result<(), Failure> {
    canvas.text(&describe(machine), (MARGIN, height - 22), Align::Left, Pen::new(12, FAINT))
}

/// Says in a line what a report says of its machine.
fn describe(machine: &Value) -> String {
    let text = |key: &str| {
        let text = machine.get(key)?.as_str()?;
        (!text.is_empty() && !text.chars().any(char::is_control))
            .then(|| text.chars().take(80).collect::<String>())
    };
    let processors = machine
        .get("processors")
        .and_then(Value::as_u64)
        .map(|n| format!("{n} processor{}", if n == 1 { "" } else { "s" }));
    let virtualised = (machine.get("virtualised") == Some(&Value::Bool(true)))
        .then(|| "virtual machine".to_owned());
    let unoptimised = (machine.get("optimised") == Some(&Value::Bool(false)))
        .then(|| "BUILT WITHOUT OPTIMISATION".to_owned());
    let kernel = text("kernel").map(|release| format!("Linux {release}"));
    let parts =
        [text("cpu"), processors, virtualised, kernel, text("libc"), text("date"), unoptimised];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "machine not recorded".into() } else { parts.join(" · ") }
}

/// Writes a ratio in at most four characters.
pub(crate) fn short(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "–".into(),
        r if r > 0.0 && r < 0.005 => "<.01".into(),
        r if r < 9.995 => format!("{r:.2}"),
        r if r < 99.95 => format!("{r:.1}"),
        r if r < 9999.5 => format!("{r:.0}"),
        _ => ">9999".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::describe;
    use serde_json::json;

    #[test]
    fn a_machine_is_described_as_far_as_it_is_known() {
        let machine = json!({"cpu": "Z80", "processors": 1, "kernel": null, "virtualised": true});
        assert_eq!(describe(&machine), "Z80 · 1 processor · virtual machine");
        assert_eq!(describe(&json!(null)), "machine not recorded");
        assert_eq!(describe(&json!({"cpu": "a\u{0}b"})), "machine not recorded");
    }
}
