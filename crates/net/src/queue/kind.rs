use core::fmt;
use core::str::FromStr;

use fontis_base::Stream;

use crate::error::SpecError;
use crate::queue::cell::RadioCell;
use crate::queue::classes::{Priority, TwoClass};
use crate::queue::codel::CoDel;
use crate::queue::discipline::Queue;
use crate::queue::drr::Drr;
use crate::queue::fifo::Fifo;
use crate::queue::fq_codel::FqCoDel;
use crate::queue::limit::Limit;
use crate::queue::options::QueueOptions;
use crate::queue::ranked::{Rank, Ranked};
use crate::queue::red::Red;
use crate::queue::tail::Tail;
use crate::queue::wfq::Wfq;

/// A queue discipline, known by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// `fifo`: first in, first out; what does not fit is dropped.
    #[default]
    Fifo,
    /// `fifo-ecn`: the same, and packets are marked while more than a threshold waits.
    FifoEcn,
    /// `drr`: deficit round robin between flows.
    Drr,
    /// `drr-literal`: the same as the dissertation prints it, which serves one packet a turn and
    /// forgets no deficit.
    DrrLiteral,
    /// `sfq`: the same between a limited number of queues that flows are spread over.
    Sfq,
    /// `wfq`: weighted fair queueing between flows.
    Wfq,
    /// `red`: random early detection by drops.
    Red,
    /// `red-ecn`: random early detection by marks where the transport understands them, else by
    /// drops.
    RedEcn,
    /// `codel`: controlled delay by drops.
    CoDel,
    /// `codel-ecn`: controlled delay by marks where the transport understands them, else by drops.
    CoDelEcn,
    /// `fq-codel`: controlled delay in each of many queues that take turns.
    FqCoDel,
    /// `fq-codel-ecn`: the same by marks where the transport understands them, else by drops.
    FqCoDelEcn,
    /// `priority`: the highest traffic class first.
    Priority,
    /// `las`: the flow that has had the fewest bytes first.
    Las,
    /// `srpt`: the flow that needs the fewest bytes to its end first.
    Srpt,
    /// `short-first`: flows that have had fewer bytes than a threshold first.
    ShortFirst,
    /// `cell`: a radio cell whose slots go to users by proportional fairness.
    Cell,
    /// `two-class`: line and buffer divided between traffic class 0 and the others.
    TwoClass,
}

impl QueueKind {
    /// Every discipline there is.
    pub const ALL: [(&'static str, Self); 18] = [
        ("fifo", Self::Fifo),
        ("fifo-ecn", Self::FifoEcn),
        ("drr", Self::Drr),
        ("drr-literal", Self::DrrLiteral),
        ("sfq", Self::Sfq),
        ("wfq", Self::Wfq),
        ("red", Self::Red),
        ("red-ecn", Self::RedEcn),
        ("codel", Self::CoDel),
        ("codel-ecn", Self::CoDelEcn),
        ("fq-codel", Self::FqCoDel),
        ("fq-codel-ecn", Self::FqCoDelEcn),
        ("priority", Self::Priority),
        ("two-class", Self::TwoClass),
        ("las", Self::Las),
        ("srpt", Self::Srpt),
        ("short-first", Self::ShortFirst),
        ("cell", Self::Cell),
    ];

    /// An empty queue of this kind. `stream` gives the randomness of those that need some.
    pub fn build<P>(
        self,
        limit: Limit,
        options: &QueueOptions,
        stream: impl FnOnce() -> Stream,
    ) -> Queue<P> {
        let drr = || Drr::new(limit).with_options(options);
        let codel = || CoDel::new(limit).with_options(options);
        let ranked = |rank| Queue::Ranked(Ranked::new(limit, options, rank));
        match self {
            Self::Fifo | Self::FifoEcn => Queue::Fifo(Fifo::with_tail(self.tail(limit, options))),
            Self::Drr => Queue::Drr(drr()),
            Self::DrrLiteral => Queue::Drr(drr().literal()),
            Self::Sfq => Queue::Drr(drr().hashed(stream().next_u64(), options.buckets)),
            Self::Wfq => Queue::Wfq(Wfq::new(limit, options)),
            Self::Red => Queue::Red(Red::new(limit, options, stream())),
            Self::RedEcn => Queue::Red(Red::new(limit, options, stream()).with_ecn()),
            Self::CoDel => Queue::CoDel(codel()),
            Self::CoDelEcn => Queue::CoDel(codel().with_ecn()),
            Self::FqCoDel | Self::FqCoDelEcn => {
                let queue = FqCoDel::new(limit, options, stream().next_u64());
                let ecn = self == Self::FqCoDelEcn;
                Queue::FqCoDel(if ecn { queue.with_ecn() } else { queue })
            }
            Self::Priority => Queue::Priority(Priority::new(limit)),
            Self::Las => ranked(Rank::Attained),
            Self::Srpt => ranked(Rank::Remaining),
            Self::ShortFirst => ranked(Rank::Short(options.short.as_bytes())),
            Self::Cell => Queue::Cell(RadioCell::new(limit, options, stream)),
            Self::TwoClass => Queue::TwoClass(TwoClass::new(limit, options)),
        }
    }

    /// Whether packets leave in the order in which they come, and only the last is ever dropped.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Fifo | Self::FifoEcn)
    }

    /// What decides who may join a plain queue.
    pub(crate) fn tail(self, limit: Limit, options: &QueueOptions) -> Tail {
        match self {
            Self::FifoEcn => Tail::new(limit).marking_above(options.mark_above),
            _ => Tail::new(limit),
        }
    }
}

impl fmt::Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            Self::ALL.into_iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl FromStr for QueueKind {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, kind)| kind).ok_or_else(
            || SpecError::UnknownName {
                text: text.to_owned(),
                kind: "queue",
                names: Self::ALL.map(|(name, _)| name).join(", "),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_known_by_the_name_it_prints() {
        for (name, kind) in QueueKind::ALL {
            assert_eq!(name.parse(), Ok(kind));
            assert_eq!(kind.to_string(), name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "blue".parse::<QueueKind>().unwrap_err().to_string();
        let known = QueueKind::ALL.map(|(name, _)| name).join(", ");
        assert_eq!(error, format!(r#"there is no queue called "blue"; there are {known}"#));
    }
}
