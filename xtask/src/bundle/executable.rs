//! The executables that cargo reports.

use serde::Deserialize;
use std::path::PathBuf;

/// What an executable is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Unit or integration tests.
    Test,
    /// Benchmarks.
    Bench,
    /// The command-line program.
    Program,
}

impl Kind {
    /// Folder of the bundle that holds it.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Test => "tests",
            Self::Bench => "benches",
            Self::Program => "bin",
        }
    }
}

/// One executable that goes into the bundle.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    /// What it is for.
    pub kind: Kind,
    /// Its name in the bundle, without cargo's hash.
    pub name: String,
    /// Where cargo put it.
    pub path: PathBuf,
}

/// A line of cargo's output that is no message.
#[derive(Debug, thiserror::Error)]
#[error("cannot read cargo's message `{line}`")]
pub struct Error {
    line: String,
    source: serde_json::Error,
}

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact {
        package_id: String,
        target: Target,
        profile: Profile,
        executable: Option<PathBuf>,
        #[serde(default)]
        filenames: Vec<PathBuf>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Executables in the output of `cargo --message-format=json`, in its order.
///
/// # Errors
/// [`Error`] for a line that is no JSON message.
pub fn parse(output: &str) -> Result<Vec<Executable>, Error> {
    let mut executables = Vec::new();
    for line in output.lines() {
        let Message::CompilerArtifact { package_id, target, profile, executable: Some(path), .. } = message(line)?
        else {
            continue;
        };
        let package = package_name(&package_id);
        let kind = target.kind.first().map_or("", String::as_str);
        let (kind, name) = match kind {
            // With `harness = false` a bench is no test build, with a harness it is; it is a bench all the same.
            "bench" => (Kind::Bench, format!("{package}-{}", target.name)),
            "bin" if profile.test => (Kind::Test, format!("{package}-bin-{}", target.name)),
            "bin" => (Kind::Program, target.name),
            "test" => (Kind::Test, format!("{package}-{}", target.name)),
            _ if profile.test => (Kind::Test, format!("{package}-lib")),
            _ => continue,
        };
        executables.push(Executable { kind, name, path });
    }
    Ok(executables)
}

/// The file of that name among those that the output of `cargo --message-format=json` reports, if it is there.
///
/// # Errors
/// [`Error`] for a line that is no JSON message.
pub fn file(output: &str, name: &str) -> Result<Option<PathBuf>, Error> {
    for line in output.lines() {
        if let Message::CompilerArtifact { filenames, .. } = message(line)?
            && let Some(found) = filenames.into_iter().find(|path| path.file_name().is_some_and(|file| file == name))
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn message(line: &str) -> Result<Message, Error> {
    serde_json::from_str(line).map_err(|source| Error { line: line.to_owned(), source })
}

/// Name in a package ID such as `path+file:///tree/cli#quant-fp8@0.1.0`; `…/cli#0.1.0` where it is the folder's name.
fn package_name(id: &str) -> &str {
    let (url, fragment) = id.split_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name,
        None => url.rsplit('/').next().unwrap_or(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(package: &str, kind: &str, target: &str, test: bool, executable: &str) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": package,
            "target": { "kind": [kind], "name": target, "edition": "2024" },
            "profile": { "opt_level": "3", "test": test },
            "executable": if executable.is_empty() { None } else { Some(executable) },
        })
        .to_string()
    }

    #[test]
    fn executables_get_stable_names() {
        let root = "path+file:///tree#per_token_quant_fp8@0.1.0";
        let cli = "path+file:///tree/cli#quant-fp8@0.1.0";
        let output = [
            artifact(root, "lib", "per_token_quant_fp8", false, ""),
            artifact(root, "lib", "per_token_quant_fp8", true, "/t/deps/per_token_quant_fp8-0a"),
            artifact(root, "test", "golden", true, "/t/deps/golden-1b"),
            artifact(root, "bench", "per_token", true, "/t/deps/per_token-2c"),
            artifact(cli, "bin", "quant-fp8", true, "/t/deps/quant_fp8-3d"),
            artifact(cli, "bin", "quant-fp8", false, "/t/quant-fp8"),
            artifact("path+file:///tree/spec#0.1.0", "lib", "spec", true, "/t/deps/spec-4e"),
            artifact("registry+https://index#half@2.7.0", "custom-build", "build-script-build", false, "/t/build"),
            r#"{"reason":"build-script-executed","package_id":"x"}"#.to_owned(),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ]
        .join("\n");
        let names: Vec<_> = parse(&output).unwrap().into_iter().map(|e| (e.kind, e.name)).collect();
        let expected = [
            (Kind::Test, "per_token_quant_fp8-lib"),
            (Kind::Test, "per_token_quant_fp8-golden"),
            (Kind::Bench, "per_token_quant_fp8-per_token"),
            (Kind::Test, "quant-fp8-bin-quant-fp8"),
            (Kind::Program, "quant-fp8"),
            (Kind::Test, "spec-lib"),
        ];
        assert_eq!(names, expected.map(|(kind, name)| (kind, name.to_owned())));
    }

    #[test]
    fn files_are_found_by_their_whole_name() {
        let message = |files: &[&str]| {
            let target = serde_json::json!({ "kind": ["cdylib", "rlib"], "name": "x" });
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": "path+file:///tree/capi#ptq-capi@0.1.0",
                "target": target,
                "profile": { "test": false },
                "executable": null,
                "filenames": files,
            })
            .to_string()
        };
        let output = [message(&["/t/libold_x.so"]), message(&["/t/libx.rlib", "/t/libx.so"])].join("\n");
        assert_eq!(file(&output, "libx.so").unwrap(), Some(PathBuf::from("/t/libx.so")));
        assert_eq!(file(&output, "x.so").unwrap(), None);
    }

    #[test]
    fn a_line_that_is_no_message_is_an_error() {
        assert!(parse("warning: not JSON").is_err());
        assert!(file("warning: not JSON", "libx.so").is_err());
    }
}
