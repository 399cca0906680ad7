//! A symbol as a file, or as a record of a stream: all fields that a decoder needs, and a checksum.
//!
//! ```text
//! 4 bytes   "FSYM"
//! 12        object transmission information (RFC 6330, section 3.3)
//! 32        BLAKE3 of the object
//! 4         payload identifier (section 3.2)
//! T         the symbol, padded with zeros if it is the last of the source
//! 8         the first bytes of BLAKE3 of all before
//! ```

use fontis_codes::raptorq::Oti;

pub(crate) const MAGIC: [u8; 4] = *b"FSYM";
const HEAD: usize = 4 + 12 + 32;
const CHECKSUM: usize = 8;

/// The identity of a symbol's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) oti: Oti,
    pub(crate) hash: [u8; 32],
}

impl Object {
    /// Bytes of a record.
    pub(crate) fn record_len(&self) -> usize {
        HEAD + 4 + usize::from(self.oti.symbol_size()) + CHECKSUM
    }

    /// The record of a packet: payload identifier and symbol.
    pub(crate) fn record(&self, packet: &[u8]) -> Vec<u8> {
        let mut record = Vec::with_capacity(self.record_len());
        record.extend_from_slice(&MAGIC);
        record.extend_from_slice(&self.oti.to_bytes());
        record.extend_from_slice(&self.hash);
        record.extend_from_slice(packet);
        record.resize(self.record_len() - CHECKSUM, 0);
        let sum = blake3::hash(&record);
        record.extend_from_slice(&sum.as_bytes()[..CHECKSUM]);
        record
    }
}

/// Finds the records in bytes, with any bytes between them: object, and packet.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = (Object, &[u8])> {
    let mut at = 0;
    core::iter::from_fn(move || {
        loop {
            at += find(bytes.get(at..)?)?;
            match parse(&bytes[at..]) {
                Some((object, packet)) => {
                    at += object.record_len();
                    return Some((object, packet));
                }
                None => at += 1,
            }
        }
    })
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MAGIC.len()).position(|window| window == MAGIC)
}

/// The record at the beginning of `bytes`, if its checksum is right.
fn parse(bytes: &[u8]) -> Option<(Object, &[u8])> {
    let (head, _) = bytes.split_at_checked(HEAD)?;
    let oti = Oti::from_bytes(&head[4..16]).ok()?;
    let object = Object { oti, hash: head[16..].try_into().ok()? };
    let record = bytes.get(..object.record_len())?;
    let (content, sum) = record.split_at(record.len() - CHECKSUM);
    let is_right = blake3::hash(content).as_bytes()[..CHECKSUM] == *sum;
    is_right.then_some((object, &content[HEAD..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_in_noise_and_damaged_ones_are_not() {
        let oti = Oti::new(100, 10, 1, 1, 1).unwrap();
        let object = Object { oti, hash: [7; 32] };
        let packets: Vec<Vec<u8>> =
            (0..3u8).map(|i| [&[0, 0, 0, i][..], &[i; 10]].concat()).collect();
        let mut stream = b"noise FSYM noise".to_vec();
        for packet in &packets {
            stream.extend(object.record(packet));
            stream.extend(b"FS");
        }
        let found: Vec<_> = records(&stream).collect();
        assert_eq!(found.len(), 3);
        assert!(
            found
                .iter()
                .zip(&packets)
                .all(|((o, found), packet)| *o == object && *found == &packet[..])
        );
        let damaged = 16 + object.record_len() + 2 + 60;
        stream[damaged] ^= 1;
        assert_eq!(records(&stream).count(), 2);
        stream.truncate(stream.len() - 5);
        assert_eq!(records(&stream).count(), 1);
    }
}
