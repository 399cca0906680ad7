//! Names from the network or the disk, made safe to print on a terminal.

use std::fmt;
use std::path::Path;

use crate::name;

/// Prints a name with control and invisible characters escaped, so that it can neither move the
/// cursor nor reverse the direction of the text around it. Bytes that are no text are printed as in
/// `\xff`.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|character| name::escaped(character).is_some()) {
            write_text(f, &rest[..at])?;
            let mut after = rest[at..].chars();
            if let Some(byte) = after.next().and_then(name::escaped) {
                write!(f, "\\x{byte:02x}")?;
            }
            rest = after.as_str();
        }
        write_text(f, rest)
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    // `escape_debug` also escapes quotes, which are harmless here and common in names.
    let escaped = text.escape_debug().to_string();
    f.write_str(&escaped.replace(r"\'", "'").replace(r#"\""#, "\""))
}

/// [`Printable`] for a path of this machine.
pub(crate) fn printable(path: &Path) -> String {
    let text = name::from_os(path.as_os_str());
    Printable(&text.unwrap_or_else(|| path.to_string_lossy().into_owned())).to_string()
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
        assert_eq!(Printable(&name::from_bytes(b"a\xffb\n\xc3")).to_string(), r"a\xffb\n\xc3");
    }
}
