use fontis_base::{Duration, Stream};

/// A random time below `longest` after which one of `members` speaks, so that few speak before all
/// can have heard them: the truncated exponential distribution of RFC 5740, section 3.2.3.2, with
/// λ = ln(members) + 1. Of one or two members each speaks at a time that is as likely as another.
pub(super) fn backoff(stream: &mut Stream, longest: Duration, members: u32) -> Duration {
    let unit = stream.unit();
    if members <= 2 {
        return Duration::from_secs_f64(longest.as_secs_f64() * unit);
    }
    let lambda = libm::log(f64::from(members)) + 1.0;
    let share = libm::log(1.0 + unit * (libm::exp(lambda) - 1.0)) / lambda;
    Duration::from_secs_f64(longest.as_secs_f64() * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_members_few_speak_in_the_first_quarter() {
        let mut stream = Stream::new(3, "backoff");
        for members in [100, 1000, 10_000] {
            let longest = Duration::from_millis(400);
            let first = |stream: &mut Stream| {
                let all: Vec<_> =
                    (0..members).map(|_| backoff(stream, longest, members).as_millis()).collect();
                assert!(all.iter().all(|one| *one <= 400));
                let least = all.iter().min().copied().unwrap_or(0);
                // Those who speak within a round trip (a quarter) of the first.
                all.iter().filter(|one| **one < least + 100).count()
            };
            let speak: usize = (0..20).map(|_| first(&mut stream)).sum();
            assert!(speak / 20 < 12, "{members}: {} on average", speak / 20);
        }
    }
}
