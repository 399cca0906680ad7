//! Means in time of what hosts read now and then.

use fontis_base::Time;

/// The mean in time of a value that holds from one reading to the next, from the first on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeMean {
    /// When the value was read first and last, if it was.
    span: Option<(Time, Time)>,
    /// The value that was read last.
    value: f64,
    /// The sum of values times seconds.
    sum: f64,
}

impl TimeMean {
    /// Notes the value that holds from now on.
    pub(super) fn note(&mut self, now: Time, value: f64) {
        let (first, last) = self.span.unwrap_or((now, now));
        self.sum += self.value * now.since(last).as_secs_f64();
        self.value = value;
        self.span = Some((first, now));
    }

    /// The mean until now.
    pub(super) fn mean(mut self, now: Time) -> Option<f64> {
        self.note(now, self.value);
        let (first, last) = self.span?;
        let seconds = last.since(first).as_secs_f64();
        (seconds > 0.0).then(|| self.sum / seconds)
    }
}
