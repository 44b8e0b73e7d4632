//! Results of Tile IR under all its attributes and profiles.

use super::answers::{Answer, Explanation, explain_under};
use truecast_core::policy::CastPolicy;
use truecast_core::spec::{Interpretation, SpecError, tile};
use truecast_core::{CastSpec, DType};

/// Lists the results under every attribute that the release allows, and under each profile with a different result.
/// Empty if the release forbids the pair.
pub(super) fn tile_answers(from: DType, code: u64, to: DType, asked: &tile::Cast) -> Vec<Answer> {
    tile_answers_of(from, code, to, &asked.every_attribute(from), &tile::Profile::ALL)
}

fn tile_answers_of(from: DType, code: u64, to: DType, asked: &[tile::Cast], profiles: &[tile::Profile]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for attributes in asked {
        let mut seen = Vec::new();
        for &profile in profiles {
            let cast = tile::Cast { profile, ..*attributes };
            let Ok(meaning) = cast.meaning(from) else { continue };
            let tile::Element { outcome, note } = meaning.element(code);
            if seen.contains(&outcome) {
                continue;
            }
            seen.push(outcome);
            let words = [format!("profile={}", profile.name()), attributes.attribute_text()];
            let words: Vec<_> = words.into_iter().filter(|w| !w.is_empty()).collect();
            let pair =
                CastSpec { src: from, dst: to, policy: CastPolicy::IEEE, undefined: &[], clause: meaning.clause() };
            let resolved = cast.resolve(from).unwrap_or(pair);
            let interpretation = Interpretation {
                spec: "tile",
                version: attributes.release.name().into(),
                attributes: words.join(", "),
                cast: CastSpec { clause: note.unwrap_or(resolved.clause), ..resolved },
            };
            answers.push(Answer { interpretation, outcome });
        }
    }
    answers
}

/// Explains the conversion of one code under Tile IR alone.
///
/// # Errors
/// The release forbids the pair under every attribute.
pub fn explain_tile(from: DType, code: u64, to: DType, asked: &tile::Cast) -> Result<Explanation, SpecError> {
    let answers = tile_answers(from, code, to, asked);
    match (answers.is_empty(), asked.meaning(from)) {
        (true, Err(error)) => Err(error),
        _ => Ok(Explanation { answers, ..explain_under(from, code, to, Vec::new()) }),
    }
}

/// Explains the conversion of one code under Tile IR with exactly these attributes, profile and options.
///
/// # Errors
/// The release forbids the pair or an attribute.
pub fn explain_tile_as(from: DType, code: u64, asked: &tile::Cast) -> Result<Explanation, SpecError> {
    let to = asked.to;
    asked.meaning(from)?;
    let mut answers = tile_answers_of(from, code, to, &[*asked], &[asked.profile]);
    for answer in &mut answers {
        let options = asked.options.names().map(|name| format!(", {name}")).collect::<String>();
        answer.interpretation.attributes += &options;
    }
    Ok(Explanation { answers, ..explain_under(from, code, to, Vec::new()) })
}
