//! The forms of keys' values.

use std::borrow::Cow;

use fontis_base as base;
use fontis_net as net;

use crate::settings::suggestion::closest;

/// What the value of a key must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A rate.
    Rate,
    /// A time.
    Duration,
    /// A number of bytes.
    Size,
    /// A whole number.
    Count,
    /// A number.
    Number,
    /// Between 0 and 1, or in percent.
    Probability,
    /// Any text.
    Text,
    /// True or false.
    Flag,
    /// One of these names.
    Names(Cow<'static, [&'static str]>),
    /// A size, a number of packets, or bandwidth-delay products.
    Buffer,
    /// A loss model.
    Loss,
    /// Before the queue or after the line.
    LossAt,
    /// A queue discipline.
    Queue,
    /// A list of texts.
    Texts,
    /// A list of texts, each of a time and something.
    Changes,
    /// When all is lost.
    Outage,
    /// A limit on what enters.
    Policer,
    /// How many packets are held back, and for how long.
    Reorder,
    /// When a link can deliver.
    Trace,
}

/// What a key is set to: text as it was written, or a list of such.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// A text, or a number or truth value as text.
    One(String),
    /// A list.
    List(Vec<String>),
}

impl From<&str> for Setting {
    fn from(text: &str) -> Self {
        Self::One(text.to_owned())
    }
}

impl From<Vec<String>> for Setting {
    fn from(texts: Vec<String>) -> Self {
        Self::List(texts)
    }
}

impl Setting {
    /// As people read it.
    pub fn text(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::List(texts) => format!("[{}]", texts.join(", ")),
        }
    }

    pub(crate) fn one(&self) -> &str {
        match self {
            Self::One(text) => text,
            Self::List(texts) => texts.first().map_or("", String::as_str),
        }
    }

    pub(crate) fn list(&self) -> &[String] {
        match self {
            Self::One(text) => core::slice::from_ref(text),
            Self::List(texts) => texts,
        }
    }
}

/// A buffer as scenarios write it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BufferSize {
    Limit(net::Limit),
    Bdp(f64),
}

impl BufferSize {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some(number) = text.trim().strip_suffix("BDP").map(str::trim) else {
            return text
                .parse()
                .map(Self::Limit)
                .map_err(|error: net::SpecError| error.to_string());
        };
        match number.parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor >= 0.0 => Ok(Self::Bdp(factor)),
            _ => Err(format!("{text:?} is not a buffer: write it as in \"0.1 BDP\"")),
        }
    }

    /// The limit for a line of this rate on a path of this round-trip time; a packet at least.
    pub(crate) fn limit(self, rate: base::Rate, rtt: base::Duration) -> net::Limit {
        match self {
            Self::Limit(limit) => limit,
            Self::Bdp(_) if rate == base::Rate::MAX => net::Limit::UNLIMITED,
            Self::Bdp(factor) => {
                let bytes = rate.bdp(rtt).as_bytes() as f64 * factor;
                net::Limit::Bytes(base::Size::from_bytes((bytes as u64).max(1500)))
            }
        }
    }
}

impl Form {
    /// Checks a value; an error says what would be right.
    pub fn check(&self, setting: &Setting) -> Result<(), String> {
        if *self == Self::Changes {
            return setting.list().iter().try_for_each(|text| match text.split_once(':') {
                Some((at, _)) => at.parse::<base::Duration>().map(drop).map_err(|e| e.to_string()),
                None => Err(format!("{text:?} must be TIME:VALUE, as in \"100 s:500 Mbit/s\"")),
            });
        }
        if *self == Self::Texts {
            return Ok(());
        }
        let Setting::One(text) = setting else {
            return Err(format!("it must be {}, not a list", self.describe()));
        };
        fn parsed<T: core::str::FromStr<Err: ToString>>(text: &str) -> Result<(), String> {
            text.parse::<T>().map(drop).map_err(|error| error.to_string())
        }
        match self {
            Self::Rate => parsed::<base::Rate>(text),
            Self::Duration => parsed::<base::Duration>(text),
            Self::Size => parsed::<base::Size>(text),
            Self::Probability => parsed::<base::Probability>(text),
            Self::Loss => parsed::<net::Loss>(text),
            Self::LossAt => parsed::<net::LossPosition>(text),
            Self::Queue => one_of(text, &net::QueueKind::ALL.map(|(name, _)| name)),
            Self::Names(names) => one_of(text, names),
            Self::Buffer => BufferSize::parse(text).map(drop),
            Self::Count => text
                .parse::<u64>()
                .map(drop)
                .map_err(|_| format!("{text:?} is not a whole number, as in 10")),
            Self::Number => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(()),
                _ => Err(format!("{text:?} is not a number, as in 0.5")),
            },
            Self::Flag => {
                parsed::<bool>(text).map_err(|_| format!("{text:?} is neither true nor false"))
            }
            Self::Outage => parsed::<net::Outage>(text),
            Self::Policer => parsed::<net::Policer>(text),
            Self::Reorder => parsed::<net::Reorder>(text),
            // Whether there is such a file is seen when it is read.
            Self::Text | Self::Trace => Ok(()),
            Self::Texts | Self::Changes => unreachable!("checked above"),
        }
    }

    /// What it is, with its article.
    pub fn describe(&self) -> String {
        match self {
            Self::Rate => "a rate, as in \"100 Mbit/s\"".to_owned(),
            Self::Duration => "a time, as in \"50 ms\"".to_owned(),
            Self::Size => "a size, as in \"1.25 MB\"".to_owned(),
            Self::Count => "a whole number".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Probability => "a probability, as in \"1%\"".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Names(names) => format!("one of {}", names.join(", ")),
            Self::Buffer => "a size, packets or BDP, as in \"0.1 BDP\"".to_owned(),
            Self::Loss => "a loss model, as in \"1%\" or \"gilbert:1%,25%\"".to_owned(),
            Self::LossAt => "before or after".to_owned(),
            Self::Queue => {
                format!("one of {}", net::QueueKind::ALL.map(|(name, _)| name).join(", "))
            }
            Self::Texts => "a list of names".to_owned(),
            Self::Changes => "a list of TIME:VALUE".to_owned(),
            Self::Outage => "AT:FOR or AT:FOR:EVERY, as in \"10s:2s:30s\"".to_owned(),
            Self::Policer => "RATE or RATE:BURST, as in \"10mbit:50kB\"".to_owned(),
            Self::Reorder => {
                "P, P:BY, P:BY:SPREAD or P:BY:exponential, as in \"1%:10ms\"".to_owned()
            }
            Self::Trace => "a file, or cellular:MEAN,VARIATION,LENGTH[,SEED]".to_owned(),
        }
    }

    /// The names that are allowed, if only some are.
    pub fn names(&self) -> Option<Vec<&'static str>> {
        match self {
            Self::Names(names) => Some(names.to_vec()),
            Self::Queue => Some(net::QueueKind::ALL.map(|(name, _)| name).to_vec()),
            Self::LossAt => Some(vec!["before", "after"]),
            _ => None,
        }
    }
}

fn one_of(text: &str, names: &[&str]) -> Result<(), String> {
    if names.contains(&text) {
        return Ok(());
    }
    let hint = closest(text, names.iter().map(|name| (*name).to_owned()));
    let hint = hint.map_or(String::new(), |name| format!("; did you mean {name:?}?"));
    Err(format!("{text:?} must be one of {}{hint}", names.join(", ")))
}
