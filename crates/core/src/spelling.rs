//! Search for the word that a misspelled word means, and lists of names in messages.

/// Returns the known name nearest to a word, at most `most` edits away, ignoring case. Returns the first of
/// equally near names.
/// An edit adds, removes or replaces a letter, or swaps two neighboring letters. Without the feature `std`, the result
/// is `None`.
///
/// # Examples
/// ```
/// use truecast_core::spelling::nearest;
/// assert_eq!(nearest("ftfo", ["ftof", "ftoi"], 2), Some("ftof"));
/// assert_eq!(nearest("cast", ["Cast", "CastLike"], 1), Some("Cast"));
/// assert_eq!(nearest("Cosh", ["Cast", "CastLike"], 1), None);
/// ```
#[cfg(feature = "std")]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, most: usize) -> Option<&'a str> {
    let measured = known.into_iter().filter_map(|name| Some((edits(word, name, most)?, name)));
    measured.min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

/// Maximum length of a word in bytes. The limit bounds the work for words in files.
#[cfg(feature = "std")]
const LONGEST: usize = 256;

/// Returns the number of edits between two words (see [`nearest`]); `None` beyond `most`, or if a word is too long.
///
/// # Examples
/// ```
/// use truecast_core::spelling::edits;
/// assert_eq!((edits("Ftfo", "ftof", 2), edits("cast", "cosh", 1)), (Some(1), None));
/// assert_eq!(edits(&"a".repeat(1000), &"a".repeat(1000), 9), None);
/// ```
#[cfg(feature = "std")]
pub fn edits(a: &str, b: &str, most: usize) -> Option<usize> {
    let is_long = a.len().max(b.len()) > LONGEST;
    let [a, b] = if is_long { return None } else { [a, b].map(str::to_lowercase) };
    let may_be_near = a.chars().count().abs_diff(b.chars().count()) <= most;
    may_be_near.then(|| strsim::osa_distance(&a, &b)).filter(|edits| *edits <= most)
}

#[allow(missing_docs)] // As above.
#[cfg(not(feature = "std"))]
pub fn nearest<'a>(_: &str, _: impl IntoIterator<Item = &'a str>, _: usize) -> Option<&'a str> {
    None
}

/// Lists names as alternatives in a sentence.
///
/// # Examples
/// ```
/// use truecast_core::spelling::alternatives;
/// assert_eq!(alternatives(&["a", "b", "c"]), "a, b or c");
/// assert_eq!(alternatives(&["a"]), "a");
/// ```
#[cfg(feature = "std")]
pub fn alternatives<T: AsRef<str>>(names: &[T]) -> String {
    let listed = |names: &[T]| names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.split_last() {
        Some((last, most @ [_, ..])) => format!("{} or {}", listed(most), last.as_ref()),
        _ => listed(names),
    }
}
