//! Names of tensors that a pattern without a match may have meant.

use truecast_core::spelling;

/// At most so many are named.
const MOST: usize = 3;

/// The tensors whose names are nearest to the longest plain part of a glob, first of the file first; none if nothing is
/// near. Case does not matter: that it does in a pattern is one of the reasons why nothing matched.
pub fn nearest<'a>(glob: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let pieces = glob.split(['*', '?', '[', ']', '{', '}', ',', '!', '\\']);
    let longest =
        pieces.map(|piece| piece.trim_matches(['.', '/'])).max_by_key(|piece| piece.len()).unwrap_or_default();
    let wanted = longest.to_lowercase();
    if wanted.chars().count() < 2 {
        return Vec::new();
    }
    let limit = wanted.chars().count().div_ceil(3);
    let names: Vec<&str> = names.into_iter().collect();
    let at_most = |edits: usize| -> Vec<String> {
        let near = names.iter().filter(|name| spelling::nearest(&wanted, runs(name, &wanted), edits).is_some());
        near.take(MOST).map(|name| name.to_string()).collect()
    };
    (0..=limit).map(at_most).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The name, and each run of as many parts of it as the wanted one has.
fn runs<'a>(name: &'a str, wanted: &str) -> impl Iterator<Item = &'a str> {
    const SEPARATORS: [char; 2] = ['.', '/'];
    let parts = wanted.split(SEPARATORS).count();
    let bounds: Vec<usize> = name.match_indices(SEPARATORS).map(|(at, _)| at).collect();
    let begins: Vec<usize> = std::iter::once(0).chain(bounds.iter().map(|at| at + 1)).collect();
    let ends: Vec<usize> = bounds.into_iter().chain([name.len()]).collect();
    let runs =
        begins.into_iter().enumerate().filter_map(move |(i, begin)| Some(&name[begin..*ends.get(i + parts - 1)?]));
    runs.chain([name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_what_was_meant() {
        let names = [
            "embeddings.LayerNorm.weight",
            "encoder.layer.0.attention.self.key.weight",
            "encoder.layer.0.attention.self.key.bias",
            "ids",
        ];
        assert_eq!(nearest("*LayerNrom*", names), ["embeddings.LayerNorm.weight"]);
        assert_eq!(nearest("key.wieght", names), ["encoder.layer.0.attention.self.key.weight"]);
        assert_eq!(nearest("*LAYERNORM*", names), ["embeddings.LayerNorm.weight"]);
        assert_eq!(nearest("key.weight", names), ["encoder.layer.0.attention.self.key.weight"]);
        assert_eq!(nearest("*lm_head*", names), [""; 0]);
        assert_eq!((nearest("*", names), nearest("", names)), (vec![], vec![]));
        assert_eq!(nearest("*a*", ["x", "é/ü"]), [""; 0]);
    }
}
