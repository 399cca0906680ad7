use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSection};

use super::error::KernelError;
use super::types::{TypeReader, put, word};

/// An object file of BPF programs for the hooks of a congestion control.
#[derive(Clone, Debug)]
pub(super) struct Object<'a> {
    /// The types of the programs, in the form that the kernel takes (BTF).
    pub(super) types: Vec<u8>,
    /// A program for each hook.
    pub(super) programs: Vec<Program<'a>>,
    pub(super) license: &'a str,
    /// The hash of the source that it was made of.
    pub(super) source: &'a str,
}

/// The program of a hook.
#[derive(Clone, Debug)]
pub(super) struct Program<'a> {
    /// The member of `struct tcp_congestion_ops`.
    pub(super) hook: &'a str,
    /// Its instructions, of eight bytes each.
    pub(super) code: &'a [u8],
    /// Its function (`struct bpf_func_info`).
    pub(super) function: Vec<u8>,
    /// The accesses whose places the kernel finds (`struct bpf_core_relo`).
    pub(super) relocations: Vec<u8>,
}

/// The prefix of the sections that hold programs.
const PREFIX: &str = "struct_ops/";
/// Bytes of the records of functions and of relocations.
pub(super) const FUNCTION: usize = 8;
pub(super) const RELOCATION: usize = 16;
const BROKEN: KernelError = KernelError::Object("a section is cut off");

impl<'a> Object<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, KernelError> {
        let file = ElfFile64::<LittleEndian>::parse(bytes)
            .map_err(|_| KernelError::Object("it is no ELF file"))?;
        let section = |name: &str| {
            let section = file.section_by_name(name).and_then(|section| section.data().ok());
            section.ok_or(KernelError::Object("a section is missing"))
        };
        let text = |name: &str| {
            let bytes = section(name)?.split(|byte| *byte == 0).next().unwrap_or(&[]);
            core::str::from_utf8(bytes).map_err(|_| KernelError::Object("a text is not UTF-8"))
        };
        let mut types = section(".BTF")?.to_vec();
        // A compiler leaves open how large sections of variables are.
        for (at, name) in TypeReader::new(&types)?.sections()? {
            let size = file.section_by_name(&name).map_or(0, |section| section.size());
            put(&mut types, at, size as u32);
        }
        let details = section(".BTF.ext")?;
        let reader = TypeReader::new(&types)?;
        let mut programs = Vec::new();
        for section in file.sections() {
            let name = section.name_bytes().ok().and_then(|name| core::str::from_utf8(name).ok());
            let Some(hook) = name.and_then(|name| name.strip_prefix(PREFIX)) else { continue };
            let own = |part, record| {
                let name = format!("{PREFIX}{hook}");
                records(details, &reader, part, &name, record)
            };
            programs.push(Program {
                hook,
                code: section.data().map_err(|_| BROKEN)?,
                function: own(0, FUNCTION)?,
                relocations: own(2, RELOCATION)?,
            });
        }
        Ok(Self { types, programs, license: text("license")?, source: text("source")? })
    }
}

/// The records of a section in a part of `.BTF.ext`: 0 holds functions, 2 relocations.
fn records(
    details: &[u8],
    types: &TypeReader<'_>,
    part: usize,
    section: &str,
    record: usize,
) -> Result<Vec<u8>, KernelError> {
    let get = |at| word(details, at).ok_or(BROKEN).map(|value| value as usize);
    let (header, place) = (get(4)?, 8 + 8 * part);
    let mut at = header + get(place)?;
    let end = at + get(place + 4)?;
    if at == end {
        return Ok(Vec::new());
    }
    if get(at)? != record {
        return Err(KernelError::Object("records have another length"));
    }
    at += 4;
    while at < end {
        let (name, count) = (get(at)?, get(at + 4)?);
        at += 8;
        let bytes = count.checked_mul(record).and_then(|bytes| details.get(at..at + bytes));
        let bytes = bytes.ok_or(BROKEN)?;
        if types.text(name) == Some(section) {
            return Ok(bytes.to_vec());
        }
        at += bytes.len();
    }
    Ok(Vec::new())
}
