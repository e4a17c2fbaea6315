//! Which artifact is loaded, how often, and what happens when it does not load.

use crate::events::{Count, LOADED};
use crate::subject::Subject;
use crate::variation::Variation;
use crate::{Outcome, Test, enter};
use per_token_quant_fp8::cust::memory::DeviceBuffer;
use per_token_quant_fp8::{
    ARTIFACTS, Artifact, Artifacts, Backend, Choice, Element, Error, Image, MathMode, Options, Quantizer, Shape,
};
use ptq_suite::{Budget, Oracle, cases, run};
use std::fs;

pub fn tests(variations: &[Variation]) -> Vec<Test> {
    let backends = variations.iter().map(|v| v.backend).collect::<Vec<_>>();
    let replaced = std::env::var_os("PTQ_ARTIFACTS").is_some_and(|dir| !dir.is_empty());
    let own = |test: Test| test.skip_if(replaced, "PTQ_ARTIFACTS replaces the artifacts that this test makes");
    vec![
        Test::new("loading::auto_takes_what_runs", move || auto_takes_what_runs(&backends)),
        own(Test::new("loading::threads_load_once", threads_load_once)),
        own(Test::new("loading::folder", folder)),
        own(Test::new("loading::auto_falls_back_to_ptx", auto_falls_back_to_ptx)),
        own(Test::new("loading::broken_artifacts", broken_artifacts)),
        own(Test::new("loading::missing_entry", missing_entry)),
    ]
}

/// What a small call comes to.
fn choice(quantizer: &Quantizer) -> Result<Choice, Box<dyn std::error::Error>> {
    let x = DeviceBuffer::<f32>::zeroed(64)?;
    let mut q = DeviceBuffer::<u8>::zeroed(64)?;
    let mut s = DeviceBuffer::<f32>::zeroed(1)?;
    let prepared = quantizer.prepare(&x, &mut q, &mut s, Shape::new(1, 64)?, Options::default())?;
    Ok(prepared.plan().ok_or("there is a row")?)
}

/// A quantizer of other artifacts, in the mode that every target has.
fn precise(artifacts: Artifacts) -> Result<Quantizer, Error> {
    Ok(Quantizer::new(artifacts)?.with_math(MathMode::Precise)?.with_backend(Backend::Auto))
}

/// The embedded table, with each artifact changed.
pub fn changed(change: impl Fn(&Artifact) -> Artifact) -> Artifacts {
    // SAFETY: the entries, where an image still has any, are the kernels'.
    unsafe { Artifacts::new(ARTIFACTS.as_slice().iter().map(change).collect::<Vec<_>>().leak()) }
}

/// The embedded table with images of their own, which nobody has loaded yet.
pub fn copied() -> Artifacts {
    let copy = |image| match image {
        Image::Plain(bytes) => Image::Plain(bytes.to_vec().leak()),
        Image::Lzip { bytes, len } => Image::Lzip { bytes: bytes.to_vec().leak(), len },
    };
    changed(|a| Artifact { ptx: copy(a.ptx), cubin: copy(a.cubin), ..*a })
}

fn auto_takes_what_runs(backends: &[Backend]) -> Outcome {
    let quantizer = precise(ARTIFACTS)?;
    let chosen = choice(&quantizer)?;
    let expected = if backends.contains(&Backend::Aot) { Backend::Aot } else { Backend::Jit };
    if chosen.backend == expected && chosen.math == MathMode::Precise {
        Ok(())
    } else {
        Err(format!("expected {expected}, got {chosen:?}").into())
    }
}

fn threads_load_once() -> Outcome {
    const THREADS: usize = 8;
    let artifacts = copied();
    let loads = Count::of(LOADED);
    let first = || -> Result<Choice, String> {
        enter().map_err(|e| e.to_string())?;
        let quantizer = precise(artifacts).map_err(|e| e.to_string())?.with_backend(Backend::Jit);
        loads.during(|| choice(&quantizer)).map_err(|e| e.to_string())
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(first)).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for result in results {
        result.map_err(|_| "a thread panicked")??;
    }
    match loads.get() {
        1 => Ok(()),
        n => Err(format!("{THREADS} threads loaded the module {n} times").into()),
    }
}

/// The embedded artifacts, read from a folder.
fn folder() -> Outcome {
    let dir = std::env::temp_dir().join(format!("ptq-gpu-artifacts-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    for artifact in ARTIFACTS.as_slice() {
        fs::write(dir.join(format!("{}.ptx", artifact.stem())), &*artifact.ptx_text()?)?;
        fs::write(dir.join(format!("{}.cubin", artifact.stem())), artifact.cubin_bytes()?)?;
    }
    // SAFETY: the files are the embedded artifacts.
    let read = unsafe { Artifacts::from_dir(&dir) };
    fs::remove_dir_all(&dir)?;
    for backend in [Backend::Auto, Backend::Jit] {
        let quantizer = precise(read.clone()?)?.with_backend(backend);
        let subject = Subject::new("folder", quantizer)?;
        run(
            &subject,
            Oracle::Rayon,
            cases::padded(Budget::UNBOUNDED).filter(|case| case.params.math == MathMode::Precise),
        )?;
    }
    Ok(())
}

/// The device, or the target of `PTQ_TARGET` on it, has no cubin at all.
fn nothing_to_load(error: &Error) -> bool {
    matches!(error, Error::UnsupportedDevice { .. } | Error::UnsupportedTarget { .. })
}

/// Where the cubin is for another device, Auto compiles the PTX and Aot says so.
fn auto_falls_back_to_ptx() -> Outcome {
    let alien = |target: &str| {
        // The device runs at most one of these two.
        let other = if target == "sm_120" { "sm_100f" } else { "sm_120" };
        ARTIFACTS
            .as_slice()
            .iter()
            .find(|a| a.target.name == other && a.element == Element::F32)
            .map_or(Image::NONE, |a| a.cubin)
    };
    let artifacts = changed(|a| Artifact { cubin: alien(a.target.name), ..*a });
    let quantizer = precise(artifacts)?;
    let chosen = choice(&quantizer)?;
    if chosen.backend != Backend::Jit {
        return Err(format!("expected PTX, got {chosen:?}").into());
    }
    // Twice: a failure is not cached, and does not block the next.
    let aot = quantizer.with_backend(Backend::Aot);
    for _ in 0..2 {
        match choice(&aot).map_err(|e| e.downcast::<Error>()) {
            Err(Ok(error)) if matches!(*error, Error::Load { .. }) || nothing_to_load(&error) => {}
            other => return Err(format!("expected an error of loading, got {other:?}").into()),
        }
    }
    Ok(())
}

fn broken_artifacts() -> Outcome {
    let half = |bytes: &[u8]| -> &'static [u8] { bytes[..bytes.len() / 2].to_vec().leak() };
    let nonsense = Image::Plain(b".version 7.0\n.target sm_80\n.address_size 64\nnonsense;\n");
    let quantizer = precise(changed(|a| {
        let cubin = a.cubin_bytes().expect("the embedded artifacts decompress");
        Artifact { ptx: nonsense, cubin: Image::Plain(half(&cubin)), ..*a }
    }))?;
    let jit = choice(&quantizer.clone().with_backend(Backend::Jit)).map_err(|e| e.downcast::<Error>());
    match jit {
        Err(Ok(error)) if matches!(&*error, Error::Load { log, .. } if !log.is_empty()) => {}
        other => return Err(format!("expected the compiler's words, got {other:?}").into()),
    }
    malformed(&quantizer.with_backend(Backend::Aot))?;

    // The compressed bytes cut short, of both images.
    let cut = |image: Image| Image::Lzip { bytes: half(image.stored()), len: image.len() };
    let quantizer = precise(changed(|a| Artifact { ptx: cut(a.ptx), cubin: cut(a.cubin), ..*a }))?;
    malformed(&quantizer.clone().with_backend(Backend::Jit))?;
    malformed(&quantizer.with_backend(Backend::Aot))
}

/// A call finds that what it would load is malformed.
fn malformed(quantizer: &Quantizer) -> Outcome {
    match choice(quantizer).map_err(|e| e.downcast::<Error>()) {
        Err(Ok(error)) if matches!(*error, Error::MalformedArtifact { .. }) || nothing_to_load(&error) => Ok(()),
        other => Err(format!("expected a malformed artifact, got {other:?}").into()),
    }
}

/// Code that loads and is no kernel of this library.
fn missing_entry() -> Outcome {
    const OTHER: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry other() { ret; }\n";
    let quantizer =
        precise(changed(|a| Artifact { ptx: Image::Plain(OTHER.as_bytes()), ..*a }))?.with_backend(Backend::Jit);
    // Twice: the module that loaded is kept, and the entry is still not there.
    for _ in 0..2 {
        match choice(&quantizer).map_err(|e| e.downcast::<Error>()) {
            Err(Ok(error)) if matches!(*error, Error::NoEntry { .. }) => {}
            other => return Err(format!("expected a missing entry, got {other:?}").into()),
        }
    }
    Ok(())
}
