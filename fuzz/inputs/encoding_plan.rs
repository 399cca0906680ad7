//! Any bytes as an encoding plan, and what is accepted put to work.

use bytes::Bytes;
use fontis_codes::raptorq::EncodingPlan;
use fontis_codes::{BlockEncoder, BlockShape, Code};

/// Larger blocks would only cost time.
const MAX_SYMBOLS: usize = 300;

/// Whatever comes in, nothing panics, and what is accepted is written as it was read.
pub(crate) fn run(data: &[u8]) {
    let Ok(plan) = EncodingPlan::from_bytes(data) else { return };
    assert_eq!(plan.to_bytes(), data);
    let k = plan.extended_symbols();
    // Byte 5 is the family.
    let code = if data[5] == 0 { Code::RaptorQ } else { Code::Raptor10 };
    if k > MAX_SYMBOLS {
        return;
    }
    let shape = BlockShape::new(code, k as u32 * 3, 3).expect("the plan's code has such blocks");
    let job = BlockEncoder::new(shape, Bytes::from(vec![7; k * 3])).repair_job();
    job.write_with(&plan, k as u32..k as u32 + 4, &mut [0; 12]);
}
