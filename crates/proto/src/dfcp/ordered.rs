use std::collections::BTreeMap;

use bytes::Bytes;
use fontis_base::{Duration, Time};

use super::budget::Charge;
use super::packet::ChannelId;
use crate::rate::reorder::ReorderMode;
use crate::rate::reorder_measured::MeasuredReorder;

/// Bytes of messages that may wait before anything is measured.
const FIRST: u64 = 64 << 10;

/// An ordered message that has come.
pub(super) type Ordered = (ChannelId, Bytes, Charge);

/// Ordered messages that wait for those before them.
pub(super) enum OrderedWaiting {
    /// As long as it takes.
    Patient(BTreeMap<u32, Ordered>),
    /// For a time that is set.
    Within(Box<MeasuredReorder<Ordered>>),
}

impl OrderedWaiting {
    pub(super) fn new(within: Option<Duration>) -> Self {
        match within {
            None => Self::Patient(BTreeMap::new()),
            Some(delay) => {
                Self::Within(Box::new(MeasuredReorder::new(ReorderMode::Hold, delay, FIRST)))
            }
        }
    }

    /// Takes the message at a place that was neither delivered nor passed over.
    pub(super) fn push(&mut self, now: Time, place: u32, message: Ordered) {
        match self {
            Self::Patient(waiting) => drop(waiting.insert(place, message)),
            Self::Within(waiting) => {
                let bytes = message.1.len() as u64;
                waiting.measure(now, bytes);
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                waiting.push(now, place.into(), bytes, message);
            }
        }
    }

    /// The next message that is delivered, if none before `floor` is waited for, and its place.
    pub(super) fn pop(&mut self, now: Time, floor: u32) -> Option<(u32, Ordered)> {
        match self {
            Self::Patient(waiting) => {
                let first = waiting.first_entry().filter(|first| *first.key() < floor)?;
                Some(first.remove_entry())
            }
            Self::Within(waiting) => {
                waiting.skip_to(floor.into());
                let (place, message) = waiting.pop(now)?;
                // Places are of 32 bits.
                Some((place as u32, message))
            }
        }
    }

    /// When a message is delivered though one before it is missing; [`Time::MAX`] if none is.
    pub(super) fn due(&self) -> Time {
        match self {
            Self::Patient(_) => Time::MAX,
            Self::Within(waiting) => waiting.due(),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Patient(waiting) => waiting.clear(),
            Self::Within(waiting) => waiting.clear(),
        }
    }
}
