//! `quantize IN OUT`.

use crate::args::QuantizeArgs;
use crate::backend::{self, Engine};
use crate::chunks::Chunks;
use crate::console;
use crate::error::Error;
use crate::input::Input;
use crate::interrupt;
use crate::output::{Output, refuse_same_file};
use crate::plan::{Copied, Piece, Plan, Quantized};
use crate::record::Recipe;
use crate::sqnr::Sqnr;
use crate::table::{Report, Row};
use indicatif::ProgressBar;
use std::time::Duration;

/// Bytes copied at a time: what progress is shown by.
const COPY_BYTES: usize = 16 << 20;

/// Quantizes a file and prints the report. Everything is checked before the output is touched.
///
/// # Errors
/// [`Error`]; then there is no new file, and an old one is as it was.
pub fn run(args: &QuantizeArgs) -> Result<(), Error> {
    let backend = args.backend()?;
    let input = Input::open(&args.input)?;
    refuse_same_file(&args.input, &args.output)?;
    let container = input.container()?;
    let device = backend::device(args, backend)?;
    let recipe = backend::recipe(args, device.as_ref());
    let plan = Plan::new(&container, &recipe)?;
    let engine = Engine::open(backend, device.as_ref(), recipe.params.math)?;

    interrupt::watch().map_err(Error::Signals)?;
    let mut output = Output::create(&args.output, plan.bytes)?;
    output.write_at(0, &plan.header)?;
    let progress = console::progress(container.tensors.values().map(|tensor| tensor.data.len() as u64).sum());
    let (mut rows, mut copied) = (Vec::new(), 0);
    for piece in &plan.pieces {
        match piece {
            Piece::Quantized(tensor) => rows.push(quantize(tensor, &engine, &recipe, &mut output, &progress)?),
            Piece::Copied(tensor) => {
                copy(tensor, &mut output, &progress)?;
                copied += 1;
            }
        }
    }
    progress.finish_and_clear();
    let title = format!("{} -> {}: {recipe}", args.input.display(), args.output.display());
    // The report may fail too, so it comes before the output has its name; syncing may take long, so it comes earlier.
    output.sync()?;
    console::print(&Report { rows, copied, title }.to_string())?;
    output.commit()
}

fn quantize(
    tensor: &Quantized<'_>,
    engine: &Engine,
    recipe: &Recipe,
    output: &mut Output,
    progress: &ProgressBar,
) -> Result<Row, Error> {
    progress.set_message(console::printable(&tensor.name));
    let hidden = tensor.shape.hidden();
    let mut row = Row {
        tensor: tensor.name.clone(),
        shape: format!("[{}, {hidden}]", tensor.shape.rows()),
        backend: "-",
        time: Duration::ZERO,
        bytes: 0,
        sqnr: Sqnr::default(),
    };
    let mut chunks = Chunks::new(tensor, recipe.params);
    while let Some(chunk) = chunks.next(engine)? {
        let scales: &[u8] = bytemuck::cast_slice(chunk.s);
        output.write_at(tensor.codes_at + chunk.first_row * hidden, chunk.q)?;
        output.write_at(tensor.scales_at + chunk.first_row * size_of::<f32>() as u64, scales)?;
        row.backend = chunk.ran.backend;
        row.time += chunk.ran.time;
        row.bytes += (chunk.x.len() + chunk.q.len() + scales.len()) as u64;
        // `hidden` elements are in memory, so it is a usize.
        row.sqnr.add_rows(tensor.element, chunk.x, chunk.q, chunk.s, hidden as usize);
        progress.inc(chunk.x.len() as u64);
    }
    Ok(row)
}

fn copy(tensor: &Copied<'_>, output: &mut Output, progress: &ProgressBar) -> Result<(), Error> {
    progress.set_message(console::printable(&tensor.name));
    let mut at = tensor.at;
    for bytes in tensor.data.chunks(COPY_BYTES) {
        output.write_at(at, bytes)?;
        at += bytes.len() as u64;
        progress.inc(bytes.len() as u64);
    }
    Ok(())
}
