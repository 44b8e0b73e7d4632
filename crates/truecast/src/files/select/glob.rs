//! Glob patterns for names of tensors, translated to regular expressions.

use regex_lite::{Regex, RegexBuilder, escape};

/// Pattern of `--rule`, `--keep` and `--filter`; case-sensitive.
///
/// | | matches |
/// |---|---|
/// | `*` | any characters, `.` and `/` included |
/// | `?` | one character |
/// | `[ab]`, `[a-z]` | one of these characters |
/// | `[!ab]`, `[^ab]` | one other character |
/// | `{a,b*}` | one of these patterns |
/// | `{0..60}`, `{0..2,5}` | one of these numbers |
/// | `**/`, `/**/`, `/**` | as `*`, and also no folder: `a/**/b` matches `a/b` |
/// | `\*` | the character itself |
///
/// # Examples
/// ```
/// use truecast::select::Glob;
/// let glob = Glob::new("*.{weight,bias}")?;
/// assert!(glob.matches("encoder.layer.0.weight") && !glob.matches("encoder.layer.0.scale"));
/// assert!(Glob::new("[a").is_err());
/// # Ok::<(), truecast::select::GlobError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Glob {
    text: String,
    regex: Regex,
    is_module: bool,
}

/// Error of an invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The error messages name the fields.
pub enum GlobError {
    /// A class `[..` without `]`.
    #[error("the class that begins with '[' has no ']'")]
    UnclosedClass,
    /// An empty range of characters.
    #[error("the range from {first:?} to {last:?} is empty: {first:?} comes after {last:?}")]
    Range { first: char, last: char },
    /// A `}` without `{`.
    #[error("a '}}' without a '{{' before it; [}}] matches the character")]
    UnopenedChoice,
    /// A `{` without `}`.
    #[error("the choice that begins with '{{' has no '}}'; [{{] matches the character")]
    UnclosedChoice,
    /// A backslash at the end.
    #[error("a backslash at the end, with no character after it")]
    Dangling,
    /// A pattern that is too long.
    #[error("the pattern is too long; a pattern has at most {MOST_BYTES} bytes")]
    TooLong,
}

/// Longest pattern in bytes. The time of a match grows with the product of both lengths.
const MOST_BYTES: usize = 4096;
const MOST_NUMBERS: u64 = 1 << 12;
const MOST_TRANSLATED_BYTES: usize = 1 << 20;
const WILDCARDS: [char; 6] = ['*', '?', '[', '{', '}', '\\'];

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`GlobError`].
    pub fn new(text: &str) -> Result<Glob, GlobError> {
        if text.len() > MOST_BYTES {
            return Err(GlobError::TooLong);
        }
        // `.` also matches line breaks, because names come from files.
        let regex = RegexBuilder::new(&translated(text)?).dot_matches_new_line(true).build();
        Ok(Glob { text: text.into(), regex: regex.map_err(|_| GlobError::TooLong)?, is_module: false })
    }

    /// Text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Adapts the pattern to these names. A pattern without wildcards that equals no name is the name of a module, and
    /// matches all tensors of the module.
    ///
    /// # Examples
    /// ```
    /// use truecast::select::Glob;
    /// let glob = Glob::new("lm_head")?.for_names(["lm_head.weight", "lm_head2.weight"]);
    /// assert!(glob.matches("lm_head.weight") && !glob.matches("lm_head2.weight"));
    /// # Ok::<(), truecast::select::GlobError>(())
    /// ```
    #[must_use]
    pub fn for_names<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Glob {
        if self.text.is_empty() || self.text.contains(WILDCARDS) {
            return self.clone();
        }
        let mut is_module = false;
        for name in names {
            if name == self.text {
                return self.clone();
            }
            is_module |= name.strip_prefix(&self.text).is_some_and(|rest| rest.starts_with('.'));
        }
        Glob { is_module, ..self.clone() }
    }

    /// True if the pattern matches the whole name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match name.strip_prefix(&self.text) {
            Some(rest) if self.is_module => rest.starts_with('.'),
            _ => self.regex.is_match(name),
        }
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Glob) -> bool {
        self.text == other.text
    }
}

fn translated(text: &str) -> Result<String, GlobError> {
    let mut regex = String::from("^");
    let (mut rest, mut open) = (text, 0u32);
    let mut is_start_of_part = true;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let starts_part = std::mem::replace(&mut is_start_of_part, c == '/');
        rest = match c {
            '*' => {
                let next = after.trim_start_matches('*');
                let is_folders = starts_part && next.len() + 1 == after.len();
                match next.strip_prefix('/').filter(|_| is_folders) {
                    Some(next) => {
                        regex += "(?:.*/)?";
                        is_start_of_part = true;
                        next
                    }
                    None => {
                        regex += ".*";
                        next
                    }
                }
            }
            '?' => {
                regex.push('.');
                after
            }
            '[' => class(after, &mut regex)?,
            '{' => {
                open += 1;
                regex += "(?:";
                range(after, &mut regex)?
            }
            '}' => {
                open = open.checked_sub(1).ok_or(GlobError::UnopenedChoice)?;
                regex.push(')');
                after
            }
            ',' if open > 0 => {
                regex.push('|');
                range(after, &mut regex)?
            }
            '\\' => {
                let escaped = after.chars().next().ok_or(GlobError::Dangling)?;
                let end = escaped.len_utf8();
                regex += &escape(&after[..end]);
                &after[end..]
            }
            c => {
                regex += &escape(c.encode_utf8(&mut [0; 4]));
                after
            }
        };
    }
    if open > 0 {
        return Err(GlobError::UnclosedChoice);
    }
    regex.push('$');
    Ok(regex)
}

/// Translates a range of numbers, if `text` begins with one that is a whole alternative, and returns the rest.
fn range<'a>(text: &'a str, regex: &mut String) -> Result<&'a str, GlobError> {
    let end = text.find([',', '}']).unwrap_or(0);
    let numbers =
        text[..end].split_once("..").and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let Some((first, last)) = numbers.filter(|(first, last): &(u64, u64)| first <= last) else { return Ok(text) };
    if last - first >= MOST_NUMBERS || regex.len() > MOST_TRANSLATED_BYTES {
        return Err(GlobError::TooLong);
    }
    *regex += &(first..=last).map(|number| number.to_string()).collect::<Vec<_>>().join("|");
    Ok(&text[end..])
}

/// Translates a class and returns the rest of `text`. `]` as the first character, and `-` as the first or last, match
/// themselves.
fn class<'a>(text: &'a str, regex: &mut String) -> Result<&'a str, GlobError> {
    let (is_negated, text) = match text.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end = text.char_indices().skip(1).find(|(_, c)| *c == ']').map(|(at, _)| at);
    let end = end.ok_or(GlobError::UnclosedClass)?;
    *regex += if is_negated { "[^" } else { "[" };
    let mut chars = text[..end].chars().peekable();
    while let Some(first) = chars.next() {
        *regex += &in_class(first);
        let mut ahead = chars.clone();
        if let (Some('-'), Some(last)) = (ahead.next(), ahead.next()) {
            if first > last {
                return Err(GlobError::Range { first, last });
            }
            *regex += &format!("-{}", in_class(last));
            chars = ahead;
        }
    }
    regex.push(']');
    Ok(&text[end + 1..])
}

fn in_class(c: char) -> String {
    match c {
        '[' | ']' | '\\' | '^' | '-' | '&' | '~' => format!("\\{c}"),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (pattern, matching names, other names)
    const FORMS: &[(&str, &[&str], &[&str])] = &[
        ("a.weight", &["a.weight"], &["a.weights", "xa.weight", "A.weight", "a_weight", ""]),
        ("*", &["", "a", "a/b.c"], &[]),
        ("*norm*", &["norm", "a.norm.w", "a/norm"], &["Norm", "nor"]),
        ("a*b", &["ab", "a/x/b", "a.b", "a\nb"], &["b", "abc"]),
        ("layer.?.w", &["layer.1.w", "layer./.w", "layer.é.w"], &["layer.11.w", "layer..w"]),
        ("layer.[0-3].w", &["layer.0.w", "layer.3.w"], &["layer.4.w", "layer.-.w"]),
        ("[abc]", &["a", "c"], &["d", "ab", ""]),
        ("[!abc]", &["d", "/"], &["a", ""]),
        ("[^a-c]x", &["dx"], &["ax"]),
        ("[a-z0-9]", &["q", "5"], &["Q", "-"]),
        ("[]x]", &["]", "x"], &["[", "]x"]),
        ("[!]x]", &["a"], &["]", "x"]),
        ("[-a]", &["-", "a"], &["b"]),
        ("[a-]", &["-", "a"], &["b"]),
        ("[a^~&&]", &["a", "^", "~", "&"], &["b"]),
        ("[[]", &["["], &["]"]),
        ("[.*?{},]", &[".", "*", "?", "{", "}", ","], &["a"]),
        ("{a,b}.w", &["a.w", "b.w"], &["c.w", "a,b.w", "{a,b}.w"]),
        ("x{key,value*}", &["xkey", "xvalue", "xvalues"], &["xkeys", "x"]),
        ("{a,{b,c}d}", &["a", "bd", "cd"], &["b", "ad"]),
        ("{a}", &["a"], &["{a}"]),
        ("l.{0..11}.w", &["l.0.w", "l.11.w"], &["l.12.w", "l.0..11.w", "l.01.w"]),
        ("{0..2,5,8..9}", &["2", "5", "8"], &["3", "7", "0..2"]),
        ("{3..1,a..c,..}", &["3..1", "a..c", ".."], &["2", "b", "1"]),
        ("a,b", &["a,b"], &["a", "b"]),
        ("**", &["", "a/b"], &[]),
        ("**/w", &["w", "a/w", "a/b/w"], &["aw", "a.w"]),
        ("a/**/w", &["a/w", "a/b/w", "a/b/c/w"], &["aw", "a.w"]),
        ("a/**", &["a/b", "a/b/c"], &["a", "b/a"]),
        ("a**b", &["ab", "a/b"], &["a"]),
        ("\\*", &["*"], &["a", "\\*"]),
        ("a\\[0\\]\\{x\\}\\?\\\\", &["a[0]{x}?\\"], &["a0x?\\"]),
        ("a+(b|c)^$.#", &["a+(b|c)^$.#"], &["aab"]),
        ("模型.*", &["模型.w"], &["模.w"]),
    ];

    #[test]
    fn every_documented_form() {
        for (pattern, matching, others) in FORMS {
            let glob = Glob::new(pattern).unwrap();
            assert_eq!(glob.as_str(), *pattern);
            matching.iter().for_each(|name| assert!(glob.matches(name), "{pattern} {name:?}"));
            others.iter().for_each(|name| assert!(!glob.matches(name), "{pattern} {name:?}"));
        }
    }

    #[test]
    fn what_is_no_pattern() {
        for (pattern, expected) in [
            ("[a", GlobError::UnclosedClass),
            ("[", GlobError::UnclosedClass),
            ("[]", GlobError::UnclosedClass),
            ("[!]", GlobError::UnclosedClass),
            ("[z-a]", GlobError::Range { first: 'z', last: 'a' }),
            ("{a,b", GlobError::UnclosedChoice),
            ("a}", GlobError::UnopenedChoice),
            ("a\\", GlobError::Dangling),
        ] {
            assert_eq!(Glob::new(pattern), Err(expected), "{pattern}");
        }
        for long in [&"{a,b}".repeat(1 << 20), "{0..18446744073709551615}", &"{0..4000}".repeat(400)] {
            assert_eq!(Glob::new(long), Err(GlobError::TooLong));
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let glob = Glob::new(&"*a".repeat(50)).unwrap();
        let begin = std::time::Instant::now();
        assert!(!glob.matches(&("a".repeat(2000) + "b")));
        assert!(begin.elapsed().as_secs() < 5);
    }
}
