//! A recorded run: CSV below lines that say what ran where. `cargo xtask bench-report` reads it.

use crate::BoxError;
use per_token_quant_fp8::cust::device::Device;
use per_token_quant_fp8::cust::sys::{self, CUresult};
use per_token_quant_fp8::{DeviceInfo, probe};
use std::env;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is asked of nvidia-smi.
const QUERY: [&str; 4] = ["driver_version", "clocks.sm", "clocks.mem", "power.limit"];

/// A record in the making: on the screen, and in the file that `PTQ_RECORD` names, if it does.
///
/// Lines go into a file beside it, which takes the name when the run is complete: a run that is cut short leaves what it
/// measured in `FILE.partial`.
pub struct Record(Option<(File, PathBuf, PathBuf)>);

impl Record {
    /// Starts a record of that kind, with `(name, value)` lines above the names of its columns.
    ///
    /// # Errors
    /// Where the file, or one of an earlier run that was cut short, exists: nothing is overwritten.
    pub fn create(kind: &str, about: &[(&str, String)], columns: &[&str]) -> Result<Self, BoxError> {
        let file = match env::var_os("PTQ_RECORD").filter(|path| !path.is_empty()) {
            None => None,
            Some(path) => {
                let path = PathBuf::from(path);
                let partial = path.with_added_extension("partial");
                if path.exists() {
                    return Err(format!("{} exists; name another PTQ_RECORD", path.display()).into());
                }
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
                }
                let file = File::create_new(&partial).map_err(|e| format!("{}: {e}", partial.display()))?;
                Some((file, partial, path))
            }
        };
        let mut record = Self(file);
        record.line(&format!("# record: {kind}"))?;
        for (name, value) in about {
            record.line(&format!("# {name}: {}", value.replace('\n', " ")))?;
        }
        record.row(columns)?;
        Ok(record)
    }

    /// Adds a line of values, which contain no comma.
    pub fn row(&mut self, values: &[impl AsRef<str>]) -> Result<(), BoxError> {
        let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
        self.line(&values.join(","))
    }

    fn line(&mut self, line: &str) -> Result<(), BoxError> {
        println!("{line}");
        if let Some((file, ..)) = &mut self.0 {
            writeln!(file, "{line}")?;
        }
        Ok(())
    }

    /// The run is complete.
    pub fn finish(self) -> Result<(), BoxError> {
        if let Some((file, partial, path)) = self.0 {
            file.sync_all()?;
            fs::rename(&partial, &path)?;
            println!("recorded in {}", path.display());
        }
        Ok(())
    }
}

/// What a record says of machine and sources; "unknown" where nobody tells. `busy` runs over and over while nvidia-smi is
/// asked for the clocks, so that they are those of a device at work.
pub fn about(
    device: &DeviceInfo,
    busy: impl Fn() -> Result<(), BoxError>,
) -> Result<Vec<(&'static str, String)>, BoxError> {
    let said = nvidia_smi(device, busy)?;
    let [driver, sm_clock, memory_clock, power] = said;
    Ok(vec![
        ("gpu", format!("{} ({}, {} SMs)", device.name, device.capability, device.sm_count)),
        ("driver", driver),
        ("cuda", probe()?.version.to_string()),
        ("sm clock", sm_clock),
        ("memory clock", memory_clock),
        ("power limit", power),
        ("commit", commit()),
    ])
}

/// The answers to [`QUERY`].
fn nvidia_smi(device: &DeviceInfo, busy: impl Fn() -> Result<(), BoxError>) -> Result<[String; QUERY.len()], BoxError> {
    let unknown = || QUERY.map(|_| "unknown".to_owned());
    let child = Command::new("nvidia-smi")
        .arg(format!("--query-gpu={}", QUERY.join(",")))
        .args(["--format=csv,noheader", "--id", &bus_id(device)?])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        busy()?;
        return Ok(unknown());
    };
    loop {
        busy()?;
        if child.try_wait()?.is_some() {
            break;
        }
    }
    let said = child.wait_with_output()?;
    let words: Vec<_> = String::from_utf8_lossy(&said.stdout).trim().split(", ").map(str::to_owned).collect();
    Ok(words.try_into().ok().filter(|_| said.status.success()).unwrap_or_else(unknown))
}

/// The device's address on the bus: nvidia-smi counts devices in its own order.
fn bus_id(device: &DeviceInfo) -> Result<String, BoxError> {
    let handle = Device::get_device(device.ordinal.try_into()?)?.as_raw();
    let mut id = [0; 32];
    // SAFETY: `id` has room for as many bytes as are said, less one, so that it ends in NUL.
    let code = unsafe { sys::cuDeviceGetPCIBusId(id.as_mut_ptr(), id.len() as i32 - 1, handle) };
    if code != CUresult::CUDA_SUCCESS {
        return Err(format!("cuDeviceGetPCIBusId: {code:?}").into());
    }
    // SAFETY: the array's last byte is NUL.
    Ok(unsafe { CStr::from_ptr(id.as_ptr()) }.to_string_lossy().into_owned())
}

/// `PTQ_COMMIT`, else what git says of the workspace, if cargo says where that is.
fn commit() -> String {
    if let Some(commit) = env::var("PTQ_COMMIT").ok().filter(|commit| !commit.is_empty()) {
        return commit;
    }
    let described = env::var_os("CARGO_MANIFEST_DIR").and_then(|root| {
        let git = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
        Command::new("git").args(git).current_dir(Path::new(&root)).stderr(Stdio::null()).output().ok()
    });
    let described = described.filter(|said| said.status.success());
    described.map_or_else(|| "unknown".to_owned(), |said| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}
