//! Ours beside SGLang's and vLLM's kernels and a copy, by element type and shape.

use super::goals::{Bound, Goals};
use super::svg;
use crate::record::{self, Record, geometric_mean};
use ptq_spec::Element;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[path = "../../../benches/compare_reference/seed.rs"]
pub mod seed;

/// (element type, geometric mean over SGLang's time at least, aim).
const MEANS: [(Element, f64, f64); 3] =
    [(Element::F16, 1.28, 1.35), (Element::Bf16, 1.28, 1.35), (Element::F32, 1.20, 1.30)];

/// No shape is slower than this part of the faster of the two references.
const WORST: f64 = 0.98;

/// Launches of up to this many rows are short enough for the next one's start to matter.
const CHAINED_ROWS: u64 = 512;
/// Over SGLang's time, in geometric mean: at least, aim.
const CHAINED: (f64, f64) = (1.5, 1.75);

/// From this many elements on, a call reaches so much of a copy's bandwidth.
const LARGE_ELEMENTS: u64 = 1 << 28;
const LARGE_BANDWIDTH: f64 = 0.95;

/// Times in microseconds per launch.
struct Cell {
    element: Element,
    rows: u64,
    hidden: u64,
    bytes: f64,
    ours: f64,
    again: f64,
    sglang: Option<f64>,
    vllm: Option<f64>,
    copy: f64,
    empty: f64,
    chained: Option<f64>,
}

/// A record, read.
pub struct Matrix(Vec<Cell>);

impl Cell {
    /// How many times as fast as SGLang.
    fn over_sglang(&self) -> Option<f64> {
        self.sglang.map(|theirs| theirs / self.ours)
    }

    fn over_vllm(&self) -> Option<f64> {
        self.vllm.map(|theirs| theirs / self.ours)
    }

    /// How many times as fast as the faster of the two.
    fn over_both(&self) -> Option<f64> {
        Some(self.over_sglang()?.min(self.over_vllm()?))
    }

    /// Part of a copy's bandwidth.
    fn of_copy(&self) -> f64 {
        self.copy / self.ours
    }

    /// How many times as fast as SGLang where launches overlap.
    fn chained_over_sglang(&self) -> Option<f64> {
        Some(self.sglang? / self.chained?)
    }

    /// Difference of two measurements of the same, relative.
    fn noise(&self) -> f64 {
        (self.again / self.ours - 1.0).abs()
    }

    fn is_seed(&self) -> bool {
        seed::TOKENS.contains(&self.rows) && seed::HIDDEN.contains(&self.hidden)
    }

    fn shape(&self) -> String {
        format!("{} x {}", self.rows, self.hidden)
    }
}

impl Matrix {
    pub fn new(record: &Record) -> Result<Self, record::Error> {
        let cell = |row: record::Row<'_>| {
            let name = row.text("element")?;
            let element = Element::ALL.into_iter().find(|e| e.name() == name);
            Ok(Cell {
                element: element.ok_or_else(|| row.unexpected("element"))?,
                rows: row.count("rows")?,
                hidden: row.count("hidden")?,
                bytes: row.number("bytes")?,
                ours: row.number("ours_us")?,
                again: row.number("ours_again_us")?,
                sglang: row.measured("sglang_us")?,
                vllm: row.measured("vllm_us")?,
                copy: row.number("copy_us")?,
                empty: row.number("empty_us")?,
                chained: row.measured("chained_us")?,
            })
        };
        record.rows().map(cell).collect::<Result<_, _>>().map(Self)
    }

    fn of(&self, element: Element) -> impl Iterator<Item = &Cell> + Clone {
        self.0.iter().filter(move |cell| cell.element == element)
    }

    /// The geometric mean over the seed matrix, if all of it was measured.
    fn mean(&self, element: Element, ratio: impl Fn(&Cell) -> Option<f64>) -> Option<f64> {
        self.mean_to(u64::MAX, element, ratio)
    }

    /// The geometric mean over the part of the seed matrix with at most so many rows, if all of it was measured.
    fn mean_to(&self, most: u64, element: Element, ratio: impl Fn(&Cell) -> Option<f64>) -> Option<f64> {
        let measured: BTreeMap<_, _> = self
            .of(element)
            .filter(|cell| cell.is_seed() && cell.rows <= most)
            .filter_map(|cell| Some(((cell.rows, cell.hidden), ratio(cell)?)))
            .collect();
        let whole = measured.len() == seed::TOKENS.iter().filter(|&&rows| rows <= most).count() * seed::HIDDEN.len();
        geometric_mean(measured.into_values()).filter(|_| whole)
    }

    pub fn goals(&self, goals: &mut Goals) {
        let shapes = seed::TOKENS.len() * seed::HIDDEN.len();
        for (element, floor, aim) in MEANS {
            let mean = self.mean(element, Cell::over_sglang);
            let what = format!("{element}: times as fast as SGLang, geometric mean of the {shapes} seed shapes");
            goals.add(&what, Bound::AtLeast(floor), "", mean, "");
            goals.add(&format!("{element}: aim of the same"), Bound::AtLeast(aim), "", mean, "");
        }
        for element in Element::ALL {
            let lowest = least(self.of(element).filter_map(|cell| Some((cell, cell.over_both()?))));
            let below = self.of(element).filter_map(Cell::over_both).filter(|&ratio| ratio < WORST).count();
            let (all, measured) = (self.of(element).count(), self.of(element).filter_map(Cell::over_both).count());
            let detail = lowest.map_or_else(String::new, |(cell, _)| {
                format!(
                    "{}; below the bound: {below} of {measured} shapes, not measured: {}",
                    cell.shape(),
                    all - measured
                )
            });
            let what = format!("{element}: times as fast as the faster of SGLang and vLLM, slowest shape");
            goals.add(&what, Bound::AtLeast(WORST), "", lowest.map(|(_, ratio)| ratio), &detail);
        }
        for element in Element::ALL {
            let mean = self.mean_to(CHAINED_ROWS, element, Cell::chained_over_sglang);
            let what = format!(
                "{element}: launches that overlap, times as fast as SGLang, geometric mean of the seed shapes up to \
                 {CHAINED_ROWS} rows"
            );
            goals.add(&what, Bound::AtLeast(CHAINED.0), "", mean, "");
            goals.add(&format!("{element}: aim of the same"), Bound::AtLeast(CHAINED.1), "", mean, "");
        }
        for element in Element::ALL {
            let large = self.of(element).filter(|cell| cell.rows * cell.hidden >= LARGE_ELEMENTS);
            let lowest = least(large.map(|cell| (cell, cell.of_copy())));
            let detail = lowest.map_or_else(String::new, |(cell, _)| cell.shape());
            let what =
                format!("{element}: part of a copy's bandwidth, lowest from 2^{} elements", LARGE_ELEMENTS.ilog2());
            goals.add(&what, Bound::AtLeast(LARGE_BANDWIDTH), "", lowest.map(|(_, part)| part), &detail);
        }
    }

    /// Means, then a table of times per element type, and the plots, which are in that folder beside the page.
    pub fn text(&self, plots: &str) -> String {
        let folder = plots.rsplit('/').next().unwrap_or(plots);
        let mut text = String::from(
            "Geometric means over the seed matrix, of the time of others over ours; the noise is the difference between two \
             measurements of ours in the same run.\n\n\
             | element | over SGLang | over vLLM | over the faster | over a copy | chained, over SGLang | noise, median | noise, most |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for element in Element::ALL {
            let mut noise: Vec<_> = self.of(element).map(Cell::noise).collect();
            noise.sort_by(f64::total_cmp);
            let percent = |value: Option<&f64>| value.map_or_else(dash, |value| format!("{:.1} %", value * 100.0));
            let mean = |ratio: fn(&Cell) -> Option<f64>| {
                self.mean(element, ratio).map_or_else(dash, |mean| format!("{mean:.3}"))
            };
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(
                text,
                "| {element} | {} | {} | {} | {} | {} | {} | {} |",
                mean(Cell::over_sglang),
                mean(Cell::over_vllm),
                mean(Cell::over_both),
                mean(|cell| Some(cell.of_copy())),
                mean(Cell::chained_over_sglang),
                percent(noise.get(noise.len() / 2)),
                percent(noise.last()),
            );
        }
        if let Some(empty) = geometric_mean(self.0.iter().map(|cell| cell.empty)) {
            let _ = writeln!(text, "\nA kernel that does nothing takes {empty:.2} µs.");
        }
        for element in Element::ALL.into_iter().filter(|&element| self.of(element).next().is_some()) {
            let _ = writeln!(
                text,
                "\n### {element}\n\nMicroseconds per launch; in brackets, how many times as fast as SGLang / vLLM / a copy.\n\n\
                 ![speed-up by shape]({folder}/{0})\n![bandwidth by size]({folder}/{1})\n",
                speedup_name(element),
                bandwidth_name(element),
            );
            text += &self.table(element);
        }
        text
    }

    fn table(&self, element: Element) -> String {
        let (rows, hidden) = self.axes(element);
        let mut text = format!("| rows \\ hidden |{}\n", joined(hidden.iter().map(u64::to_string)));
        let _ = writeln!(text, "|---|{}", "---|".repeat(hidden.len()));
        for &rows in &rows {
            let cell = |&hidden: &u64| {
                self.of(element).find(|cell| (cell.rows, cell.hidden) == (rows, hidden)).map_or_else(dash, |cell| {
                    let ratio = |ratio: Option<f64>| ratio.map_or_else(dash, |ratio| format!("{ratio:.2}"));
                    let (sglang, vllm) = (ratio(cell.over_sglang()), ratio(cell.over_vllm()));
                    format!("{:.2} ({sglang} / {vllm} / {:.2})", cell.ours, cell.of_copy())
                })
            };
            let _ = writeln!(text, "| {rows} |{}", joined(hidden.iter().map(cell)));
        }
        text
    }

    /// Numbers of rows and row lengths.
    fn axes(&self, element: Element) -> (BTreeSet<u64>, BTreeSet<u64>) {
        self.of(element).map(|cell| (cell.rows, cell.hidden)).unzip()
    }

    /// Plots by file name.
    pub fn plots(&self) -> BTreeMap<String, String> {
        let mut plots = BTreeMap::new();
        for element in Element::ALL.into_iter().filter(|&element| self.of(element).next().is_some()) {
            let (rows, hidden) = self.axes(element);
            let ratio = |rows, hidden| {
                self.of(element).find(|cell| (cell.rows, cell.hidden) == (rows, hidden)).and_then(Cell::over_both)
            };
            let title = format!("{element}: times as fast as the faster of SGLang and vLLM");
            plots.insert(speedup_name(element), svg::heat_map(&title, &rows, &hidden, ratio));
            let series = |name, time: fn(&Cell) -> Option<f64>| {
                let points = self.of(element).filter_map(|cell| Some((cell.bytes, cell.bytes / time(cell)? / 1e3)));
                svg::Series { name, points: points.collect() }
            };
            let series = [
                series("copy", |cell| Some(cell.copy)),
                series("SGLang", |cell| cell.sglang),
                series("vLLM", |cell| cell.vllm),
                series("ours", |cell| Some(cell.ours)),
            ];
            plots.insert(
                bandwidth_name(element),
                svg::bandwidth(&format!("{element}: GB/s by bytes of a call"), &series),
            );
        }
        plots
    }
}

fn speedup_name(element: Element) -> String {
    format!("speed-up-{element}.svg")
}

fn bandwidth_name(element: Element) -> String {
    format!("bandwidth-{element}.svg")
}

fn least<'c>(ratios: impl Iterator<Item = (&'c Cell, f64)>) -> Option<(&'c Cell, f64)> {
    ratios.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn joined(values: impl Iterator<Item = String>) -> String {
    values.map(|value| format!(" {value} |")).collect()
}

fn dash() -> String {
    "–".to_owned()
}
