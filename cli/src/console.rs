//! Text for people: results on stdout, complaints on stderr, progress on a terminal.

use crate::error::Error;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::io::{self, Write};

/// Prints a result on stdout. A reader that went away is no failure: the work is done.
///
/// # Errors
/// [`Error::Report`] when stdout cannot take it for another reason.
pub fn print(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Report(error)),
        _ => Ok(()),
    }
}

/// Writes one line to stderr, whatever the names in it hold.
pub fn complain(message: &str) {
    // Nothing is left to tell a failure to.
    let _ = writeln!(io::stderr().lock(), "quant-fp8: {}", printable(message));
}

/// `text` with control characters escaped: names come from files, and must neither break a line nor steer a terminal.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    safe
}

const BAR: &str = "{bar:40} {bytes}/{total_bytes} {wide_msg}";

/// A bar over `bytes` of input on stderr; hidden where that is no terminal, and gone when dropped.
pub fn progress(bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(BAR).expect("a constant template, tested below");
    ProgressBar::new(bytes).with_style(style).with_finish(ProgressFinish::AndClear)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\nb\u{1b}[2Jé"), "a\\nb\\u{1b}[2Jé");
    }

    #[test]
    fn the_bar_template_is_valid() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }
}
