//! What a thread loads, holds and stores at once.

use crate::arch::mem;
use crate::element::Element;
use crate::fp8;
use core::marker::PhantomData;
use ptq_spec::per_token::Caching;

/// Consecutive elements of one row in registers.
pub trait Vector: Copy {
    /// Elements in a vector.
    const ELEMENTS: usize;
    /// Loads vector `index` from `first` on.
    ///
    /// # Safety
    /// - That vector is readable, and nothing writes it while the kernel runs.
    /// - `first` is aligned to a vector's widest access ([`mem::load`]).
    unsafe fn load(first: *const u8, index: u64) -> Self;

    /// Raises the running absmax ([`Element::absmax_word`]) by the vector's elements.
    fn absmax(self, absmax: u32) -> u32;

    /// The running absmax as one number.
    fn absmax_value(absmax: u32) -> f32;

    /// Quantizes the vector and stores its codes as vector `index` from `first` on.
    ///
    /// # Safety
    /// - There the codes' bytes are writable, and no other thread touches them.
    /// - `first` is aligned to [`Self::ELEMENTS`] bytes.
    unsafe fn store_codes(self, inverse: f32, first: *mut u8, index: u64);
}

/// A vector of rows that are held: beyond the row's end a lane does as the others do, and touches no memory.
pub trait Held: Vector {
    /// All elements +0.0: what a lane beyond the row's end holds, which never raises the absmax.
    const ZERO: Self;

    /// [`Vector::load`] if `wanted`, else [`Self::ZERO`].
    ///
    /// # Safety
    /// As [`Vector::load`], if `wanted`.
    unsafe fn load_if(wanted: bool, first: *const u8, index: u64, caching: Caching) -> Self;

    /// [`Vector::store_codes`] if `wanted`.
    ///
    /// # Safety
    /// As [`Vector::store_codes`], if `wanted`.
    unsafe fn store_codes_if(self, wanted: bool, inverse: f32, first: *mut u8, index: u64);
}

/// `WORDS` whole words of elements of type `T`: 4, 8 or 16 elements.
#[derive(Clone, Copy)]
pub struct Words<T, const WORDS: usize>([u32; WORDS], PhantomData<T>);

/// One element of type `T`, in the low bits of a word: for addresses and strides that allow nothing wider.
#[derive(Clone, Copy)]
pub struct Single<T>(u32, PhantomData<T>);

/// [`Words`] of that many elements.
macro_rules! words {
    ($element:ty, $elements:tt) => {
        $crate::vector::Words<$element, { $elements / <$element as $crate::element::Element>::PER_WORD }>
    };
}

pub(crate) use words;

impl<T: Element, const WORDS: usize> Words<T, WORDS> {
    #[inline(always)]
    fn widen(self, element: usize) -> f32 {
        T::widen(self.0[element / T::PER_WORD], element % T::PER_WORD)
    }

    #[inline(always)]
    fn codes4(self, group: usize, inverse: f32) -> u32 {
        fp8::codes4(core::array::from_fn(|i| self.widen(4 * group + i)), inverse)
    }
}

impl<T: Element, const WORDS: usize> Vector for Words<T, WORDS> {
    const ELEMENTS: usize = WORDS * T::PER_WORD;

    #[inline(always)]
    unsafe fn load(first: *const u8, index: u64) -> Self {
        // SAFETY: the vector is readable, so that the offset stays within the row.
        let address = unsafe { first.add(index as usize * (WORDS * size_of::<u32>())) };
        // SAFETY: the offset is a multiple of the vector's size, so the alignment carries over; readable by contract.
        Self(unsafe { mem::load(address.cast()) }, PhantomData)
    }

    #[inline(always)]
    fn absmax(self, absmax: u32) -> u32 {
        self.0.into_iter().fold(absmax, T::absmax_word)
    }

    #[inline(always)]
    fn absmax_value(absmax: u32) -> f32 {
        T::absmax_value(absmax)
    }

    #[inline(always)]
    unsafe fn store_codes(self, inverse: f32, first: *mut u8, index: u64) {
        // SAFETY: the codes are writable, so that the offset stays within their row.
        let address = unsafe { first.add(index as usize * Self::ELEMENTS) }.cast();
        let group = |i| self.codes4(i, inverse);
        match Self::ELEMENTS {
            // SAFETY: writable and this thread's own by contract; aligned to the vector's bytes, which is the store.
            4 => unsafe { mem::store(address, [group(0)]) },
            // SAFETY: as the arm of 4.
            8 => unsafe { mem::store(address, [group(0), group(1)]) },
            // SAFETY: as the arm of 4.
            16 => unsafe { mem::store(address, [group(0), group(1), group(2), group(3)]) },
            _ => const { assert!(matches!(WORDS * T::PER_WORD, 4 | 8 | 16), "a vector has 4, 8 or 16 elements") },
        }
    }
}

impl<T: Element, const WORDS: usize> Held for Words<T, WORDS> {
    const ZERO: Self = Self([0; WORDS], PhantomData);

    #[inline(always)]
    unsafe fn load_if(wanted: bool, first: *const u8, index: u64, caching: Caching) -> Self {
        let address = first.wrapping_add(index as usize * (WORDS * size_of::<u32>()));
        // SAFETY: as in `load`.
        Self(unsafe { mem::load_if(wanted, address.cast(), caching) }, PhantomData)
    }

    #[inline(always)]
    unsafe fn store_codes_if(self, wanted: bool, inverse: f32, first: *mut u8, index: u64) {
        let address = first.wrapping_add(index as usize * Self::ELEMENTS).cast();
        let group = |i| self.codes4(i, inverse);
        match Self::ELEMENTS {
            // SAFETY: as in `store_codes`.
            4 => unsafe { mem::store_if(wanted, address, [group(0)]) },
            // SAFETY: as in `store_codes`.
            8 => unsafe { mem::store_if(wanted, address, [group(0), group(1)]) },
            // SAFETY: as in `store_codes`.
            16 => unsafe { mem::store_if(wanted, address, [group(0), group(1), group(2), group(3)]) },
            _ => const { assert!(matches!(WORDS * T::PER_WORD, 4 | 8 | 16), "a vector has 4, 8 or 16 elements") },
        }
    }
}

impl<T: Element> Vector for Single<T> {
    const ELEMENTS: usize = 1;

    #[inline(always)]
    unsafe fn load(first: *const u8, index: u64) -> Self {
        // SAFETY: the element is readable, so that the offset stays within the row.
        let address = unsafe { first.add(index as usize * T::BYTES) };
        let bits = if T::BYTES == 2 {
            // SAFETY: readable by contract, aligned to the element.
            u32::from(unsafe { mem::load_u16(address.cast()) })
        } else {
            // SAFETY: readable by contract, aligned to the element.
            let [bits] = unsafe { mem::load(address.cast()) };
            bits
        };
        Self(bits, PhantomData)
    }

    #[inline(always)]
    fn absmax(self, absmax: u32) -> u32 {
        T::absmax_word(absmax, self.0)
    }

    #[inline(always)]
    fn absmax_value(absmax: u32) -> f32 {
        T::absmax_value(absmax)
    }

    #[inline(always)]
    unsafe fn store_codes(self, inverse: f32, first: *mut u8, index: u64) {
        // SAFETY: the code is writable, so that the offset stays within its row.
        let address = unsafe { first.add(index as usize) };
        // SAFETY: writable and this thread's own by contract; a byte needs no alignment.
        unsafe { mem::store_u8(address, fp8::code(T::widen(self.0, 0), inverse)) }
    }
}
