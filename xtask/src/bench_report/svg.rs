//! Plots as SVG text: the same bytes for the same numbers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Points of one colour.
pub struct Series {
    /// What the legend calls it.
    pub name: &'static str,
    /// Bytes of a call, and GB/s.
    pub points: Vec<(f64, f64)>,
}

const COLOURS: [&str; 4] = ["#999999", "#d55e00", "#0072b2", "#009e73"];

/// Where the plots begin, after the numbers on the axes.
const LEFT: f64 = 70.0;
const TOP: f64 = 50.0;

fn begin(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}",
        text(LEFT, 20.0, "start", title)
    )
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n")
}

/// A square per shape, coloured by how many times as fast; green above one, red below.
pub fn heat_map(
    title: &str,
    rows: &BTreeSet<u64>,
    hidden: &BTreeSet<u64>,
    ratio: impl Fn(u64, u64) -> Option<f64>,
) -> String {
    const WIDTH: f64 = 70.0;
    const HEIGHT: f64 = 30.0;
    let size = (LEFT + WIDTH * hidden.len() as f64 + 10.0, TOP + HEIGHT * rows.len() as f64 + 10.0);
    let mut svg = begin(size.0, size.1, title);
    for (i, hidden) in hidden.iter().enumerate() {
        svg += &text(LEFT + WIDTH * (i as f64 + 0.5), TOP - 8.0, "middle", &hidden.to_string());
    }
    for (j, &row) in rows.iter().enumerate() {
        let y = TOP + HEIGHT * j as f64;
        svg += &text(LEFT - 8.0, y + HEIGHT / 2.0 + 5.0, "end", &row.to_string());
        for (i, &hidden) in hidden.iter().enumerate() {
            let Some(ratio) = ratio(row, hidden) else { continue };
            let x = LEFT + WIDTH * i as f64;
            let fill = colour(ratio);
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"{fill}\" stroke=\"#ffffff\"/>"
            );
            svg += &text(x + WIDTH / 2.0, y + HEIGHT / 2.0 + 5.0, "middle", &format!("{ratio:.2}"));
        }
    }
    svg + "</svg>\n"
}

/// White at one, full green at twice as fast and full red at half, by the logarithm.
fn colour(ratio: f64) -> String {
    let strength = ratio.log2().clamp(-1.0, 1.0);
    let less = |most: f64| (255.0 - most * strength.abs()).round() as u8;
    let (own, others) = (less(40.0), less(160.0));
    if strength < 0.0 {
        format!("#{own:02x}{others:02x}{others:02x}")
    } else {
        format!("#{others:02x}{own:02x}{others:02x}")
    }
}

/// GB/s over bytes, both as they are measured, bytes on a scale of powers of two.
pub fn bandwidth(title: &str, series: &[Series]) -> String {
    const WIDTH: f64 = 640.0;
    const HEIGHT: f64 = 320.0;
    let points = || series.iter().flat_map(|series| &series.points);
    let sizes = || points().map(|(bytes, _)| bytes.log2());
    let first = sizes().fold(f64::INFINITY, f64::min).floor();
    let last = sizes().fold(f64::NEG_INFINITY, f64::max).ceil().max(first + 1.0);
    // In steps of 1000 GB/s.
    let most = (points().map(|&(_, rate)| rate).fold(0.0, f64::max) / 1e3).ceil().max(1.0) * 1e3;
    let x = |bytes: f64| LEFT + (bytes.log2() - first) / (last - first) * WIDTH;
    let y = |rate: f64| TOP + HEIGHT * (1.0 - rate / most);
    let mut svg = begin(LEFT + WIDTH + 20.0, TOP + HEIGHT + 40.0, title);
    let mut line = |x1: f64, y1: f64, x2: f64, y2: f64| {
        let _ = writeln!(svg, "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"#dddddd\"/>");
    };
    let rates: Vec<f64> = (0..=(most / 1e3) as u32).map(|step| f64::from(step) * 1e3).collect();
    let powers: Vec<f64> = (first as u32..=last as u32).step_by(2).map(f64::from).collect();
    rates.iter().for_each(|&rate| line(LEFT, y(rate), LEFT + WIDTH, y(rate)));
    powers.iter().for_each(|power| line(x(power.exp2()), TOP, x(power.exp2()), TOP + HEIGHT));
    for &rate in &rates {
        svg += &text(LEFT - 8.0, y(rate) + 5.0, "end", &format!("{rate:.0}"));
    }
    for &power in &powers {
        svg += &text(x(power.exp2()), TOP + HEIGHT + 20.0, "middle", &format!("2^{power:.0}"));
    }
    for (i, (series, colour)) in series.iter().zip(COLOURS).enumerate() {
        for &(bytes, rate) in &series.points {
            let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x(bytes), y(rate));
        }
        let left = LEFT + 80.0 * i as f64;
        let _ = writeln!(svg, "<circle cx=\"{left:.1}\" cy=\"36\" r=\"5\" fill=\"{colour}\"/>");
        svg += &text(left + 10.0, 41.0, "start", series.name);
    }
    svg + "</svg>\n"
}
