/// The smallest value of each span of time.
#[derive(Debug)]
pub(super) struct Lowest {
    width: u64,
    bins: Vec<Option<(f64, f64)>>,
}

const FIRST_WIDTH: u64 = 100_000_000;
const MOST_BINS: usize = 256;
/// Fewer spans than this show no trend.
const FEWEST: usize = 8;

impl Default for Lowest {
    fn default() -> Self {
        Self { width: FIRST_WIDTH, bins: Vec::new() }
    }
}

impl Lowest {
    pub(super) fn add(&mut self, at: u64, value: i64) {
        while at / self.width >= MOST_BINS as u64 {
            self.width = self.width.saturating_mul(2);
            let lower = |two: &[Option<(f64, f64)>]| {
                two.iter().flatten().copied().min_by(|a, b| a.1.total_cmp(&b.1))
            };
            self.bins = self.bins.chunks(2).map(lower).collect();
        }
        let bin = (at / self.width) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, None);
        }
        let value = value as f64;
        if self.bins[bin].is_none_or(|(_, least)| value < least) {
            self.bins[bin] = Some((at as f64, value));
        }
    }

    /// The slope of the line below all values that is nearest to them: the edge of their convex
    /// hull over the mean of their times (Moon, Skelly and Towsley, "Estimation and removal of
    /// clock skew from network delay measurements").
    pub(super) fn slope(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> = self.bins.iter().flatten().copied().collect();
        if points.len() < FEWEST {
            return None;
        }
        let mut hull: Vec<(f64, f64)> = Vec::new();
        for point in &points {
            while let [.., a, b] = hull[..]
                && (b.1 - a.1) * (point.0 - a.0) >= (point.1 - a.1) * (b.0 - a.0)
            {
                hull.pop();
            }
            hull.push(*point);
        }
        let mean = points.iter().map(|(at, _)| at).sum::<f64>() / points.len() as f64;
        let edge = hull.windows(2).find(|two| two[1].0 >= mean)?;
        let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
        slope.is_finite().then_some(slope)
    }

    /// The smallest value when a trend is taken off.
    pub(super) fn least(&self, slope: f64) -> Option<f64> {
        self.bins.iter().flatten().map(|(at, value)| value - slope * at).min_by(f64::total_cmp)
    }
}
