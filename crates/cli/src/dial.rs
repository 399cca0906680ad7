//! Connecting to the addresses of a host in turn.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fontis::transfer::{Progress, resolve};
use fontis::{ConnectError, Url};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::listen::status;

/// The time for an address to answer while there are others to try.
const IMPATIENCE: Duration = Duration::from_secs(3);

/// The first pause before reconnecting, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Records whether the peer has answered, and whether something answered that seems to hold
/// another key.
#[derive(Clone, Debug, Default)]
pub struct Answered(Arc<watch::Sender<bool>>, Arc<AtomicBool>);

impl Answered {
    /// Takes an event of progress.
    pub fn see(&self, progress: &Progress) {
        if matches!(progress, Progress::Connected { .. }) {
            self.0.send_replace(true);
        }
        if matches!(progress, Progress::Doubted { .. }) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    /// Completes when `time` has passed without an answer; never after an answer.
    async fn missing_for(&self, time: Duration) {
        let mut answered = self.0.subscribe();
        let answer = answered.wait_for(|answered| *answered);
        if tokio::time::timeout(time, answer).await.is_ok() {
            std::future::pending::<()>().await;
        }
    }
}

/// Runs `attempt` again when an established connection is lost, at most `retries` times in a row,
/// with growing pauses. `attempt` sets the flag when it has connected.
pub async fn persist<T>(
    retries: u32,
    attempt: impl AsyncFn(&AtomicBool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut left = 0;
    loop {
        let connected = AtomicBool::new(false);
        let result = attempt(&connected).await;
        let Err(Failure::Away(text)) = result else { return result };
        if connected.into_inner() {
            left = retries;
        }
        if left == 0 {
            return Err(Failure::Away(text));
        }
        let pause = PAUSE * 2u32.saturating_pow(retries - left);
        left -= 1;
        let pause = pause.min(MAX_PAUSE);
        status(&format!("{text} (in {} s by itself)", pause.as_secs()));
        tokio::time::sleep(pause).await;
    }
}

/// The addresses of the URL's host, in the order in which they are tried; one at least.
pub async fn addresses(url: &Url) -> Result<Vec<SocketAddr>, Failure> {
    let addresses = in_order(resolve(url).await?);
    match addresses.is_empty() {
        true => Err(Failure::Failed(format!("{} has no address: check the name", url.host))),
        false => Ok(addresses),
    }
}

/// Runs `transfer` with the addresses of the URL's host in turn, until one answers.
pub async fn dial<T>(
    url: &Url,
    timeout: Duration,
    transfer: impl AsyncFn(SocketAddr, Answered) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let addresses = addresses(url).await?;
    let (last, others) = addresses.split_last().expect("there is one");
    for address in others {
        let answered = Answered::default();
        match attempt(*address, timeout.min(IMPATIENCE), &answered, &transfer).await {
            Err(_) if !*answered.0.borrow() => {}
            result => return result,
        }
    }
    let answered = Answered::default();
    attempt(*last, timeout, &answered, &transfer).await
}

async fn attempt<T>(
    address: SocketAddr,
    timeout: Duration,
    answered: &Answered,
    transfer: &impl AsyncFn(SocketAddr, Answered) -> Result<T, Failure>,
) -> Result<T, Failure> {
    tokio::select! {
        result = transfer(address, answered.clone()) => result,
        () = answered.missing_for(timeout) => {
            if answered.1.load(Ordering::Relaxed) {
                return Err(Failure::Failed(ConnectError::WrongKey(address).to_string()));
            }
            Err(Failure::Away(ConnectError::NoAnswer(address).to_string()))
        }
    }
}

/// The addresses, IPv6 before IPv4, in the system's order and without repetition.
fn in_order(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let (mut ordered, ipv4): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(SocketAddr::is_ipv6);
    ordered.extend(ipv4);
    let mut seen = std::collections::BTreeSet::new();
    ordered.retain(|address| seen.insert(*address));
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> Url {
        let key = fontis::Identity::generate().public();
        format!("fontis://localhost:9/?key={key}").parse().unwrap()
    }

    #[test]
    fn ipv6_is_tried_first_and_nothing_twice() {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let found = parse(&["192.0.2.1:9", "[2001:db8::1]:9", "192.0.2.1:9", "192.0.2.2:9"]);
        let ordered: Vec<SocketAddr> = parse(&["[2001:db8::1]:9", "192.0.2.1:9", "192.0.2.2:9"]);
        assert_eq!(in_order(found), ordered);
    }

    #[tokio::test]
    async fn who_does_not_answer_is_given_up_after_the_timeout() {
        let begin = std::time::Instant::now();
        let never = async |_, _| std::future::pending::<Result<(), Failure>>().await;
        let failure = dial(&url(), Duration::from_millis(50), never).await.unwrap_err();
        assert!(failure.to_string().contains("no answer from"), "{failure}");
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test]
    async fn who_has_answered_has_all_the_time_and_no_second_try() {
        let slow = async |remote, answered: Answered| {
            answered.see(&Progress::Connected { remote });
            tokio::time::sleep(Duration::from_millis(100)).await;
            Err::<(), _>(Failure::Failed("later".to_owned()))
        };
        let failure = dial(&url(), Duration::from_millis(20), slow).await.unwrap_err();
        assert_eq!(failure.to_string(), "later");
    }
}
