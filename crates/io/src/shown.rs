//! Names and paths from outside as messages print them: on one line, nothing in them unprintable.

use std::fmt;
use std::path::Path;

/// A name from a file as it may be printed: in double quotes, with control and other unprintable characters escaped,
/// cut after 200 characters.
///
/// # Examples
/// ```
/// use truecast_io::Shown;
/// assert_eq!(Shown("a\u{1b}[31m").to_string(), r#""a\u{1b}[31m""#);
/// assert_eq!(Shown(&"x".repeat(300)).to_string().len(), 2 + 200 + "…".len());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(200) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => {
                let cut = format!("{:?}", &self.0[..end]);
                write!(f, "{}…\"", &cut[..cut.len() - 1])
            }
        }
    }
}

/// A path as it may be printed: without quotes, unprintable characters escaped.
#[derive(Clone, Copy, Debug)]
pub struct ShownPath<'a>(pub &'a Path);

impl fmt::Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string_lossy().chars() {
            match c {
                '"' | '\'' | '\\' => write!(f, "{c}")?,
                _ => write!(f, "{}", c.escape_debug())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_name_stays_quoted() {
        let text = Shown(&"\n".repeat(201)).to_string();
        assert_eq!(text, format!("\"{}…\"", "\\n".repeat(200)));
    }
}
