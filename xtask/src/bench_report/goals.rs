//! What was to be reached, and whether it was.

/// A number that was to be reached.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// The goals met so far, as lines of a table.
#[derive(Debug, Default)]
pub struct Goals(Vec<String>);

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {least}{unit}"),
            Self::AtMost(most) => format!("≤ {most}{unit}"),
        }
    }
}

impl Goals {
    /// Adds one goal; `None`: nothing was measured. `detail` says where, say the worst shape.
    pub fn add(&mut self, what: &str, bound: Bound, unit: &str, value: Option<f64>, detail: &str) {
        let (value, verdict) = match value {
            None => ("–".to_owned(), "not measured"),
            Some(value) => (format!("{value:.3}{unit}"), if bound.holds(value) { "holds" } else { "**missed**" }),
        };
        let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        self.0.push(format!("| {what} | {} | {value}{detail} | {verdict} |\n", bound.text(unit)));
    }

    /// The table.
    pub fn text(&self) -> String {
        if self.0.is_empty() {
            return "No record yet.\n".to_owned();
        }
        format!("| goal | bound | measured | |\n|---|---|---|---|\n{}", self.0.concat())
    }
}
