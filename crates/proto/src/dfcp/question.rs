use fontis_base::{Duration, Time};
use smallvec::SmallVec;

/// Challenges of the peer that wait for their answer; a peer needs one.
const MAX_ANSWERS: usize = 2;
/// The waits between copies of a challenge on a path that is not usable yet: the first, doubled
/// each time, and the longest.
const COPIES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// What is asked and answered about who is at the other end of a path.
#[derive(Default)]
pub(super) struct Question {
    /// The challenge to be sent.
    ask: Option<[u8; 8]>,
    /// The challenge that was sent last, and when it was sent first.
    asked: Option<([u8; 8], Time)>,
    /// When a copy of it is due, and the copies so far.
    copy_at: Option<Time>,
    copies: u32,
    /// Challenges by the peer, to be answered.
    answers: SmallVec<[[u8; 8]; 2]>,
    /// The last response by the peer.
    answered: Option<[u8; 8]>,
}

impl Question {
    /// Asks with an unguessable token.
    pub(super) fn ask(&mut self, token: [u8; 8]) {
        self.ask = Some(token);
    }

    /// The peer asks.
    pub(super) fn is_asked(&mut self, token: [u8; 8]) {
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push(token);
        }
    }

    /// The peer answers. The time since this was asked, if it was.
    pub(super) fn on_answer(&mut self, now: Time, token: [u8; 8]) -> Option<Duration> {
        self.answered = Some(token);
        let (_, at) = self.asked.take_if(|(asked, _)| *asked == token)?;
        (self.ask, self.copy_at) = (None, None);
        Some(now.since(at))
    }

    /// The next answer that the peer waits for.
    pub(super) fn answer(&mut self) -> Option<[u8; 8]> {
        self.answers.pop()
    }

    /// The challenge that is due. Of a path that `persists` it is due again until it is answered.
    pub(super) fn challenge(&mut self, now: Time, persists: bool) -> Option<[u8; 8]> {
        let copy = self.copy_at.filter(|at| *at <= now).and(self.asked);
        let token = self.ask.take().or(copy.map(|(token, _)| token))?;
        match self.asked {
            Some((asked, _)) if asked == token => {}
            _ => (self.asked, self.copies) = (Some((token, now)), 0),
        }
        let wait = COPIES.0 * (1 << self.copies.min(8));
        self.copies += 1;
        self.copy_at = persists.then(|| now + wait.min(COPIES.1));
        Some(token)
    }

    /// When [`challenge`](Self::challenge) has a copy to send.
    pub(super) const fn copy_at(&self) -> Option<Time> {
        self.copy_at
    }

    /// The token of the peer's last response, once.
    pub(super) fn take_answered(&mut self) -> Option<[u8; 8]> {
        self.answered.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_repeated_until_it_is_answered() {
        let mut question = Question::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        question.ask([7; 8]);
        let sent: Vec<_> =
            (0..2000).filter(|ms| question.challenge(at(*ms), true).is_some()).collect();
        assert_eq!(sent, [0, 100, 300, 700, 1500]);
        assert_eq!(question.on_answer(at(2000), [8; 8]), None, "not what was asked");
        assert_eq!(question.on_answer(at(2000), [7; 8]), Some(Duration::from_millis(2000)));
        assert_eq!((question.copy_at(), question.challenge(at(9000), true)), (None, None));
    }
}
