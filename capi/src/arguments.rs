//! Structs that C hands over.

use crate::failure::Failure;

/// A struct of the header that begins with `struct_size`.
///
/// # Safety
/// `repr(C)`, the first field is a `usize`, and any bits make up a value.
pub(crate) unsafe trait Struct: Copy {
    /// What C calls it.
    const NAME: &'static str;
}

/// The struct behind a pointer, if it is of the size that this library knows.
///
/// # Safety
/// `pointer` is null, or of a variable of at least `struct_size` bytes, or misaligned.
pub(crate) unsafe fn read<T: Struct>(pointer: *const T) -> Result<T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { check_size(pointer) }?;
    // SAFETY: not null, aligned, and of `T`'s size as `check_size` read; any bits are a `T`.
    Ok(unsafe { pointer.read() })
}

/// Writes a struct whose `struct_size` the caller has set.
///
/// # Safety
/// As [`read`], and the variable may be written.
pub(crate) unsafe fn write<T: Struct>(pointer: *mut T, value: T) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    unsafe { check_size(pointer) }?;
    // SAFETY: not null, aligned, and of `T`'s size as `check_size` read.
    unsafe { pointer.write(value) };
    Ok(())
}

/// # Safety
/// As [`read`].
unsafe fn check_size<T: Struct>(pointer: *const T) -> Result<(), Failure> {
    check_pointer(pointer, T::NAME)?;
    // SAFETY: aligned and not null, so a variable that begins with `struct_size`, as the caller promises.
    let actual = unsafe { pointer.cast::<usize>().read() };
    let expected = size_of::<T>();
    if actual == expected { Ok(()) } else { Err(Failure::StructSize { name: T::NAME, expected, actual }) }
}

/// Checks a pointer to a variable.
pub(crate) fn check_pointer<T>(pointer: *const T, name: &'static str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::Null { name, expected: "a variable", advice: "pass its address" });
    }
    if !pointer.is_aligned() {
        return Err(Failure::MisalignedStruct { name, expected: align_of::<T>(), actual: pointer.addr() });
    }
    Ok(())
}
