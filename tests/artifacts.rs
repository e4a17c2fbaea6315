//! What the embedded artifacts must look like. Runs anywhere: it reads their text.

use per_token_quant_fp8::{ARTIFACTS, Artifact};
use ptq_spec::per_token::{Entry, LANES_PER_WARP, Strategy};
use ptq_spec::{Element, Kernel, MathMode, TARGETS};
use std::borrow::Cow;

/// The text of one entry, from its name to the brace that ends it.
fn body<'a>(ptx: &'a str, entry: &str) -> &'a str {
    let start = ptx.find(&format!(".visible .entry {entry}(")).unwrap_or_else(|| panic!("no entry {entry}"));
    let end = ptx[start..].find("\n}\n").unwrap_or_else(|| panic!("entry {entry} has no end"));
    &ptx[start..start + end]
}

fn count(text: &str, instruction: &str) -> usize {
    text.matches(instruction).count()
}

fn ptx(artifact: &Artifact) -> Cow<'static, str> {
    artifact.ptx_text().unwrap_or_else(|error| panic!("{error}"))
}

/// Calls `check` with every artifact of per-token quantization, plain and extended, entry and entry's text.
fn each_entry(check: impl Fn(&Artifact, &Entry, &str, &str)) {
    for artifact in ARTIFACTS.as_slice() {
        let ptx = ptx(artifact);
        for entry in artifact.kernel.row_entries() {
            let name = format!("{} {}", artifact.stem(), entry.name);
            check(artifact, entry, body(&ptx, entry.name), &name);
        }
    }
}

#[test]
fn every_kernel_target_math_and_element_is_there_once() {
    let mut planned = 0;
    for kernel in Kernel::ALL {
        for target in TARGETS.iter().filter(|target| kernel.is_for(target)) {
            for (&math, element) in target.math.iter().flat_map(|math| Element::ALL.map(|element| (math, element))) {
                let is_it = |a: &&Artifact| (a.kernel, a.target, a.math, a.element) == (kernel, target, math, element);
                let found = ARTIFACTS.as_slice().iter().filter(is_it).count();
                assert_eq!(found, 1, "{kernel} {target} {math} {element}");
                planned += 1;
            }
        }
    }
    assert_eq!(ARTIFACTS.as_slice().len(), planned);
}

/// Every program that links the library carries them.
#[test]
fn they_take_at_most_4_mb() {
    let bytes = ARTIFACTS.embedded_bytes();
    assert!(bytes <= 4_000_000, "{bytes} bytes are embedded");
}

#[test]
fn ptx_header_is_the_target_with_the_lowest_version() {
    for artifact in ARTIFACTS.as_slice() {
        let ptx = ptx(artifact);
        let (major, minor) = artifact.target.ptx_version;
        for (directive, operand) in [
            (".version ", format!("{major}.{minor}")),
            (".target ", artifact.target.name.into()),
            (".address_size ", "64".into()),
        ] {
            let found: Vec<_> = ptx.lines().filter_map(|line| line.strip_prefix(directive)).collect();
            assert_eq!(found, [operand], "{}: {directive}", artifact.stem());
        }
    }
}

#[test]
fn ptx_has_exactly_the_entries() {
    for artifact in ARTIFACTS.as_slice() {
        let ptx = ptx(artifact);
        let lines = ptx.lines();
        let mut names: Vec<_> = lines.filter_map(|line| line.split_once(".entry ")?.1.strip_suffix('(')).collect();
        names.sort_unstable();
        let mut expected = artifact.kernel.entries().to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{}", artifact.stem());
        assert_eq!(count(&ptx, ".func"), 0, "{}: functions that are no entries", artifact.stem());
        let cubin = artifact.cubin_bytes().unwrap_or_else(|error| panic!("{error}"));
        assert!(cubin.starts_with(b"\x7fELF"), "{}: the cubin is no ELF file", artifact.stem());
        for name in artifact.kernel.entries() {
            let found = cubin.windows(name.len()).any(|window| window == name.as_bytes());
            assert!(found, "{}: no {name} in the cubin", artifact.stem());
        }
    }
}

#[test]
fn rows_are_held_in_registers() {
    each_entry(|_, _, text, name| assert_eq!(count(text, ".local"), 0, "{name} uses local memory"));
}

#[test]
fn launch_bounds_are_the_strategys() {
    each_entry(|_, entry, text, name| {
        let bound = format!(".maxntid {}", entry.strategy.max_threads());
        assert!(text.lines().any(|line| line == bound), "{name}: no `{bound}`");
    });
}

/// The next grid may start, and this one waits for those before it: before it touches memory, and before any thread ends.
#[test]
fn grids_are_ordered_before_anything_else() {
    for artifact in ARTIFACTS.as_slice() {
        let ptx = ptx(artifact);
        for entry in artifact.kernel.entries() {
            let (text, name) = (body(&ptx, entry), format!("{} {entry}", artifact.stem()));
            let expected = usize::from(artifact.orders_grids());
            assert_eq!(count(text, "griddepcontrol.launch_dependents;"), expected, "{name}: launch_dependents");
            assert_eq!(count(text, "griddepcontrol.wait;"), expected, "{name}: wait");
            assert_eq!(count(text, "griddepcontrol"), 2 * expected, "{name}: other griddepcontrol");
            // What is before the wait is of registers and parameters alone, and runs in every thread.
            let code = text.split_once("\n{\n").map_or("", |(_, code)| code);
            let Some((before, _)) = code.split_once("griddepcontrol.wait;") else { continue };
            assert_eq!(
                count(before, "griddepcontrol.launch_dependents;"),
                1,
                "{name}: the next grid waits with this one"
            );
            for late in ["ld.global", "st.global", "ld.shared", "st.shared", "@", "bra", "ret", "exit", "bar", "call"] {
                assert_eq!(count(before, late), 0, "{name}: {late} before the wait");
            }
        }
    }
}

/// rustc's JumpThreading copies barriers and shuffles into both arms of a branch; the build turns it off.
#[test]
fn barriers_and_shuffles_are_the_ones_written() {
    each_entry(|artifact, entry, text, name| {
        assert_eq!(count(text, "bar.sync") + count(text, "barrier."), entry.strategy.barriers(), "{name}: barriers");
        // The threads of a CTA raise a number in shared memory.
        let reductions = usize::from(entry.strategy == Strategy::Warp);
        assert_eq!(count(text, "red.shared.max.u32 "), 1 - reductions, "{name}: raises of a shared number");
        let (float, unsigned, shuffles) = match artifact.target.name {
            "sm_100f" => (reductions, 0, 0),
            "sm_90" => (0, reductions, 0),
            _ => (0, 0, reductions * LANES_PER_WARP.ilog2() as usize),
        };
        assert_eq!(count(text, "redux.sync.max.f32"), float, "{name}: redux of f32");
        assert_eq!(count(text, "redux.sync.max.u32"), unsigned, "{name}: redux of u32");
        assert_eq!(count(text, "redux."), float + unsigned, "{name}: other redux");
        assert_eq!(count(text, "shfl.sync.bfly.b32"), shuffles, "{name}: shuffles");
        assert_eq!(count(text, "shfl."), shuffles, "{name}: other shuffles");
    });
}

#[test]
fn arithmetic_is_the_modes() {
    each_entry(|artifact, _, text, name| {
        let fast = usize::from(artifact.math == MathMode::Fast);
        assert_eq!(count(text, "rcp.approx.ftz.f32"), fast, "{name}: approximate reciprocals");
        assert_eq!(count(text, ".approx"), fast, "{name}: approximate instructions");
        assert_eq!(count(text, "rcp.rn.f32"), 1 - fast, "{name}: rounded reciprocals");
        assert_eq!(count(text, "div.rn.f32"), 1 - fast, "{name}: rounded divisions");
        assert_eq!(count(text, "0f3B124925"), fast, "{name}: products with 1/448");
        assert_eq!(count(text, ".ftz") > 0, artifact.math == MathMode::Fast, "{name}: flushing");
        for foreign in ["fma.", "mad.f32", "mad.rn", "f32x2", ".f64", "sqrt", "rsqrt"] {
            assert_eq!(count(text, foreign), 0, "{name}: {foreign}");
        }
    });
}

#[test]
fn fast_mode_flushes_wherever_it_rounds_or_compares() {
    each_entry(|artifact, _, text, name| {
        if artifact.math == MathMode::Fast {
            for operation in ["mul.rn", "mul", "max", "min", "setp.eq", "setp.neu", "setp.lt"] {
                let kept = count(text, &format!("{operation}.f32"));
                assert_eq!(kept, 0, "{name}: {operation}.f32 keeps subnormals");
            }
        }
    });
}

#[test]
fn accesses_are_as_wide_as_the_vectors() {
    let suffix = |bytes: usize| match bytes {
        1 | 2 | 4 => format!("b{}", bytes * 8),
        _ => format!("v{}.b32", bytes / 4),
    };
    each_entry(|artifact, entry, text, name| {
        let elements = entry.elements_per_vector as usize;
        let bytes = elements * artifact.element.bytes();
        let access = bytes.min(artifact.target.vector_bytes);
        // Read-only where nothing writes the input while the grid runs.
        let constant = if artifact.orders_grids() { "" } else { ".nc" };
        let loads_of = |bytes| count(text, &format!("ld.global{constant}.{} ", suffix(bytes)));
        // Of rows that are held there is a second load, which asks caches not to keep them, where it was measured.
        let no_allocate = count(text, &format!("ld.global{constant}.L1::no_allocate.{} ", suffix(access)));
        // The count of rows is loaded once.
        let counts = usize::from(artifact.kernel == Kernel::PerTokenExtended);
        assert!(loads_of(4) >= counts, "{name}: no load of the count of rows");
        let loads = loads_of(access) - if access == 4 { counts } else { 0 };
        let known = loads + no_allocate + counts;
        assert_eq!(count(text, "ld.global"), known, "{name}: loads that are neither vectors nor the count");
        let twice = artifact.target.name == "sm_90" && entry.strategy != Strategy::CtaTwoPass;
        assert_eq!(no_allocate, if twice { loads } else { 0 }, "{name}: loads that caches are not to keep");
        // The scale is stored once; where a vector's codes have as many bytes, both are the same instruction.
        let (codes, scale) = (format!("st.global.{} ", suffix(elements)), format!("st.global.{} ", suffix(4)));
        let stores = count(text, &codes) - usize::from(codes == scale);
        assert_eq!(count(text, "st.global"), stores + 1, "{name}: stores that are neither codes nor the scale");
        assert!(count(text, &scale) >= 1, "{name}: no store of the scale");
        for other in ["ld.b", "ld.v", "ld.u", "ld.f", "st.b", "st.v", "st.u", "st.f", "atom.", "red.", "cp.async"] {
            let found = text.lines().filter(|line| line.trim_start().starts_with(other)).count();
            assert_eq!(found, 0, "{name}: {other}");
        }

        let parts = bytes / access;
        if entry.strategy == Strategy::CtaTwoPass {
            // The compiler unrolls both loops as it likes.
            assert_eq!(loads % parts, 0, "{name}: {loads} loads are no whole vectors");
            assert!(stores > 0 && loads / parts > stores, "{name}: {loads} loads, {stores} stores of two passes");
        } else {
            let vectors = entry.vectors_per_thread as usize;
            assert_eq!((loads, stores), (vectors * parts, vectors), "{name}: loads of {access} bytes, stores");
        }
    });
}

/// Counting the rounds of a loop takes the compiler a division where it unrolls the loop. Rows held in registers have none.
#[test]
fn held_rows_take_no_integer_division() {
    each_entry(|_, entry, text, name| {
        let integer = count(text, "div.") + count(text, "rem.") - count(text, "div.rn.f32");
        assert!(entry.strategy == Strategy::CtaTwoPass || integer == 0, "{name}: {integer} integer divisions");
    });
}

/// Elements are converted in pairs, each once, and nothing is converted twice.
#[test]
fn conversions_are_one_per_pair() {
    each_entry(|artifact, entry, text, name| {
        let found = count(text, "cvt.rn.satfinite.e4m3x2.f32");
        if artifact.target.name == "sm_80" {
            assert_eq!(found, 0, "{name}: sm_80 has no such instruction");
        } else if entry.strategy != Strategy::CtaTwoPass {
            let pairs = (entry.vectors_per_thread * entry.elements_per_vector / 2) as usize;
            assert_eq!(found, pairs, "{name}: conversions");
        }
    });
}

mod per_tensor {
    //! The entries of per-tensor quantization.

    use super::{body, count, ptx};
    use per_token_quant_fp8::{ARTIFACTS, Artifact};
    use ptq_spec::per_tensor::{ENTRIES, Entry, MAX_THREADS, Pass};
    use ptq_spec::{Kernel, MathMode};

    fn each_entry(check: impl Fn(&Artifact, &Entry, &str, &str)) {
        let mut entries = 0;
        for artifact in ARTIFACTS.as_slice().iter().filter(|artifact| artifact.kernel == Kernel::PerTensor) {
            let ptx = ptx(artifact);
            for entry in ENTRIES {
                let name = format!("{} {}", artifact.stem(), entry.name);
                check(artifact, entry, body(&ptx, entry.name), &name);
                entries += 1;
            }
        }
        assert!(entries > 0, "there are artifacts");
    }

    #[test]
    fn launch_bounds_registers_and_barriers() {
        each_entry(|_, entry, text, name| {
            let bound = format!(".maxntid {MAX_THREADS}");
            assert!(text.lines().any(|line| line == bound), "{name}: no `{bound}`");
            assert_eq!(count(text, ".local"), 0, "{name} uses local memory");
            assert_eq!(count(text, "bar.sync") + count(text, "barrier."), entry.pass.barriers(), "{name}: barriers");
        });
    }

    #[test]
    fn arithmetic_is_the_modes() {
        each_entry(|artifact, entry, text, name| {
            let fast = artifact.math == MathMode::Fast;
            let of = |pass, math| usize::from(entry.pass == pass && artifact.math == math);
            let (absmax, quantize) = (Pass::Absmax, Pass::Quantize);
            assert_eq!(count(text, "rcp.approx.ftz.f32"), of(quantize, MathMode::Fast), "{name}: approximate");
            assert_eq!(count(text, ".approx"), of(quantize, MathMode::Fast), "{name}: approximate instructions");
            assert_eq!(count(text, "rcp.rn.f32"), of(quantize, MathMode::Precise), "{name}: rounded reciprocals");
            assert_eq!(count(text, "div.rn.f32"), of(absmax, MathMode::Precise), "{name}: rounded divisions");
            assert_eq!(count(text, "0f3B124925"), of(absmax, MathMode::Fast), "{name}: products with 1/448");
            for foreign in ["fma.", "mad.f32", "mad.rn", "f32x2", ".f64", "sqrt", "rsqrt"] {
                assert_eq!(count(text, foreign), 0, "{name}: {foreign}");
            }
            for operation in ["mul.rn", "mul", "max", "min", "setp.eq", "setp.neu"] {
                let kept = count(text, &format!("{operation}.f32"));
                assert!(!fast || kept == 0, "{name}: {operation}.f32 keeps subnormals");
            }
            assert!(fast || count(text, ".ftz") == 0, "{name}: flushes");
        });
    }

    #[test]
    fn the_scale_is_raised_once_and_read_once() {
        each_entry(|artifact, entry, text, name| {
            let raises = usize::from(entry.pass == Pass::Absmax);
            assert_eq!(count(text, "red.global.max.u32 "), raises, "{name}: raises");
            let atomics =
                text.lines().filter(|line| ["red.", "atom."].iter().any(|op| line.contains(&format!("\t{op}"))));
            assert_eq!(atomics.count(), raises, "{name}: other atomics");
            let scale = if artifact.orders_grids() { "ld.global.b32 " } else { "ld.global.nc.b32 " };
            assert!(count(text, scale) + raises >= 1, "{name}: no load of the scale");
            assert_eq!(count(text, "st.global") == 0, entry.pass == Pass::Absmax, "{name}: stores");
        });
    }
}
