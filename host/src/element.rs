//! Element types that device buffers can hold.

use cust::memory::DeviceCopy;
use ptq_spec::Element;

/// IEEE binary16, for device buffers: `half::f16` in a newtype.
///
/// `cust` implements its `DeviceCopy` for the types of `half` 1 only, and neither trait nor type is ours to join.
/// `bytemuck::cast_slice` views a `&[half::f16]` as `&[F16]` and back.
#[derive(Debug, Clone, Copy, PartialEq, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct F16(pub half::f16);

/// bfloat16, for device buffers: `half::bf16` in a newtype, see [`F16`].
#[derive(Debug, Clone, Copy, PartialEq, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bf16(pub half::bf16);

// SAFETY: 16 plain bits, no pointer and no padding (both types are `Pod`).
unsafe impl DeviceCopy for F16 {}
// SAFETY: as above.
unsafe impl DeviceCopy for Bf16 {}

/// An input element on the device: [`F16`], [`Bf16`] or `f32`. Sealed.
pub trait GpuElement: DeviceCopy + bytemuck::Pod + sealed::Sealed {
    /// Its name in the specification.
    const ELEMENT: Element;
}

impl GpuElement for F16 {
    const ELEMENT: Element = Element::F16;
}

impl GpuElement for Bf16 {
    const ELEMENT: Element = Element::Bf16;
}

impl GpuElement for f32 {
    const ELEMENT: Element = Element::F32;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::F16 {}
    impl Sealed for super::Bf16 {}
    impl Sealed for f32 {}
}
