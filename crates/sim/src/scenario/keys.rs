//! The tables and keys of scenarios, but for those of transports.

use crate::scenario::{apps, swarm};
use crate::settings::catalogue::{Key, Place, TableRow, key, names};
use crate::settings::form::Form::{
    Buffer, Changes, Count, Duration, Flag, Loss, LossAt, Number, Outage, Policer, Probability,
    Queue, Rate, Reorder, Size, Text, Texts, Trace,
};

/// The tables of scenarios that stand before those of transports.
pub(super) const TABLES: &[TableRow] = &[
    TableRow {
        name: "scenario",
        meaning: "What the experiment is, how long it lasts and how often it is repeated.",
        keys: SCENARIO,
        place: Place::Single,
    },
    TableRow {
        name: "topology",
        meaning: "The network between the hosts.",
        keys: TOPOLOGY,
        place: Place::Single,
    },
    TableRow {
        name: "link",
        meaning: "`[[link]]`, once for each link of a network of one's own, in place of \
                  `topology.kind`. Links join routers and hosts, alike both ways. Packets cross as \
                  few links as they can.",
        keys: LINK,
        place: Place::List,
    },
    TableRow {
        name: "host",
        meaning: "`[[host]]`, once for each machine that flows share. Each link that begins there is \
                  an interface. A flow without a host has hosts of its own behind the routers that it \
                  names.",
        keys: HOST,
        place: Place::List,
    },
    TableRow {
        name: "group",
        meaning: "`[[group]]`, once for each group of hosts that one packet reaches. `flow.to` may \
                  name it, if the transport can reach groups.",
        keys: GROUP,
        place: Place::List,
    },
    TableRow {
        name: "queue",
        meaning: "What is set of the queue discipline; each looks at what concerns it.",
        keys: QUEUE,
        place: Place::Single,
    },
    TableRow {
        name: "swarm",
        meaning: "Many nodes that want the same object, each a source of what it has, in transfers of \
                  blocks (`docs/swarm.md`). In place of flows and links.",
        keys: swarm::KEYS,
        place: Place::Single,
    },
];

/// The table of flows, which stands behind those of transports.
pub(super) const FLOWS: TableRow = TableRow {
    name: "flow",
    meaning: "`[[flow]]`, once for each kind of flow. The table of its transport may stand in it, as \
              in `tcp = { sack = false }`, for this flow alone.",
    keys: FLOW,
    place: Place::List,
};

/// The topologies.
const TOPOLOGIES: &[&str] = &["dumbbell", "parking-lot"];
/// The ways through a parking lot.
const PATHS: &[&str] = &["all", "first", "second"];

/// What a queue gives turns to.
const TURNS: &[&str] = &["flow", "class"];

const SCENARIO: &[Key] = &[
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
];

const TOPOLOGY: &[Key] = &[
    key("topology", "kind", names(TOPOLOGIES), "dumbbell", "one bottleneck, or two in a row"),
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
];

const LINK: &[Key] = &[
    key("link", "name", Text, "", "the link's name; FROM-TO if not set"),
    key("link", "from", Text, "", "the router or host where it begins"),
    key("link", "to", Text, "", "the router or host where it leads"),
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
    key("link", "quanta", Text, "", "drr: its own queue.quanta"),
    key("link", "class_weights", Text, "", "drr, wfq, cell: its own queue.class_weights"),
    key("link", "alpha", Number, "", "drr, wfq, cell: its own queue.alpha"),
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
];

const HOST: &[Key] = &[
    key("host", "name", Text, "", "the host's name; routers and hosts share one name space"),
    key(
        "host",
        "count",
        Count,
        "1",
        "how many such hosts there are: NAME.1 and so on, each with links of its own like those of NAME; as a group's member NAME is all of them",
    ),
];

const GROUP: &[Key] = &[
    key("group", "name", Text, "", "the group's name, in the name space of routers and hosts"),
    key("group", "members", Texts, "", "hosts, or HOST/LINK for one interface, from the beginning"),
    key("group", "join", Changes, "", "a list of TIME:HOST; the host is a member from then on"),
    key("group", "leave", Changes, "", "a list of TIME:HOST; the host is a member until then"),
];

const QUEUE: &[Key] = &[
    key(
        "queue",
        "quantum",
        Count,
        "1500",
        "drr, sfq, fq-codel: bytes that a flow may send in a turn",
    ),
    key(
        "queue",
        "quanta",
        Text,
        "",
        "drr: the same of flows of traffic classes 0, 1 and so on, as in 1500:3000, which gives a flow of class 1 twice the share",
    ),
    key(
        "queue",
        "class_weights",
        Text,
        "",
        "drr, wfq, cell: the weights p of flows of traffic classes 0, 1 and so on, as in 1:2.5; 1 if not set",
    ),
    key(
        "queue",
        "alpha",
        Number,
        "1",
        "drr, wfq: a weight p has p^(1/alpha) times the share of weight 1, which is weighted alpha-fairness; cell: a slot is for the largest p·rate/mean^alpha, which is proportional fair for 1",
    ),
    key(
        "queue",
        "turns",
        names(TURNS),
        "flow",
        "drr, wfq, cell: whether flows share the line, or traffic classes, in each of which flows stand in one queue",
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
    key(
        "queue",
        "short",
        Size,
        "2097152 B",
        "short-first: flows that have had fewer bytes at the IP layer go first",
    ),
    key("queue", "slot", Duration, "2 ms", "cell: the length of a slot"),
    key(
        "queue",
        "average",
        Duration,
        "2 s",
        "cell: the time over which a user's mean rate is taken",
    ),
    key(
        "queue",
        "fading",
        Flag,
        "false",
        "cell: a user's rate is its mean times an exponential variable of mean 1, as of a Rayleigh channel",
    ),
    key("queue", "coherence", Duration, "20 ms", "cell: how long a rate stays that varies"),
    key("queue", "share", Probability, "50%", "two-class: the share of traffic class 0"),
];

const FLOW: &[Key] = &[
    key(
        "flow",
        "name",
        Text,
        "",
        "the flow's name; with a count, a number is added. `flow1` and so on if not set",
    ),
    key("flow", "count", Count, "1", "how many such flows there are"),
    key("flow", "protocol", names(&[]), "cubic", "what transports it"),
    key("flow", "start", Duration, "0", "when it begins"),
    key("flow", "app", names(apps::NAMES), "bulk", "what is transported"),
    key(
        "flow",
        "size",
        Size,
        "1 MB",
        "object: its bytes; short-flows, messages: their mean; requests: bytes of an answer",
    ),
    key(
        "flow",
        "sigma",
        Number,
        "",
        "short-flows, messages: sizes are log-normal, and their logarithm has this standard deviation; if not set, those of short flows are exponential and messages alike",
    ),
    key(
        "flow",
        "rate",
        Rate,
        "1 Mbit/s",
        "constant, poisson, on-off: bytes of payload per time; short-flows, messages: the load that they offer; voice, video: the codec's rate, 64 kbit/s and 2 Mbit/s if not set",
    ),
    key(
        "flow",
        "piece",
        Size,
        "1000 B",
        "constant, poisson, on-off: bytes written at a time; of a datagram; voice: of a frame, 160 B if not set",
    ),
    key(
        "flow",
        "lasts",
        Duration,
        "",
        "constant: how long it sends; to the end of the run if not set",
    ),
    key("flow", "on", Duration, "1 s", "on-off: mean length of a burst; voice: of a talk spurt"),
    key("flow", "off", Duration, "1 s", "on-off, voice: mean length of a pause"),
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
        names(PATHS),
        "all",
        "parking lot: whether it crosses both bottlenecks or one",
    ),
    key(
        "flow",
        "from",
        Text,
        "",
        "links of one's own: the router that its sender is behind, or its sender's host, or HOST/LINK",
    ),
    key("flow", "to", Text, "", "links of one's own: the same for its receiver; or a group"),
    key(
        "flow",
        "paths",
        Texts,
        "",
        "DFCP between hosts: more interfaces of them as HOST/LINK, with a path over each; on the testbed all of one host",
    ),
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
    key(
        "flow",
        "weight",
        Number,
        "",
        "drr, wfq, cell: its weight p at every link; that of its traffic class if not set",
    ),
    key(
        "flow",
        "radio",
        Rate,
        "",
        "cell: the rate of its user's radio, the mean one with fading; the link's rate if not set",
    ),
    key(
        "flow",
        "deadline",
        Duration,
        "",
        "voice, video, messages: how long after it was made a message is of use; 150 ms, 300 ms and 1 s if not set",
    ),
    key("flow", "fps", Count, "25", "video: frames a second"),
    key("flow", "gop", Count, "12", "video: frames from one I frame to the next"),
    key("flow", "b_frames", Count, "2", "video: B frames between two frames that are references"),
    key("flow", "weights", Text, "5:2:1", "video: the sizes of I, P and B frames, as I:P:B"),
    key("flow", "variation", Number, "0.2", "video: coefficient of variation of a frame's size"),
    key(
        "flow",
        "adaptive",
        Flag,
        "false",
        "video: the encoder follows the rate that the transport reports, between flow.least and flow.rate",
    ),
    key("flow", "least", Rate, "200 kbit/s", "video: the least rate of an adaptive encoder"),
];
