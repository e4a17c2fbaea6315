//! More elements than 32 bits count: an index or an offset that wraps reads another row or leaves one unwritten.

use crate::{Outcome, Skip, Test, heavy};
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer, mem_get_info};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::spec::per_token::{Entry, Strategy};
use per_token_quant_fp8::{Bf16, Element, Options, Plan, Shape, quantizer};
use ptq_suite::{Tensor, cases};

/// The longest row that a warp entry takes, so that every strategy does.
const HIDDEN: usize = 2048;
/// Different rows, over and over. A prime, so that a row some power of two away is another one.
const BLOCK_ROWS: usize = 4099;
const BLOCK: usize = BLOCK_ROWS * HIDDEN;
/// Two whole blocks and a part beyond 2^32 elements.
const ROWS: usize = (1 << 32) / HIDDEN + 2 * BLOCK_ROWS;
/// Rows of the outputs beyond the input's.
const TAIL: usize = 5;
/// Bytes of the outputs before: as a code and as a scale a NaN, which no input gives.
const POISON: u8 = 0xFF;
/// What must be free on the device, in bytes: the operands, and room for what runs beside this.
const DEVICE_BYTES: usize = ROWS * HIDDEN * 3 + ROWS * 4 + (4 << 30);

/// The entry of each strategy with the widest vectors that takes such a row, and threads for it.
const PLANS: [(&str, Strategy, u32, u32, u32); 3] = [
    ("warp", Strategy::Warp, 16, 4, 256),
    ("cta", Strategy::Cta, 8, 2, 128),
    ("two_pass", Strategy::CtaTwoPass, 8, 1, 256),
];

pub fn tests() -> Vec<Test> {
    let test = |(name, strategy, elements, vectors, threads)| {
        Test::new(format!("large::{name}"), move || {
            let entry = Entry::find(strategy, elements, vectors).ok_or("there is no such entry")?;
            every_row(Plan::new(entry, threads))
        })
        .skip_when(too_little_memory)
    };
    PLANS.map(test).into()
}

fn too_little_memory() -> Skip {
    let (free, _) = mem_get_info()?;
    Ok((free < DEVICE_BYTES).then(|| format!("{free} bytes of device memory are free, {DEVICE_BYTES} are needed")))
}

/// Every code and scale is that of the CPU.
fn every_row(plan: Plan) -> Outcome {
    let _alone = heavy();
    let quantizer = quantizer()?.with_plan(plan)?;
    let options = Options::default();
    let params = Params { options, sm_count: quantizer.sm_count(), math: quantizer.math() };
    let case = cases::ordinary(Element::Bf16, BLOCK_ROWS, HIDDEN, params);
    let Tensor::Bf16(block) = &*case.x else { return Err("another element type".into()) };
    let (mut block_q, mut block_s) = (vec![0; BLOCK], vec![0.0; BLOCK_ROWS]);
    cpu::quantize(block.operand(), &mut block_q, &mut block_s, case.shape, params)?;

    let x = DeviceBuffer::<Bf16>::zeroed(ROWS * HIDDEN)?;
    x.index(..BLOCK).copy_from(bytemuck::cast_slice::<_, Bf16>(block.operand()))?;
    let mut filled = BLOCK;
    while filled < ROWS * HIDDEN {
        // Whole blocks are filled, so what follows goes on with the first row.
        let more = filled.min(ROWS * HIDDEN - filled);
        x.index(filled..filled + more).copy_from(&x.index(..more))?;
        filled += more;
    }
    let mut q = DeviceBuffer::<u8>::zeroed((ROWS + TAIL) * HIDDEN)?;
    let mut s = DeviceBuffer::<f32>::zeroed(ROWS + TAIL)?;
    q.set_8(POISON)?;
    s.set_8(POISON)?;

    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let shape = Shape::padded(ROWS as u64, (ROWS + TAIL) as u64, HIDDEN as u64)?;
    quantizer.prepare(&x, &mut q, &mut s, shape, options)?.run(&stream)?;

    let mut actual_s = vec![0.0_f32; ROWS + TAIL];
    s.copy_to(&mut actual_s)?;
    let mut actual_q = vec![0; BLOCK];
    for first in (0..ROWS).step_by(BLOCK_ROWS) {
        let rows = BLOCK_ROWS.min(ROWS - first);
        let q_part = &mut actual_q[..rows * HIDDEN];
        q.index(first * HIDDEN..(first + rows) * HIDDEN).copy_to(q_part)?;
        compare("q", first, HIDDEN, q_part, &block_q[..rows * HIDDEN])?;
        let s_part = bytemuck::cast_slice(&actual_s[first..first + rows]);
        compare("s", first, size_of::<f32>(), s_part, bytemuck::cast_slice(&block_s[..rows]))?;
    }
    let mut tail_q = [0; TAIL * HIDDEN];
    q.index(ROWS * HIDDEN..).copy_to(&mut tail_q)?;
    compare("q beyond the input's rows", ROWS, HIDDEN, &tail_q, &[POISON; TAIL * HIDDEN])?;
    let tail_s = bytemuck::cast_slice(&actual_s[ROWS..]);
    compare("s beyond the input's rows", ROWS, size_of::<f32>(), tail_s, &[POISON; TAIL * size_of::<f32>()])
}

/// Compares the bytes of rows from number `first` on.
fn compare(what: &str, first: usize, bytes_per_row: usize, actual: &[u8], expected: &[u8]) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    let at = (0..expected.len()).find(|&i| actual.get(i) != expected.get(i)).ok_or("too many bytes")?;
    let (row, byte) = (first + at / bytes_per_row, at % bytes_per_row);
    Err(format!("{what}: row {row}, byte {byte}: expected {:#04x}, actual {:#04x}", expected[at], actual[at]).into())
}
