//! `[swarm]`: an origin, and peers that send on what they have.

use fontis_base::{Duration, Probability, Rate, Size, Stream, Time};
use fontis_net::Outage;

use crate::settings::catalogue::{Key, key};
use crate::settings::error::{ScenarioError, invalid};
use crate::settings::form::Form;
use crate::settings::reader::Reader;
use crate::swarm::{SwarmConduct, SwarmPeer, SwarmSpec};

/// The keys of the table.
pub(super) const KEYS: &[Key] = &[
    key(
        "swarm",
        "peers",
        Form::Count,
        "0",
        "peers that want the object; with any of them, the run is a swarm without flows and links",
    ),
    key("swarm", "blocks", Form::Count, "256", "blocks of the object"),
    key("swarm", "block", Form::Size, "1 MiB", "bytes of a block"),
    key("swarm", "rate", Form::Rate, "50 Mbit/s", "the uplink and the downlink of each node"),
    key("swarm", "up", Form::Rate, "", "the uplinks of peers; swarm.rate if not set"),
    key("swarm", "down", Form::Rate, "", "the downlinks of peers; swarm.rate if not set"),
    key(
        "swarm",
        "up_ratio",
        Form::Number,
        "1",
        "the largest uplink of a peer ÷ the smallest; they are log-uniform about swarm.up",
    ),
    key("swarm", "down_ratio", Form::Number, "1", "the same of downlinks, about swarm.down"),
    key("swarm", "origin", Form::Rate, "", "the origin's uplink; swarm.rate if not set"),
    key("swarm", "delay", Form::Duration, "25 ms", "one way between any two nodes"),
    key("swarm", "loss", Form::Probability, "0", "packets that are lost on the way to some peers"),
    key("swarm", "lossy", Form::Probability, "50%", "share of the peers whose way loses packets"),
    key("swarm", "neighbours", Form::Count, "24", "neighbours of a node, about"),
    key(
        "swarm",
        "uploads",
        Form::Count,
        "3",
        "blocks that a node whose uplink is the peers' mean downlink sends at once; one with a faster uplink sends more",
    ),
    key(
        "swarm",
        "downloads",
        Form::Count,
        "3",
        "blocks that a node of the mean downlink takes at once, those left out that have nearly come; one with a faster downlink takes more",
    ),
    key(
        "swarm",
        "relays",
        Form::Count,
        "0",
        "so many peers know the origin, and the others know only these: two hops; 0: all may know each other",
    ),
    key(
        "swarm",
        "silent",
        Form::Probability,
        "0",
        "share of the relays, or of the peers, that send nothing on",
    ),
    key("swarm", "liars", Form::Count, "0", "peers that send what is wrong"),
    key(
        "swarm",
        "origin_leaves",
        Form::Number,
        "",
        "the origin leaves when it has sent so many times the object",
    ),
    key(
        "swarm",
        "leaving",
        Form::Probability,
        "0",
        "share of the peers that leave, at random times before the least possible time is over",
    ),
    key(
        "swarm",
        "arrivals",
        Form::Duration,
        "0",
        "peers come at random times within so long of the beginning",
    ),
    key(
        "swarm",
        "partition",
        Form::Outage,
        "",
        "when the nodes of two halves do not reach each other; both know it at once",
    ),
];

/// The most peers, and blocks of all of them together: more do not fit in memory.
const MOST_PEERS: u64 = 100_000;
const MOST_BLOCKS: u64 = 50_000_000;

/// The swarm that the settings describe, if they do.
pub(super) fn swarm(read: &Reader<'_>, seed: u64) -> Result<Option<SwarmSpec>, ScenarioError> {
    let peers = read.count("swarm.peers");
    if peers == 0 {
        let mut others = KEYS.iter().map(Key::path).filter(|path| path != "swarm.peers");
        return match others.find(|path| read.sets(path)) {
            Some(path) => {
                invalid(format!("{path} is of a swarm: set swarm.peers to how many peers it has"))
            }
            None => Ok(None),
        };
    }
    let settings = read.settings;
    let has_flows = settings.flows.iter().any(|flow| !flow.is_empty());
    if has_flows || !settings.links.is_empty() || !settings.hosts.is_empty() {
        return invalid(
            "a swarm has no flows, links and hosts: leave them out, or leave swarm.peers out"
                .to_owned(),
        );
    }
    let blocks = read.count("swarm.blocks");
    if peers > MOST_PEERS || peers.saturating_mul(blocks) > MOST_BLOCKS {
        return invalid(format!(
            "{peers} peers × {blocks} blocks: a swarm has at most {MOST_PEERS} peers, and \
             {MOST_BLOCKS} blocks of all of them together"
        ));
    }
    let block = Size::from_bytes(read.size("swarm.block"));
    for key in ["swarm.blocks", "swarm.neighbours", "swarm.uploads", "swarm.downloads"] {
        if read.count(key) == 0 || read.count(key) > u64::from(u32::MAX) {
            return invalid(format!("{key} must be above zero, and below 2^32"));
        }
    }
    if block.as_bytes() == 0 {
        return invalid("swarm.block must be above zero".to_owned());
    }
    let liars = read.count("swarm.liars");
    if liars > peers {
        return invalid(format!("swarm.liars ({liars}) are more than swarm.peers ({peers})"));
    }
    let relays = read.count("swarm.relays");
    if relays > peers {
        return invalid(format!("swarm.relays ({relays}) are more than swarm.peers ({peers})"));
    }
    let own: Rate = read.get("swarm.rate").unwrap_or(Rate::ZERO);
    let rate = |key: &str| match read.get(key).unwrap_or(own) {
        Rate::ZERO => invalid(format!("{key} must be above zero")),
        Rate::MAX => invalid(format!("{key} must be a rate: what has none takes no time")),
        rate => Ok(rate),
    };
    let origin = SwarmPeer { up: rate("swarm.origin")?, ..SwarmPeer::of(own) };
    let base = SwarmPeer { up: rate("swarm.up")?, down: rate("swarm.down")?, ..origin };
    let mut spec = SwarmSpec {
        blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
        block,
        origin,
        origin_sends: origin_sends(read, blocks)?,
        peers: vec![base; peers as usize],
        neighbours: read.count("swarm.neighbours") as usize,
        relays: relays as usize,
        delay: read.duration("swarm.delay"),
        uploads: read.count("swarm.uploads") as usize,
        downloads: read.count("swarm.downloads") as usize,
        partition: partition(read)?,
    };
    choose(read, &mut spec, seed)?;
    Ok(Some(spec))
}

/// The blocks after which the origin leaves.
fn origin_sends(read: &Reader<'_>, blocks: u64) -> Result<Option<u32>, ScenarioError> {
    let Some(times) = read.get::<f64>("swarm.origin_leaves") else { return Ok(None) };
    if times < 1.0 {
        return invalid(format!(
            "swarm.origin_leaves is {times}: an origin that sends less than the object once leaves a \
             swarm that cannot end"
        ));
    }
    Ok(Some((times * blocks as f64).min(f64::from(u32::MAX)) as u32))
}

fn partition(read: &Reader<'_>) -> Result<Option<(Time, Time)>, ScenarioError> {
    let Some(outage) = read.get::<Outage>("swarm.partition") else { return Ok(None) };
    match outage.only() {
        Some(span) => Ok(Some(span)),
        None => invalid("swarm.partition comes once: write AT:FOR, as in \"10s:5s\"".to_owned()),
    }
}

/// Gives each peer what is its own: rates, loss, conduct, times.
fn choose(read: &Reader<'_>, spec: &mut SwarmSpec, seed: u64) -> Result<(), ScenarioError> {
    let count = spec.peers.len();
    for (key, is_up) in [("swarm.up_ratio", true), ("swarm.down_ratio", false)] {
        let ratio: f64 = read.get(key).unwrap_or(1.0);
        if !(1.0..=1e6).contains(&ratio) {
            return invalid(format!("{key} must be between 1 and 1000000, not {ratio}"));
        }
        let mut stream = Stream::new(seed, key);
        for peer in &mut spec.peers {
            let rate = if is_up { &mut peer.up } else { &mut peer.down };
            *rate = rate.scale(libm::pow(ratio, stream.unit() - 0.5)).max(Rate::from_bps(1));
        }
    }
    let share = |key: &str| read.get(key).map_or(0.0, Probability::get);
    let loss = share("swarm.loss");
    if loss >= 1.0 {
        return invalid("swarm.loss must be below 1: nothing would arrive".to_owned());
    }
    if loss > 0.0 {
        for at in chosen(count, share("swarm.lossy"), seed, "swarm.lossy") {
            spec.peers[at].loss = loss;
        }
    }
    let of = if spec.relays > 0 { spec.relays } else { count };
    for at in chosen(of, share("swarm.silent"), seed, "swarm.silent") {
        spec.peers[at].conduct = SwarmConduct::Silent;
    }
    let liars = read.count("swarm.liars") as f64 / count as f64;
    for at in chosen(count, liars, seed, "swarm.liars") {
        spec.peers[at].conduct = SwarmConduct::Lies;
    }
    let feeds = |peer: &SwarmPeer| peer.conduct == SwarmConduct::Honest;
    if spec.relays > 0 && !spec.peers[..spec.relays].iter().any(feeds) {
        return invalid(
            "none of swarm.relays sends on what it has: the others would get nothing".to_owned(),
        );
    }
    let within = read.duration("swarm.arrivals").as_secs_f64();
    let mut stream = Stream::new(seed, "swarm.arrivals");
    for peer in spec.peers.iter_mut().filter(|_| within > 0.0) {
        peer.joins = Time::ZERO + Duration::from_secs_f64(within * stream.unit());
    }
    let mut stream = Stream::new(seed, "swarm.leaving/time");
    let least = spec.bound();
    for at in chosen(count, share("swarm.leaving"), seed, "swarm.leaving") {
        let peer = &mut spec.peers[at];
        peer.leaves = Some(peer.joins + Duration::from_secs_f64(least * stream.unit()));
    }
    Ok(())
}

/// A random share of `count`, rounded.
fn chosen(count: usize, share: f64, seed: u64, name: &str) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    let wanted = ((count as f64 * share + 0.5) as usize).min(count);
    let mut stream = Stream::new(seed, name);
    for at in 0..wanted {
        let other = at + stream.below((count - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(wanted);
    all
}
