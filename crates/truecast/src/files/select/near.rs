//! Suggestions for a pattern that matches no name, and for a name that does not exist.

use crate::files::select::glob::Glob;
use std::iter;

const MAX_SUGGESTIONS: usize = 3;
/// Largest number of compared pairs of letters. Names and patterns come from files.
const MAX_COMPARISONS: usize = 1 << 24;
const LONGEST_NAME: usize = 256;
/// Largest number of beginnings that are tried: those of a pattern, and without its first modules.
const MOST_MODULES: usize = 4;
const SEPARATORS: [char; 2] = ['.', '/'];

/// Part of a pattern, with its text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Letter(char),
    /// A wildcard for one character.
    One(&'a str),
    /// A wildcard for any characters.
    Any(&'a str),
}

/// The patterns nearest to a glob that match a name, for a name each; empty if no name is near. Ignores case. The text
/// may also be a list of patterns, or a regular expression.
pub fn patterns<'a>(glob: &str, names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    if glob.contains(',') && !glob.contains('{') {
        let each = glob.split(',').map(|part| {
            let near = near(&tokens(part.trim()), names.clone());
            near.into_iter().next().map(|found| found.pattern(true))
        });
        return each.collect::<Option<Vec<_>>>().map_or(Vec::new(), |each| vec![format!("{{{}}}", each.join(","))]);
    }
    let is_regex = glob.starts_with(['^', '.']) || glob.starts_with("re:") || glob.ends_with('$');
    let regex = glob.trim_start_matches("re:").trim_matches(['^', '$']).replace(".*", "*").replace("\\.", ".");
    let wanted: &str = if is_regex { &regex } else { glob };
    // The names of another file of the model may begin with more modules.
    let ends = iter::successors(Some(wanted), |&wanted| within(wanted)).take(MOST_MODULES);
    let found = ends.map(|end| near(&tokens(end), names.clone())).find(|found| !found.is_empty());
    let mut all: Vec<String> = Vec::new();
    for found in found.into_iter().flatten() {
        let pattern = found.pattern(false);
        let matches = Glob::new(&pattern).is_ok_and(|glob| glob.for_names([found.name]).matches(found.name));
        if matches && !all.contains(&pattern) {
            all.push(pattern);
        }
    }
    all
}

/// The pattern without its first module, if others remain.
fn within(wanted: &str) -> Option<&str> {
    wanted.split_once('.').map(|(_, rest)| rest).filter(|rest| rest.contains('.'))
}

/// The names nearest to a name, in their order.
pub fn names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let letters: Vec<Token<'_>> = name.chars().map(Token::Letter).collect();
    near(&letters, names).into_iter().map(|found| found.name.to_owned()).collect()
}

fn tokens(glob: &str) -> Vec<Token<'_>> {
    let (mut all, mut rest) = (Vec::new(), glob);
    while let Some(first) = rest.chars().next() {
        let end_of = |close| rest.find(close).map_or(first.len_utf8(), |at| at + 1);
        let end = match first {
            '[' => end_of(']'),
            '{' => end_of('}'),
            _ => first.len_utf8(),
        };
        let (text, after) = rest.split_at(end);
        all.push(match first {
            '*' | '{' => Token::Any(text),
            '?' | '[' => Token::One(text),
            letter => Token::Letter(letter),
        });
        rest = after;
    }
    all
}

/// A name, and the part of it that a pattern resembles.
#[derive(Debug)]
struct Near<'a> {
    name: &'a str,
    before: String,
    /// The pattern with the letters of the name.
    part: String,
    after: String,
    has_wildcards: bool,
}

impl Near<'_> {
    /// Pattern that matches the name. Without wildcards it may name a module, unless it must match the whole name.
    fn pattern(&self, whole: bool) -> String {
        let is_module = self.before.is_empty() && self.after.starts_with('.') && !self.has_wildcards && !whole;
        let before = if self.before.ends_with(SEPARATORS) { "*." } else { "*" };
        let after = if self.after.starts_with(SEPARATORS) { ".*" } else { "*" };
        let before = if self.before.is_empty() { "" } else { before };
        let after = if self.after.is_empty() || is_module { "" } else { after };
        format!("{before}{}{after}", self.part)
    }
}

/// The first names that need the fewest edits of a part of them: letters that are added, removed, replaced or swapped.
/// Ends when [`MAX_COMPARISONS`] would be exceeded.
fn near<'a>(wanted: &[Token<'_>], names: impl Iterator<Item = &'a str>) -> Vec<Near<'a>> {
    let letters = wanted.iter().filter(|token| matches!(token, Token::Letter(_))).count();
    let (mut edits, mut best, mut budget) = (letters / 4, Vec::new(), MAX_COMPARISONS);
    if letters < 2 {
        return Vec::new();
    }
    for name in names.filter(|name| name.len() <= LONGEST_NAME) {
        let Some(rest) = budget.checked_sub(wanted.len() * name.len()) else { break };
        budget = rest;
        let alignment = Alignment::new(wanted, name);
        let found = alignment.edits();
        if found < edits {
            (edits, best) = (found, Vec::new());
        }
        if found == edits && best.len() < MAX_SUGGESTIONS {
            best.push(alignment.near(name));
        }
    }
    best
}

/// Edits between each beginning of a pattern and the parts of a name that end at each letter.
struct Alignment<'w, 'p> {
    wanted: &'w [Token<'p>],
    letters: Vec<char>,
    edits: Vec<u16>,
}

impl<'w, 'p> Alignment<'w, 'p> {
    fn new(wanted: &'w [Token<'p>], name: &str) -> Self {
        let letters: Vec<char> = name.chars().collect();
        let columns = letters.len() + 1;
        let mut all = Self { wanted, edits: vec![0; (wanted.len() + 1) * columns], letters };
        for token in 1..=wanted.len() {
            for end in 0..columns {
                let least = all.steps([token, end]).into_iter().flatten().map(|(edits, _)| edits).min();
                all.edits[token * columns + end] = least.unwrap_or(0);
            }
        }
        all
    }

    fn at(&self, [token, end]: [usize; 2]) -> u16 {
        self.edits[token * (self.letters.len() + 1) + end]
    }

    /// Steps that end at a place, each with the edits so far and the place before.
    fn steps(&self, [token, end]: [usize; 2]) -> [Option<(u16, [usize; 2])>; 4] {
        let is_any = matches!(self.wanted[token - 1], Token::Any(_));
        let is_same = |token: usize, end: usize| match self.wanted[token - 1] {
            Token::Letter(letter) => letter.eq_ignore_ascii_case(&self.letters[end - 1]),
            Token::One(_) => true,
            Token::Any(_) => false,
        };
        let is_swap = !is_any && token > 1 && end > 1 && is_same(token, end - 1) && is_same(token - 1, end);
        let step = |place, is_edit: bool| (self.at(place) + is_edit as u16, place);
        let removed = Some(step([token - 1, end], !is_any));
        let added = (end > 0).then(|| step([token, end - 1], !is_any));
        let kept = (end > 0 && !is_any).then(|| step([token - 1, end - 1], !is_same(token, end)));
        let swapped = is_swap.then(|| step([token - 2, end - 2], true));
        if is_any { [removed, added, None, None] } else { [kept, swapped, removed, added] }
    }

    fn ends(&self) -> impl Iterator<Item = (usize, u16)> + '_ {
        (0..=self.letters.len()).map(|end| (end, self.at([self.wanted.len(), end])))
    }

    fn edits(&self) -> usize {
        self.ends().map(|(_, edits)| edits).min().unwrap_or(0).into()
    }

    fn near<'a>(&self, name: &'a str) -> Near<'a> {
        let is_open = matches!(self.wanted.last(), Some(Token::Any(_)));
        let rank = |&(end, edits): &(usize, u16)| {
            let ends_part = self.letters.get(end).is_none_or(|letter| SEPARATORS.contains(letter));
            (edits, !ends_part, if is_open { self.letters.len() - end } else { end })
        };
        let end = self.ends().min_by_key(rank).map_or(0, |(end, _)| end);
        let (mut place, mut backwards) = ([self.wanted.len(), end], Vec::new());
        while place[0] > 0 {
            let steps = self.steps(place).into_iter().flatten();
            let Some((_, before)) = { steps }.find(|(edits, _)| *edits == self.at(place)) else { break };
            match self.wanted[place[0] - 1] {
                Token::Any(text) if before[0] < place[0] => backwards.push(text.to_owned()),
                Token::One(text) if before[0] < place[0] && before[1] < place[1] => backwards.push(text.to_owned()),
                Token::Letter(_) => {
                    backwards.extend(self.letters[before[1]..place[1]].iter().rev().map(char::to_string));
                }
                _ => {}
            }
            place = before;
        }
        let part = |letters: &[char]| letters.iter().collect();
        let start = if matches!(self.wanted.first(), Some(Token::Any(_))) { 0 } else { place[1] };
        Near {
            name,
            before: part(&self.letters[..start]),
            part: backwards.into_iter().rev().collect(),
            after: part(&self.letters[end..]),
            has_wildcards: self.wanted.iter().any(|token| !matches!(token, Token::Letter(_))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_hostile_names_is_bounded() {
        let long = ["y.".repeat(120), "x".repeat(100_000), "z".repeat(250)];
        let names: Vec<String> = (0..20_000).map(|i| format!("{}{i}", "a.".repeat(100))).collect();
        let all = || long.iter().chain(&names).map(String::as_str);
        for glob in ["b.".repeat(100), "*".repeat(4096), format!("{}*", "é".repeat(2000)), "[{[".into(), ",".into()] {
            assert!(patterns(&glob, all()).len() <= MAX_SUGGESTIONS);
            assert!(super::names(&glob, all()).len() <= MAX_SUGGESTIONS);
        }
    }

    #[test]
    fn a_suggestion_is_a_pattern_that_matches() {
        let names = [
            "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.up_proj.bias",
            "model.layers.10.LayerNorm.weight", "lm_head.weight", "é/ü",
        ];
        for (typed, expected) in [
            // Typing errors, in any place of a pattern.
            ("*nrom*", &["*Norm*"][..]),
            ("*LAYERNROM*", &["*LayerNorm*"]),
            ("*LAYERNORM.WEIGHT", &["*LayerNorm.weight"]),
            ("*.self_atn.*.weight", &["*.self_attn.*.weight"]),
            ("model.layer.*.mlp.*", &["model.layers.*.mlp.*"]),
            ("model.layers.?.self_atn.*", &["model.layers.?.self_attn.*"]),
            ("model.layers.{0..9}.mlpp.*", &["model.layers.{0..9}.mlp.*"]),
            ("lm_haed", &["lm_head"]),
            ("lm_head.wieght", &["lm_head.weight"]),
            // Patterns that match a part of a name.
            ("q_proj", &["*.q_proj.*"]),
            ("Norm", &["*Norm.*"]),
            ("layers.0", &["*.layers.0.*"]),
            ("proj*", &["*proj*"]),
            ("model.layers.{0,1}.mlp", &["model.layers.{0,1}.mlp.*"]),
            // Notations of other tools.
            ("re:.*lm_head.*", &["*lm_head*"]),
            ("^lm_head$", &["lm_head"]),
            ("re:.*\\.mlp\\..*", &["*.mlp.*"]),
            ("lm_head,embed_tokens", &["{lm_head.*,*.embed_tokens.*}"]),
            ("base.model.outer.model.embed_tokens.weight", &["model.embed_tokens.weight"]),
            // Patterns unlike every name.
            ("*rotary*", &[]),
            ("nope", &[]),
            ("*", &[]),
            ("", &[]),
            ("*z*", &[]),
            ("lm_head,rotary", &[]),
        ] {
            assert_eq!(patterns(typed, names.into_iter()), expected, "{typed}");
            for pattern in expected {
                let glob = Glob::new(pattern).unwrap().for_names(names);
                assert!(names.iter().any(|name| glob.matches(name)), "{pattern}");
            }
        }
        assert_eq!(patterns("weight", names.into_iter()), ["*.weight"]);
    }

    #[test]
    fn near_names_exist() {
        let names = ["img_in.weight", "img_in.bias", "ab.d", "ab.e", "x[0]"];
        for (typed, expected) in [
            ("img_in", &["img_in.weight", "img_in.bias"][..]),
            ("img_in.wieght", &["img_in.weight"]),
            ("ab.c", &["ab.d", "ab.e"]),
            ("x[0", &["x[0]"]),
            ("rotary", &[]),
        ] {
            assert_eq!(super::names(typed, names.into_iter()), expected, "{typed}");
        }
    }
}
