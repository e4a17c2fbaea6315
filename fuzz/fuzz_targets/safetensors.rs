//! Any bytes as an input file: refused with one error and no trace, or quantized to what the contract says.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use per_token_quant_fp8::MathMode;
use per_token_quant_fp8::cpu::Params;
use ptq_fuzz::program::Folder;

fuzz_target!(|bytes: &[u8]| {
    // Both outcomes are fine; `quantize` checks what has to hold after each.
    let _ = Folder::new(bytes).quantize(Params::new(MathMode::Fast), &["*".to_owned()]);
});

/// Bytes of the header's length at the start of a file.
const LENGTH_BYTES: usize = size_of::<u64>();

// Three of four mutations keep the header's length true: it is eight bytes that the rest depends on, and mutations that
// know nothing of it seldom get past it.
fuzz_mutator!(|bytes: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed.is_multiple_of(4) || size < LENGTH_BYTES || max_size <= LENGTH_BYTES {
        return fuzzer_mutate(bytes, size, max_size);
    }
    let (length, rest) = bytes.split_at_mut(LENGTH_BYTES);
    let claimed = u64::from_le_bytes(length.try_into().expect("eight bytes"));
    let (size, room) = (size - LENGTH_BYTES, max_size - LENGTH_BYTES);
    let header = claimed.min(size as u64) as usize;
    let data = rest[header..size].to_vec();
    let (header, data) = if seed % 4 == 1 {
        let mut mutated = data;
        let size = mutated.len();
        mutated.resize(room - header, 0);
        let size = fuzzer_mutate(&mut mutated, size, room - header);
        (header, mutated[..size].to_vec())
    } else {
        (fuzzer_mutate(rest, header, room - data.len()), data)
    };
    rest[header..header + data.len()].copy_from_slice(&data);
    length.copy_from_slice(&(header as u64).to_le_bytes());
    LENGTH_BYTES + header + data.len()
});
