//! What of a file travels only on request: its owner and its extended attributes.

use serde::{Deserialize, Serialize};

/// Attributes of an entry at most.
pub const MAX_ATTRIBUTES: usize = 128;
/// Bytes of an attribute's name at most: Linux's limit.
pub const MAX_ATTRIBUTE_NAME: usize = 255;
/// Bytes of an attribute's value at most: Linux's limit.
pub const MAX_ATTRIBUTE: usize = 65_536;

/// What an entry has on request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// The numbers of user and group.
    pub owner: Option<(u32, u32)>,
    /// Extended attributes, ascending by their names; none for a symbolic link.
    pub attributes: Vec<Attribute>,
}

/// An extended attribute of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// Its name with its class, as in `user.comment`.
    pub name: String,
    /// Its value.
    pub value: Vec<u8>,
}

impl Extra {
    /// Returns true if numbers, names and sizes are within their limits.
    pub(super) fn is_possible(&self) -> bool {
        let is_fine = |one: &Attribute| {
            let name = &one.name;
            let has_class =
                name.split_once('.').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
            has_class
                && name.len() <= MAX_ATTRIBUTE_NAME
                && !name.contains('\0')
                && one.value.len() <= MAX_ATTRIBUTE
        };
        // The highest number stands for no change of owner.
        self.owner.is_none_or(|(user, group)| user != u32::MAX && group != u32::MAX)
            && self.attributes.len() <= MAX_ATTRIBUTES
            && self.attributes.iter().all(is_fine)
            && self.attributes.windows(2).all(|pair| pair[0].name < pair[1].name)
    }
}
