//! `info`.

use crate::console::printable;
use crate::gpu::{self, Presence};
use crate::table::align;
use per_token_quant_fp8::spec::per_token::DEFAULT_SM_COUNT;
use per_token_quant_fp8::{ARTIFACTS, MathMode};

const COLUMNS: [&str; 6] = ["operation", "element", "target", "math", "PTX bytes", "cubin bytes"];

/// Columns from here on hold numbers.
const FIRST_NUMBER: usize = 4;

/// Driver, devices, math mode and artifacts. What is missing is part of the report and no failure.
pub fn report() -> String {
    let mut lines = Vec::new();
    let mut line = |key: &str, value: String| lines.push([key.to_owned(), printable(&value)]);
    let presence = gpu::presence();
    match &presence {
        Ok(Presence::Present(driver)) => {
            line("driver", format!("CUDA {}", driver.version));
            for device in &driver.devices {
                line("device", format!("{}: {}", device.ordinal, device.name));
                line("compute capability", device.capability.to_string());
                line("multiprocessors", device.sm_count.to_string());
            }
        }
        Ok(Presence::Absent(absence)) => line("device", absence.to_string()),
        Err(error) => line("device", format!("cannot be used: {error}")),
    }
    let (math, reason, sm_count) = match presence.ok().and_then(Presence::device) {
        Some(device) => (device.math(), format!("device {}", device.ordinal), device.sm_count),
        None => (MathMode::Precise, "no device".to_owned(), DEFAULT_SM_COUNT),
    };
    line("math mode", format!("{math} ({reason})"));
    line("SM count", format!("{sm_count} ({reason})"));
    let embedded = ARTIFACTS.as_slice();
    line("artifacts", format!("{} embedded in {} bytes", embedded.len(), ARTIFACTS.embedded_bytes()));

    let mut table = vec![COLUMNS.map(str::to_owned)];
    table.extend(embedded.iter().map(|artifact| {
        [
            artifact.kernel.to_string(),
            artifact.element.to_string(),
            artifact.target.to_string(),
            artifact.math.to_string(),
            artifact.ptx.len().to_string(),
            artifact.cubin.len().to_string(),
        ]
    }));
    format!("{}\n{}", align(&lines, 2), align(&table, FIRST_NUMBER))
}
