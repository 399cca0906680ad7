//! The handshake as a model that is checked to its end (docs/protocol.md, sections 3 and 9).
//!
//! Cryptography is perfect here: a message is a term, and who lacks a key can neither read it nor
//! make it (Dolev and Yao). The network is the attacker's: it has every datagram, delivers each as
//! often as it likes to whom it likes, from whatever address, and makes those that it has the keys
//! for. It has a key pair of its own, which the server accepts. The server crashes once, too, and
//! its private key may leak at the end.

use std::collections::BTreeSet;

use stateright::{Checker, Model, Property};

const AGAIN: &str = "a confirmed request is not taken again by its process";

/// Who has a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Who {
    Client,
    Server,
    Attacker,
}
use Who::{Attacker, Client, Server};

/// The pre-shared key that somebody uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Psk {
    None,
    /// Known to the client and the server.
    Shared,
}

/// Noise message 1 of pattern IK, and the clear fields of its prologue. `session` stands for the
/// initiator's ephemeral key and the source id, which are new for each attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Syn {
    initiator: Who,
    session: u8,
    responder: Who,
    psk: Psk,
    token: Option<Token>,
}

/// A token is made for one client, and is good once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Token {
    client: Who,
    number: u8,
}

/// A proof that a datagram to an address was read there. The process that made it is in it: its
/// secret is new for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Cookie {
    address: Who,
    session: u8,
    process: u8,
}

/// Noise message 2; `of` is the transcript, `ephemeral` the responder's new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct SynAck {
    of: Syn,
    by: Who,
    ephemeral: u8,
    /// For the next connection, inside the encryption.
    token: Token,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Datagram {
    Syn(Syn, Option<Cookie>),
    Cookie(Cookie),
    SynAck(SynAck),
    /// The first packet under the session's keys.
    Confirm(SynAck),
}

/// A session of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Accepted {
    answer: SynAck,
    is_confirmed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    /// Everything that was ever sent.
    sent: BTreeSet<Datagram>,
    /// Attempts of the client, in their order, and those that it has completed.
    begun: Vec<Syn>,
    completed: BTreeSet<SynAck>,
    /// The token that the client keeps.
    kept: Option<Token>,
    accepted: Vec<Accepted>,
    /// SYNs of confirmed handshakes, which this process of the server remembers.
    marks: BTreeSet<Syn>,
    redeemed: BTreeSet<Token>,
    /// SYNs whose handshakes were confirmed by this process, whatever it remembers.
    confirmed: BTreeSet<Syn>,
    /// Whether one of them was taken again.
    is_taken_again: bool,
    /// Whether the server has dropped its sessions, as it does when they end.
    has_dropped: bool,
    /// How often the server took the request of a SYN: in all, and as one that is no replay.
    taken: Vec<Syn>,
    fresh: Vec<Syn>,
    /// Replies to addresses that nothing had proved, and that were larger than what came.
    unproved: u8,
    process: u8,
    next: u8,
    /// Whether the server's private key has leaked.
    has_leaked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The client connects to somebody.
    Connect(Who),
    /// The attacker makes a SYN of its own for the server.
    Make(Psk),
    /// The server gets a datagram, which seems to come from an address.
    ToServer(Datagram, Who),
    ToClient(Datagram),
    /// The server's connections end.
    Drop,
    Restart,
    Leak,
}

/// The bounds and the settings of a check.
struct Handshake {
    /// The server's setting.
    psk: Psk,
    /// Whether so many connect that cookies are required.
    is_busy: bool,
    /// Whether the server remembers the SYNs of confirmed handshakes, as it should.
    remembers: bool,
    attempts: usize,
    sessions: usize,
}

impl Handshake {
    /// What the attacker can read of a SYN: its request, which has no forward secrecy.
    fn reads_request(state: &World, syn: &Syn) -> bool {
        let has_keys = syn.responder == Attacker || syn.initiator == Attacker;
        let has_leaked = state.has_leaked && syn.responder == Server && syn.psk == Psk::None;
        has_keys || has_leaked
    }

    /// Whether the attacker can compute the keys of a session: it needs an ephemeral key of either
    /// side, which nobody leaks.
    fn has_keys(answer: &SynAck) -> bool {
        answer.by == Attacker || answer.of.initiator == Attacker
    }

    /// Whether the attacker can make a datagram that nobody has sent.
    fn can_make(datagram: &Datagram) -> bool {
        match datagram {
            // It knows no psk, and only its own static key.
            Datagram::Syn(syn, _) => syn.initiator == Attacker && syn.psk == Psk::None,
            Datagram::Cookie(_) => false,
            Datagram::SynAck(answer) => answer.by == Attacker && answer.of.responder == Attacker,
            Datagram::Confirm(answer) => Self::has_keys(answer),
        }
    }

    /// What the attacker can send: what it has seen, and what it can make of that.
    fn datagrams(state: &World) -> BTreeSet<Datagram> {
        let mut all = state.sent.clone();
        for datagram in &state.sent {
            match *datagram {
                Datagram::Syn(syn, _) => {
                    // A cookie is outside of the encryption: anybody can add one.
                    for other in &state.sent {
                        if let Datagram::Cookie(cookie) = other {
                            all.insert(Datagram::Syn(syn, Some(*cookie)));
                        }
                    }
                    // Its own answer to a SYN, of any addressee.
                    let token = Token { client: Client, number: 99 };
                    let answer = SynAck { of: syn, by: Attacker, ephemeral: 99, token };
                    all.insert(Datagram::SynAck(answer));
                }
                Datagram::SynAck(answer) => {
                    all.insert(Datagram::Confirm(answer));
                }
                Datagram::Cookie(_) | Datagram::Confirm(_) => {}
            }
        }
        all.retain(|one| {
            state.sent.contains(one) || Self::can_make(one) || Self::is_added(one, state)
        });
        all
    }

    /// Whether it is a SYN that was sent, with a cookie that was sent.
    fn is_added(datagram: &Datagram, state: &World) -> bool {
        let Datagram::Syn(syn, Some(cookie)) = datagram else { return false };
        let is_sent = |one: &Datagram| matches!(one, Datagram::Syn(sent, _) if sent == syn);
        state.sent.iter().any(is_sent) && state.sent.contains(&Datagram::Cookie(*cookie))
    }

    fn to_server(&self, state: &mut World, datagram: Datagram, from: Who) {
        match datagram {
            Datagram::Syn(syn, cookie) => self.syn(state, syn, cookie, from),
            Datagram::Confirm(answer) => {
                let found = state.accepted.iter_mut().find(|one| one.answer == answer);
                if let Some(accepted) = found.filter(|one| !one.is_confirmed) {
                    accepted.is_confirmed = true;
                    state.confirmed.insert(answer.of);
                    if self.remembers {
                        state.marks.insert(answer.of);
                    }
                }
            }
            // A server takes no part in handshakes that it did not begin: a reflected SYNACK or
            // cookie has no receiver.
            Datagram::SynAck(_) | Datagram::Cookie(_) => {}
        }
    }

    fn syn(&self, state: &mut World, syn: Syn, cookie: Option<Cookie>, from: Who) {
        let is_copy = state.accepted.iter().any(|one| one.answer.of == syn);
        // It cannot be opened with other keys.
        if syn.responder != Server || syn.psk != self.psk || is_copy || state.marks.contains(&syn) {
            return;
        }
        let wanted = Cookie { address: from, session: syn.session, process: state.process };
        let is_proved = cookie == Some(wanted);
        if self.is_busy && !is_proved {
            // Smaller than what came.
            state.sent.insert(Datagram::Cookie(wanted));
            return;
        }
        if state.accepted.len() >= self.sessions {
            return;
        }
        let is_fresh = syn
            .token
            .is_some_and(|token| token.client == syn.initiator && state.redeemed.insert(token));
        if !is_proved && !is_fresh {
            state.unproved += 1;
        }
        state.is_taken_again |= state.confirmed.contains(&syn);
        state.taken.push(syn);
        if is_fresh {
            state.fresh.push(syn);
        }
        let token = Token { client: syn.initiator, number: state.next };
        let answer = SynAck { of: syn, by: Server, ephemeral: state.next, token };
        state.next += 1;
        state.accepted.push(Accepted { answer, is_confirmed: false });
        state.sent.insert(Datagram::SynAck(answer));
    }

    fn to_client(state: &mut World, datagram: Datagram) {
        match datagram {
            Datagram::Cookie(cookie) => {
                let begun = state.begun.iter().find(|syn| syn.session == cookie.session);
                if let Some(syn) = begun {
                    state.sent.insert(Datagram::Syn(*syn, Some(cookie)));
                }
            }
            Datagram::SynAck(answer) => {
                // It opens with the keys of an attempt that waits: the responder must have had
                // the static key that the attempt was for.
                let is_own = state.begun.contains(&answer.of) && answer.by == answer.of.responder;
                let waits = !state.completed.iter().any(|one| one.of == answer.of);
                if is_own && waits {
                    state.completed.insert(answer);
                    if answer.by == Server {
                        state.kept = Some(answer.token);
                    }
                    state.sent.insert(Datagram::Confirm(answer));
                }
            }
            // A client accepts nobody.
            Datagram::Syn(..) | Datagram::Confirm(_) => {}
        }
    }
}

impl Model for Handshake {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            sent: BTreeSet::new(),
            begun: Vec::new(),
            completed: BTreeSet::new(),
            kept: None,
            accepted: Vec::new(),
            marks: BTreeSet::new(),
            redeemed: BTreeSet::new(),
            confirmed: BTreeSet::new(),
            is_taken_again: false,
            has_dropped: false,
            taken: Vec::new(),
            fresh: Vec::new(),
            unproved: 0,
            process: 0,
            next: 0,
            has_leaked: false,
        }]
    }

    fn actions(&self, state: &World, steps: &mut Vec<Step>) {
        if state.has_leaked {
            return;
        }
        if state.begun.len() < self.attempts {
            steps.extend([Step::Connect(Server), Step::Connect(Attacker)]);
        }
        let is_made =
            |one: &Datagram| matches!(one, Datagram::Syn(syn, _) if syn.initiator == Attacker);
        if !state.sent.iter().any(is_made) {
            steps.push(Step::Make(Psk::None));
        }
        for datagram in Self::datagrams(state) {
            steps.push(Step::ToClient(datagram));
            steps.extend([Client, Attacker].map(|from| Step::ToServer(datagram, from)));
        }
        if !state.has_dropped && !state.accepted.is_empty() {
            steps.push(Step::Drop);
        }
        if state.process == 0 {
            steps.push(Step::Restart);
        }
        steps.push(Step::Leak);
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let mut state = before.clone();
        match step {
            Step::Connect(responder) => {
                let session = state.begun.len() as u8;
                let token = state.kept.filter(|_| responder == Server);
                if token.is_some() {
                    state.kept = None;
                }
                let syn = Syn { initiator: Client, session, responder, psk: self.psk, token };
                state.begun.push(syn);
                state.sent.insert(Datagram::Syn(syn, None));
            }
            Step::Make(psk) => {
                let token = None;
                let syn = Syn { initiator: Attacker, session: 50, responder: Server, psk, token };
                state.sent.insert(Datagram::Syn(syn, None));
            }
            Step::ToServer(datagram, from) => self.to_server(&mut state, datagram, from),
            Step::ToClient(datagram) => Self::to_client(&mut state, datagram),
            Step::Drop => {
                state.has_dropped = true;
                state.accepted.clear();
            }
            Step::Restart => {
                // Marks, sessions, and the keys of cookies and tokens are gone.
                state.process = 1;
                state.accepted.clear();
                state.marks.clear();
                state.confirmed.clear();
                let old = |number| Token { client: Client, number };
                state.redeemed.extend((0..state.next).map(old));
            }
            Step::Leak => state.has_leaked = true,
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "who is confirmed as the client has completed this very handshake",
                |_, state: &World| {
                    let confirmed = state.accepted.iter().filter(|one| one.is_confirmed);
                    confirmed
                        .filter(|one| one.answer.of.initiator == Client)
                        .all(|one| state.completed.contains(&one.answer))
                },
            ),
            Property::always(
                "a completed handshake was answered by whom it was for",
                |_, state: &World| {
                    state.completed.iter().all(|one| {
                        one.by == one.of.responder
                            && (one.by != Server || state.sent.contains(&Datagram::SynAck(*one)))
                    })
                },
            ),
            Property::always("nobody completes a handshake with itself", |_, state: &World| {
                state.completed.iter().all(|one| one.by != Client)
            }),
            Property::always(
                "keys between client and server are secret, also after a leak",
                |_, state: &World| {
                    let of_both = |one: &&SynAck| one.by == Server && one.of.initiator == Client;
                    state.completed.iter().filter(of_both).all(|one| !Self::has_keys(one))
                },
            ),
            Property::always("before a leak nobody reads a request", |_, state: &World| {
                let of_both = |syn: &&Syn| syn.responder == Server;
                state.has_leaked
                    || state
                        .begun
                        .iter()
                        .filter(of_both)
                        .all(|syn| !Self::reads_request(state, syn))
            }),
            Property::always(
                "who lacks the pre-shared key is not taken",
                |model: &Self, state: &World| {
                    model.psk == Psk::None
                        || state.taken.iter().all(|syn| syn.initiator != Attacker)
                },
            ),
            Property::always("a request that is no replay is taken once", |_, state: &World| {
                let once = |syn: &Syn| state.fresh.iter().filter(|one| *one == syn).count() == 1;
                state.fresh.iter().all(once)
            }),
            Property::always(AGAIN, |_, state: &World| !state.is_taken_again),
            Property::always(
                "with cookies, unproved addresses get little",
                |model: &Self, state: &World| !model.is_busy || state.unproved == 0,
            ),
            // What the protocol does not promise can happen, or the model is too tame.
            Property::sometimes("a restart lets a request be replayed", |_, state: &World| {
                state.taken.iter().any(|syn| {
                    syn.initiator == Client
                        && state.taken.iter().filter(|one| *one == syn).count() > 1
                })
            }),
            Property::sometimes("the client connects", |_, state: &World| {
                state
                    .accepted
                    .iter()
                    .any(|one| one.is_confirmed && one.answer.of.initiator == Client)
            }),
            Property::sometimes("a token makes a request fresh", |model: &Self, state: &World| {
                model.attempts < 2 || !state.fresh.is_empty()
            }),
            Property::sometimes("a leak shows a request", |model: &Self, state: &World| {
                model.psk == Psk::Shared
                    || state
                        .begun
                        .iter()
                        .any(|syn| syn.responder == Server && Self::reads_request(state, syn))
            }),
        ]
    }
}

fn check(model: Handshake) {
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn one_attempt_with_an_attacker_on_the_way() {
    for psk in [Psk::None, Psk::Shared] {
        for is_busy in [false, true] {
            // With cookies there are more datagrams, and soon more states than a test has time for.
            let sessions = if is_busy { 1 } else { 2 };
            check(Handshake { psk, is_busy, remembers: true, attempts: 1, sessions });
        }
    }
}

#[test]
fn two_attempts_of_which_one_has_a_token() {
    check(Handshake { psk: Psk::None, is_busy: false, remembers: true, attempts: 2, sessions: 2 });
}

#[test]
fn without_its_memory_a_server_takes_a_request_again() {
    let psk = Psk::None;
    let model = Handshake { psk, is_busy: false, remembers: false, attempts: 1, sessions: 2 };
    let checker = model.checker().spawn_bfs().join();
    assert!(checker.discovery(AGAIN).is_some(), "the model shows the fault");
}
