//! What people write about links is read or refused, and never makes the reader panic.

use fontis_net::{
    Limit, Loss, LossPosition, Outage, Policer, QueueKind, RateChange, Reorder, SpecError,
};
use proptest::prelude::*;

fn read_all(text: &str) {
    let _ = text.parse::<Limit>();
    let _ = text.parse::<Loss>();
    let _ = text.parse::<LossPosition>();
    let _ = text.parse::<Outage>();
    let _ = text.parse::<Policer>();
    let _ = text.parse::<QueueKind>();
    let _ = text.parse::<RateChange>();
    let _ = text.parse::<Reorder>();
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        read_all(&text);
    }

    #[test]
    fn nearly_right_texts_are_read_or_refused(
        text in "(gilbert|ge|codel|before|[0-9.]{0,30})?(:|,|%|ms|s|mbit|kB| packets|[0-9.]{1,30}){0,8}"
    ) {
        read_all(&text);
    }
}

#[test]
fn parts_that_may_be_left_out_have_their_documented_values() -> Result<(), SpecError> {
    assert_eq!("1%".parse::<Reorder>()?, "1%:10ms".parse()?);
    assert_eq!("100mbit".parse::<Policer>()?, "100mbit:125kB".parse()?);
    assert_eq!("1mbit".parse::<Policer>()?, "1mbit:15kB".parse()?);
    Ok(())
}
