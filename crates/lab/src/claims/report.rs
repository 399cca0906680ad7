use super::{Checked, Results};

/// The page on what was reproduced of a book's claims: Markdown.
pub fn report(_book: &str, _checked: &[Checked], _results: &Results) -> String {
    String::new()
}
