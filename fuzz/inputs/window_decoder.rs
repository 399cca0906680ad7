//! Source and repair symbols, true and false ones, into a window decoder.
//!
//! The input is a head of four bytes that choose the code, and commands of eight: what comes, its
//! numbers, and a byte of its value.

use fontis_codes::window::{RepairSymbol, WindowCode, WindowDecoder};

/// Whatever comes in, nothing panics, and symbols are given back in order.
pub(crate) fn run(data: &[u8]) {
    let Some((head, commands)) = data.split_first_chunk::<4>() else { return };
    assert!(WindowCode::from_bytes(*head).is_none_or(|code| code.to_bytes() == *head));
    let code = if head[0] & 1 == 0 {
        WindowCode::tetrys(u16::from(head[1]))
    } else {
        WindowCode::convolutional(head[1] & 15, head[2] & 15, head[3] & 15)
    };
    let Some(code) = code else { return };
    let mut decoder = WindowDecoder::new(code, 2);
    let mut last = None;
    for command in commands.chunks_exact(8).take(400) {
        let [kind, a, b, c, count, id, value, len] = *command else { continue };
        // Numbers near the one that is waited for, or anywhere.
        let number = match kind >> 6 {
            0 | 1 => decoder.waits_for().wrapping_add(u32::from(a)),
            2 => u32::from_be_bytes([0, a, b, c]),
            _ => u32::MAX - u32::from(a),
        };
        let symbol = vec![value; if len == 255 { 3 } else { 2 }];
        match kind & 3 {
            0 | 1 => drop(decoder.add_source(number, &symbol)),
            2 => {
                let count = u16::from(count);
                let data = symbol.into();
                drop(decoder.add_repair(&RepairSymbol {
                    first: number,
                    count,
                    id: u32::from(id),
                    data,
                }));
            }
            _ => decoder.skip(number),
        }
        while let Some((id, _)) = decoder.pop() {
            assert!(last.is_none_or(|last| last < id), "in order");
            last = Some(id);
        }
        decoder.needed();
    }
}
