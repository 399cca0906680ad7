use std::io::Read;

use super::clocks::Clocks;
use super::frames::{CaptureError, Frames, Numbered};

/// The frames of two captures in the order of time.
pub(crate) struct Both<'a> {
    pub(crate) sides: [Frames<'a>; 2],
    heads: [Option<Numbered>; 2],
}

impl<'a> Both<'a> {
    /// Reads the beginnings.
    pub(crate) fn new(
        first: impl Read + Send + 'a,
        second: impl Read + Send + 'a,
    ) -> Result<Self, CaptureError> {
        Ok(Self { sides: [Frames::new(first)?, Frames::new(second)?], heads: [None, None] })
    }

    /// The next frame of either, with its time on its own clock.
    pub(crate) fn next(
        &mut self,
        clocks: &Clocks,
    ) -> Result<Option<(usize, Numbered)>, CaptureError> {
        for (head, side) in self.heads.iter_mut().zip(&mut self.sides) {
            if head.is_none() {
                *head = side.next()?;
            }
        }
        let time = |side: usize| self.heads[side].as_ref().map(|(_, at, _)| clocks.on(side, *at));
        let side = match (time(0), time(1)) {
            (None, None) => return Ok(None),
            (Some(first), Some(second)) => usize::from(second < first),
            (None, Some(_)) => 1,
            (Some(_), None) => 0,
        };
        Ok(self.heads[side].take().map(|frame| (side, frame)))
    }
}
