//! The negotiation of features (RFC 4340 section 6).

use smallvec::SmallVec;

use super::config::DccpConfig;
use super::number::DccpSeq;
use super::option::{DccpOption, FeatureOption, FeatureStep, number};
use super::packet::ResetCode;

/// The features that this end has. Of each there is one at either end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    Ccid,
    AllowShortNumbers,
    SequenceWindow,
    EcnIncapable,
    AckRatio,
    SendAckVector,
    SendNdpCount,
    MinimumCoverage,
    CheckDataChecksum,
    SendRttEstimate,
    SendLossEventRate,
}

/// Of each feature: its number, whether the server's preference decides (else its owner's number
/// counts), its first value, and the bytes of a number.
const TABLE: [(Feature, u8, bool, u64, usize); 11] = [
    (Feature::Ccid, 1, true, 2, 1),
    (Feature::AllowShortNumbers, 2, true, 0, 1),
    (Feature::SequenceWindow, 3, false, 100, 6),
    (Feature::EcnIncapable, 4, true, 0, 1),
    (Feature::AckRatio, 5, false, 2, 2),
    (Feature::SendAckVector, 6, true, 0, 1),
    (Feature::SendNdpCount, 7, true, 0, 1),
    (Feature::MinimumCoverage, 8, true, 0, 1),
    (Feature::CheckDataChecksum, 9, true, 0, 1),
    (Feature::SendRttEstimate, 128, true, 0, 1),
    (Feature::SendLossEventRate, 192, true, 0, 1),
];
const COUNT: usize = TABLE.len();

/// The bounds of a Sequence Window (RFC 4340 section 7.5.2).
const LEAST_WINDOW: u64 = 32;
const MOST_WINDOW: u64 = (1 << 46) - 1;

impl Feature {
    const fn row(self) -> usize {
        self as usize
    }

    fn of(number: u8) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == number).map(|row| row.0)
    }

    const fn is_server_priority(self) -> bool {
        TABLE[self.row()].2
    }

    fn is_valid(self, value: u64) -> bool {
        match self {
            Self::SequenceWindow => (LEAST_WINDOW..=MOST_WINDOW).contains(&value),
            Self::AckRatio => value > 0,
            Self::Ccid => (2..=4).contains(&value),
            Self::MinimumCoverage => value < 16,
            _ => value < 2,
        }
    }
}

/// The two ends' features, and the steps of negotiation that are on their way.
#[derive(Clone, Debug)]
pub(super) struct Features {
    is_server: bool,
    local: [State; COUNT],
    remote: [State; COUNT],
    confirms: Vec<FeatureOption>,
    /// The greatest number of a packet whose steps were read.
    read: Option<DccpSeq>,
    /// The number of the first packet with the newest proposals.
    proposed_at: Option<DccpSeq>,
}

#[derive(Clone, Debug, Default)]
struct State {
    value: u64,
    /// The values that this end accepts, the best first; of a number, the one that it wants.
    accepted: SmallVec<[u8; 4]>,
    wanted: u64,
    /// Whether a proposal of this end waits for its confirmation, and must be understood.
    is_pending: bool,
    is_mandatory: bool,
}

impl Features {
    pub(super) fn new(config: &DccpConfig, is_server: bool) -> Self {
        let blank = || {
            TABLE.map(|(_, _, is_list, value, _)| State {
                value,
                accepted: if is_list { [0, 1].into_iter().collect() } else { SmallVec::new() },
                ..State::default()
            })
        };
        let mut features = Self {
            is_server,
            local: blank(),
            remote: blank(),
            confirms: Vec::new(),
            read: None,
            proposed_at: None,
        };
        let ccid = config.ccid as u8;
        for states in [&mut features.local, &mut features.remote] {
            states[Feature::Ccid.row()].accepted = [ccid].into_iter().collect();
            // Coverage of the header alone, or of all, is as good.
            states[Feature::MinimumCoverage.row()].accepted = (0..16).collect();
        }
        // Only what this end does.
        features.state(true, Feature::CheckDataChecksum).accepted = [0].into_iter().collect();
        let of_others: &[Feature] = match ccid {
            2 => &[Feature::SendLossEventRate, Feature::SendRttEstimate],
            _ => &[Feature::SendAckVector],
        };
        for feature in of_others {
            features.state(true, *feature).accepted = [0].into_iter().collect();
        }
        features.want_list(true, Feature::Ccid, ccid, true);
        features.want_list(false, Feature::Ccid, ccid, true);
        features.want_number(Feature::SequenceWindow, config.sequence_window);
        match ccid {
            2 => {
                features.want_list(false, Feature::SendAckVector, 1, true);
                features.want_number(Feature::AckRatio, config.ack_ratio.into());
            }
            _ => {
                features.want_list(false, Feature::SendLossEventRate, 1, false);
                if config.tells_rtt {
                    features.want_list(true, Feature::SendRttEstimate, 1, false);
                }
            }
        }
        if !config.ecn {
            features.want_list(true, Feature::EcnIncapable, 1, true);
        }
        if config.short_numbers {
            features.want_list(true, Feature::AllowShortNumbers, 1, false);
        }
        features
    }

    /// Proposes a value of a feature that is negotiated by preference.
    fn want_list(&mut self, is_local: bool, feature: Feature, value: u8, is_mandatory: bool) {
        let state = self.state(is_local, feature);
        state.accepted = [value].into_iter().collect();
        state.is_mandatory = is_mandatory;
        state.is_pending = state.value != u64::from(value);
    }

    fn want_number(&mut self, feature: Feature, value: u64) {
        let state = self.state(true, feature);
        state.wanted = value;
        state.is_pending = state.value != value && feature.is_valid(value);
    }

    /// Proposes a wider Sequence Window for the packets of this end, unless such a proposal is on
    /// its way. Whether it did.
    pub(super) fn widen(&mut self, packets: u64) -> bool {
        let state = self.state(true, Feature::SequenceWindow);
        let packets = packets.min(MOST_WINDOW);
        if state.is_pending || packets <= state.value {
            return false;
        }
        self.want_number(Feature::SequenceWindow, packets);
        self.proposed_at = None;
        true
    }

    const fn state(&mut self, is_local: bool, feature: Feature) -> &mut State {
        let states = if is_local { &mut self.local } else { &mut self.remote };
        &mut states[feature.row()]
    }

    /// The value of a feature of this end.
    pub(super) const fn local(&self, feature: Feature) -> u64 {
        self.local[feature.row()].value
    }

    /// The value of a feature of the other end.
    pub(super) const fn remote(&self, feature: Feature) -> u64 {
        self.remote[feature.row()].value
    }

    /// Whether an answer waits to be sent.
    pub(super) fn has_answers(&self) -> bool {
        !self.confirms.is_empty()
    }

    /// Whether a proposal waits for its confirmation.
    pub(super) fn is_pending(&self) -> bool {
        self.local.iter().chain(&self.remote).any(|state| state.is_pending)
    }

    /// Appends the steps for a packet that leaves as `own`: answers once, proposals until they are
    /// confirmed.
    pub(super) fn append(&mut self, own: DccpSeq, options: &mut Vec<DccpOption>) {
        options.extend(self.confirms.drain(..).map(DccpOption::Feature));
        let mut has_proposals = false;
        for (is_local, states) in [(true, &self.local), (false, &self.remote)] {
            for (state, row) in states.iter().zip(&TABLE).filter(|(state, _)| state.is_pending) {
                has_proposals = true;
                if state.is_mandatory {
                    options.push(DccpOption::Mandatory);
                }
                let step = if is_local { FeatureStep::ChangeL } else { FeatureStep::ChangeR };
                let values = match row.2 {
                    true => state.accepted.iter().copied().collect(),
                    false => number_bytes(state.wanted, row.4),
                };
                options.push(DccpOption::Feature(FeatureOption { step, feature: row.1, values }));
            }
        }
        if has_proposals {
            self.proposed_at.get_or_insert(own);
        }
    }

    /// Reads the steps of packet `seq`, which acknowledges `ack`. A packet older than one that was
    /// read says nothing new (RFC 4340 section 6.6.4).
    pub(super) fn read(
        &mut self,
        seq: DccpSeq,
        ack: Option<DccpSeq>,
        options: &[DccpOption],
    ) -> Result<(), (ResetCode, [u8; 3])> {
        if self.read.is_some_and(|read| !seq.is_after(read)) {
            return Ok(());
        }
        let mut is_mandatory = false;
        for option in options {
            let was_mandatory = core::mem::replace(&mut is_mandatory, false);
            match option {
                DccpOption::Mandatory if was_mandatory => {
                    return Err((ResetCode::OptionError, [1, 0, 0]));
                }
                DccpOption::Mandatory => is_mandatory = true,
                DccpOption::Feature(step) => {
                    self.read = Some(seq);
                    let is_understood = self.step(step, ack)?;
                    if was_mandatory && !is_understood {
                        let kind = 32 + step.step as u8;
                        return Err((ResetCode::MandatoryError, [kind, step.feature, 0]));
                    }
                }
                DccpOption::Other { kind, .. } if was_mandatory => {
                    return Err((ResetCode::MandatoryError, [*kind, 0, 0]));
                }
                _ => {}
            }
        }
        match is_mandatory {
            true => Err((ResetCode::OptionError, [1, 0, 0])),
            false => Ok(()),
        }
    }

    /// Reads a step. Whether it was understood, and led to a value that both ends accept.
    fn step(
        &mut self,
        step: &FeatureOption,
        ack: Option<DccpSeq>,
    ) -> Result<bool, (ResetCode, [u8; 3])> {
        let (is_change, is_local) = match step.step {
            FeatureStep::ChangeL => (true, false),
            FeatureStep::ChangeR => (true, true),
            FeatureStep::ConfirmL => (false, false),
            FeatureStep::ConfirmR => (false, true),
        };
        let Some(feature) = Feature::of(step.feature) else {
            if is_change {
                self.confirm(is_local, step.feature, SmallVec::new());
            }
            return Ok(false);
        };
        if !is_change {
            // An answer to something older than the newest proposal is void.
            let is_old = match (self.proposed_at, ack) {
                (Some(proposed), Some(ack)) => proposed.is_after(ack),
                _ => true,
            };
            return if is_old { Ok(true) } else { self.confirmed(is_local, feature, step) };
        }
        if !feature.is_server_priority() {
            let value = number(&step.values);
            let is_right = !is_local && step.values.len() <= 8 && feature.is_valid(value);
            if !is_right {
                self.confirm(is_local, step.feature, SmallVec::new());
                return Ok(false);
            }
            self.state(is_local, feature).value = value;
            self.confirm(is_local, step.feature, step.values.clone());
            return Ok(true);
        }
        let is_server = self.is_server;
        let state = self.state(is_local, feature);
        let (first, second) = match is_server {
            true => (&state.accepted[..], &step.values[..]),
            false => (&step.values[..], &state.accepted[..]),
        };
        let agreed = first.iter().copied().find(|value| second.contains(value));
        let old = state.value as u8;
        let chosen = agreed.unwrap_or(old);
        state.value = u64::from(chosen);
        // An agreement is as good as an answer to this end's own proposal of the same.
        state.is_pending &= agreed.is_none();
        let values = core::iter::once(chosen).chain(state.accepted.iter().copied()).collect();
        self.confirm(is_local, step.feature, values);
        Ok(agreed.is_some())
    }

    fn confirmed(
        &mut self,
        is_local: bool,
        feature: Feature,
        step: &FeatureOption,
    ) -> Result<bool, (ResetCode, [u8; 3])> {
        let kind = 32 + step.step as u8;
        let state = self.state(is_local, feature);
        if !state.is_pending {
            return Ok(true);
        }
        let Some(&first) = step.values.first() else {
            // The peer does not have the feature: it keeps its first value.
            let is_fatal = core::mem::replace(&mut state.is_mandatory, false);
            state.is_pending = false;
            return match is_fatal {
                true => Err((ResetCode::MandatoryError, [kind, step.feature, 0])),
                false => Ok(false),
            };
        };
        if !feature.is_server_priority() {
            let value = number(&step.values);
            if value == state.wanted {
                state.value = value;
                state.is_pending = false;
            }
            return Ok(true);
        }
        if !state.accepted.contains(&first) {
            return match state.is_mandatory {
                true => Err((ResetCode::MandatoryError, [kind, step.feature, first])),
                false if u64::from(first) == state.value => {
                    state.is_pending = false;
                    Ok(true)
                }
                false => Err((ResetCode::OptionError, [kind, step.feature, first])),
            };
        }
        state.value = u64::from(first);
        state.is_pending = false;
        Ok(true)
    }

    fn confirm(&mut self, is_local: bool, feature: u8, values: SmallVec<[u8; 8]>) {
        let step = if is_local { FeatureStep::ConfirmL } else { FeatureStep::ConfirmR };
        self.confirms.retain(|old| (old.step, old.feature) != (step, feature));
        // Features that a peer invents must not fill our headers.
        if self.confirms.len() < 2 * COUNT {
            self.confirms.push(FeatureOption { step, feature, values });
        }
    }
}

/// A number in `len` bytes.
fn number_bytes(value: u64, len: usize) -> SmallVec<[u8; 8]> {
    value.to_be_bytes()[8 - len..].iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::config::Ccid;
    use super::*;

    fn config(ccid: Ccid) -> DccpConfig {
        DccpConfig { ccid, sequence_window: 1000, ..DccpConfig::default() }
    }

    /// Lets the two ends talk until neither has anything to say.
    fn talk(client: &mut Features, server: &mut Features) -> Result<(), ResetCode> {
        let ends = [client, server];
        for round in 0..6u64 {
            let (from, to) = ((round % 2) as usize, 1 - (round % 2) as usize);
            let seq = DccpSeq::new(round);
            let mut options = Vec::new();
            ends[from].append(seq, &mut options);
            let ack = round.checked_sub(1).map(DccpSeq::new);
            ends[to].read(seq, ack, &options).map_err(|(code, _)| code)?;
        }
        assert!(!ends[0].is_pending() && !ends[1].is_pending());
        Ok(())
    }

    #[test]
    fn two_ends_that_want_the_same_agree() {
        for ccid in [Ccid::Two, Ccid::Three, Ccid::Four] {
            let mut client = Features::new(&config(ccid), false);
            let mut server = Features::new(&config(ccid), true);
            talk(&mut client, &mut server).expect("they agree");
            for end in [&client, &server] {
                assert_eq!(end.local(Feature::Ccid), ccid as u64);
                assert_eq!(end.remote(Feature::Ccid), ccid as u64);
                assert_eq!(end.remote(Feature::SequenceWindow), 1000);
                let vectors = u64::from(ccid == Ccid::Two);
                assert_eq!(end.local(Feature::SendAckVector), vectors);
                assert_eq!(end.remote(Feature::SendRttEstimate), 1 - vectors);
            }
        }
    }

    #[test]
    fn a_congestion_control_that_the_peer_does_not_have_ends_the_connection() {
        let mut client = Features::new(&config(Ccid::Three), false);
        let mut server = Features::new(&config(Ccid::Four), true);
        assert_eq!(talk(&mut client, &mut server), Err(ResetCode::MandatoryError));
    }

    #[test]
    fn the_servers_preference_decides() {
        let mut client = Features::new(&config(Ccid::Two), false);
        client.local[0].accepted = [2, 3].into_iter().collect();
        client.local[0].is_pending = true;
        let mut server = Features::new(&config(Ccid::Two), true);
        server.remote[0].accepted = [3, 2].into_iter().collect();
        talk(&mut client, &mut server).expect("they agree");
        assert_eq!((client.local(Feature::Ccid), server.remote(Feature::Ccid)), (3, 3));
    }

    #[test]
    fn an_unknown_feature_gets_an_empty_answer() {
        let mut server = Features::new(&config(Ccid::Two), true);
        let feature = |values: &[u8]| {
            DccpOption::Feature(FeatureOption {
                step: FeatureStep::ChangeL,
                feature: 77,
                values: values.into(),
            })
        };
        let number = DccpSeq::new;
        server.read(number(1), None, &[feature(&[1, 2])]).expect("it may be unknown");
        let mut options = Vec::new();
        server.append(number(1), &mut options);
        let DccpOption::Feature(answer) = &options[0] else { panic!("{options:?}") };
        assert_eq!((answer.step, answer.feature), (FeatureStep::ConfirmR, 77));
        assert!(answer.values.is_empty());
        let mandatory = [DccpOption::Mandatory, feature(&[1])];
        let refused = server.read(number(2), None, &mandatory);
        assert_eq!(refused, Err((ResetCode::MandatoryError, [32, 77, 0])));
    }

    #[test]
    fn an_old_packet_changes_nothing() {
        let mut server = Features::new(&config(Ccid::Two), true);
        let window = |value: u64| {
            DccpOption::Feature(FeatureOption {
                step: FeatureStep::ChangeL,
                feature: 3,
                values: number_bytes(value, 6),
            })
        };
        server.read(DccpSeq::new(9), None, &[window(500)]).expect("right");
        server.read(DccpSeq::new(8), None, &[window(400)]).expect("old");
        assert_eq!(server.remote(Feature::SequenceWindow), 500);
        server.read(DccpSeq::new(10), None, &[window(5)]).expect("too small, and not mandatory");
        assert_eq!(server.remote(Feature::SequenceWindow), 500);
    }
}
