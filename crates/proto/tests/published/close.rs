use fontis_base::{Duration, Time};
use fontis_proto::published::{PublishedConfig, PublishedEvent, PublishedFlags, PublishedState};

use super::pair::Pair;

fn seconds(times: &[Time]) -> Vec<u64> {
    times.iter().map(|at| at.as_nanos() / 1_000_000_000).collect()
}

fn of(pair: &Pair, side: usize, flags: PublishedFlags) -> Vec<Time> {
    let sent = pair.sent[side].iter();
    sent.filter(|(_, packet)| packet.header.flags == flags).map(|(at, _)| *at).collect()
}

#[test]
fn an_unanswered_syn_is_sent_six_times_and_given_up_after_63_seconds() {
    let mut pair = Pair::new(PublishedConfig::default());
    pair.lose = Box::new(|_, _| true);
    pair.run_until(Duration::from_secs(200));
    assert_eq!(seconds(&of(&pair, 0, PublishedFlags::SYN)), [0, 1, 3, 7, 15, 31]);
    let aborted = pair.saw(true, PublishedEvent::Aborted).expect("it gives up");
    assert_eq!(seconds(&[aborted]), [63]);
    assert!(pair.client.is_closed());
}

#[test]
fn an_unanswered_synack_ends_with_a_reset() {
    let mut pair = Pair::new(PublishedConfig::default());
    pair.lose = Box::new(|_, from_client| !from_client);
    pair.run_until(Duration::from_millis(500));
    // The client falls silent, too.
    pair.lose = Box::new(|_, _| true);
    pair.run_until(Duration::from_secs(200));
    assert_eq!(of(&pair, 1, PublishedFlags::SYN.and(PublishedFlags::ACK)).len(), 6);
    assert_eq!(of(&pair, 1, PublishedFlags::RST).len(), 1);
    assert!(pair.server().is_closed());
}

#[test]
fn a_lost_handshake_acknowledgement_is_sent_again_for_the_next_synack() {
    let mut pair = Pair::new(PublishedConfig::default());
    let mut acks = 0;
    pair.lose = Box::new(move |packet, from_client| {
        acks += u32::from(from_client && packet.header.flags == PublishedFlags::ACK);
        from_client && packet.header.flags == PublishedFlags::ACK && acks == 1
    });
    pair.run_until(Duration::from_secs(3));
    assert_eq!(pair.client.state(), PublishedState::Established);
    assert_eq!(pair.server().state(), PublishedState::Established);
    assert_eq!(of(&pair, 0, PublishedFlags::ACK).len(), 2);
}

#[test]
fn both_ends_close_one_after_the_other() {
    let mut pair = Pair::new(PublishedConfig::default());
    pair.client.write(100_000);
    pair.client.finish();
    pair.run_until(Duration::from_millis(300));
    assert_eq!(
        (pair.client.state(), pair.server().state()),
        (PublishedState::FinWait2, PublishedState::CloseWait)
    );
    assert_eq!(pair.server().stats().delivered, 100_000, "all arrived before the FIN");
    pair.server.as_mut().expect("a server").finish();
    pair.run_until(Duration::from_secs(1));
    assert_eq!(
        (pair.client.state(), pair.server().state()),
        (PublishedState::TimeWait, PublishedState::Closed)
    );
    pair.run_until(Duration::from_secs(70));
    assert!(pair.client.is_closed());
    assert!(pair.saw(false, PublishedEvent::PeerFinished).is_some());
    assert!(pair.saw(true, PublishedEvent::Aborted).is_none());
}

#[test]
fn a_close_survives_losses_and_ends_even_if_nobody_hears_it() {
    for seed in 0..20 {
        let mut pair = Pair::losing(PublishedConfig::default(), seed, 0.4);
        pair.client.write(200_000);
        pair.client.finish();
        pair.run_until(Duration::from_secs(60));
        if let Some(server) = &mut pair.server {
            server.finish();
        }
        pair.run_until(Duration::from_secs(400));
        assert!(pair.client.is_closed(), "seed {seed}: {:?}", pair.client.state());
    }
    let mut pair = Pair::new(PublishedConfig::default());
    pair.run_until(Duration::from_secs(1));
    pair.client.finish();
    pair.lose = Box::new(|_, _| true);
    pair.run_until(Duration::from_secs(100));
    assert!(pair.client.is_closed());
    assert_eq!(of(&pair, 0, PublishedFlags::FIN).len(), 6);
}
