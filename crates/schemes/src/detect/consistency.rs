//! Checks a configuration against headers and zero points (`docs/spec/checkpoints.md §5.7`). [`crate::finding`] lists
//! the checks.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt};
use truecast_core::scaled::{Code, Part, Zero};
use truecast_io::{Escaped, counted};

use super::claims::Claims;
use crate::checkpoint::Index;
use crate::declared::Declaration;
use crate::detection::Group;
use crate::error::Error;
use crate::finding::{Advice, Check, Finding};
use crate::layer::Layer;
use crate::modules::module_of;
use crate::scheme::{Family, Parameters, Scheme};

const LOOKED_AT: usize = 1 << 14;
/// Pairs of layers in a block: the second layer has as many rows as the first has columns.
const FEEDS: [[&str; 2]; 4] =
    [["gate_proj", "down_proj"], ["up_proj", "down_proj"], ["down_proj", "gate_proj"], ["down_proj", "up_proj"]];
/// Widths of codes in schemes that do not store the logical shape.
const WIDTHS: [u32; 6] = [2, 3, 4, 5, 6, 8];
const CORRECT: Advice = Advice::Text("correct the configuration in a copy");

pub(super) fn check(claims: &mut Claims<'_>, declared: &[Declaration]) -> Result<(), Error> {
    let mut found: Vec<Finding> = shapes(&claims.groups).into_iter().collect();
    for declaration in declared {
        let own = absent(&claims.index, declaration.modules.keys().map(String::as_str), None);
        let common = declaration.settings.iter().any(|(targets, _)| targets.are_all());
        found.extend(named(if common { Check::Settings } else { Check::Entries }, declaration, &own));
        // No file has a head that shares the table of tokens, and no file states classes of modules.
        let is_head = |name: &str| Layer::by_name(&format!("{name}.weight"), 2) == Some(Layer::Head);
        let is_class = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.contains('.');
        let exceptions = declaration.exceptions().filter(|name| !is_head(name) && !is_class(name));
        found.extend(named(Check::Exceptions, declaration, &absent(&claims.index, exceptions, Some(ends))));
        let is_used = |scheme: Scheme| claims.groups.iter().any(|group| group.scheme == scheme);
        let mut listed = declaration.settings.iter().filter(|(targets, _)| !targets.are_all());
        if let Some((_, unused)) = listed.find(|(_, setting)| !is_used(setting.scheme)) {
            let statements = [format!("{} is for some modules", unused.scheme), "none is stored so".into()];
            found.push(Finding::new(Check::Entries, &declaration.place, statements, CORRECT));
        }
    }
    found.into_iter().try_for_each(|finding| claims.report(finding))
}

pub(super) fn excluded(declaration: &Declaration, group: &Group) -> Finding {
    let statements = [format!("excludes {}", Escaped(&group.module)), format!("it is stored as {}", group.scheme)];
    Finding::new(Check::Exclusions, &declaration.place, statements, None)
}

/// Checks the zero points of the last claimed group against a statement that every zero point is the midpoint.
pub(super) fn zero_points(claims: &mut Claims<'_>, declaration: &Declaration, statement: &str) -> Result<(), Error> {
    let Some(Group { scheme, layout, parts, .. }) = claims.groups.last().cloned() else { return Ok(()) };
    let (Some(planes), Some(grid)) = (layout.planes(), layout.scale_grid()) else { return Ok(()) };
    let Zero::Grid { plane, plus } = planes.zero else { return Ok(()) };
    let (Code::Int(format), Some((_, number))) = (plane.code, parts.iter().find(|(part, _)| *part == Part::Zeros))
    else {
        return Ok(());
    };
    if claims.unread == 0 {
        return Ok(());
    }
    let (bytes, bits) = ((claims.read)(*number)?, plane.code.bits());
    claims.unread = claims.unread.saturating_sub(bytes.len() as u64);
    let is_read =
        |at: &[u64; 2]| [0, bits - 1].iter().all(|n| plane.packing.bit(bits, grid, *at, *n) / 8 < bytes.len() as u64);
    let places = (0..grid[0]).flat_map(|row| (0..grid[1]).map(move |col| [row, col]));
    let codes: BTreeSet<u64> = places.take(LOOKED_AT).filter(is_read).map(|at| plane.get(grid, at, &bytes)).collect();
    let midpoint = if format.signed { 0 } else { 1 << (bits - 1) };
    let values = |plus: u8| -> BTreeSet<_> {
        codes.iter().map(|code| format.value(code.wrapping_add(plus.into()) & format.mask())).collect()
    };
    let are_midpoints = |plus| values(plus).iter().all(|value| *value == midpoint);
    let (seen, false) = (values(plus), are_midpoints(plus)) else { return Ok(()) };
    // GPTQ's two formats differ by one in the stored zero points.
    let other = match scheme.family {
        Family::Gptq => Some(Family::GptqV2),
        Family::GptqV2 => Some(Family::Gptq),
        _ => None,
    };
    let advice = match (declaration.only(), other) {
        (None, _) => CORRECT,
        (Some(scheme), Some(family)) if are_midpoints(1 - plus) => {
            Advice::Scheme { scheme: Scheme { family, ..scheme }, reads: midpoint.to_string() }
        }
        (Some(Scheme { family, parameters }), _) => {
            let parameters = Parameters { symmetric: parameters.symmetric.map(|_| false), ..parameters };
            Advice::Scheme { scheme: Scheme { family, parameters }, reads: "they are".to_owned() }
        }
    };
    let shown: Vec<String> = seen.iter().take(3).map(ToString::to_string).collect();
    let (shown, dots) = (shown.join(", "), if seen.len() > 3 { ", .." } else { "" });
    let statements = [
        format!("{statement}, so every zero point is {midpoint}"),
        format!(
            "{} holds {shown}{dots} as {} reads it",
            Escaped(&claims.index.tensor(*number).name),
            scheme.family.name()
        ),
    ];
    claims.unread = 0;
    claims.report(Finding::new(Check::ZeroPoints, &declaration.place, statements, advice))
}

/// Compares column counts, which follow from the declared width, with the row counts of the preceding layers.
fn shapes(groups: &[Group]) -> Option<Finding> {
    let rows: HashMap<&str, u64> =
        groups.iter().filter_map(|group| Some((&*group.module, *group.shape.first()?))).collect();
    let contradicted = |group: &Group| {
        let (Some(bits), [_, cols]) = (group.scheme.parameters.bits, &*group.shape) else { return None };
        let (front, last) = group.module.rsplit_once('.')?;
        let feeding = FEEDS.iter().filter(|[fed, _]| *fed == last).map(|[_, feeding]| format!("{front}.{feeding}"));
        let (rows, feeding) = feeding.filter_map(|module| Some((*rows.get(&*module)?, module))).next()?;
        let is_width = |width: &&u32| cols.checked_mul(bits.into()) == rows.checked_mul((**width).into());
        let width = WIDTHS.iter().find(is_width).filter(|width| **width != bits)?;
        let statements = [
            format!("its codes of {bits} bits make {cols} columns"),
            format!("{} has {rows} rows, as codes of {width} bits would make", Escaped(&feeding)),
        ];
        Some(Finding::new(Check::Shapes, format!("tensor {}", Escaped(&group.name)), statements, CORRECT))
    };
    groups.iter().find_map(contradicted)
}

/// Finding about entries that match no tensor's name; `None` without entries.
fn named(check: Check, declaration: &Declaration, names: &[&str]) -> Option<Finding> {
    let (first, others) = names.split_first()?;
    let others =
        if others.is_empty() { String::new() } else { format!(" and {}", counted(others.len() as u64, "other")) };
    let statements = [format!("names {}{others}", Escaped(first)), "no tensor has such a name".into()];
    Some(Finding::new(check, &declaration.place, statements, CORRECT))
}

/// Entries that match no tensor's name.
///
/// An entry matches whole components at the beginning of a name. With `parts`, one part of the entry anywhere in a
/// name is enough.
fn absent<'a>(
    index: &Index<'_>,
    entries: impl Iterator<Item = &'a str>,
    parts: Option<fn(&str) -> Vec<&str>>,
) -> Vec<&'a str> {
    let (mut absent, mut wanted) = (BTreeSet::new(), HashMap::<&str, Vec<&str>>::new());
    for entry in entries {
        absent.insert(entry);
        parts
            .map_or(vec![entry], |parts| parts(entry))
            .into_iter()
            .for_each(|part| wanted.entry(part).or_default().push(entry));
    }
    for number in 0..index.len() {
        if absent.is_empty() {
            break;
        }
        let name = &*index.tensor(number).name;
        let dots: Vec<usize> = name.match_indices('.').map(|(at, _)| at).collect();
        let within = dots.iter().map(|at| at + 1).filter(|_| parts.is_some());
        for begin in [0].into_iter().chain(within) {
            for end in dots.iter().copied().chain([name.len()]).filter(|end| *end > begin) {
                wanted.remove(&name[begin..end]).into_iter().flatten().for_each(|entry| _ = absent.remove(entry));
            }
        }
    }
    absent.into_iter().collect()
}

/// The name and its shorter ends, down to the end that begins with the first number (without numbers: the last
/// component).
///
/// Loaders may use other names for the enclosing modules.
fn ends(name: &str) -> Vec<&str> {
    let module = module_of(name);
    let begins: Vec<usize> = [0].into_iter().chain(module.match_indices('.').map(|(at, _)| at + 1)).collect();
    let is_number = |begin: &usize| module[*begin..].starts_with(|c: char| c.is_ascii_digit());
    let last = begins.iter().position(is_number).unwrap_or(begins.len() - 1);
    begins.into_iter().take(last + 1).map(|begin| &module[begin..]).collect()
}
