//! Several replays, timed by turns.

use crate::gpu::BoxError;
use crate::gpu::replay::Replay;
use crate::median::median;

/// Median microseconds of one launch of each. All are replayed in every round, so that a clock that drifts does so for all.
pub fn medians(replays: &[Replay<'_>], rounds: usize) -> Result<Vec<f64>, BoxError> {
    let mut times = vec![Vec::with_capacity(rounds); replays.len()];
    for _ in 0..rounds {
        for (replay, times) in replays.iter().zip(&mut times) {
            times.push(replay.time()?.as_secs_f64() * 1e6 / replay.launches() as f64);
        }
    }
    Ok(times.into_iter().map(median).collect())
}
