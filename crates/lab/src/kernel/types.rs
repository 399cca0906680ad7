use super::error::KernelError;

/// A reader of types in the form of the kernel (BTF, Documentation/bpf/btf.rst).
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeReader<'a> {
    types: &'a [u8],
    /// Where they begin in the whole.
    start: usize,
    texts: &'a [u8],
}

/// A structure of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Structure {
    /// The number of its type.
    pub(super) id: u32,
    /// Bytes.
    pub(super) size: u32,
    /// Names, and places in bytes, in the order of members.
    pub(super) members: Vec<(String, u32)>,
}

/// The magic number of a header.
const MAGIC: u32 = 0xeb9f;
/// Kinds of types ("BTF_KIND_…").
const STRUCTURE: u32 = 4;
const SECTION: u32 = 15;
const BROKEN: KernelError = KernelError::Object("its types cannot be read");

/// A type as it stands in the list.
struct Entry {
    /// Where it stands, from the beginning of the list.
    at: usize,
    id: u32,
    kind: u32,
    members: usize,
    /// Whether places of members are of bit fields.
    has_bits: bool,
}

/// A number of four bytes.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Writes a number of four bytes, if there is room.
pub(super) fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

impl<'a> TypeReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, KernelError> {
        let get = |at| word(bytes, at).map(|value| value as usize).ok_or(BROKEN);
        if get(0)? as u32 & 0xffff != MAGIC {
            return Err(BROKEN);
        }
        let header = get(4)?;
        let part = |place: usize| {
            let start = header.checked_add(get(place)?).ok_or(BROKEN)?;
            let end = start.checked_add(get(place + 4)?).ok_or(BROKEN)?;
            bytes.get(start..end).map(|part| (start, part)).ok_or(BROKEN)
        };
        let ((start, types), (_, texts)) = (part(8)?, part(16)?);
        Ok(Self { types, start, texts })
    }

    /// The text at a place.
    pub(super) fn text(&self, at: usize) -> Option<&'a str> {
        let text = self.texts.get(at..)?.split(|byte| *byte == 0).next()?;
        core::str::from_utf8(text).ok()
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        self.text(word(self.types, at)? as usize)
    }

    /// All types, in order.
    fn entries(&self) -> impl Iterator<Item = Result<Entry, KernelError>> {
        let (mut at, mut id) = (0, 0);
        core::iter::from_fn(move || {
            if at >= self.types.len() {
                return None;
            }
            let entry = self.entry(at, id + 1);
            match &entry {
                Ok((entry, next)) => (at, id) = (*next, entry.id),
                Err(_) => at = self.types.len(),
            }
            Some(entry.map(|(entry, _)| entry))
        })
    }

    /// A type, and where the next one stands.
    fn entry(&self, at: usize, id: u32) -> Result<(Entry, usize), KernelError> {
        let info = word(self.types, at + 4).ok_or(BROKEN)?;
        let (kind, members) = ((info >> 24) & 31, (info & 0xffff) as usize);
        // What follows the twelve bytes that every type has.
        let more = match kind {
            1 | 14 | 17 => 4,
            3 => 12,
            4 | 5 | 15 | 19 => 12 * members,
            6 | 13 => 8 * members,
            2 | 7..=12 | 16 | 18 => 0,
            _ => return Err(BROKEN),
        };
        Ok((Entry { at, id, kind, members, has_bits: info >> 31 == 1 }, at + 12 + more))
    }

    /// The structures with these names.
    pub(super) fn structures<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Option<Structure>; N], KernelError> {
        let mut found = [const { None }; N];
        for entry in self.entries() {
            let entry = entry?;
            let name = self.name(entry.at).unwrap_or_default();
            let place = names.iter().position(|wanted| *wanted == name);
            if let Some(place) = place.filter(|_| entry.kind == STRUCTURE) {
                found[place] = Some(self.structure(&entry)?);
            }
        }
        Ok(found)
    }

    fn structure(&self, entry: &Entry) -> Result<Structure, KernelError> {
        let size = word(self.types, entry.at + 8).ok_or(BROKEN)?;
        let member = |number: usize| {
            let at = entry.at + 12 + 12 * number;
            let bits = word(self.types, at + 8)?;
            let bits = if entry.has_bits { bits & 0x00ff_ffff } else { bits };
            Some((self.name(at)?.to_owned(), bits / 8))
        };
        let members = (0..entry.members).map(member).collect::<Option<_>>();
        Ok(Structure { id: entry.id, size, members: members.ok_or(BROKEN)? })
    }

    /// The sections of variables: where each one's size stands in the whole, and its name.
    pub(super) fn sections(&self) -> Result<Vec<(usize, String)>, KernelError> {
        let mut found = Vec::new();
        for entry in self.entries() {
            let entry = entry?;
            if entry.kind == SECTION {
                let name = self.name(entry.at).ok_or(BROKEN)?;
                found.push((self.start + entry.at + 8, name.to_owned()));
            }
        }
        Ok(found)
    }
}

impl Structure {
    /// The place of a member in bytes.
    pub(super) fn place(&self, name: &str) -> Option<u32> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, place)| *place)
    }
}
