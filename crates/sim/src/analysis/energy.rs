//! The energy of a phone's radio, from when it carries how much.

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

/// The power of a radio: while it carries data, a base and what each Mbit/s adds; then a tail in
/// which it stays on although nothing comes; and the promotion that wakes it.
///
/// The three known ones are those that Huang and others measured of a phone ("A close examination
/// of performance and power characteristics of 4G LTE networks", MobiSys 2012, Tables 3 and 4). The
/// thesis names the effects (section 1.2.2) and no model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioPower {
    /// Milliwatts for each Mbit/s that is received.
    pub down: f64,
    /// Milliwatts for each Mbit/s that is sent.
    pub up: f64,
    /// Milliwatts while anything is carried.
    pub base: f64,
    /// Milliwatts in the tail.
    pub tail: f64,
    /// Seconds of the tail.
    pub tail_seconds: f64,
    /// Milliwatts of a promotion.
    pub promotion: f64,
    /// Seconds of a promotion.
    pub promotion_seconds: f64,
}

/// A name that is no radio's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no radio called {0:?}; there are lte, 3g, wifi")]
pub struct RadioPowerError(String);

/// What a radio carries in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RadioUse {
    /// How long.
    pub seconds: f64,
    /// Bits received.
    pub down: f64,
    /// Bits sent.
    pub up: f64,
}

/// What it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RadioEnergy {
    /// In all.
    pub joules: f64,
    /// Seconds in which something was carried.
    pub active: f64,
    /// Seconds of tails.
    pub tails: f64,
    /// How often the radio woke.
    pub promotions: u64,
}

impl RadioPower {
    /// LTE.
    pub const LTE: Self = Self {
        down: 51.97,
        up: 438.39,
        base: 1288.04,
        tail: 1060.0,
        tail_seconds: 11.576,
        promotion: 1210.7,
        promotion_seconds: 0.2601,
    };

    /// 3G; its tail is that of the state DCH.
    pub const UMTS: Self = Self {
        down: 122.12,
        up: 868.98,
        base: 817.88,
        tail: 803.9,
        tail_seconds: 8.0882,
        promotion: 659.4,
        promotion_seconds: 0.5821,
    };

    /// Wireless LAN.
    pub const WIFI: Self = Self {
        down: 137.01,
        up: 283.17,
        base: 132.86,
        tail: 119.3,
        tail_seconds: 0.2381,
        promotion: 124.4,
        promotion_seconds: 0.0791,
    };

    /// The energy of a radio that does one after the other, and sleeps before and after. What it
    /// carries in a part counts as spread over it, so parts should be short beside the tail.
    pub fn energy(&self, uses: impl IntoIterator<Item = RadioUse>) -> RadioEnergy {
        let mut total = RadioEnergy::default();
        let mut millijoules = 0.0;
        // What the tail has left; none while the radio sleeps.
        let mut tail = None;
        for RadioUse { seconds, down, up } in uses {
            if down + up > 0.0 {
                if tail.is_none() {
                    total.promotions += 1;
                    millijoules += self.promotion * self.promotion_seconds;
                }
                total.active += seconds;
                millijoules += self.base * seconds + (self.down * down + self.up * up) * 1e-6;
                tail = Some(self.tail_seconds);
            } else if let Some(left) = tail {
                let part = seconds.min(left);
                total.tails += part;
                millijoules += self.tail * part;
                tail = (left > seconds).then_some(left - seconds);
            }
        }
        if let Some(left) = tail {
            total.tails += left;
            millijoules += self.tail * left;
        }
        total.joules = millijoules * 1e-3;
        total
    }
}

impl FromStr for RadioPower {
    type Err = RadioPowerError;

    fn from_str(text: &str) -> Result<Self, RadioPowerError> {
        match text {
            "lte" => Ok(Self::LTE),
            "3g" => Ok(Self::UMTS),
            "wifi" => Ok(Self::WIFI),
            _ => Err(RadioPowerError(text.to_owned())),
        }
    }
}

impl fmt::Display for RadioPower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = [(Self::LTE, "lte"), (Self::UMTS, "3g"), (Self::WIFI, "wifi")];
        f.pad(known.iter().find(|(radio, _)| radio == self).map_or("radio", |(_, name)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RADIO: RadioPower = RadioPower {
        down: 100.0,
        up: 200.0,
        base: 1000.0,
        tail: 500.0,
        tail_seconds: 3.0,
        promotion: 700.0,
        promotion_seconds: 0.5,
    };

    fn used(seconds: f64, down: f64, up: f64) -> RadioUse {
        RadioUse { seconds, down: down * 1e6, up: up * 1e6 }
    }

    #[test]
    fn a_transfer_costs_its_time_its_bits_a_promotion_and_a_tail() {
        // 2 s with 10 Mbit received and 1 sent, and the tail behind it.
        let energy = RADIO.energy([used(5.0, 0.0, 0.0), used(2.0, 10.0, 1.0)]);
        let want = 0.35 + 2.0 + 1.0 + 0.2 + 1.5;
        assert!((energy.joules - want).abs() < 1e-12, "{energy:?}");
        assert_eq!((energy.active, energy.tails, energy.promotions), (2.0, 3.0, 1));
    }

    #[test]
    fn a_pause_shorter_than_the_tail_wakes_nobody_and_a_longer_one_ends_it() {
        let short = RADIO.energy([used(1.0, 1.0, 0.0), used(2.0, 0.0, 0.0), used(1.0, 1.0, 0.0)]);
        assert_eq!((short.promotions, short.tails), (1, 5.0));
        let long = RADIO.energy([used(1.0, 1.0, 0.0), used(3.0, 0.0, 0.0), used(1.0, 1.0, 0.0)]);
        assert_eq!((long.promotions, long.tails), (2, 6.0));
        assert_eq!(RADIO.energy([used(9.0, 0.0, 0.0)]), RadioEnergy::default());
    }

    #[test]
    fn the_same_bits_cost_less_the_faster_they_come() {
        for radio in [RadioPower::LTE, RadioPower::UMTS, RadioPower::WIFI] {
            let slow = radio.energy([used(10.0, 20.0, 0.0)]).joules;
            let fast = radio.energy([used(2.0, 20.0, 0.0)]).joules;
            assert!((slow - fast - 8.0 * radio.base * 1e-3).abs() < 1e-9, "{radio}");
            assert_eq!(radio.to_string().parse(), Ok(radio));
        }
        assert!("5g".parse::<RadioPower>().is_err());
    }
}
