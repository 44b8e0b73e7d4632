//! Finds the known name that an unknown one probably stands for, and lists names. The caller decides what to do with
//! it.

/// The known name that is nearest to a word, without regard to case, if it is at most `most` edits away: a letter added,
/// left out or replaced, or two that changed places. Of several equally near the first. Without the feature `std` none is.
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
    let length = |text: &str| text.chars().count();
    let (word, len) = (word.to_lowercase(), length(word));
    // Words from files may be long; names are not.
    let near = known.into_iter().filter(|name| length(name).abs_diff(len) <= most);
    let measured = near.map(|name| (strsim::osa_distance(&word, &name.to_lowercase()), name));
    measured.filter(|(edits, _)| *edits <= most).min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

#[allow(missing_docs)] // As above.
#[cfg(not(feature = "std"))]
pub fn nearest<'a>(_: &str, _: impl IntoIterator<Item = &'a str>, _: usize) -> Option<&'a str> {
    None
}

/// Names as a sentence lists choices.
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
