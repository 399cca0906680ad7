use fontis_codes::BlockShape;

/// Symbols beyond this many times k are never tried: such a path carries next to nothing.
const MOST: u32 = 64;

/// The least number of symbols of a block of which enough arrive with a probability of
/// 1 − `failure`, over a path that loses each with probability `loss`. Enough are k and as many
/// more as the code's failure probability asks for.
pub(super) fn symbols_for(shape: BlockShape, loss: f64, failure: f64) -> u32 {
    let k = shape.source_symbols();
    let (mut low, mut high) = (k, k.saturating_mul(MOST).max(64).min(shape.esi_limit()));
    // The probability falls with the number: bisection finds where it is small enough.
    while low < high {
        let middle = low + (high - low) / 2;
        if failure_of(shape, middle, loss) <= failure { high = middle } else { low = middle + 1 }
    }
    low
}

/// The probability that a block cannot be decoded when `sent` symbols of it leave.
fn failure_of(shape: BlockShape, sent: u32, loss: f64) -> f64 {
    let k = shape.source_symbols();
    let lost_all = |lost: u32| probability(sent, lost, loss);
    // With so many more than k arriving the code fails as good as never.
    let spare = sent - k.min(sent);
    let fails = |lost: u32| {
        let extra = spare - lost;
        // The source symbols alone are the block.
        if lost == 0 { 0.0 } else { shape.code().failure_probability(k, extra) }
    };
    let too_few: f64 = (spare + 1..=sent).map(lost_all).take_while(significant()).sum();
    let by_code: f64 =
        (spare.saturating_sub(8)..=spare).map(|lost| lost_all(lost) * fails(lost)).sum();
    too_few + by_code
}

/// Whether a term of a falling sum still counts.
fn significant() -> impl FnMut(&f64) -> bool {
    let mut largest = 0.0_f64;
    move |term| {
        largest = largest.max(*term);
        *term > 1e-6 * largest || *term >= largest
    }
}

/// The probability that `lost` of `sent` symbols are lost.
fn probability(sent: u32, lost: u32, loss: f64) -> f64 {
    if loss <= 0.0 {
        return if lost == 0 { 1.0 } else { 0.0 };
    }
    let (n, j) = (f64::from(sent), f64::from(lost));
    let choose = libm::lgamma(n + 1.0) - libm::lgamma(j + 1.0) - libm::lgamma(n - j + 1.0);
    libm::exp(choose + j * libm::log(loss) + (n - j) * libm::log1p(-loss))
}

#[cfg(test)]
mod tests {
    use fontis_base::Stream;
    use fontis_codes::Code;

    use super::*;

    #[test]
    fn as_many_blocks_fail_as_were_asked_for() {
        let mut stream = Stream::new(8, "overhead");
        for (len, loss, failure) in
            [(100_000, 0.2, 0.02), (20_000, 0.4, 0.05), (1 << 20, 0.1, 0.03)]
        {
            let shape = BlockShape::new(Code::RaptorQ, len, 1192).unwrap();
            let sent = symbols_for(shape, loss, failure);
            let trials = 4000;
            let failed = (0..trials).filter(|_| {
                let came = (0..sent).filter(|_| stream.unit() >= loss).count() as u32;
                came < shape.source_symbols()
            });
            let share = failed.count() as f64 / f64::from(trials);
            println!("{len} {loss}: {sent} of {}, {share}", shape.source_symbols());
            assert!(share <= 1.3 * failure, "{share}");
            // One symbol fewer would be too few.
            assert!(failure_of(shape, sent - 1, loss) > failure);
        }
    }

    #[test]
    fn without_loss_nothing_is_added() {
        let shape = BlockShape::new(Code::RaptorQ, 1 << 20, 1192).unwrap();
        assert_eq!(symbols_for(shape, 0.0, 1e-9), shape.source_symbols());
    }
}
