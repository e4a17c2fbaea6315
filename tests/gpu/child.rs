//! Tests that need a process of their own: the executable runs itself again, and is told which by the environment.

use crate::{Outcome, Test};
use std::process::{Command, ExitCode};

const VARIABLE: &str = "PTQ_TEST_CHILD";

/// A test whose body the child runs.
#[derive(Clone, Copy)]
pub struct Body {
    /// The test's name.
    pub name: &'static str,
    /// An environment variable of the child, and its value.
    pub variable: Option<(&'static str, &'static str)>,
    /// The body; no context is current.
    pub run: fn() -> Outcome,
}

/// The test that runs that body in a child; what the child prints ends up in the test's output.
pub fn test(&Body { name, variable, .. }: &Body) -> Test {
    Test::new(name, move || {
        let output = Command::new(std::env::current_exe()?).env(VARIABLE, name).envs(variable).output()?;
        let words = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
        if output.status.success() {
            print!("{words}");
            Ok(())
        } else {
            Err(format!("{name} in a process of its own: {}\n{words}", output.status).into())
        }
    })
}

/// In a child, the result of its body.
pub fn run(bodies: &[Body]) -> Option<ExitCode> {
    let name = std::env::var(VARIABLE).ok()?;
    let body = bodies.iter().find(|body| body.name == name);
    let outcome = body.map_or_else(|| Err(format!("{VARIABLE}={name} is no test").into()), |body| (body.run)());
    if let Err(error) = &outcome {
        eprintln!("{error}");
    }
    Some(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
