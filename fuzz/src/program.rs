//! One round through the program: quantize a file, look at the output, verify it.

use per_token_quant_fp8::cpu::{Input, Params, scalar};
use per_token_quant_fp8::spec::per_token::HIDDEN_MULTIPLE;
use per_token_quant_fp8::{Backend, Element, Shape};
use quant_fp8::args::{QuantizeArgs, VerifyArgs};
use quant_fp8::verify::Outcome;
use quant_fp8::{Error, quantize, verify};
use safetensors::{Dtype, SafeTensors};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with an input.
pub struct Folder {
    folder: TempDir,
    /// The input.
    pub input: PathBuf,
    /// Where the output goes.
    pub output: PathBuf,
}

impl Folder {
    /// A folder in memory where there is one, with the input `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        let folder = folder.expect("a new folder");
        let (input, output) = (folder.path().join("in"), folder.path().join("out"));
        fs::write(&input, bytes).expect("an input file");
        Self { folder, input, output }
    }

    /// Names of the files in it, sorted.
    pub fn names(&self) -> Vec<OsString> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder is there");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    }

    /// Runs `quantize` on the CPU. Whatever happens, nothing but a complete output is left, and what was written verifies
    /// and is what the contract says.
    ///
    /// # Errors
    /// Those of the program.
    pub fn quantize(&self, params: Params, select: &[String]) -> Result<(), Error> {
        let Params { math, options, sm_count } = params;
        let args = QuantizeArgs {
            input: self.input.clone(),
            output: self.output.clone(),
            backend: Some(Backend::Cpu),
            math: Some(math),
            zero_rows: options.zero_rows,
            dispatch: options.dispatch,
            sm_count: Some(sm_count),
            select: select.to_vec(),
        };
        if let Err(error) = quantize::run(&args) {
            assert_eq!(self.names(), ["in"], "{error}");
            assert!(!error.to_string().is_empty());
            return Err(error);
        }
        assert_eq!(self.names(), ["in", "out"]);
        self.check_output(params);
        match self.verify() {
            Ok(Outcome::Same(_)) => Ok(()),
            Ok(Outcome::Different(difference)) => panic!("{difference}"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs `verify`.
    ///
    /// # Errors
    /// Those of the program.
    pub fn verify(&self) -> Result<Outcome, Error> {
        verify::run(&VerifyArgs { input: self.input.clone(), output: self.output.clone() })
    }

    /// Every tensor of the output, read by the `safetensors` crate, is the input's, or what the contract makes of it.
    fn check_output(&self, params: Params) {
        let (input, output) = (fs::read(&self.input).expect("input"), fs::read(&self.output).expect("output"));
        let input = SafeTensors::deserialize(&input).expect("what was quantized is a safetensors file");
        let output = SafeTensors::deserialize(&output).expect("the output is a safetensors file");
        let mut scales = 0;
        for (name, tensor) in input.iter() {
            let actual = output.tensor(name).expect("every tensor is in the output");
            assert_eq!(actual.shape(), tensor.shape(), "{name}");
            let scale = output.tensor(&format!("{name}_scale"));
            match (element(tensor.dtype()), scale) {
                (Some(element), Ok(scale)) if actual.dtype() == Dtype::F8_E4M3 => {
                    let (q, s) = expected(element, tensor.shape(), tensor.data(), params);
                    assert_eq!((scale.dtype(), scale.shape()), (Dtype::F32, &[s.len(), 1][..]), "{name}");
                    assert!(actual.data() == q && scale.data() == bytemuck::cast_slice::<_, u8>(&s), "{name}");
                    scales += 1;
                }
                _ => assert_eq!((actual.dtype(), actual.data()), (tensor.dtype(), tensor.data()), "{name}"),
            }
        }
        assert_eq!(output.len(), input.len() + scales);
    }
}

/// Element type of a tensor that may be quantized.
pub fn element(dtype: Dtype) -> Option<Element> {
    match dtype {
        Dtype::F16 => Some(Element::F16),
        Dtype::BF16 => Some(Element::Bf16),
        Dtype::F32 => Some(Element::F32),
        _ => None,
    }
}

/// Whether a tensor of these dimensions meets the contract's preconditions, if it can be in memory at all.
pub fn fits_contract(shape: &[usize]) -> bool {
    matches!(*shape, [_, hidden] if hidden > 0 && (hidden as u64).is_multiple_of(HIDDEN_MULTIPLE))
}

/// Codes and scales of the scalar implementation.
fn expected(element: Element, shape: &[usize], x: &[u8], params: Params) -> (Vec<u8>, Vec<f32>) {
    fn of<T: Input + bytemuck::Pod>(x: &[u8], shape: Shape, params: Params) -> (Vec<u8>, Vec<f32>) {
        let x: Vec<T> = bytemuck::pod_collect_to_vec(x);
        let mut q = vec![0; x.len()];
        let mut s = vec![0.0; shape.rows() as usize];
        scalar::quantize(&x, &mut q, &mut s, shape, params).expect("the lengths are the shape's");
        (q, s)
    }
    assert!(fits_contract(shape), "{shape:?} was quantized");
    let shape = Shape::new(shape[0] as u64, shape[1] as u64).expect("it was quantized");
    match element {
        Element::F16 => of::<half::f16>(x, shape, params),
        Element::Bf16 => of::<half::bf16>(x, shape, params),
        Element::F32 => of::<f32>(x, shape, params),
    }
}
