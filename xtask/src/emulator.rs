//! The emulator suite of the kernels, as cargo runs it.

use std::path::Path;
use std::process::Command;

/// cargo, to build the suite of the workspace at `root` or, with arguments for the tests behind `--`, to run it.
pub fn suite(root: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--locked", "-p", "ptq-kernels", "--test", "emulator"]).current_dir(root);
    command
}
