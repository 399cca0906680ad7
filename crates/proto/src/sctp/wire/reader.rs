//! Fields that follow each other in bytes.

use bytes::Bytes;

use super::{SctpWireError, padded};
use crate::sctp::chunk::SctpCause;

/// The bytes that are to be read.
pub(super) struct Reader {
    pub(super) bytes: Bytes,
}

/// What is read, or why it cannot be.
pub(super) type Read<T> = Result<T, SctpWireError>;

impl Reader {
    pub(super) fn take(&mut self, len: usize, of: &'static str) -> Read<Bytes> {
        if self.bytes.len() < len {
            return Err(SctpWireError::Length(of));
        }
        Ok(self.bytes.split_to(len))
    }

    pub(super) fn array<const N: usize>(&mut self, of: &'static str) -> Read<[u8; N]> {
        let bytes = self.take(N, of)?;
        let mut array = [0; N];
        array.copy_from_slice(&bytes);
        Ok(array)
    }

    pub(super) fn u16(&mut self, of: &'static str) -> Read<u16> {
        self.array(of).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, of: &'static str) -> Read<u32> {
        self.array(of).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, of: &'static str) -> Read<u64> {
        self.array(of).map(u64::from_be_bytes)
    }

    pub(super) fn end(&self, of: &'static str) -> Read<()> {
        if self.bytes.is_empty() { Ok(()) } else { Err(SctpWireError::Length(of)) }
    }

    /// The content that a header of four bytes announces, with its padding taken away. The last
    /// piece may lack its padding.
    pub(super) fn framed(&mut self, len: u16, of: &'static str) -> Read<Self> {
        let len = usize::from(len).checked_sub(4).ok_or(SctpWireError::Length(of))?;
        let bytes = self.take(len, of)?;
        let padding = (padded(len) - len).min(self.bytes.len());
        self.take(padding, of)?;
        Ok(Self { bytes })
    }

    pub(super) fn causes(&mut self) -> Read<Vec<SctpCause>> {
        let mut causes = Vec::new();
        while !self.bytes.is_empty() {
            let code = self.u16("a cause")?;
            let len = self.u16("a cause")?;
            causes.push(SctpCause { code, details: self.framed(len, "a cause")?.bytes });
        }
        Ok(causes)
    }
}
