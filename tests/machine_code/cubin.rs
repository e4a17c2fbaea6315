//! What a cubin's tables say of its entries.

use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolIndex};
use std::collections::HashMap;
use std::error::Error;

/// What a thread or CTA of one entry takes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: its frame or, where that is more, its stack.
    pub local: u32,
    /// Bytes of shared memory of a CTA, without what the driver reserves.
    pub shared: u64,
}

/// Attributes of the section `.nv.info`, as `nvdisasm` names them: `EIATTR_REGCOUNT`, `EIATTR_FRAME_SIZE`,
/// `EIATTR_MIN_STACK_SIZE`. A record is a format byte, the attribute, the size of the rest in two bytes, the index of a
/// symbol and a value.
const REGCOUNT: u8 = 0x2F;
const FRAME_SIZE: u8 = 0x11;
const MIN_STACK_SIZE: u8 = 0x12;

/// Format of a record whose payload has a size.
const FORMAT_SIZED: u8 = 4;

/// Bytes of the driver's own that an entry's shared memory starts with, in cubins that have a section for them.
const RESERVED_SHARED: u64 = 1024;
const RESERVED_SECTION: &str = ".nv.shared.reserved.0";

/// Resources of every entry, by name, with what its slow paths take: they are functions in the entry's section.
pub fn resources(cubin: &[u8]) -> Result<HashMap<String, Resources>, Box<dyn Error>> {
    let file = ElfFile::<FileHeader64<Endianness>>::parse(cubin)?;
    let mut found: HashMap<String, Resources> = HashMap::new();
    let mut rest = file.section_by_name(".nv.info").ok_or("the cubin has no .nv.info")?.data()?;
    while let [format, attribute, low, high, after @ ..] = rest {
        let size = if *format == FORMAT_SIZED { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
        let (payload, next) = after.split_at_checked(size).ok_or("a record of .nv.info is cut off")?;
        rest = next;
        if !matches!(*attribute, REGCOUNT | FRAME_SIZE | MIN_STACK_SIZE) {
            continue;
        }
        let [symbol, value] = words(payload)?;
        let function = file.symbol_by_index(SymbolIndex(symbol as usize))?;
        let section = function.section_index().ok_or("a function of .nv.info is in no section")?;
        let section = file.section_by_index(section)?;
        let entry = section.name()?.strip_prefix(".text.").ok_or("a function of .nv.info is in no section of code")?;
        let resources = found.entry(entry.into()).or_default();
        let most = if *attribute == REGCOUNT { &mut resources.registers } else { &mut resources.local };
        *most = value.max(*most);
    }
    let reserved = file.section_by_name(RESERVED_SECTION).map_or(0, |_| RESERVED_SHARED);
    for section in file.sections() {
        if let Some(resources) = section.name()?.strip_prefix(".nv.shared.").and_then(|name| found.get_mut(name)) {
            let own = section.size().checked_sub(reserved);
            resources.shared = own.ok_or("an entry has less shared memory than the driver reserves")?;
        }
    }
    Ok(found)
}

fn words(payload: &[u8]) -> Result<[u32; 2], Box<dyn Error>> {
    let bytes: [u8; 8] = payload.try_into().map_err(|_| "a record of .nv.info has another size than two words")?;
    let [a, b, c, d, e, f, g, h] = bytes;
    Ok([u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])])
}
