//! Records of measurements: CSV below lines `# name: value` that say what ran where. The benchmarks write them.

use crate::staging;
use std::fs;
use std::path::Path;

/// Kinds and columns of what the benchmark `compare_reference` records.
#[path = "../../benches/compare_reference/columns.rs"]
pub mod compare;
/// Those of `launch_cost`.
#[path = "../../benches/launch_cost/columns.rs"]
pub mod launch;

/// What a record of `benches/torch_cpu.py` calls itself.
pub const CPU: &str = "cpu";

/// Its columns: one line per element type, shape, math mode, number of threads and subject.
pub const CPU_COLUMNS: &[&str] = &["element", "rows", "hidden", "math", "threads", "subject", "ms"];

/// Folder of the records, relative to the workspace. Their names begin with the date.
pub const FOLDER: &str = "benches/record";

/// One record.
#[derive(Debug)]
pub struct Record {
    /// Name of the file.
    pub name: String,
    about: Vec<(String, String)>,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One line of a record.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r> {
    record: &'r Record,
    /// Line among those of values, from 0.
    index: usize,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line has more or fewer values than there are columns.
    #[error(
        "{name}: line {line} has {actual} values, expected {expected}; the benchmark that wrote it tells the columns"
    )]
    Values {
        /// The file.
        name: String,
        /// Line of the file, from 1.
        line: usize,
        /// Columns.
        expected: usize,
        /// Values.
        actual: usize,
    },
    /// There is no such column or name.
    #[error("{name}: no `{wanted}`; it is no complete record of its kind, measure again")]
    Missing {
        /// The file.
        name: String,
        /// Column, or name of a line above them.
        wanted: String,
    },
    /// A value is not a number above zero.
    #[error("{name}: `{column}` is `{actual}`, expected a number above zero")]
    Number {
        /// The file.
        name: String,
        /// Its column.
        column: String,
        /// The value.
        actual: String,
    },
    /// A value is none of those that a column has.
    #[error("{name}: `{column}` is `{actual}`, which this source tree does not know; measure again")]
    Unexpected {
        /// The file.
        name: String,
        /// Its column.
        column: String,
        /// The value.
        actual: String,
    },
    /// A file or folder could not be read.
    #[error(transparent)]
    Io(#[from] staging::Error),
}

impl Record {
    /// Reads a record's text.
    ///
    /// # Errors
    /// [`Error::Values`], [`Error::Missing`].
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let mut record = Self { name: name.to_owned(), about: vec![], columns: vec![], rows: vec![] };
        for (line, content) in text.lines().enumerate().filter(|(_, content)| !content.is_empty()) {
            if let Some((name, value)) = content.strip_prefix("# ").and_then(|about| about.split_once(": ")) {
                record.about.push((name.to_owned(), value.to_owned()));
                continue;
            }
            let values: Vec<_> = content.split(',').map(str::to_owned).collect();
            if record.columns.is_empty() {
                record.columns = values;
            } else if values.len() == record.columns.len() {
                record.rows.push(values);
            } else {
                let (expected, actual) = (record.columns.len(), values.len());
                return Err(Error::Values { name: name.to_owned(), line: line + 1, expected, actual });
            }
        }
        record.about("record")?;
        Ok(record)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`Record::parse`], and [`Error::Io`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(staging::Error::io("read", path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self::parse(&name, &text)
    }

    /// The newest record of that kind in a folder: the last by name. It has those columns.
    ///
    /// # Errors
    /// As [`Record::read`].
    pub fn newest(folder: &Path, kind: &str, columns: &[&str]) -> Result<Option<Self>, Error> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(staging::Error::io("list", folder))? {
            let path = entry.map_err(staging::Error::io("list", folder))?.path();
            if path.extension().is_some_and(|extension| extension == "csv") {
                paths.push(path);
            }
        }
        paths.sort();
        for path in paths.iter().rev() {
            let record = Self::read(path)?;
            if record.about("record")? == kind {
                record.require(columns)?;
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Checks that the record has those columns.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn require(&self, columns: &[&str]) -> Result<(), Error> {
        let missing = columns.iter().find(|wanted| !self.columns.iter().any(|column| column == *wanted));
        missing.map_or(Ok(()), |wanted| Err(self.missing(wanted)))
    }

    /// What a line above the columns says.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn about(&self, wanted: &str) -> Result<&str, Error> {
        let found = self.about.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| &**value).ok_or_else(|| self.missing(wanted))
    }

    /// All lines above the columns, less the record's kind.
    pub fn abouts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.about.iter().map(|(name, value)| (&**name, &**value)).filter(|(name, _)| *name != "record")
    }

    /// The lines.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.rows.len()).map(|index| Row { record: self, index })
    }

    fn missing(&self, wanted: &str) -> Error {
        Error::Missing { name: self.name.clone(), wanted: wanted.to_owned() }
    }
}

impl<'r> Row<'r> {
    /// The value of a column.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn text(self, column: &str) -> Result<&'r str, Error> {
        let index = self.record.columns.iter().position(|name| name == column);
        index.map(|i| &*self.record.rows[self.index][i]).ok_or_else(|| self.record.missing(column))
    }

    /// The value of a column, if it is not empty.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Number`].
    pub fn measured(self, column: &str) -> Result<Option<f64>, Error> {
        let text = self.text(column)?;
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse() {
            Ok(value) if f64::is_finite(value) && value > 0.0 => Ok(Some(value)),
            _ => Err(self.no_number(column, text)),
        }
    }

    /// The value of a column.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Number`].
    pub fn number(self, column: &str) -> Result<f64, Error> {
        self.measured(column)?.ok_or_else(|| self.no_number(column, ""))
    }

    /// The value of a column that counts something.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Number`].
    pub fn count(self, column: &str) -> Result<u64, Error> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.no_number(column, text))
    }

    /// The error for a value that nobody knows.
    pub fn unexpected(self, column: &str) -> Error {
        let actual = self.text(column).unwrap_or_default().to_owned();
        Error::Unexpected { name: self.record.name.clone(), column: column.to_owned(), actual }
    }

    fn no_number(self, column: &str, actual: &str) -> Error {
        Error::Number { name: self.record.name.clone(), column: column.to_owned(), actual: actual.to_owned() }
    }
}

/// The geometric mean; `None` of nothing.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# record: matrix\n# gpu: H200 (9.0)\na,b\n1.5,\n2,x\n";

    #[test]
    fn values_are_found_by_column() {
        let record = Record::parse("r.csv", TEXT).unwrap();
        assert_eq!(record.about("gpu").unwrap(), "H200 (9.0)");
        let rows: Vec<_> = record.rows().collect();
        assert_eq!(rows[0].number("a").unwrap(), 1.5);
        assert_eq!(rows[0].measured("b").unwrap(), None);
        assert_eq!(rows[1].count("a").unwrap(), 2);
        assert_eq!(rows[1].text("b").unwrap(), "x");
        assert!(matches!(rows[0].number("b"), Err(Error::Number { .. })));
        assert!(matches!(rows[1].measured("b"), Err(Error::Number { .. })));
        assert!(matches!(rows[1].text("c"), Err(Error::Missing { .. })));
    }

    #[test]
    fn records_that_are_none_are_errors() {
        assert!(matches!(Record::parse("r", "a,b\n1,2\n"), Err(Error::Missing { .. })));
        let error = Record::parse("r", &format!("{TEXT}1\n")).unwrap_err();
        assert!(matches!(error, Error::Values { line: 6, expected: 2, actual: 1, .. }), "{error}");
    }

    #[test]
    fn newest_is_the_last_of_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Record::newest(dir.path(), "matrix", &["a"]).unwrap().is_none());
        for (name, kind) in [("2026-01.csv", "matrix"), ("2026-03.csv", "matrix"), ("2026-04.csv", "launch")] {
            fs::write(dir.path().join(name), format!("# record: {kind}\na\n1\n")).unwrap();
        }
        fs::write(dir.path().join("README.md"), "no record").unwrap();
        assert_eq!(Record::newest(dir.path(), "matrix", &["a"]).unwrap().unwrap().name, "2026-03.csv");
        assert!(matches!(Record::newest(dir.path(), "launch", &["a", "b"]), Err(Error::Missing { .. })));
    }

    #[test]
    fn geometric_means() {
        assert_eq!(geometric_mean([]), None);
        assert!((geometric_mean([2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
    }
}
