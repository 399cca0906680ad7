//! The rules of FLD_TCP as a scenario sets them.

use fontis_base::Size;
use fontis_proto::congestion::{
    Boost, CongestionKind, CongestionMaker, Counting, Exit, Fld, FldOptions, Length, LengthOf,
    Repair, SlowStartGuard,
};

use crate::settings::catalogue::{Key, Place, TableRow, key, names};
use crate::settings::form::Form::{self, Count, Flag};
use crate::settings::reader::Reader;

/// The table of the rules.
pub(super) const TABLE: TableRow = TableRow {
    name: "fld",
    meaning: "The rules of FLD_TCP, for flows whose protocol is `fld`, `fld-linux`, `fld-thesis` or \
              `fld-ns2`. A rule that is not set is the protocol's own; the defaults here are those \
              of `fld`.",
    keys: KEYS,
    place: Place::Transport,
};

const LENGTHS: Form = names(&["sent", "acknowledged"]);

const KEYS: &[Key] = &[
    key("fld", "threshold", Form::Size, "", "a longer flow behaves like Reno; 2 MiB if not set"),
    key(
        "fld",
        "increase",
        Count,
        "",
        "segments that an acknowledgement adds in a short flow's slow start; 2 if not set",
    ),
    key(
        "fld",
        "boost",
        names(&["first", "any"]),
        "",
        "the slow starts with that increase: `first`, until the first loss, if not set",
    ),
    key(
        "fld",
        "growth_length",
        LENGTHS,
        "",
        "the length that ends the increase; bytes sent if not set",
    ),
    key(
        "fld",
        "loss_length",
        LENGTHS,
        "",
        "the length that ends a short flow's response to losses; bytes acknowledged if not set",
    ),
    key(
        "fld",
        "relentless",
        Flag,
        "",
        "whether a short flow gives up one segment for a loss, and no more; true if not set",
    ),
    key(
        "fld",
        "repair",
        names(&["one-per-ack", "delivered"]),
        "",
        "segments that an acknowledgement releases in recovery: as many as it delivers if not set",
    ),
    key(
        "fld",
        "exit",
        names(&["jump", "regrow"]),
        "",
        "whether the window after a recovery jumps to its threshold or grows to it; jumps if not set",
    ),
    key(
        "fld",
        "divisor",
        Count,
        "",
        "a long flow keeps one part in so many of its window; 2 if not set",
    ),
    key(
        "fld",
        "counting",
        names(&["acknowledgements", "segments"]),
        "",
        "what widens the window; segments that are acknowledged if not set",
    ),
    key("fld", "gated", Flag, "", "whether only a full window grows; true if not set"),
    key(
        "fld",
        "inclusive",
        Flag,
        "",
        "whether the last step of slow start may pass its threshold; false if not set",
    ),
    key(
        "fld",
        "keeps_after_timeout",
        Flag,
        "",
        "whether a timeout leaves a short flow's window as threshold of slow start; true if not set",
    ),
    key(
        "fld",
        "relentless_to_marks",
        Flag,
        "",
        "whether a mark costs a short flow one segment instead of half its window; false if not set",
    ),
    key(
        "fld",
        "decays_when_idle",
        Flag,
        "",
        "whether a pause shrinks the window; false if not set",
    ),
    key(
        "fld",
        "guard",
        names(&["none", "hystart", "hystart++", "limited"]),
        "",
        "what keeps slow start from overshooting: HyStart as in Linux, HyStart++ (RFC 9406) or limited slow start (RFC 3742); nothing if not set",
    ),
    key(
        "fld",
        "threshold_time",
        Form::Duration,
        "",
        "the threshold is what the best round trip so far would carry in this time, and at least `threshold`; `threshold` alone if not set",
    ),
    key(
        "fld",
        "length_of",
        names(&["connection", "object", "stream"]),
        "",
        "whose length counts: a connection's if not set, that of what was written since all before was acknowledged, or of SCTP the shortest stream's that has something to send",
    ),
];

/// The constructor of the algorithm with the scenario's rules, if it sets any for this kind.
pub(super) fn maker(read: &Reader<'_>, kind: CongestionKind) -> Option<CongestionMaker> {
    let options = kind.fld()?;
    if !KEYS.iter().any(|key| read.sets(&key.path())) {
        return None;
    }
    let options = changed(read, options);
    Some(CongestionMaker::new(move |mss, window| Box::new(Fld::new(mss, window, options))))
}

fn changed(read: &Reader<'_>, own: FldOptions) -> FldOptions {
    let flag = |name: &str, own| read.get(&format!("fld.{name}")).unwrap_or(own);
    let count = |name: &str, own: u64| read.get(&format!("fld.{name}")).unwrap_or(own).max(1);
    /// The value with this name, or the rule as it was.
    fn named<T: Copy>(read: &Reader<'_>, name: &str, own: T, values: &[(&str, T)]) -> T {
        let text = read.text(&format!("fld.{name}"));
        values.iter().find(|(name, _)| *name == text).map_or(own, |(_, value)| *value)
    }
    let lengths = [("sent", Length::Sent), ("acknowledged", Length::Acknowledged)];
    FldOptions {
        threshold: read.get::<Size>("fld.threshold").map_or(own.threshold, Size::as_bytes),
        increase: count("increase", own.increase),
        boost: named(read, "boost", own.boost, &[("first", Boost::First), ("any", Boost::Any)]),
        growth_length: named(read, "growth_length", own.growth_length, &lengths),
        loss_length: named(read, "loss_length", own.loss_length, &lengths),
        is_relentless: flag("relentless", own.is_relentless),
        repair: named(
            read,
            "repair",
            own.repair,
            &[("one-per-ack", Repair::OnePerAck), ("delivered", Repair::Delivered)],
        ),
        exit: named(read, "exit", own.exit, &[("jump", Exit::Jump), ("regrow", Exit::Regrow)]),
        divisor: count("divisor", own.divisor),
        counting: named(
            read,
            "counting",
            own.counting,
            &[("acknowledgements", Counting::Acknowledgements), ("segments", Counting::Segments)],
        ),
        is_gated: flag("gated", own.is_gated),
        is_inclusive: flag("inclusive", own.is_inclusive),
        least: own.least,
        keeps_after_timeout: flag("keeps_after_timeout", own.keeps_after_timeout),
        is_relentless_to_marks: flag("relentless_to_marks", own.is_relentless_to_marks),
        decays_when_idle: flag("decays_when_idle", own.decays_when_idle),
        guard: named(
            read,
            "guard",
            own.guard,
            &[
                ("none", SlowStartGuard::None),
                ("hystart", SlowStartGuard::HyStart),
                ("hystart++", SlowStartGuard::HyStartPlus),
                ("limited", SlowStartGuard::Limited),
            ],
        ),
        threshold_time: read.get("fld.threshold_time").unwrap_or(own.threshold_time),
        length_of: named(
            read,
            "length_of",
            own.length_of,
            &[
                ("connection", LengthOf::Connection),
                ("object", LengthOf::Object),
                ("stream", LengthOf::Stream),
            ],
        ),
    }
}
