use core::fmt;
use core::str::FromStr;

use fontis_base::{Probability, Stream};

use crate::error::SpecError;

/// A model of random packet loss.
///
/// Reads `"1%"` (Bernoulli), `"gilbert:p,q"`, `"ge:p,q,g,b"` and `"none"`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// Nothing is lost.
    #[default]
    None,
    /// Each packet is lost independently.
    Bernoulli(Probability),
    /// Two states; every packet in the bad one is lost (E. N. Gilbert, 1960, with h = 0).
    ///
    /// The state moves before each packet and begins good, so that the losses before a delivered
    /// packet number l with probability 1−p for l = 0 and p(1−q)ˡ⁻¹q otherwise.
    Gilbert {
        /// Good to bad, per packet.
        p: Probability,
        /// Bad to good, per packet.
        q: Probability,
    },
    /// Two states, each with its own loss (E. O. Elliott, 1963). The state moves before each packet
    /// and begins good.
    GilbertElliott {
        /// Good to bad, per packet.
        p: Probability,
        /// Bad to good, per packet.
        q: Probability,
        /// Loss in the good state.
        good: Probability,
        /// Loss in the bad state.
        bad: Probability,
    },
}

impl Loss {
    /// The share of packets lost in the long run: p/(p+q) for Gilbert, (q·g + p·b)/(p+q) for
    /// Gilbert–Elliott.
    pub fn stationary_rate(&self) -> f64 {
        let [good, bad] = self.states();
        good.share * good.loss + bad.share * bad.loss
    }

    /// The mean number of packets lost in a row: 1/(1−p) for Bernoulli, 1/q for Gilbert; zero if
    /// nothing is ever lost, infinite if nothing ever passes.
    ///
    /// For every model it is P(lost) / (P(lost) − P(lost and the next lost too)).
    pub fn mean_burst(&self) -> f64 {
        let states = self.states();
        let lost = self.stationary_rate();
        if lost == 0.0 {
            return 0.0;
        }
        let twice: f64 = states
            .iter()
            .zip([&states[1], &states[0]])
            .map(|(now, other)| {
                now.share * now.loss * ((1.0 - now.leave) * now.loss + now.leave * other.loss)
            })
            .sum();
        lost / (lost - twice).max(0.0)
    }

    /// The good and the bad state of the Markov chain that every model is a case of.
    fn states(&self) -> [State; 2] {
        let (p, q, good, bad) = match *self {
            Self::None => (0.0, 1.0, 0.0, 0.0),
            Self::Bernoulli(p) => (0.0, 1.0, p.get(), 0.0),
            Self::Gilbert { p, q } => (p.get(), q.get(), 0.0, 1.0),
            Self::GilbertElliott { p, q, good, bad } => (p.get(), q.get(), good.get(), bad.get()),
        };
        // A chain that never moves stays in the good state, where it began.
        let in_bad = if p == 0.0 { 0.0 } else { p / (p + q) };
        [
            State { share: 1.0 - in_bad, loss: good, leave: p },
            State { share: in_bad, loss: bad, leave: q },
        ]
    }
}

struct State {
    share: f64,
    loss: f64,
    leave: f64,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::Bernoulli(p) => write!(f, "{p}"),
            Self::Gilbert { p, q } => write!(f, "gilbert:{p},{q}"),
            Self::GilbertElliott { p, q, good, bad } => write!(f, "ge:{p},{q},{good},{bad}"),
        }
    }
}

impl FromStr for Loss {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let form = || SpecError::Form {
            text: text.to_owned(),
            kind: "a loss model",
            form: "PROBABILITY, gilbert:P,Q or ge:P,Q,GOOD,BAD",
            example: "gilbert:1%,25%",
        };
        let Some((model, parameters)) = text.split_once(':') else {
            return match text.trim() {
                "none" => Ok(Self::None),
                probability => Ok(Self::Bernoulli(probability.parse()?)),
            };
        };
        let parameters: Vec<Probability> =
            parameters.split(',').map(str::parse).collect::<Result<_, _>>()?;
        match (model.trim(), parameters[..].as_ref()) {
            ("gilbert", &[p, q]) => Ok(Self::Gilbert { p, q }),
            ("ge", &[p, q, good, bad]) => Ok(Self::GilbertElliott { p, q, good, bad }),
            ("gilbert" | "ge", _) => Err(form()),
            _ => Err(SpecError::UnknownName {
                text: model.trim().to_owned(),
                kind: "loss model",
                names: "gilbert, ge (and a plain probability)".to_owned(),
            }),
        }
    }
}

/// A loss model at work.
#[derive(Clone, Debug)]
pub struct LossProcess {
    model: Loss,
    bad: bool,
    stream: Stream,
}

impl LossProcess {
    /// The process of `model` that draws from `stream`.
    pub fn new(model: Loss, stream: Stream) -> Self {
        Self { model, bad: false, stream }
    }

    /// Whether the next packet is lost.
    pub fn next_is_lost(&mut self) -> bool {
        match self.model {
            Loss::None => false,
            Loss::Bernoulli(p) => self.stream.chance(p),
            Loss::Gilbert { p, q } => {
                self.step(p, q);
                self.bad
            }
            Loss::GilbertElliott { p, q, good, bad } => {
                self.step(p, q);
                self.stream.chance(if self.bad { bad } else { good })
            }
        }
    }

    fn step(&mut self, p: Probability, q: Probability) {
        if self.stream.chance(if self.bad { q } else { p }) {
            self.bad = !self.bad;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 11;
    const PACKETS: usize = 2_000_000;

    fn parse(text: &str) -> Loss {
        text.parse().unwrap()
    }

    /// Loss rate and mean burst, as measured.
    fn measure(model: Loss) -> (f64, f64) {
        let mut process = LossProcess::new(model, Stream::new(SEED, "test/loss"));
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        for _ in 0..PACKETS {
            let now = process.next_is_lost();
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        (f64::from(lost) / PACKETS as f64, f64::from(lost) / f64::from(bursts))
    }

    #[test]
    fn every_model_loses_at_its_stationary_rate_and_in_bursts_of_its_mean_length() {
        for text in ["10%", "gilbert:1%,25%", "gilbert:50%,50%", "ge:5%,20%,1%,60%"] {
            let model = parse(text);
            let (rate, burst) = measure(model);
            let (want_rate, want_burst) = (model.stationary_rate(), model.mean_burst());
            assert!((rate / want_rate - 1.0).abs() < 0.01, "{text}, seed {SEED}: {rate}");
            assert!((burst / want_burst - 1.0).abs() < 0.01, "{text}, seed {SEED}: {burst}");
        }
    }

    #[test]
    fn closed_forms_are_those_of_the_textbook() {
        let gilbert = parse("gilbert:1%,25%");
        assert!((gilbert.stationary_rate() - 0.01 / 0.26).abs() < 1e-12);
        assert!((gilbert.mean_burst() - 4.0).abs() < 1e-9);
        assert!((parse("20%").mean_burst() - 1.25).abs() < 1e-12);
        assert_eq!(Loss::None.mean_burst(), 0.0);
        assert_eq!(parse("100%").mean_burst(), f64::INFINITY);
        assert_eq!(parse("gilbert:0,0").stationary_rate(), 0.0);
        assert_eq!(parse("gilbert:1%,0").stationary_rate(), 1.0);
    }

    #[test]
    fn gilbert_run_lengths_are_geometric() {
        let (p, q) = (0.05, 0.4);
        let mut process = LossProcess::new(parse("gilbert:5%,40%"), Stream::new(SEED, "test/runs"));
        let mut runs = [0u32; 4];
        let mut run = 0;
        let mut delivered = 0u32;
        for _ in 0..PACKETS {
            if process.next_is_lost() {
                run += 1;
            } else {
                delivered += 1;
                if run < runs.len() {
                    runs[run] += 1;
                }
                run = 0;
            }
        }
        for (length, count) in runs.into_iter().enumerate() {
            let want = match length {
                0 => 1.0 - p,
                l => p * (1.0f64 - q).powi(l as i32 - 1) * q,
            };
            let got = f64::from(count) / f64::from(delivered);
            let sigma = (want * (1.0 - want) / f64::from(delivered)).sqrt();
            assert!(
                (got - want).abs() < 4.0 * sigma,
                "seed {SEED}: run {length}: {got}, not {want}"
            );
        }
    }

    #[test]
    fn models_read_back_what_they_print() {
        for text in ["none", "1%", "gilbert:1%,25%", "ge:5%,20%,1%,60%"] {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    #[test]
    fn bad_models_are_refused_with_the_form_they_should_have() {
        for text in ["gilbert:1%", "ge:1%,2%", "gilbert:1%,2%,3%"] {
            let error = text.parse::<Loss>().unwrap_err().to_string();
            assert!(error.contains("gilbert:P,Q"), "{error}");
        }
        let error = "pareto:1%".parse::<Loss>().unwrap_err().to_string();
        assert!(error.contains("gilbert, ge"), "{error}");
        assert!("120%".parse::<Loss>().is_err());
    }
}
