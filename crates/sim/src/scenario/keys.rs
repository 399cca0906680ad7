//! The tables and keys of scenarios, but for those of transports.

use crate::scenario::network::{GROUP, HOST, LINK, TOPOLOGY};
use crate::scenario::{apps, swarm};
use crate::settings::catalogue::{Key, Place, TableRow, key, names};
use crate::settings::form::Form::{
    Buffer, Changes, Count, Duration, Flag, Loss, Number, Probability, Rate, Size, Text, Texts,
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
