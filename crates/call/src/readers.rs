//! The readers of others' bytes that have no public function, for the fuzz targets. No part of the
//! library's interface.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use fontis_base::{Duration, Time};

use crate::codec::VoiceCodec;
use crate::phone::SipAgent;

/// The most steps of an input.
const MOST_STEPS: usize = 64;
/// The most datagrams that one step may answer with.
const MOST_ANSWERS: usize = 64;

/// Takes bytes for what a telephone says to a bridge, step by step; a zero byte ends a step. The
/// first byte of a step says what it is: `r` calls the telephone, `a` takes its call, `h` hangs up,
/// `t` lets two seconds pass, and anything else is a datagram from the byte after it on, `o` one
/// from an address of another machine. No step has more answers than are to wait.
pub fn signals(bytes: &[u8]) {
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let far = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 5062));
    let mut agent = SipAgent::new(local(5080), local(6000), VoiceCodec::OPUS, [7; 32], true);
    let mut now = Time::ZERO;
    for step in bytes.split(|byte| *byte == 0).take(MOST_STEPS) {
        let Some((kind, datagram)) = step.split_first() else { continue };
        match kind {
            b'r' => agent.ring(now, "sip:me@127.0.0.1:5062", local(5062), VoiceCodec::Mulaw),
            b'a' => drop(agent.accept(now, VoiceCodec::Mulaw)),
            b'h' => agent.hang_up(now),
            b't' => now += Duration::from_secs(2),
            _ => {
                let from = if *kind == b'o' { far } else { local(5062) };
                agent.handle(now, from, &Bytes::copy_from_slice(datagram));
            }
        }
        let mut answers = 0;
        while agent.poll(now).is_some() {
            answers += 1;
            assert!(answers <= MOST_ANSWERS, "the answers to a step have no end");
        }
        assert!(agent.timeout().is_none_or(|due| due > now), "what is due was not done");
        if let Some(end) = agent.talking() {
            assert!(end.at.ip() == local(0).ip(), "voice goes to another machine");
        }
    }
}
