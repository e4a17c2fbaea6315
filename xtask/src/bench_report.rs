//! `cargo xtask bench-report`: what the newest records in benches/record say, in docs/performance.md and as plots.

mod goals;
mod matrix;
mod other;
mod svg;
#[cfg(test)]
mod tests;

use crate::record::{self, Record};
use crate::staging;
use crate::workspace;
use clap::Args;
use matrix::Matrix;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of the task.
#[derive(Args)]
pub struct Options {
    /// Write nothing; fail where a file is not what the records say.
    #[arg(long)]
    check: bool,
}

/// The page, relative to the workspace.
const PAGE: &str = "docs/performance.md";

/// Folder of the plots, relative to the workspace.
const PLOTS: &str = "docs/performance";

/// Lines of the page between which everything is generated.
const BEGIN: &str = "<!-- from here to the end mark: written by `cargo xtask bench-report` -->";
const END: &str = "<!-- end mark -->";

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A record cannot be used.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// The page lacks the lines between which the report goes.
    #[error("`{}` does not have the line `{mark}` exactly once; put it back", path.display())]
    Mark {
        /// The page.
        path: PathBuf,
        /// The line.
        mark: &'static str,
    },
    /// A file is not what the records say.
    #[error("not what {} says: {files}; run `cargo xtask bench-report` and commit what it writes", record::FOLDER)]
    Stale {
        /// The files.
        files: String,
    },
    /// A file or folder could not be read or written.
    #[error(transparent)]
    Io(#[from] staging::Error),
}

/// Text for the page, and plots by file name.
#[derive(Default)]
struct Report {
    text: String,
    plots: BTreeMap<String, String>,
}

/// Writes page and plots, or checks them.
///
/// # Errors
/// [`Error`].
pub fn run(options: &Options) -> Result<(), Error> {
    let root = workspace::root();
    let stale = update(&root, options.check)?;
    if stale.is_empty() {
        println!("{PAGE}: up to date");
    } else if options.check {
        return Err(Error::Stale { files: stale.join(", ") });
    } else {
        println!("wrote {}", stale.join(", "));
    }
    Ok(())
}

/// The files below `root` that differ from the records, which are written unless this is a check.
fn update(root: &Path, check: bool) -> Result<Vec<String>, Error> {
    let report = report(&root.join(record::FOLDER))?;
    let page = root.join(PAGE);
    let old = fs::read_to_string(&page).map_err(staging::Error::io("read", &page))?;
    let mut files = vec![(PathBuf::from(PAGE), Some(splice(&page, &old, &report.text)?))];
    let plots = root.join(PLOTS);
    if plots.is_dir() {
        // Plots of records that are gone.
        for entry in fs::read_dir(&plots).map_err(staging::Error::io("list", &plots))? {
            let name = entry.map_err(staging::Error::io("list", &plots))?.file_name();
            if !report.plots.contains_key(&*name.to_string_lossy()) {
                files.push((Path::new(PLOTS).join(name), None));
            }
        }
    }
    files.extend(report.plots.into_iter().map(|(name, plot)| (Path::new(PLOTS).join(name), Some(plot))));
    let mut stale = Vec::new();
    for (file, content) in files {
        let path = root.join(&file);
        if fs::read_to_string(&path).ok() == content {
            continue;
        }
        stale.push(file.display().to_string());
        match content {
            _ if check => {}
            None => staging::remove(&path)?,
            Some(content) => write(&path, &content)?,
        }
    }
    Ok(stale)
}

/// Writes beside, then renames.
fn write(path: &Path, content: &str) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(staging::Error::io("create", folder))?;
    }
    let partial = path.with_added_extension("partial");
    fs::write(&partial, content).map_err(staging::Error::io("write", &partial))?;
    Ok(fs::rename(&partial, path).map_err(staging::Error::io("write", path))?)
}

/// The page with another text between its marks.
fn splice(path: &Path, page: &str, text: &str) -> Result<String, Error> {
    let cut = |page: &str, mark: &'static str| match page.split(mark).collect::<Vec<_>>()[..] {
        [before, after] => Ok((before.to_owned(), after.to_owned())),
        _ => Err(Error::Mark { path: path.to_owned(), mark }),
    };
    let (before, rest) = cut(page, BEGIN)?;
    let (_, after) = cut(&rest, END)?;
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim()))
}

fn report(folder: &Path) -> Result<Report, Error> {
    let newest = |kind, columns| Record::newest(folder, kind, columns);
    let matrix = newest(record::compare::MATRIX, record::compare::MATRIX_COLUMNS)?;
    let launch = newest(record::launch::LAUNCH, record::launch::LAUNCH_COLUMNS)?;
    let cpu = newest(record::CPU, record::CPU_COLUMNS)?;
    let parsed = matrix.as_ref().map(Matrix::new).transpose()?;
    let mut report = Report::default();
    let mut goals = goals::Goals::default();
    let mut sections = String::new();
    match (&matrix, &parsed) {
        (Some(record), Some(matrix)) => {
            matrix.goals(&mut goals);
            sections += &format!("## On the GPU\n\n{}\n\n{}", source(record), matrix.text(PLOTS));
            report.plots = matrix.plots();
        }
        _ => sections += &absent("On the GPU"),
    }
    match &launch {
        Some(record) => {
            sections += &format!("\n## On the host\n\n{}\n\n{}", source(record), other::launch(record, &mut goals)?);
        }
        None => sections += &absent("On the host"),
    }
    match &cpu {
        Some(record) => {
            sections += &format!("\n## On the CPU\n\n{}\n\n{}", source(record), other::cpu(record, &mut goals)?);
        }
        None => sections += &absent("On the CPU"),
    }
    report.text = format!("## Goals\n\n{}\n{sections}", goals.text());
    Ok(report)
}

fn absent(title: &str) -> String {
    format!("\n## {title}\n\nNo record yet.\n")
}

/// Which record, and what it says of itself.
fn source(record: &Record) -> String {
    let about: Vec<_> = record.abouts().map(|(name, value)| format!("{name} {value}")).collect();
    format!("Record [`{0}`](../{1}/{0}): {2}.", record.name, record::FOLDER, about.join(" · "))
}
