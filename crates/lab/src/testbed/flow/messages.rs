//! Messages over sockets: the header that each begins with.

use fontis_sim::app::socket::AppMessage;

/// Bytes of the header of a message in a stream: its number, and its length with the header.
pub(super) const STREAM_HEADER: usize = 12;

/// A message as a stream carries it: at least its header.
pub(super) fn in_stream(message: &AppMessage) -> Vec<u8> {
    let length = usize::try_from(message.bytes).unwrap_or(usize::MAX).max(STREAM_HEADER);
    let mut bytes = vec![0; length];
    bytes[..8].copy_from_slice(&message.number.unwrap_or(u64::MAX).to_be_bytes());
    bytes[8..12].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    bytes
}

/// Takes messages out of a stream.
#[derive(Debug, Default)]
pub(super) struct Messages {
    header: Vec<u8>,
    /// The number of the present message, and its bytes that are to come.
    present: Option<(u64, usize)>,
}

impl Messages {
    /// Takes the stream's next bytes; gives the numbers of the messages that are complete with
    /// them.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Vec<u64> {
        let mut complete = Vec::new();
        loop {
            let (number, left) = match self.present {
                Some(present) => present,
                None => {
                    let wanted = (STREAM_HEADER - self.header.len()).min(bytes.len());
                    let (header, rest) = bytes.split_at(wanted);
                    self.header.extend_from_slice(header);
                    bytes = rest;
                    let Some((number, length)) = self.header.split_first_chunk::<8>() else {
                        return complete;
                    };
                    let Some(length) = length.first_chunk::<4>() else { return complete };
                    let length = u32::from_be_bytes(*length) as usize;
                    let present =
                        (u64::from_be_bytes(*number), length.saturating_sub(STREAM_HEADER));
                    self.header.clear();
                    present
                }
            };
            let step = left.min(bytes.len());
            bytes = &bytes[step..];
            match left - step {
                0 => {
                    complete.push(number);
                    self.present = None;
                }
                left => {
                    self.present = Some((number, left));
                    return complete;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_wherever_the_stream_is_cut() {
        let message = |number, bytes| AppMessage { number: Some(number), bytes, deadline: None };
        let stream: Vec<u8> =
            [message(3, 100), message(4, 1), message(5, 12)].iter().flat_map(in_stream).collect();
        assert_eq!(stream.len(), 100 + 12 + 12);
        for cut in 1..stream.len() {
            let mut messages = Messages::default();
            let found: Vec<u64> = stream.chunks(cut).flat_map(|part| messages.take(part)).collect();
            assert_eq!(found, [3, 4, 5], "pieces of {cut} bytes");
        }
    }
}
