//! What `quantize` reports.

use crate::console::printable;
use crate::sqnr::Sqnr;
use std::fmt;
use std::time::Duration;

/// One quantized tensor.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub tensor: String,
    /// Its shape, as text.
    pub shape: String,
    /// Who computed it; `-` where there was nothing to compute.
    pub backend: &'static str,
    /// Time of the computation alone.
    pub time: Duration,
    /// Bytes the computation reads and writes.
    pub bytes: u64,
    /// Signal to noise.
    pub sqnr: Sqnr,
}

/// All of a run.
#[derive(Debug)]
pub struct Report {
    /// Rows in the order of the names.
    pub rows: Vec<Row>,
    /// Tensors that were copied.
    pub copied: usize,
    /// What was done, in words.
    pub title: String,
}

const COLUMNS: [&str; 6] = ["tensor", "shape", "backend", "time", "GB/s", "SQNR dB"];

/// Columns from here on hold numbers.
const FIRST_NUMBER: usize = 3;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![COLUMNS.map(str::to_owned)];
        let (mut time, mut bytes, mut sqnr) = (Duration::ZERO, 0, Sqnr::default());
        for row in &self.rows {
            time += row.time;
            bytes += row.bytes;
            sqnr.add_tensor(row.sqnr);
            lines.push([
                printable(&row.tensor),
                row.shape.clone(),
                row.backend.to_owned(),
                duration(row.time),
                rate(row.bytes, row.time),
                row.sqnr.to_string(),
            ]);
        }
        let total = format!("{} quantized, {} copied", self.rows.len(), self.copied);
        lines.push([total, String::new(), String::new(), duration(time), rate(bytes, time), sqnr.to_string()]);

        writeln!(f, "{}", printable(&self.title))?;
        f.write_str(&align(&lines, FIRST_NUMBER))
    }
}

/// Lines of cells in columns two spaces apart; the columns from `first_number` on are aligned to the right.
pub fn align<const N: usize>(lines: &[[String; N]], first_number: usize) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths).enumerate().map(|(i, (cell, width))| {
            if i < first_number { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn duration(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    match us {
        ..1e3 => format!("{us:.1} us"),
        ..1e6 => format!("{:.2} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}

fn rate(bytes: u64, time: Duration) -> String {
    if time.is_zero() { "-".to_owned() } else { format!("{:.2}", bytes as f64 / 1e9 / time.as_secs_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_line_up_and_totals_follow() {
        let row = |tensor: &str, us, bytes| Row {
            tensor: tensor.to_owned(),
            shape: "[2, 4]".to_owned(),
            backend: "cpu",
            time: Duration::from_micros(us),
            bytes,
            sqnr: Sqnr::default(),
        };
        let report = Report {
            rows: vec![row("a\n", 1500, 3_000_000), row("b", 500, 1_000_000)],
            copied: 1,
            title: "done".to_owned(),
        };
        let want = "\
done
tensor                 shape   backend      time  GB/s  SQNR dB
a\\n                    [2, 4]  cpu       1.50 ms  2.00        -
b                      [2, 4]  cpu      500.0 us  2.00        -
2 quantized, 1 copied                    2.00 ms  2.00        -
";
        assert_eq!(report.to_string(), want);
    }

    #[test]
    fn nothing_computed_has_no_rate() {
        assert_eq!((duration(Duration::ZERO), rate(0, Duration::ZERO)), ("0.0 us".to_owned(), "-".to_owned()));
        assert_eq!(duration(Duration::from_millis(12_340)), "12.34 s");
    }
}
