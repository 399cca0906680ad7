//! Streams that begin anew (RFC 6525).

use fontis_base::Time;
use smallvec::{SmallVec, smallvec};

use super::{SctpAssociation, State};
use crate::sctp::chunk::{Reconfig, SctpChunk};
use crate::sctp::message::{SctpEvent, SctpSendError};
use crate::sctp::number;

/// What becomes of a request (section 4.4).
mod result {
    pub(super) const NOTHING: u32 = 0;
    pub(super) const DONE: u32 = 1;
    pub(super) const DENIED: u32 = 2;
    pub(super) const BUSY: u32 = 4;
    pub(super) const WRONG_NUMBER: u32 = 5;
    pub(super) const IN_PROGRESS: u32 = 6;
}

/// Events that wait for the application until the peer must wait with its resets.
const MOST_EVENTS: usize = 1024;

impl SctpAssociation {
    /// Resets a stream of this end once the peer has all of its messages: the next ones are
    /// numbered from zero, and both applications are told.
    ///
    /// # Errors
    /// If there is no association, or the peer cannot.
    pub fn reset(&mut self, stream: u16) -> Result<(), SctpSendError> {
        if !self.is_connected() {
            return Err(SctpSendError::Closing);
        }
        if stream >= self.outbound {
            return Err(SctpSendError::NoStream { stream, streams: self.outbound });
        }
        if !self.features.resets {
            return Err(SctpSendError::NoResets);
        }
        self.resets.want(stream);
        Ok(())
    }

    /// When a request must leave again.
    pub(super) fn reset_due(&self) -> Time {
        self.resets.request.as_ref().map_or(Time::MAX, |request| request.at)
    }

    /// The request that is due.
    pub(super) fn take_reset(&mut self, now: Time) -> Option<SctpChunk> {
        if !matches!(self.state, State::Established | State::ShutdownPending) {
            return None;
        }
        if !self.resets.is_idle() {
            let flight = [self.flight.base(), self.flight.end()];
            self.resets.begin(now, |stream| self.outbox.has_waiting(stream), flight);
        }
        let rto = self.paths[self.primary].estimator.rto;
        // A request of the peer that it answers is the last one, too.
        let answers = self.resets.expected.wrapping_sub(1);
        let request = self.resets.request.as_mut().filter(|request| request.at <= now)?;
        request.at = now + rto;
        Some(SctpChunk::Reconfig(smallvec![Reconfig::ResetOutgoing {
            number: request.number,
            answers,
            last: request.last,
            streams: request.streams.clone(),
        }]))
    }

    pub(super) fn on_reconfig(&mut self, now: Time, path: Option<u8>, parameter: &Reconfig) {
        let is_open = !matches!(self.state, State::CookieWait | State::CookieEchoed);
        if !self.features.resets || !is_open {
            return;
        }
        match parameter {
            Reconfig::ResetOutgoing { number, last, streams, .. } => {
                let (last, streams) = (*last, streams.clone());
                self.answer(path, *number, |end| end.reset_by_peer(last, streams));
            }
            Reconfig::ResetIncoming { number, streams } => {
                let streams = streams.clone();
                self.answer(path, *number, |end| end.reset_for_peer(streams));
            }
            Reconfig::Other { number, .. } => {
                self.answer(path, *number, |_| result::DENIED);
            }
            Reconfig::Answer { number, result, .. } => self.on_answer(now, *number, *result),
        }
    }

    /// Answers a request of the peer. The last one may come again: what was done is not done twice.
    fn answer(&mut self, path: Option<u8>, number: u32, act: impl FnOnce(&mut Self) -> u32) {
        let is_next = number == self.resets.expected;
        let is_last = number.wrapping_add(1) == self.resets.expected;
        let result = if is_next || (is_last && self.resets.result == result::IN_PROGRESS) {
            self.resets.expected = number.wrapping_add(1);
            self.resets.result = act(self);
            self.resets.result
        } else if is_last {
            self.resets.result
        } else {
            result::WRONG_NUMBER
        };
        let answer = Reconfig::Answer { number, result, details: bytes::Bytes::new() };
        self.reply(path, vec![SctpChunk::Reconfig(smallvec![answer])]);
    }

    /// The peer resets its streams. What it has sent on them before must have come.
    fn reset_by_peer(&mut self, last: u32, streams: SmallVec<[u16; 4]>) -> u32 {
        let cumulative = self.arrivals.cumulative();
        let is_early = number::expand(cumulative, last) > cumulative;
        if is_early || self.events.len() >= MOST_EVENTS {
            return result::IN_PROGRESS;
        }
        let all = if streams.is_empty() { self.inbound.streams().collect() } else { streams };
        let mut all: Vec<u16> = all.into_vec();
        all.sort_unstable();
        all.dedup();
        all.retain(|stream| *stream < self.config.streams);
        for stream in &all {
            self.inbound.reset(*stream);
            self.events.push_back(SctpEvent::PeerReset(*stream));
        }
        if all.is_empty() { result::NOTHING } else { result::DONE }
    }

    /// The peer asks to have streams of this end reset: a request of this end will answer.
    fn reset_for_peer(&mut self, streams: SmallVec<[u16; 4]>) -> u32 {
        let all = if streams.is_empty() { self.outbox.streams().collect() } else { streams };
        let all: Vec<u16> = all.into_iter().filter(|stream| *stream < self.outbound).collect();
        if all.is_empty() {
            return result::NOTHING;
        }
        all.into_iter().for_each(|stream| self.resets.want(stream));
        result::DONE
    }

    fn on_answer(&mut self, now: Time, number: u32, result: u32) {
        let rto = self.paths.get(self.primary).map(|path| path.estimator.rto);
        match result {
            result::NOTHING | result::DONE => {
                for stream in self.resets.end(number) {
                    self.outbox.reset(stream);
                    self.events.push_back(SctpEvent::Reset(stream));
                }
            }
            // It is asked again.
            result::BUSY | result::IN_PROGRESS => {
                if let Some(request) = &mut self.resets.request
                    && request.number == number
                    && let Some(rto) = rto
                {
                    request.at = now + rto;
                }
            }
            _ => {
                for stream in self.resets.end(number) {
                    self.events.push_back(SctpEvent::ResetRefused(stream));
                }
            }
        }
    }
}
