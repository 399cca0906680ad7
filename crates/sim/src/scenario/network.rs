//! The keys of networks.

use crate::settings::catalogue::{Key, key, names};
use crate::settings::form::Form::{
    Buffer, Changes, Count, Duration, Flag, Loss, LossAt, Number, Outage, Policer, Probability,
    Queue, Rate, Reorder, Text, Texts, Trace,
};
use crate::settings::profile;

/// The topologies.
const TOPOLOGIES: &[&str] = &["dumbbell", "parking-lot"];

pub(super) const TOPOLOGY: &[Key] = &[
    key("topology", "kind", names(TOPOLOGIES), "dumbbell", "one bottleneck, or two in a row"),
    key(
        "topology",
        "profile",
        names(profile::NAMES),
        "none",
        "a link that has a name; what the scenario sets itself comes before it. ipstar is the satellite link of Sarwar's thesis: 1 Mbit/s, back 256 kbit/s, a round trip of 1.1 s and 0.1 % of loss; bgan is Inmarsat's: 492 kbit/s and 1.3 s",
    ),
    key(
        "topology",
        "rate",
        Rate,
        "100 Mbit/s",
        "the bottleneck's rate, both ways; in a parking lot, the first one's",
    ),
    key(
        "topology",
        "rate_back",
        Rate,
        "",
        "dumbbell: the rate of the other direction; as the bottleneck's if not set",
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
        "frame",
        Duration,
        "",
        "the first bottleneck sends in bursts, as shared satellite links do: once in each such time what its rate allows in it",
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
        "how many packets the first bottleneck holds back so that later ones overtake them; by how much, uniformly within SPREAD of it, or exponentially with that mean",
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

pub(super) const LINK: &[Key] = &[
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
    key(
        "link",
        "frame",
        Duration,
        "",
        "it sends in bursts, as shared satellite links do: once in each such time what its rate allows in it",
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
        "how many packets are held back so that later ones overtake them; by how much, uniformly within SPREAD of it, or exponentially with that mean",
    ),
    key("link", "duplicate", Probability, "0", "how many packets come twice"),
    key("link", "corrupt", Probability, "0", "in how many packets a bit is flipped"),
];

pub(super) const HOST: &[Key] = &[
    key("host", "name", Text, "", "the host's name; routers and hosts share one name space"),
    key(
        "host",
        "count",
        Count,
        "1",
        "how many such hosts there are: NAME.1 and so on, each with links of its own like those of NAME; as a group's member NAME is all of them",
    ),
];

pub(super) const GROUP: &[Key] = &[
    key("group", "name", Text, "", "the group's name, in the name space of routers and hosts"),
    key("group", "members", Texts, "", "hosts, or HOST/LINK for one interface, from the beginning"),
    key("group", "join", Changes, "", "a list of TIME:HOST; the host is a member from then on"),
    key("group", "leave", Changes, "", "a list of TIME:HOST; the host is a member until then"),
];
