//! The options of a run with nothing left to resolve, and their record in the output's metadata.

use crate::args::by_name;
use crate::error::Error;
use per_token_quant_fp8::cpu::Params;
use per_token_quant_fp8::{Dispatch, MathMode, Options, ZeroRows};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Every key of the record starts with this; an input whose metadata has such a key was quantized before.
pub const PREFIX: &str = "ptq.";

const MATH: &str = "ptq.math";
const DISPATCH: &str = "ptq.dispatch";
const ZERO_ROWS: &str = "ptq.zero_rows";
const SM_COUNT: &str = "ptq.sm_count";
const SELECT: &str = "ptq.select";

/// All that the output depends on besides the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Math mode, zero rows, dispatch and SM count.
    pub params: Params,
    /// Patterns of names, as given.
    pub select: Vec<String>,
}

impl Recipe {
    /// The record, by key.
    pub fn entries(&self) -> BTreeMap<String, String> {
        let Params { math, options, sm_count } = self.params;
        let select = serde_json::Value::from(self.select.as_slice()).to_string();
        [
            (MATH, math.name().to_owned()),
            (DISPATCH, options.dispatch.name().to_owned()),
            (ZERO_ROWS, options.zero_rows.name().to_owned()),
            (SM_COUNT, sm_count.to_string()),
            (SELECT, select),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// Reads the record in the metadata of the file at `path`.
    ///
    /// # Errors
    /// [`Error::NoRecord`], [`Error::BadRecord`].
    pub fn read(metadata: &BTreeMap<String, String>, path: &Path) -> Result<Self, Error> {
        let record = Record { metadata, path };
        Ok(Self {
            params: Params {
                math: record.value(MATH, "fast or precise", |v| by_name(&MathMode::ALL, MathMode::name, v))?,
                options: Options {
                    zero_rows: record
                        .value(ZERO_ROWS, "legacy or guarded", |v| by_name(&ZeroRows::ALL, ZeroRows::name, v))?,
                    dispatch: record
                        .value(DISPATCH, "auto, warp or cta", |v| by_name(&Dispatch::ALL, Dispatch::name, v))?,
                },
                sm_count: record.value(SM_COUNT, "a positive number", |v| v.parse().ok().filter(|&n| n > 0))?,
            },
            select: record.value(SELECT, "a JSON array of strings", |v| serde_json::from_str(v).ok())?,
        })
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Params { math, options, sm_count } = self.params;
        write!(f, "math {math}, zero rows {}, dispatch {}, {sm_count} SMs", options.zero_rows, options.dispatch)
    }
}

struct Record<'a> {
    metadata: &'a BTreeMap<String, String>,
    path: &'a Path,
}

impl Record<'_> {
    fn value<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let Some(value) = self.metadata.get(key) else {
            return Err(Error::NoRecord { path: self.path.to_owned(), key });
        };
        parse(value).ok_or_else(|| Error::BadRecord {
            path: self.path.to_owned(),
            key,
            expected,
            actual: value.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        Recipe {
            params: Params {
                math: MathMode::Fast,
                options: Options { zero_rows: ZeroRows::Guarded, dispatch: Dispatch::Cta },
                sm_count: 7,
            },
            select: vec!["a,b".to_owned(), "\"*\\".to_owned()],
        }
    }

    #[test]
    fn what_is_recorded_is_read_back() {
        let entries = recipe().entries();
        assert!(entries.keys().all(|key| key.starts_with(PREFIX)));
        assert_eq!(entries[SELECT], r#"["a,b","\"*\\"]"#);
        assert_eq!(Recipe::read(&entries, Path::new("out")).unwrap(), recipe());
    }

    #[test]
    fn every_key_is_needed_and_checked() {
        for key in [MATH, DISPATCH, ZERO_ROWS, SM_COUNT, SELECT] {
            let mut entries = recipe().entries();
            entries.insert(key.to_owned(), "-1".to_owned());
            assert!(matches!(
                Recipe::read(&entries, Path::new("out")),
                Err(Error::BadRecord { key: k, actual, .. }) if k == key && actual == "-1"
            ));
            entries.remove(key);
            assert!(
                matches!(Recipe::read(&entries, Path::new("out")), Err(Error::NoRecord { key: k, .. }) if k == key)
            );
        }
    }
}
