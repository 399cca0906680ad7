use proptest::prelude::*;

use super::*;

fn live() -> impl Strategy<Value = Option<Live>> {
    let kind = prop_oneof![
        Just(LiveKind::Stream),
        Just(LiveKind::Message),
        any::<u32>().prop_map(|sequence| LiveKind::Ordered { sequence }),
    ];
    prop::option::of((kind, any::<u32>(), any::<bool>()).prop_map(|(kind, block_len, fin)| Live {
        kind,
        block_len,
        fin,
    }))
}

fn frame() -> impl Strategy<Value = Frame> {
    let symbols = (
        any::<[u32; 3]>(),
        1u16..,
        live(),
        any::<(bool, bool)>(),
        prop::collection::vec(any::<u8>(), 0..50),
    )
        .prop_map(|([channel, block, esi], count, live, (whole, long), data)| {
            Frame::Symbols(SymbolsFrame {
                channel,
                block,
                esi,
                count,
                live,
                whole: whole
                    && live.is_none()
                    && !data.is_empty()
                    && data.len() % usize::from(count) == 0,
                long,
                len: data.len() as u16,
                data: data.into(),
            })
        });
    let feedback = (
        any::<u8>(),
        any::<[u32; 6]>(),
        prop::collection::vec(any::<u32>(), 0..40),
        prop::collection::vec(any::<(u32, u32)>(), 0..MAX_SAMPLES),
    )
        .prop_map(|(path, n, runs, samples)| {
            Frame::Feedback(Box::new(Feedback {
                path,
                largest: u64::from(n[0]) << 20,
                received_at_us: u64::from(n[1]),
                delay_us: n[2],
                packets: u64::from(n[3]),
                bytes: u64::from(n[4]) << 8,
                ce: u64::from(n[5]),
                runs: runs.into(),
                samples: samples.into(),
            }))
        });
    let blocks = (
        any::<u32>(),
        any::<u32>(),
        0u32..1 << 30,
        0u32..1000,
        prop::collection::btree_map(0u32..5000, (0u32..100_000, any::<bool>()), 0..20),
    )
        .prop_map(|(channel, sequence, floor, ahead, blocks)| {
            Frame::Blocks(Box::new(BlockStatus {
                channel,
                sequence,
                floor,
                limit: floor + ahead,
                blocks: blocks
                    .into_iter()
                    .map(|(offset, (needed, done))| BlockNeed {
                        block: floor + offset,
                        needed: if done { 0 } else { needed },
                        done,
                    })
                    .collect(),
            }))
        });
    let open =
        (any::<[u32; 2]>(), any::<u16>(), any::<u8>(), prop::collection::vec(any::<u8>(), 0..99))
            .prop_map(|([channel, block_size], symbol_size, code, label)| {
                let object =
                    ObjectShape { size: u64::from(channel) << 9, block_size, symbol_size, code };
                Frame::Open(Box::new(Open { channel, object, label: label.into() }))
            });
    prop_oneof![
        Just(Frame::Ping),
        Just(Frame::Confirm),
        Just(Frame::Fin),
        Just(Frame::FinAck),
        any::<[u8; 8]>().prop_map(Frame::Challenge),
        any::<[u8; 8]>().prop_map(Frame::Response),
        (any::<u32>(), proptest::option::of(0..=super::MAX_LIMIT)).prop_map(|(sequence, rate)| {
            Frame::Limit { sequence, rate: rate.map(Rate::from_bps) }
        }),
        proptest::collection::vec(any::<u8>(), 0..=super::MAX_TOKEN)
            .prop_map(|token| Frame::Token(token.into())),
        (0u16..1300).prop_map(Frame::Padding),
        any::<u32>().prop_map(|channel| Frame::Done { channel }),
        any::<u8>().prop_map(|path| Frame::PathClosed { path }),
        Just(Frame::Spare),
        any::<(u32, u32, Option<u32>)>().prop_map(|(channel, code, sequence)| Frame::Abandon {
            channel,
            code,
            sequence
        }),
        any::<(bool, u32, u32)>().prop_filter_map("its numbers end", |(ordered, first, count)| {
            MessageRun::new(ordered, first, count % 100_000).map(Frame::GivenUp)
        }),
        (any::<u32>(), "[a-zé ]{0,60}").prop_map(|(code, reason)| Frame::Close { code, reason }),
        symbols,
        feedback,
        blocks,
        open,
    ]
}

/// The bytes of a hello with these values, which need not be allowed.
fn hello_bytes(codes: &[u8], values: [u64; 4]) -> Bytes {
    let mut bytes = vec![codes.len() as u8];
    bytes.extend_from_slice(codes);
    values.into_iter().for_each(|value| bytes.varint(value));
    bytes.extend_from_slice(&[9; 16]);
    bytes.into()
}

#[test]
fn a_hello_with_a_parameter_outside_its_limits_is_malformed() {
    let codes = |count: u32| vec![1; count as usize];
    let good = [1 << 20, 1 << 20, 1192, 60_000];
    assert!(decode_hello(hello_bytes(&[1], good)).is_ok());
    for (count, field) in [(0, Err("codes")), (1, Ok(())), (16, Ok(())), (17, Err("codes"))] {
        let decoded = decode_hello(hello_bytes(&codes(count), good));
        assert_eq!(decoded.map(drop), field.map_err(DfcpWireError::Forbidden), "{count} codes");
    }
    let limits = [
        ("window", Params::WINDOW),
        ("max_block", Params::MAX_BLOCK),
        ("symbol_size", Params::SYMBOL_SIZE),
        ("idle_timeout", Params::IDLE_TIMEOUT_MS),
    ];
    for (place, (field, limits)) in limits.into_iter().enumerate() {
        let with = |value: u64| {
            let mut values = good;
            values[place] = value;
            decode_hello(hello_bytes(&[1], values)).map(|hello| hello.params)
        };
        let (least, most) = (u64::from(*limits.start()), u64::from(*limits.end()));
        for value in [0, least - 1, most + 1, u64::MAX >> 2] {
            assert_eq!(with(value), Err(DfcpWireError::Forbidden(field)), "{field} = {value}");
        }
        assert!(with(least).is_ok() && with(most).is_ok(), "{field}");
    }
}

#[test]
fn long_symbols_have_a_header_of_eight_bytes() {
    let data = Bytes::from(vec![7; 1432]);
    let (channel, count, live, whole, long, len) = (63, 1, None, true, true, 1432);
    for (block, esi) in [(0, 0), (63, 64), (64, 63), (16_384, 16_383)] {
        let data = data.clone();
        let symbols = SymbolsFrame { channel, block, esi, count, live, whole, long, len, data };
        assert_eq!(frames_len(&[Frame::Symbols(symbols)]), 8 + 1432, "block {block}, ESI {esi}");
    }
}

proptest! {
    #[test]
    fn frames_survive_the_wire(mut frames in prop::collection::vec(frame(), 0..6)) {
        let mut bytes = Vec::new();
        encode_frames(&frames, &mut bytes);
        prop_assert_eq!(bytes.len(), frames_len(&frames));
        for frame in &mut frames {
            if let Frame::Symbols(symbols) = frame {
                symbols.long = false;
            }
        }
        let decoded = decode_frames(bytes.into()).unwrap();
        prop_assert_eq!(decoded.into_vec(), frames);
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_frames(bytes.clone().into());
        let _ = decode_hello(bytes.into());
    }

    #[test]
    fn truncated_frames_never_panic(frame in frame(), cut in 0usize..200) {
        let mut bytes = Vec::new();
        encode_frames(&[frame], &mut bytes);
        bytes.truncate(bytes.len().saturating_sub(cut));
        let _ = decode_frames(bytes.into());
    }
}
