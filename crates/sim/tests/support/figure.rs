use core::fmt;

/// A figure that was measured, beside what it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The experiment.
    pub experiment: String,
    /// What was measured.
    pub name: &'static str,
    /// What came out.
    pub value: f64,
    /// What should.
    pub target: Target,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Nothing is demanded; the figure explains others.
    None,
}

impl Target {
    /// Whether a value is what it should be.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::None => true,
        }
    }
}

impl Figure {
    /// Whether it is what it should be.
    pub fn holds(&self) -> bool {
        self.target.holds(self.value)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, ">= {least}"),
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::None => f.write_str("-"),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { experiment, name, value, target } = self;
        let verdict = if self.holds() { "" } else { "  MISSED" };
        let target = target.to_string();
        write!(f, "{experiment:<34} {name:<44} {value:>9.3}  {target:<8}{verdict}")
    }
}
