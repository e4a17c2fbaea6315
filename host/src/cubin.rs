//! Whether bytes are a whole cubin.
//!
//! The driver takes a pointer without a length and follows the file's own offsets, so a truncated file would make it read
//! beyond the end. A cubin is an ELF64 file, little endian; the offsets are those of the ELF specification.

const MAGIC: &[u8] = b"\x7FELF\x02\x01";
const FILE_HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// `SHT_NOBITS`: a section without bytes in the file.
const NO_BITS: u64 = 8;

/// Checks that the header tables and everything they point to lie within `image`; `Err` says what does not.
pub(crate) fn check(image: &[u8]) -> Result<(), &'static str> {
    if image.len() < FILE_HEADER || !image.starts_with(MAGIC) {
        return Err("it is not a 64-bit little-endian ELF file");
    }
    let outside = |what| move || what;
    let sections = table(image, 0x28, 0x3A, 0x3C, SECTION_HEADER)
        .ok_or_else(outside("its section table lies outside the file, which may be cut short"))?;
    for section in sections {
        let kind = number(section, 0x04, 4);
        if kind != NO_BITS && !within(image, number(section, 0x18, 8), number(section, 0x20, 8)) {
            return Err("a section lies outside the file, which may be cut short");
        }
    }
    let segments = table(image, 0x20, 0x36, 0x38, PROGRAM_HEADER)
        .ok_or_else(outside("its program header table lies outside the file, which may be cut short"))?;
    for segment in segments {
        if !within(image, number(segment, 0x08, 8), number(segment, 0x20, 8)) {
            return Err("a segment lies outside the file, which may be cut short");
        }
    }
    Ok(())
}

/// The entries of a header table whose offset, entry size and count stand at those places of the file header.
fn table(
    image: &[u8],
    offset: usize,
    entry_size: usize,
    count: usize,
    expected_size: usize,
) -> Option<impl Iterator<Item = &[u8]>> {
    let offset = number(image, offset, 8);
    let size = number(image, entry_size, 2);
    let count = number(image, count, 2);
    if count > 0 && size != expected_size as u64 {
        return None;
    }
    let bytes = count * expected_size as u64;
    if !within(image, offset, bytes) {
        return None;
    }
    let start = if count == 0 { 0 } else { offset as usize };
    Some(image[start..start + bytes as usize].chunks_exact(expected_size))
}

/// Whether `bytes` bytes from `offset` on lie within the image; none do anywhere.
fn within(image: &[u8], offset: u64, bytes: u64) -> bool {
    bytes == 0 || offset.checked_add(bytes).is_some_and(|end| end <= image.len() as u64)
}

/// The little-endian number of `size` bytes at `at`, which lies within `bytes`.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file header, one section with eight bytes, one segment over them.
    fn image() -> Vec<u8> {
        let mut image = vec![0; FILE_HEADER + SECTION_HEADER + PROGRAM_HEADER + 8];
        image[..MAGIC.len()].copy_from_slice(MAGIC);
        let data = (FILE_HEADER + SECTION_HEADER + PROGRAM_HEADER) as u8;
        for (at, value) in [
            (0x28, FILE_HEADER as u8),
            (0x3A, SECTION_HEADER as u8),
            (0x3C, 1),
            (0x20, (FILE_HEADER + SECTION_HEADER) as u8),
            (0x36, PROGRAM_HEADER as u8),
            (0x38, 1),
            (FILE_HEADER + 0x04, 1),
            (FILE_HEADER + 0x18, data),
            (FILE_HEADER + 0x20, 8),
            (FILE_HEADER + SECTION_HEADER + 0x08, data),
            (FILE_HEADER + SECTION_HEADER + 0x20, 8),
        ] {
            image[at] = value;
        }
        image
    }

    #[test]
    fn whole_file_passes_and_every_cut_fails() {
        let image = image();
        assert_eq!(check(&image), Ok(()));
        for len in 0..image.len() {
            assert!(check(&image[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn offsets_beyond_the_file_fail_without_overflow() {
        for at in [0x28, 0x20, FILE_HEADER + 0x18, FILE_HEADER + 0x20, FILE_HEADER + SECTION_HEADER + 0x08] {
            let mut image = image();
            image[at..at + 8].fill(0xFF);
            assert!(check(&image).is_err(), "offset {at:#x}");
        }
    }

    #[test]
    fn other_files_fail() {
        assert!(check(b"").is_err());
        assert!(check(&[b'.'; 200]).is_err());
    }
}
