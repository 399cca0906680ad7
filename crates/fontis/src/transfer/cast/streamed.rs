use std::collections::BTreeMap;
use std::net::IpAddr;

use fontis_base::{Duration, Time};
use fontis_proto::cast::{CastGate, LiveEvent, LiveReceiver};
use tokio::sync::mpsc;

use super::assembler::{Destination, Heard, Received, tell_forged};
use super::recording::Recording;
use crate::random::random;
use crate::transfer::TransferError;

/// Bytes of blocks that are held in memory.
const MEMORY: u64 = 256 << 20;

/// Writes a stream as it comes.
pub(super) struct Streamed {
    pub(super) gate: CastGate<LiveReceiver>,
    recording: Recording,
    told_forged: BTreeMap<IpAddr, u64>,
    told_gaps: u64,
    told: mpsc::UnboundedSender<Heard>,
}

impl Streamed {
    /// One for a stream of this latency, for receiver `member`.
    pub(super) fn new(
        latency: Duration,
        member: u32,
        destination: &Destination,
        told: mpsc::UnboundedSender<Heard>,
    ) -> Result<Self, TransferError> {
        let receiver = LiveReceiver::new(latency, MEMORY, member, u64::from_be_bytes(random()));
        Ok(Self {
            // A stream has no hash tree to check blocks with.
            gate: CastGate::wary(receiver),
            recording: Recording::begin(destination)?,
            told_forged: BTreeMap::new(),
            told_gaps: 0,
            told,
        })
    }

    /// Writes what has come, and skips what has not come in time.
    pub(super) fn work(&mut self, now: Time) -> Result<(), TransferError> {
        while let Some(event) = self.gate.receiver_mut().take(now) {
            match event {
                LiveEvent::Data(data) => self.recording.write(&data)?,
                LiveEvent::Gap(blocks) => self.recording.skip(blocks),
                LiveEvent::End => {}
            }
        }
        Ok(())
    }

    /// Whether the stream is over, and all of it was written.
    pub(super) const fn is_over(&self) -> bool {
        self.gate.receiver().is_over()
    }

    /// Tells how much was written, what did not come, and who forges.
    pub(super) fn tell(&mut self) {
        tell_forged(self.gate.sources(), &mut self.told_forged, &self.told);
        let gaps = self.recording.gaps();
        if gaps > self.told_gaps {
            self.told_gaps = gaps;
            let _ = self.told.send(Heard::Gaps { blocks: gaps });
        }
        let _ = self.told.send(Heard::Moved { done: self.recording.bytes() });
    }

    /// The whole stream.
    pub(super) fn finish(mut self) -> Result<Received, TransferError> {
        self.tell();
        self.recording.finish()
    }
}
