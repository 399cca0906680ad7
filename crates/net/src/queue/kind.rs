use core::fmt;
use core::str::FromStr;

use super::{CoDel, Drr, Fifo, Limit, Queue};
use crate::SpecError;

/// A queue discipline, known by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// `fifo`: first in, first out; what does not fit is dropped.
    #[default]
    Fifo,
    /// `drr`: deficit round robin between flows.
    Drr,
    /// `codel`: controlled delay by drops.
    CoDel,
    /// `codel-ecn`: controlled delay by marks where the transport understands them, else by drops.
    CoDelEcn,
}

impl QueueKind {
    /// Every discipline there is.
    pub const ALL: [(&'static str, Self); 4] = [
        ("fifo", Self::Fifo),
        ("drr", Self::Drr),
        ("codel", Self::CoDel),
        ("codel-ecn", Self::CoDelEcn),
    ];

    /// An empty queue of this kind.
    pub fn build<P>(self, limit: Limit) -> Queue<P> {
        match self {
            Self::Fifo => Queue::Fifo(Fifo::new(limit)),
            Self::Drr => Queue::Drr(Drr::new(limit)),
            Self::CoDel => Queue::CoDel(CoDel::new(limit)),
            Self::CoDelEcn => Queue::CoDel(CoDel::new(limit).with_ecn()),
        }
    }
}

impl fmt::Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            Self::ALL.into_iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl FromStr for QueueKind {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, kind)| kind).ok_or_else(
            || SpecError::UnknownName {
                text: text.to_owned(),
                kind: "queue",
                names: Self::ALL.map(|(name, _)| name).join(", "),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_known_by_the_name_it_prints() {
        for (name, kind) in QueueKind::ALL {
            assert_eq!(name.parse(), Ok(kind));
            assert_eq!(kind.to_string(), name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "red".parse::<QueueKind>().unwrap_err().to_string();
        assert_eq!(
            error,
            r#"there is no queue called "red"; there are fifo, drr, codel, codel-ecn"#
        );
    }
}
