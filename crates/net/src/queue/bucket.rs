use fontis_base::FlowId;

/// Which of `buckets` queues a flow is in: the same one always, another with another salt.
pub(super) fn bucket_of(flow: FlowId, salt: u64, buckets: u32) -> u32 {
    // SplitMix64's finaliser spreads the bits.
    let mut hash = (u64::from(flow.0) ^ salt).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((hash ^ (hash >> 31)) % u64::from(buckets.max(1))) as u32
}
