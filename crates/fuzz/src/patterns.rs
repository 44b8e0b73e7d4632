//! Glob patterns of names. The first line is the pattern, the rest is the name.

use truecast::select::{Glob, Rule, SharedGlobalScale};

use crate::harmless;

/// Checks that the pattern has the same matches in braces, and that an escaped name matches only itself.
pub fn patterns(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, ""));
    match Glob::new(pattern) {
        Ok(glob) => {
            let is_matching = glob.matches(name);
            // In braces a comma separates alternatives, and `**` is not special.
            if let Some(braced) =
                Some(format!("{{{pattern}}}")).filter(|_| !pattern.contains(',') && !pattern.contains("**"))
                && let Ok(braced) = Glob::new(&braced)
            {
                assert_eq!(braced.matches(name), is_matching, "{pattern:?} {name:?}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let escaped: String = name.chars().flat_map(|c| ['\\', c]).collect();
    if let Ok(itself) = Glob::new(&escaped) {
        assert!(itself.matches(name) && !itself.matches(&format!("{name}x")), "{name:?}");
    }
    let _ = SharedGlobalScale::new(pattern);
    if let Err(error) = Rule::new(pattern, None) {
        harmless(error);
    }
}
