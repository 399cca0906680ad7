use bytes::{Bytes, BytesMut};
use fontis_base::{Rate, Time};
use fontis_proto::dfcp::{ChannelId, CloseReason, DfcpConnection, DfcpEvent, SendOptions};

use crate::app::App;
use crate::app::socket::{AppMessage, AppSocket};
use crate::host::Milestones;

/// An application on a connection, and what it has received.
#[derive(Clone, Debug, Default)]
pub struct Carry {
    /// The application; `None` takes whatever arrives.
    pub app: Option<App>,
    /// When it connects; `None` if the peer does.
    pub connects_at: Option<Time>,
    /// Whether its messages are delivered in the order of their departure.
    pub ordered: bool,
    /// The stream towards the peer, once something was written to it.
    stream: Option<ChannelId>,
    /// Bytes of the peer's stream that were read.
    pub(super) delivered: u64,
    /// Bytes of the peer's messages.
    pub(super) message_bytes: u64,
    pub(super) milestones: Milestones,
}

impl Carry {
    /// An application; it connects at `connects_at`, or waits for a connection.
    pub fn new(app: Option<App>, connects_at: Option<Time>, ordered: bool) -> Self {
        Self { app, connects_at, ordered, ..Self::default() }
    }

    pub(super) fn due(&self) -> Option<(Time, &'static str)> {
        let due = self.app.as_ref().map(App::due).filter(|due| *due < Time::MAX)?;
        Some((due, "application"))
    }

    pub(super) fn act_if_due(&mut self, now: Time, connection: &mut DfcpConnection) {
        if self.due().is_some_and(|(due, _)| due <= now) {
            self.act(now, connection);
        }
    }

    fn act(&mut self, now: Time, connection: &mut DfcpConnection) {
        let Self { app: Some(app), stream, delivered, ordered, .. } = self else { return };
        let (delivered, ordered) = (*delivered, *ordered);
        if !app.act(now, &mut DfcpSocket { connection, stream, delivered, ordered }) {
            self.app = None;
        }
    }

    pub(super) fn on_event(
        &mut self,
        now: Time,
        connection: &mut DfcpConnection,
        event: DfcpEvent,
    ) {
        match event {
            DfcpEvent::Connected => {
                self.milestones.connected = Some(now);
                self.act(now, connection);
            }
            DfcpEvent::Message { data, .. } => {
                self.message_bytes += data.len() as u64;
                self.milestones.last_data = Some(now);
                if let (Some(app), Some(number)) = (&mut self.app, data.first_chunk()) {
                    app.on_message(now, u64::from_be_bytes(*number));
                }
            }
            DfcpEvent::Readable { channel } => {
                while let Some(data) = connection.read(now, channel) {
                    self.delivered += data.len() as u64;
                }
                self.milestones.last_data = Some(now);
                self.act(now, connection);
            }
            DfcpEvent::Closed(reason) => {
                self.milestones.closed = Some(now);
                match reason {
                    CloseReason::Local | CloseReason::Finished => {}
                    CloseReason::Peer { code: 0, .. } => {}
                    _ => self.milestones.aborted = true,
                }
            }
            _ => {}
        }
    }
}

/// A connection as its application sees it.
struct DfcpSocket<'a> {
    connection: &'a mut DfcpConnection,
    stream: &'a mut Option<ChannelId>,
    delivered: u64,
    ordered: bool,
}

/// The content of streams and messages.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Bytes of a message's number, which its content begins with.
const NUMBER: u64 = 8;

impl AppSocket for DfcpSocket<'_> {
    fn write(&mut self, _now: Time, bytes: u64) {
        let connection = &mut *self.connection;
        let stream =
            *self.stream.get_or_insert_with(|| connection.open_stream(SendOptions::default()));
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(ZEROS.len() as u64);
            self.connection.write(stream, Bytes::from_static(&ZEROS[..piece as usize]));
            left -= piece;
        }
    }

    fn finish(&mut self, now: Time) {
        if let Some(stream) = *self.stream {
            self.connection.finish_stream(stream);
        }
        self.connection.close(now, 0, "");
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn send(&mut self, _now: Time, message: AppMessage) {
        let bytes = message.bytes.max(NUMBER) as usize;
        let mut content = BytesMut::zeroed(bytes);
        let number = message.number.unwrap_or(u64::MAX);
        content[..NUMBER as usize].copy_from_slice(&number.to_be_bytes());
        let (deadline, ordered) = (message.deadline, self.ordered);
        let options = SendOptions { deadline, ordered, ..SendOptions::default() };
        self.connection.send_message(content.freeze(), options);
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.connection.stats().rate).filter(|rate| *rate > Rate::ZERO)
    }

    fn keeps_messages(&self) -> bool {
        true
    }
}
