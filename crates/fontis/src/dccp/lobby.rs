use fontis_base::{Duration, Time};
use fontis_proto::dccp::{DccpBody, DccpConfig, DccpConnection, DccpPacket};

use super::socket::Ends;

/// Clients that wait here at most: a few hundred kilobytes. Others get a cookie.
const MOST: usize = 64;
/// How long a client may take to answer. Its own Requests come again within that time.
const LONGEST: Duration = Duration::from_secs(10);

/// Connections whose clients have asked and not answered yet. Not all clients return a cookie:
/// Linux never does. While a flood fills this room, those that do still get in.
#[derive(Default)]
pub(super) struct Lobby {
    waiting: Vec<(Ends, Time, DccpConnection)>,
}

/// The end of a wait.
pub(super) enum Answered {
    /// The client has answered.
    Open(Box<DccpConnection>),
    /// It has not, and may be told so.
    Still(Option<DccpPacket>),
}

impl Lobby {
    /// The answer to a Request, which waits here from now on. `None` if there is no room.
    pub(super) fn ask(
        &mut self,
        now: Time,
        ends: Ends,
        config: &DccpConfig,
        first: u64,
        request: &DccpPacket,
    ) -> Option<DccpPacket> {
        let is_answer = |packet: &DccpPacket| matches!(packet.body, DccpBody::Response { .. });
        self.waiting.retain(|(_, since, _)| now.since(*since) <= LONGEST);
        if let Some(place) = self.place(ends) {
            let (_, _, server) = &mut self.waiting[place];
            server.handle(now, request, false);
            if let Some(response) = server.poll(now).filter(is_answer) {
                return Some(response);
            }
            // It is another connection of the same ports.
            self.waiting.swap_remove(place);
        }
        if self.waiting.len() >= MOST {
            return None;
        }
        let mut server = DccpConnection::accept(now, config.clone(), first, request)?;
        let answer = server.poll(now)?;
        if is_answer(&answer) {
            self.waiting.push((ends, now, server));
        }
        Some(answer)
    }

    /// Takes another packet of a client; `None` if it does not wait here.
    pub(super) fn answer(
        &mut self,
        now: Time,
        ends: Ends,
        packet: &DccpPacket,
    ) -> Option<Answered> {
        let place = self.place(ends)?;
        let (_, _, server) = &mut self.waiting[place];
        server.handle(now, packet, false);
        if server.is_connected() {
            let (_, _, server) = self.waiting.swap_remove(place);
            return Some(Answered::Open(Box::new(server)));
        }
        let reply = server.poll(now);
        if !server.is_waiting() {
            self.waiting.swap_remove(place);
        }
        Some(Answered::Still(reply))
    }

    fn place(&self, ends: Ends) -> Option<usize> {
        self.waiting.iter().position(|(other, ..)| *other == ends)
    }
}

#[cfg(test)]
mod tests {
    use fontis_proto::dccp::DccpEvent;

    use super::*;

    fn ends(peer_port: u16) -> Ends {
        Ends { peer: "192.0.2.1:6511".parse().expect("an address"), peer_port, port: 5004 }
    }

    #[test]
    fn a_client_without_cookies_gets_in_while_there_is_room() {
        let (mut lobby, config) = (Lobby::default(), DccpConfig::default());
        let mut now = Time::from_nanos(1);
        let ask = |lobby: &mut Lobby, now, port: u16| {
            let mut client = DccpConnection::connect(now, config.clone(), u64::from(port));
            let request = client.poll(now).expect("a Request");
            let response = lobby.ask(now, ends(port), &config, 7, &request);
            (client, request, response)
        };
        let (mut client, request, first) = ask(&mut lobby, now, 1);
        // The Response was lost: the next one belongs to the same connection.
        let again = lobby.ask(now, ends(1), &config, 9, &request).expect("a Response");
        assert_eq!(again.seq, first.expect("a Response").seq.next());
        client.handle(now, &again, false);
        assert_eq!(client.event(), Some(DccpEvent::Connected));
        // A flood fills the room, but does not drive out who is in it.
        for port in 2..1000 {
            let (.., response) = ask(&mut lobby, now, port);
            assert_eq!(response.is_some(), usize::from(port) <= MOST);
        }
        let ack = client.poll(now).expect("an acknowledgement");
        assert!(matches!(lobby.answer(now, ends(1), &ack), Some(Answered::Open(_))));
        assert!(lobby.answer(now, ends(1), &ack).is_none(), "it is no longer here");
        now += LONGEST + Duration::from_nanos(1);
        assert!(ask(&mut lobby, now, 1000).2.is_some(), "those who never answered have gone");
        assert_eq!(lobby.waiting.len(), 1);
    }
}
