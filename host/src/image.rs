//! An image for the driver, as a program carries it.

use lzma_rust2::{Action, LzipStream, Status};
use std::borrow::Cow;

/// PTX text or a cubin, as it is or compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// As it is.
    Plain(&'static [u8]),
    /// Compressed: one member of the lzip format, which holds a checksum of the image.
    Lzip {
        /// The member.
        bytes: &'static [u8],
        /// Bytes of the image.
        len: usize,
    },
}

/// Bytes that neither an image nor the memory to decompress it exceeds, so that a damaged one asks for no more.
const MAX_BYTES: usize = 64 << 20;

/// What tells images apart whose contents are static: address and size of the bytes carried, and of what if compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    stored: *const [u8],
    decompressed: Option<usize>,
}

// SAFETY: the pointer is only compared.
unsafe impl Send for Identity {}

impl Image {
    /// No image.
    pub const NONE: Self = Self::Plain(&[]);

    /// Bytes of the image; 0: there is none.
    pub const fn len(self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Lzip { len, .. } => len,
        }
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes that the program carries.
    pub const fn stored(self) -> &'static [u8] {
        match self {
            Self::Plain(bytes) | Self::Lzip { bytes, .. } => bytes,
        }
    }

    /// The image. Decompressing takes some milliseconds for each 500 kB; nothing is kept.
    ///
    /// # Errors
    /// What is wrong with the compressed bytes.
    pub fn bytes(self) -> Result<Cow<'static, [u8]>, &'static str> {
        match self {
            Self::Plain(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::Lzip { bytes, len } => decompress(bytes, len).map(Cow::Owned),
        }
    }

    pub(crate) fn identity(self) -> Identity {
        let decompressed = if let Self::Lzip { len, .. } = self { Some(len) } else { None };
        Identity { stored: self.stored(), decompressed }
    }
}

fn decompress(member: &[u8], len: usize) -> Result<Vec<u8>, &'static str> {
    if len > MAX_BYTES {
        return Err("it is said to be larger than 64 MiB");
    }
    let mut stream = LzipStream::new_mem_limit(false, (MAX_BYTES >> 10) as u32);
    // One byte too many: the end of the member is read only while there is room for more.
    let mut image = vec![0; len + 1];
    let end = stream
        .process(member, &mut image, Action::Finish)
        .map_err(|_| "its compressed bytes are damaged or cut short")?;
    if end.status != Status::StreamEnd || end.bytes_produced != len {
        return Err("it decompresses to another size than it is said to have");
    }
    if end.bytes_consumed != member.len() || !stream.unused_input().is_empty() {
        return Err("its compressed bytes go on beyond their end");
    }
    image.truncate(len);
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Hello, world!`, as the format's own tool compresses it.
    const HELLO: &[u8] =
        b"LZIP\x01\x0C\0\x24\x19\x49\x98\x6F\x16\x02\x8C\xE8\xE6\x5B\xB1\x47\xC6\xCE\xB7\x63\xFF\xFF\x3C\xAC\0\0\
        \xE6\xC6\xE6\xEB\x0D\0\0\0\0\0\0\0\x32\0\0\0\0\0\0\0";
    const LEN: usize = 13;

    fn of(bytes: Vec<u8>, len: usize) -> Result<Cow<'static, [u8]>, &'static str> {
        Image::Lzip { bytes: bytes.leak(), len }.bytes()
    }

    #[test]
    fn both_forms_give_their_image() {
        assert_eq!(of(HELLO.to_vec(), LEN).unwrap(), &b"Hello, world!"[..]);
        let plain = Image::Plain(b"Hello, world!");
        assert!(matches!(plain.bytes(), Ok(Cow::Borrowed(bytes)) if std::ptr::eq(bytes, plain.stored())));
        assert!(Image::NONE.is_empty() && Image::NONE.bytes().unwrap().is_empty());
        assert_eq!((Image::Lzip { bytes: HELLO, len: LEN }.len(), plain.len()), (LEN, LEN));
    }

    /// Every bit of the member counts, but for the size of the decoder's dictionary, of which any will do.
    #[test]
    fn damage_is_an_error() {
        const DICTIONARY: usize = 5;
        for at in (0..HELLO.len()).filter(|&at| at != DICTIONARY) {
            for bit in 0..8 {
                let mut bytes = HELLO.to_vec();
                bytes[at] ^= 1 << bit;
                if let Ok(image) = of(bytes, LEN) {
                    panic!("bit {bit} of byte {at}: {image:?}");
                }
            }
        }
        for dictionary in 0..=u8::MAX {
            let mut bytes = HELLO.to_vec();
            bytes[DICTIONARY] = dictionary;
            if let Ok(image) = of(bytes, LEN) {
                assert_eq!(image, &b"Hello, world!"[..], "dictionary {dictionary:#x}");
            }
        }
    }

    #[test]
    fn every_cut_and_every_other_size_is_an_error() {
        for end in 0..HELLO.len() {
            assert!(of(HELLO[..end].to_vec(), LEN).is_err(), "{end} bytes");
        }
        for len in [0, 1, LEN - 1, LEN + 1, LEN + 100, MAX_BYTES, MAX_BYTES + 1, usize::MAX] {
            assert!(of(HELLO.to_vec(), len).is_err(), "{len} bytes declared");
        }
        for tail in [&b"\0"[..], HELLO] {
            assert!(of([HELLO, tail].concat(), LEN).is_err(), "{} bytes behind the end", tail.len());
        }
    }

    #[test]
    fn images_are_told_apart_by_place_and_form() {
        let (bytes, other) = (HELLO.to_vec().leak() as &[u8], HELLO.to_vec().leak() as &[u8]);
        let image = Image::Lzip { bytes, len: LEN };
        assert_eq!(image.identity(), image.identity());
        for different in [Image::Plain(bytes), Image::Lzip { bytes: other, len: LEN }, Image::Lzip { bytes, len: 1 }] {
            assert_ne!(image.identity(), different.identity(), "{different:?}");
        }
    }
}
