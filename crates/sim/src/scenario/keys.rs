use super::value::Form;

/// A key that scenario files may set.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its table: `scenario`, `topology`, `queue`, `link`, `tcp`, `dfcp`, `flow` and so on.
    pub table: &'static str,
    /// Its name in the table.
    pub name: &'static str,
    /// What its value must be.
    pub form: Form,
    /// What it is if it is not set; empty if nothing.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

impl Key {
    /// The name with its table, as sweeps and `--set` write it.
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }
}

const fn key(
    table: &'static str,
    name: &'static str,
    form: Form,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key { table, name, form, default, meaning }
}

/// What transports there are.
pub(super) const PROTOCOLS: &[&str] = &[
    "newreno",
    "cubic",
    "cubic-hystart",
    "compound",
    "compound-loss-only",
    "vegas",
    "bbr",
    "dctcp",
    "dfcp",
    "dfcp-published",
    "datagrams",
    "command",
];
/// What topologies there are.
pub(super) const TOPOLOGIES: &[&str] = &["dumbbell", "parking-lot"];
/// What applications there are.
pub(super) const APPLICATIONS: &[&str] =
    &["bulk", "object", "constant", "poisson", "on-off", "requests", "short-flows", "list"];
/// Ways through a parking lot.
pub(super) const PATHS: &[&str] = &["all", "first", "second"];

use Form::*;

/// Every key, table by table. Documentation, schema, checks and suggestions are all made from this
/// list.
pub const KEYS: &[Key] = &[
    key("scenario", "id", Text, "", "the experiment's identifier, as `X21`; files are known by it"),
    key("scenario", "title", Text, "", "what it is about, in a line"),
    key("scenario", "paper", Text, "", "the paper it is taken from"),
    key("scenario", "figure", Text, "", "the figure or table there"),
    key("scenario", "minutes", Number, "1", "how long all its runs take on one core, about"),
    key("scenario", "seed", Count, "1", "decides every random process; repetition n adds n"),
    key("scenario", "duration", Duration, "60 s", "how long a run lasts in virtual time"),
    key(
        "scenario",
        "warmup",
        Duration,
        "0",
        "when the measurement window begins; it ends with the run",
    ),
    key("scenario", "sample", Duration, "100 ms", "how often counters are recorded"),
    key(
        "scenario",
        "repetitions",
        Count,
        "1",
        "how many runs there are of each case, each with a seed of its own",
    ),
    key(
        "scenario",
        "measure",
        Size,
        "",
        "of each flow, the time that so many bytes take from the measurement window's beginning is recorded",
    ),
    key(
        "scenario",
        "until_done",
        Flag,
        "false",
        "end a run as soon as every flow that has an end has come to it",
    ),
    key(
        "scenario",
        "host_jitter",
        Duration,
        "20 us",
        "uniform random delay of each packet at its sender, against phase effects; 0 switches it off",
    ),
    key("scenario", "start_jitter", Duration, "0", "uniform random delay of each flow's start"),
    key("topology", "kind", Names(TOPOLOGIES), "dumbbell", "one bottleneck, or two in a row"),
    key(
        "topology",
        "rate",
        Rate,
        "100 Mbit/s",
        "the bottleneck's rate, both ways; in a parking lot, the first one's",
    ),
    key(
        "topology",
        "rate2",
        Rate,
        "",
        "parking lot: the second bottleneck's rate; as the first if not set",
    ),
    key(
        "topology",
        "rtt",
        Duration,
        "50 ms",
        "the round-trip time without queues; in a parking lot, over the first bottleneck",
    ),
    key(
        "topology",
        "rtt2",
        Duration,
        "",
        "parking lot: the round-trip time over the second bottleneck; as over the first if not set",
    ),
    key(
        "topology",
        "access",
        Rate,
        "",
        "the rate of each sender's link; access_ratio times the bottleneck's if not set",
    ),
    key(
        "topology",
        "access_ratio",
        Count,
        "10",
        "the rate of each sender's link ÷ the bottleneck's",
    ),
    key(
        "topology",
        "overload",
        Number,
        "",
        "the rates of all senders' links together ÷ the bottleneck's, in place of access_ratio",
    ),
    key(
        "topology",
        "buffer",
        Buffer,
        "1 BDP",
        "what waits at a bottleneck at most: a size, packets, or bandwidth-delay products",
    ),
    key(
        "topology",
        "buffer2",
        Buffer,
        "",
        "parking lot: the second bottleneck's buffer; as the first's if not set",
    ),
    key("topology", "queue", Queue, "fifo", "the queue discipline of the bottlenecks"),
    key(
        "topology",
        "loss",
        Loss,
        "none",
        "random loss at the bottleneck in the direction of the data: a probability, gilbert:P,Q or ge:P,Q,GOOD,BAD",
    ),
    key("topology", "loss2", Loss, "none", "parking lot: random loss at the second bottleneck"),
    key("topology", "loss_back", Loss, "none", "random loss in the other direction"),
    key(
        "topology",
        "loss_at",
        LossAt,
        "after",
        "whether random loss comes before the queue or after the line",
    ),
    key(
        "topology",
        "rate_changes",
        Changes,
        "",
        "a list of TIME:RATE; the first bottleneck has that rate from then on",
    ),
    key(
        "topology",
        "rate_trace",
        Trace,
        "",
        "the first bottleneck sends when a trace lets it, in place of a rate: a file in mahimahi's format, or cellular: and a model's mean rate, coefficient of variation, length and seed; relative to the scenario's folder",
    ),
    key(
        "topology",
        "delay_changes",
        Changes,
        "",
        "a list of TIME:DELAY; the first bottleneck adds that one-way delay to the round-trip time from then on",
    ),
    key("topology", "outage", Outage, "", "when the first bottleneck loses all that enters it"),
    key(
        "topology",
        "policer",
        Policer,
        "",
        "what exceeds this rate is dropped before the first bottleneck's queue",
    ),
    key(
        "topology",
        "reorder",
        Reorder,
        "",
        "how many packets the first bottleneck holds back so that later ones overtake them",
    ),
    key(
        "topology",
        "duplicate",
        Probability,
        "0",
        "how many packets the first bottleneck delivers twice",
    ),
    key(
        "topology",
        "corrupt",
        Probability,
        "0",
        "in how many packets the first bottleneck flips a bit",
    ),
    key("link", "name", Text, "", "the link's name; FROM-TO if not set"),
    key("link", "from", Text, "", "the router where it begins"),
    key("link", "to", Text, "", "the router where it leads"),
    key(
        "link",
        "one_way",
        Flag,
        "false",
        "no link like it leads back; NAME.back is the one that does",
    ),
    key("link", "record", Flag, "true", "whether its queue is recorded, as a bottleneck's"),
    key("link", "rate", Rate, "", "its rate; topology.rate if not set"),
    key("link", "rate_changes", Changes, "", "a list of TIME:RATE; it has that rate from then on"),
    key(
        "link",
        "rate_trace",
        Trace,
        "",
        "it sends when a trace lets it, in place of a rate: a file in mahimahi's format, or cellular: and a model's mean rate, coefficient of variation, length and seed; relative to the scenario's folder",
    ),
    key("link", "delay", Duration, "0", "its one-way delay"),
    key(
        "link",
        "delay_changes",
        Changes,
        "",
        "a list of TIME:DELAY; it has that delay from then on",
    ),
    key(
        "link",
        "buffer",
        Buffer,
        "",
        "what waits for it at most; topology.buffer if not set. A bandwidth-delay product is its rate times topology.rtt",
    ),
    key("link", "queue", Queue, "", "its queue discipline; topology.queue if not set"),
    key("link", "loss", Loss, "none", "random loss"),
    key(
        "link",
        "loss_at",
        LossAt,
        "after",
        "whether random loss comes before the queue or after the line",
    ),
    key("link", "outage", Outage, "", "when it loses all that enters it"),
    key("link", "policer", Policer, "", "what exceeds this rate is dropped before its queue"),
    key("link", "jitter", Duration, "0", "uniform random delay that keeps the order of packets"),
    key(
        "link",
        "reorder",
        Reorder,
        "",
        "how many packets are held back so that later ones overtake them",
    ),
    key("link", "duplicate", Probability, "0", "how many packets come twice"),
    key("link", "corrupt", Probability, "0", "in how many packets a bit is flipped"),
    key(
        "queue",
        "quantum",
        Count,
        "1500",
        "drr, sfq, fq-codel: bytes that a flow may send in a turn",
    ),
    key(
        "queue",
        "per_flow",
        Flag,
        "false",
        "drr, sfq, wfq: the buffer is every flow's own instead of shared with longest-queue drop",
    ),
    key("queue", "buckets", Count, "1024", "sfq, fq-codel: how many queues flows are spread over"),
    key(
        "queue",
        "mark_above",
        Buffer,
        "65 packets",
        "fifo-ecn: packets are marked when this much waits",
    ),
    key(
        "queue",
        "min_threshold",
        Buffer,
        "",
        "red: the mean queue at which drops begin; a sixth of the buffer if not set",
    ),
    key(
        "queue",
        "max_threshold",
        Buffer,
        "",
        "red: the mean queue at which the drop probability is at its maximum; half the buffer if not set",
    ),
    key(
        "queue",
        "max_probability",
        Probability,
        "10%",
        "red: the drop probability at the upper threshold",
    ),
    key("queue", "weight", Number, "0.002", "red: the weight of a packet in the mean queue"),
    key(
        "queue",
        "target",
        Duration,
        "5 ms",
        "codel, fq-codel: the standing delay that is accepted",
    ),
    key(
        "queue",
        "interval",
        Duration,
        "100 ms",
        "codel, fq-codel: the order of a worst-case round-trip time",
    ),
    key("queue", "share", Probability, "50%", "two-class: the share of traffic class 0"),
    key("tcp", "mtu", Count, "1500", "bytes of a full packet"),
    key("tcp", "recovery", Names(&["rfc6675", "rack-tlp"]), "rfc6675", "how losses are recognised"),
    key("tcp", "sack", Flag, "true", "selective acknowledgement"),
    key("tcp", "timestamps", Flag, "true", "timestamps, 12 bytes of every segment"),
    key("tcp", "ecn", Flag, "false", "explicit congestion notification"),
    key("tcp", "pacing", Flag, "false", "segments leave evenly spaced"),
    key("tcp", "initial_window", Count, "10", "segments sent before the first acknowledgement"),
    key(
        "tcp",
        "max_window",
        Size,
        "",
        "the most bytes outstanding, as in stacks with a fixed window; no limit if not set",
    ),
    key(
        "tcp",
        "delayed_ack",
        Duration,
        "40 ms",
        "how long an acknowledgement may wait; 0 acknowledges every segment",
    ),
    key(
        "tcp",
        "min_rto",
        Duration,
        "200 ms",
        "the least that the timeout lies above the round-trip time",
    ),
    key(
        "dfcp",
        "rate",
        Text,
        "greedy",
        "greedy (the access link's rate), auto, friendly (as CUBIC), or a rate",
    ),
    key(
        "dfcp",
        "redundancy",
        Names(&["measured", "until-acknowledged"]),
        "measured",
        "how many symbols are sent: as many as the loss asks for, or until the block is acknowledged",
    ),
    key(
        "dfcp",
        "mtu",
        Count,
        "1500",
        "bytes of a full packet that paths carry, as path MTU discovery finds out",
    ),
    key("dfcp", "window", Count, "1000", "blocks sent and not acknowledged at most"),
    key("dfcp", "block", Size, "63536 B", "bytes in a block"),
    key(
        "published",
        "rate",
        Text,
        "greedy",
        "greedy (the access link's rate), a rate, oracle (max-min fair, at once), sdn (a controller's, see there), or marks (experimental: slows down for marked packets)",
    ),
    key("published", "redundancy", Number, "0.05", "ε, as a share of the block"),
    key("published", "window", Count, "1000", "W, blocks sent and not acknowledged at most"),
    key("published", "block", Size, "63536 B", "k, bytes of a block"),
    key("published", "payload", Size, "1452 B", "encoded bytes in a full packet"),
    key(
        "published",
        "sending",
        Names(&["two-phase", "round-robin", "until-acknowledged"]),
        "two-phase",
        "which packets are sent when (D-13)",
    ),
    key(
        "published",
        "plan",
        Names(&["measured", "fixed"]),
        "measured",
        "two-phase: whether the first pass over a block is as long as the loss asks for, or (1+ε)k bytes",
    ),
    key(
        "published",
        "need",
        Names(&["redundancy", "code"]),
        "redundancy",
        "what a block needs: (1+ε)k bytes, or what the code needs",
    ),
    key(
        "published",
        "last_packet",
        Names(&["short", "full"]),
        "short",
        "how the first pass over a block ends (D-14)",
    ),
    key(
        "published",
        "coding",
        Names(&["counting", "real"]),
        "counting",
        "whether bytes are only counted, or encoded and decoded",
    ),
    key("published", "decode", Flag, "true", "whether receivers decode, where bytes are encoded"),
    key("published", "acknowledge", Flag, "true", "whether receivers acknowledge blocks"),
    key(
        "published",
        "control_class",
        Count,
        "0",
        "the traffic class of handshakes and acknowledgements (D-03)",
    ),
    key("published", "gain", Number, "0.5", "marks: how strongly a sender slows down"),
    key("sdn", "response", Duration, "50 ms", "from a change to the sender's adaptation"),
    key("sdn", "poll", Duration, "100 ms", "how often the controller looks"),
    key("sdn", "error", Probability, "0", "how wrong its rates are"),
    key(
        "sdn",
        "error_model",
        Names(&["over", "uniform"]),
        "over",
        "whether rates are always too high by the error, or uniform around the right one (D-37)",
    ),
    key(
        "flow",
        "name",
        Text,
        "",
        "the flow's name; with a count, a number is added. `flow1` and so on if not set",
    ),
    key("flow", "count", Count, "1", "how many such flows there are"),
    key("flow", "protocol", Names(PROTOCOLS), "cubic", "what transports it"),
    key("flow", "start", Duration, "0", "when it begins"),
    key("flow", "app", Names(APPLICATIONS), "bulk", "what is transported"),
    key(
        "flow",
        "size",
        Size,
        "1 MB",
        "object: its bytes; short-flows: their mean; requests: bytes of an answer",
    ),
    key(
        "flow",
        "rate",
        Rate,
        "1 Mbit/s",
        "constant, poisson, on-off: bytes of payload per time; short-flows: the load that they offer",
    ),
    key(
        "flow",
        "piece",
        Size,
        "1000 B",
        "constant, poisson, on-off: bytes written at a time; of a datagram",
    ),
    key("flow", "on", Duration, "1 s", "on-off: mean length of a burst"),
    key("flow", "off", Duration, "1 s", "on-off: mean length of a pause"),
    key("flow", "request", Size, "200 B", "requests: bytes of a request"),
    key(
        "flow",
        "think",
        Duration,
        "0",
        "requests: mean time between an answer and the next request",
    ),
    key("flow", "requests", Count, "0", "requests: how many there are; 0 is without end"),
    key("flow", "list", Changes, "", "list: one entry TIME:SIZE for each flow"),
    key("flow", "rtt", Duration, "", "its own round-trip time; the topology's if not set"),
    key("flow", "access", Rate, "", "the rate of its sender's link; the topology's if not set"),
    key("flow", "loss", Loss, "none", "random loss on its sender's link"),
    key(
        "flow",
        "path",
        Names(PATHS),
        "all",
        "parking lot: whether it crosses both bottlenecks or one",
    ),
    key("flow", "from", Text, "", "links of one's own: the router that its sender is behind"),
    key("flow", "to", Text, "", "links of one's own: the router that its receiver is behind"),
    key(
        "flow",
        "command",
        Text,
        "",
        "protocol command, on the testbed: a command line for sh at the sender; FONTIS_ADDRESS and FONTIS_PEER are its address and the receiver's",
    ),
    key(
        "flow",
        "peer_command",
        Text,
        "",
        "protocol command: a command line at the receiver, from the beginning of the run to its end; none if not set",
    ),
    key(
        "flow",
        "subflows",
        Count,
        "0",
        "subflows of the kernel's Multipath TCP, each from an address of its own, on the testbed; 0 is plain TCP",
    ),
    key(
        "flow",
        "via",
        Text,
        "",
        "subflows in links of one's own: the routers that they pass, one for each, as in \"sat, cell\"; the others take the shortest way",
    ),
    key("flow", "class", Count, "0", "the traffic class of its packets"),
    key("flow", "max_window", Size, "", "tcp.max_window of this flow"),
];

/// The tables that there are.
pub const TABLES: &[(&str, &str)] = &[
    ("scenario", "What the experiment is, how long it lasts and how often it is repeated."),
    ("topology", "The network between the hosts."),
    (
        "link",
        "`[[link]]`, once for each link of a network of one's own, in place of `topology.kind`: links lead from router to router, alike both ways; flows say between which routers they go, and packets cross as few links as they can.",
    ),
    ("queue", "What is set of the queue discipline; each looks at what concerns it."),
    ("tcp", "All TCP endpoints."),
    ("dfcp", "All DFCP endpoints. Symbols are counted, not encoded."),
    (
        "published",
        "All endpoints of the DFCP of 2015, protocol `dfcp-published`. D-nn are what its texts leave open.",
    ),
    ("sdn", "The controller that tells flows of `dfcp-published` their rates."),
    ("flow", "`[[flow]]`, once for each kind of flow."),
];

/// The key of this path, as `topology.rate`.
pub fn find(path: &str) -> Option<&'static Key> {
    let (table, name) = path.split_once('.')?;
    KEYS.iter().find(|key| key.table == table && key.name == name)
}

/// The path that is written most like this one.
pub fn nearest(path: &str) -> Option<String> {
    let paths = KEYS.iter().map(Key::path);
    closest(path, paths)
}

/// Of the candidates, the one most like `text`, if any is like it at all.
pub(super) fn closest(text: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(text, &candidate), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= candidate.len().max(text.len()) / 2)
        .map(|(_, candidate)| candidate)
}
