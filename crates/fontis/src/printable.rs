//! Names from the network or the disk, made safe to print on a terminal.

use std::fmt;
use std::path::Path;

/// Prints a name with control and invisible characters escaped, so that it can neither move the
/// cursor nor reverse the direction of the text around it.
pub(crate) struct Printable<'a>(pub(crate) &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `escape_debug` also escapes quotes, which are harmless here and common in names.
        let escaped = self.0.escape_debug().to_string();
        f.write_str(&escaped.replace(r"\'", "'").replace(r#"\""#, "\""))
    }
}

/// [`Printable`] for a path of this machine; bytes that are no text show as replacement characters.
pub(crate) fn printable(path: &Path) -> String {
    Printable(&path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_the_rest_is_not() {
        assert_eq!(Printable("it's a \"file\".txt").to_string(), "it's a \"file\".txt");
        assert_eq!(Printable("größe 大きさ").to_string(), "größe 大きさ");
        assert_eq!(Printable("a\x1b[2Jb\n").to_string(), r"a\u{1b}[2Jb\n");
        assert_eq!(Printable("gpj.\u{202e}exe").to_string(), r"gpj.\u{202e}exe");
    }
}
