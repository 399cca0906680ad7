//! Two ends on this machine.

use std::time::Duration;

use fontis_base::Stream;
use fontis_proto::data_channel::{ChannelContent, DataChannelError, DataChannelOptions};
use fontis_rtc::{RtcConfig, RtcError, RtcPeer};

const PATIENCE: Duration = Duration::from_secs(30);

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

async fn peer() -> RtcPeer {
    let addresses = vec!["127.0.0.1:0".parse().expect("an address")];
    RtcPeer::bind(RtcConfig { addresses, ..RtcConfig::default() }).await.expect("a peer")
}

/// Two peers, of which the first makes the offer.
async fn connected() -> [RtcPeer; 2] {
    let [a, b] = [peer().await, peer().await];
    let answer = b.answer(&a.offer().expect("an offer")).expect("an answer");
    a.accept(&answer).expect("it is taken");
    a.connected().await.expect("a connection");
    b.connected().await.expect("a connection");
    [a, b]
}

fn labelled(label: &str) -> DataChannelOptions {
    DataChannelOptions { label: label.into(), ..DataChannelOptions::default() }
}

fn any(random: &mut Stream) -> ChannelContent {
    // Log-uniform to 200 kB, and empty now and then.
    let len = (200_000_f64.powf(random.unit()) as usize).saturating_sub(1);
    if random.below(2) == 0 {
        return ChannelContent::Text("ä".repeat(len / 2));
    }
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    ChannelContent::Binary(bytes.into())
}

#[tokio::test]
async fn messages_of_channels_of_both_ends_come_back_as_they_were() {
    let [a, b] = in_time(connected()).await;
    tokio::spawn(async move {
        while let Ok(Some(channel)) = b.incoming().await {
            tokio::spawn(async move {
                while let Ok(Some(content)) = channel.recv().await {
                    channel.send(content).await.expect("it is sent back");
                }
            });
        }
    });
    let seed = std::process::id().into();
    let mut random = Stream::new(seed, "messages");
    for number in 0..3 {
        let channel = in_time(a.open(labelled(&format!("echo {number}")))).await.expect("open");
        for _ in 0..30 {
            let content = any(&mut random);
            in_time(channel.send(content.clone())).await.expect("it is sent");
            let back = in_time(channel.recv()).await.expect("no failure");
            assert!(back == Some(content), "seed {seed}");
        }
    }
}

#[tokio::test]
async fn a_channel_that_is_dropped_ends_at_the_other_end_after_its_messages() {
    let [a, b] = in_time(connected()).await;
    for _ in 0..3 {
        let channel = in_time(b.open(labelled("short"))).await.expect("a channel");
        let id = channel.id();
        for number in 0..100 {
            let text = ChannelContent::Text(format!("{number}"));
            in_time(channel.send(text)).await.expect("it is sent");
        }
        drop(channel);
        let channel = in_time(a.incoming()).await.expect("no failure").expect("a channel");
        assert_eq!((channel.id(), &*channel.options().label), (id, "short"));
        for number in 0..100 {
            let text = in_time(channel.recv()).await.expect("no failure");
            assert_eq!(text, Some(ChannelContent::Text(format!("{number}"))));
        }
        assert_eq!(in_time(channel.recv()).await.expect("no failure"), None);
        let late = in_time(channel.send(ChannelContent::Text("late".into()))).await;
        assert!(matches!(late, Err(RtcError::Channel(DataChannelError::Closed(_)))), "{late:?}");
    }
}

#[tokio::test]
async fn what_was_sent_before_a_peer_was_dropped_arrives() {
    let [a, b] = in_time(connected()).await;
    let channel = in_time(a.open(labelled("last"))).await.expect("a channel");
    let long = ChannelContent::Binary(vec![7; 200_000].into());
    for _ in 0..20 {
        in_time(channel.send(long.clone())).await.expect("it is sent");
    }
    drop(a);
    drop(channel);
    let channel = in_time(b.incoming()).await.expect("no failure").expect("a channel");
    for _ in 0..20 {
        assert!(in_time(channel.recv()).await.expect("no failure") == Some(long.clone()));
    }
    assert_eq!(in_time(channel.recv()).await.expect("no failure"), None);
    assert!(in_time(b.incoming()).await.expect("no failure").is_none());
}

#[tokio::test]
async fn a_peer_with_another_certificate_is_not_talked_to() {
    let [a, b] = [peer().await, peer().await];
    let offer = a.offer().expect("an offer");
    let at = offer.find("sha-256 ").expect("a fingerprint") + 8;
    let digit = if offer[at..].starts_with('0') { "1" } else { "0" };
    let forged = format!("{}{digit}{}", &offer[..at], &offer[at + 1..]);
    a.accept(&b.answer(&forged).expect("an answer")).expect("it is taken");
    let error = in_time(b.connected()).await.expect_err("a stranger");
    assert!(matches!(error, RtcError::Stranger), "{error}");
    let other = in_time(a.connected()).await;
    assert!(other.is_err());
}

#[tokio::test]
async fn descriptions_out_of_their_order_are_refused() {
    let [a, b] = [peer().await, peer().await];
    let offer = a.offer().expect("an offer");
    assert_eq!(a.offer().expect("the same"), offer);
    let answer = b.answer(&offer).expect("an answer");
    assert!(matches!(a.answer(&offer), Err(RtcError::Order(_))));
    assert!(matches!(b.answer(&offer), Err(RtcError::Order(_))));
    assert!(matches!(b.offer(), Err(RtcError::Order(_))));
    assert!(matches!(b.accept(&answer), Err(RtcError::Order(_))));
    assert!(matches!(a.accept("v=0"), Err(RtcError::Description(_))));
    assert!(matches!(a.accept(&offer), Err(RtcError::Description(_))), "who begins is open");
    a.accept(&answer).expect("it is taken");
    assert!(matches!(a.accept(&answer), Err(RtcError::Order(_))));
    in_time(a.connected()).await.expect("a connection");
}

#[tokio::test]
async fn messages_longer_than_the_peer_takes_are_refused_and_the_channel_lives() {
    let addresses = vec!["127.0.0.1:0".parse().expect("an address")];
    let config = RtcConfig { addresses, longest_message: 1000, ..RtcConfig::default() };
    let [a, b] = [peer().await, RtcPeer::bind(config).await.expect("a peer")];
    a.accept(&b.answer(&a.offer().expect("an offer")).expect("an answer")).expect("it is taken");
    let channel = in_time(a.open(labelled("small"))).await.expect("a channel");
    let sent = in_time(channel.send(ChannelContent::Binary(vec![0; 1001].into()))).await;
    let expected = DataChannelError::LongMessage { len: 1001, most: 1000 };
    assert!(matches!(sent, Err(RtcError::Channel(error)) if error == expected), "{sent:?}");
    in_time(channel.send(ChannelContent::Binary(vec![0; 1000].into()))).await.expect("it is sent");
    let other = in_time(b.incoming()).await.expect("no failure").expect("a channel");
    let content = in_time(other.recv()).await.expect("no failure").expect("a message");
    assert_eq!(content.len(), 1000);
}
