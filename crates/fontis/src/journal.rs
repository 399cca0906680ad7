//! The journal of the incomplete blocks of a partial file, in a small file beside it.
//!
//! The bytes are in the partial file, at their places. The journal lists the received symbols among
//! them; they are used only if the block's hash is right. A journal that is torn, or wrong after a
//! power failure, costs a second transfer of its blocks and nothing else.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use crate::disk::{Access, Dir, File, Folder as _, Handle as _, Kind};

const MAGIC: &[u8; 16] = b"fontis-resume 1\n";
const HEADER: usize = MAGIC.len() + 32 + 32 + 4;
const RECORD: usize = 16;

/// The identity of the object of the partial file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The files and their sizes: the layout of the partial.
    pub(crate) layout: [u8; 32],
    /// The content.
    pub(crate) object: [u8; 32],
    /// The permission bits that the user's umask left to new files. They are not used: whoever can
    /// write the journal could choose them.
    pub(crate) allowed: u32,
}

/// Source symbols that follow each other, in their place in the partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) block: u32,
    pub(crate) symbol_size: u16,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// The file beside the partial.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
}

impl Journal {
    /// Begins a new one, in the place of an earlier one: at once, since without either the partial
    /// may be of no use. It is written as `new` first; `sync` says that it must survive a power
    /// loss.
    pub(crate) fn create(
        dir: &Dir,
        (name, new): (&OsStr, &OsStr),
        header: &Header,
        sync: bool,
    ) -> io::Result<Self> {
        match dir.unlink(Path::new(new)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = dir.make_file(Path::new(new), Access::Append, 0o600)?;
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&header.layout);
        bytes.extend_from_slice(&header.object);
        bytes.extend_from_slice(&header.allowed.to_le_bytes());
        file.append(&bytes)?;
        if sync {
            file.sync()?;
        }
        dir.rename_over(new, name)?;
        if sync {
            dir.sync_names()?;
        }
        Ok(Self { file })
    }

    /// The entries of an earlier transfer's journal, and the journal, to be continued; `None` if
    /// none can be read.
    pub(crate) fn open(dir: &Dir, name: &OsStr) -> Option<(Self, Header, Vec<Record>)> {
        let file = dir.open_entry(Path::new(name), Access::Append).ok()?;
        // Nobody else's words count, and what has another name, too, is not to be changed.
        let facts = file.facts().ok()?;
        if facts.kind != Kind::File || !facts.is_own {
            return None;
        }
        let mut bytes = Vec::new();
        file.read_at(0, usize::try_from(facts.len).ok()?, &mut bytes).ok()?;
        let (header, records) = parse(&bytes)?;
        file.set_length((HEADER + records.len() * RECORD) as u64).ok()?;
        Some((Self { file }, header, records))
    }

    pub(crate) fn append(&self, records: impl IntoIterator<Item = Record>) -> io::Result<()> {
        let bytes: Vec<u8> = records.into_iter().flat_map(Record::encode).collect();
        self.file.append(&bytes)
    }
}

/// Reads a journal, up to the first record that is torn.
pub(crate) fn parse(bytes: &[u8]) -> Option<(Header, Vec<Record>)> {
    let (header, records) = bytes.split_at_checked(HEADER)?;
    let fields = header.strip_prefix(MAGIC)?;
    let header = Header {
        layout: fields[..32].try_into().ok()?,
        object: fields[32..64].try_into().ok()?,
        allowed: u32::from_le_bytes(fields[64..].try_into().ok()?) & 0o777,
    };
    let whole = records.as_chunks::<RECORD>().0;
    // What follows a torn record has no known beginning.
    Some((header, whole.iter().map_while(Record::decode).collect()))
}

/// Whether a journal of any records, of which the input gives 14 bytes each, is read as it was
/// written, up to a record that is torn.
pub(crate) fn reads_again(bytes: &[u8]) -> bool {
    let field = |part: &[u8; 14], at: usize| {
        u32::from_le_bytes([part[at], part[at + 1], part[at + 2], part[at + 3]])
    };
    let record = |part: &[u8; 14]| Record {
        block: field(part, 0),
        symbol_size: u16::from_le_bytes([part[4], part[5]]),
        first: field(part, 6),
        count: field(part, 10),
    };
    let records: Vec<Record> = bytes.as_chunks().0.iter().map(record).collect();
    let mut journal = [&MAGIC[..], &[7; HEADER - MAGIC.len()]].concat();
    journal.extend(records.iter().flat_map(|record| record.encode()));
    let whole = journal.len();
    journal.extend_from_slice(&bytes[..bytes.len().min(RECORD - 1)]);
    let read = |length| parse(&journal[..length]).map(|(_, records)| records);
    read(journal.len()).is_some_and(|all| all == records)
        && read(whole - 1).is_none_or(|all| all.len() + 1 == records.len())
}

impl Record {
    fn encode(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..4].copy_from_slice(&self.block.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.symbol_size.to_le_bytes());
        bytes[6..10].copy_from_slice(&self.first.to_le_bytes());
        bytes[10..14].copy_from_slice(&self.count.to_le_bytes());
        let check = check(&bytes);
        bytes[14..].copy_from_slice(&check);
        bytes
    }

    fn decode(bytes: &[u8; RECORD]) -> Option<Self> {
        let field = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        (bytes[14..] == check(bytes)).then(|| Self {
            block: field(0),
            symbol_size: u16::from_le_bytes([bytes[4], bytes[5]]),
            first: field(6),
            count: field(10),
        })
    }
}

fn check(record: &[u8; RECORD]) -> [u8; 2] {
    let hash = blake3::hash(&record[..14]);
    [hash.as_bytes()[0], hash.as_bytes()[1]]
}

/// The journal's name, for a partial of this name.
pub(crate) fn journal_name(partial: &OsStr) -> OsString {
    let mut name = partial.to_owned();
    name.push(SUFFIX);
    name
}

/// The suffix of a journal's name after the partial's.
pub(crate) const SUFFIX: &str = "-log";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_end_is_cut_off_and_the_rest_is_continued() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::at(temp.path()).unwrap();
        let header = Header { layout: [1; 32], object: [2; 32], allowed: 0o755 };
        let record = |block| Record { block, symbol_size: 1432, first: 3, count: 700 };
        let name = OsStr::new("log");
        Journal::create(&dir, (name, OsStr::new("new")), &header, false)
            .unwrap()
            .append([record(1), record(2)])
            .unwrap();
        let path = temp.path().join("log");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(bytes.len() - 3);
        std::fs::write(&path, &bytes).unwrap();
        let (journal, read, records) = Journal::open(&dir, name).unwrap();
        assert_eq!((read, &records[..]), (header, &[record(1)][..]));
        journal.append([record(3)]).unwrap();
        assert_eq!(Journal::open(&dir, name).unwrap().2, [record(1), record(3)]);
        std::fs::write(&path, b"something else").unwrap();
        assert!(Journal::open(&dir, name).is_none());
    }
}
