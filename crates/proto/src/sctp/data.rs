use bytes::Bytes;

/// The content of a DATA chunk or of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SctpData {
    /// Bytes.
    Bytes(Bytes),
    /// As many bytes as this, whose values do not matter; zeros on the wire.
    Counted(u32),
}

impl SctpData {
    /// Its length in bytes.
    pub const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Counted(len) => *len as usize,
        }
    }

    /// Whether it has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes its first bytes, `len` at most, away from it.
    pub(super) fn split_to(&mut self, len: usize) -> Self {
        let len = len.min(self.len());
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes.split_to(len)),
            Self::Counted(left) => {
                *left -= len as u32;
                Self::Counted(len as u32)
            }
        }
    }

    /// One content from its parts: counted if any part is.
    pub(super) fn join(parts: impl ExactSizeIterator<Item = Self> + Clone) -> Self {
        let total: usize = parts.clone().map(|part| part.len()).sum();
        if parts.len() == 1 {
            return parts.last().unwrap_or(Self::Counted(0));
        }
        let mut whole = Vec::with_capacity(total);
        for part in parts {
            match part {
                Self::Bytes(bytes) => whole.extend_from_slice(&bytes),
                Self::Counted(_) => return Self::Counted(total as u32),
            }
        }
        Self::Bytes(whole.into())
    }
}
