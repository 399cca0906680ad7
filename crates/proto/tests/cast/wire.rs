use bytes::Bytes;
use fontis_proto::cast::{
    CastLaw, CastNeed, CastReceipt, CastReport, CastState, CastSymbol, MemberRoundTrip, Planned,
    decode_receipt, decode_report, decode_state, decode_symbol, encode_receipt, encode_report,
    encode_state, encode_symbol,
};
use fontis_proto::rate::PathDeparture;
use proptest::prelude::*;

proptest! {
    #[test]
    fn packets_read_as_they_were_written(
        numbers in prop::array::uniform10(any::<u32>()),
        clock in 0u64..1 << 62,
        share in 0u32..=1_000_000,
        runs in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 0..32),
        flags in any::<(bool, bool)>(),
    ) {
        let [a, b, c, d, e, f, g, ..] = numbers;
        let planned = runs.iter().map(|(block, count, _)| Planned { block: *block, count: *count });
        let round_trips = runs.iter();
        let round_trips = round_trips
            .map(|(member, time, _)| MemberRoundTrip { member: *member, round_trip: *time });
        let state = CastState {
            visit: a,
            pass: b,
            idle: flags.0,
            law: [None, Some(CastLaw::Tfmcc), Some(CastLaw::Auto)][(a % 3) as usize],
            rate: clock / 3,
            members: c,
            round_trip: d,
            report_every: e,
            status_every: f,
            limiting: flags.1.then_some(g),
            friendly: flags.0,
            soon: a,
            planned: planned.collect(),
            round_trips: round_trips.collect(),
        };
        let mut bytes = Vec::new();
        encode_state(&state, &mut bytes);
        prop_assert_eq!(decode_state(Bytes::from(bytes)), Ok(state));
        let needs = runs.iter().map(|(first, blocks, symbols)| {
            CastNeed { first: *first, blocks: *blocks, symbols: *symbols }
        });
        let report = CastReport {
            sequence: a,
            visit: b,
            loss: share,
            loss_events: share / 2,
            received: clock / 5,
            allowed: clock / 6,
            friendly: flags.0,
            newest: clock / 7,
            held: d,
            is_done: flags.1,
            lacking: clock / 11,
            needs: needs.collect(),
        };
        let mut bytes = Vec::new();
        encode_report(&report, &mut bytes);
        prop_assert_eq!(decode_report(Bytes::from(bytes)), Ok(report));
        let digests: Vec<u64> = runs.iter().map(|(one, ..)| u64::from(*one)).collect();
        if !digests.is_empty() {
            let receipt = CastReceipt { first: clock, digests };
            let mut bytes = Vec::new();
            encode_receipt(&receipt, &mut bytes);
            prop_assert_eq!(decode_receipt(Bytes::from(bytes)), Ok(receipt));
        }
        let data = Bytes::from(vec![7; (e % 100) as usize]);
        let timing = flags.0.then_some(PathDeparture { sent: d, pace: e });
        let symbol = CastSymbol { visit: a / 2, block: b, esi: c % (1 << 24), timing, data };
        let mut bytes = Vec::new();
        encode_symbol(&symbol, &mut bytes);
        prop_assert_eq!(decode_symbol(Bytes::from(bytes)), Ok(symbol));
    }

    /// Nothing panics, and what reads says the same when it is written again.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        if let Ok(state) = decode_state(bytes.clone()) {
            let mut again = Vec::new();
            encode_state(&state, &mut again);
            prop_assert_eq!(decode_state(Bytes::from(again)), Ok(state));
        }
        if let Ok(report) = decode_report(bytes.clone()) {
            let mut again = Vec::new();
            encode_report(&report, &mut again);
            prop_assert_eq!(decode_report(Bytes::from(again)), Ok(report));
        }
        let _ = decode_receipt(bytes.clone());
        let _ = decode_symbol(bytes);
    }
}
