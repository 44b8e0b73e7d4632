//! Consistency of a checkpoint (`docs/spec/checkpoints.md §5.7`): index and shards, scales and codes, scales of related
//! weights. `truecast_schemes` checks headers and configurations.

use crate::files::convert::error::of_others;
use crate::files::convert::found::Contents;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::inspect::survey;
use crate::files::select::SharedGlobalScale;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{Code, Part};
use truecast_io::folder::{Folder, Shard};
use truecast_io::{Escaped, Links, look};
use truecast_kernel::Level;
use truecast_kernel::measure::Survey;
use truecast_schemes::{Advice, Check, Family, Finding, Group, Options};

/// Scales of this magnitude or more are a finding.
const IMPLAUSIBLE_SCALE: f64 = (1u64 << 40) as f64;
/// Number of bytes of codes to read if all scales are 0.
const PIECE: u64 = 1 << 20;

/// Lists the inconsistencies of a checkpoint: a folder, a `.safetensors` or a `.gguf` file. Reads headers,
/// configurations, beginnings of zero points, and all scales.
///
/// # Errors
/// A file that cannot be opened, or that contradicts its declaration.
pub fn check(path: &Path, links: Links, level: Level) -> Result<Vec<Finding>, Error> {
    let folder = if look::is_folder(path)? { Folder::open(path, links)? } else { Folder::of_file(path)? };
    check_folder(&folder, level)
}

/// As [`check`], for an opened checkpoint.
///
/// # Errors
/// As [`check`].
pub fn check_folder(folder: &Folder, level: Level) -> Result<Vec<Finding>, Error> {
    let Contents { stored, found, .. } = Contents::detect(folder, &Options { lists: true, ..Options::default() })?;
    let of_global = |group: &Group| {
        let number = group.tensor(Part::Global)?;
        Some((group.scheme.family, group.name.clone(), stored[number]))
    };
    let globals = global_scales(folder, found.groups.iter().filter_map(of_global))?;
    let scales = of_scales(folder, &found.groups, &stored, level)?;
    Ok([of_index(folder), found.findings, scales, globals].concat())
}

/// First finding of each kind, and number of further findings.
type Firsts = BTreeMap<usize, (Finding, u64)>;

fn told(firsts: Firsts) -> Vec<Finding> {
    let told = |(first, others): (Finding, u64)| Finding { place: first.place + &of_others(others), ..first };
    firsts.into_values().map(told).collect()
}

fn of_index(folder: &Folder) -> Vec<Finding> {
    let Some(index) = folder.index() else { return Vec::new() };
    let of = |shard: &Shard| shard.tensors.iter().map(|at| shard.source.tensors()[*at].bytes()).sum::<u64>();
    let bytes: u64 = folder.shards().iter().map(of).sum();
    let stated = index.metadata.get("total_size").filter(|size| size.as_u64() != Some(bytes));
    let total = stated.map(|size| {
        let statements = [format!("total_size is {size}"), format!("the tensors have {bytes} bytes")];
        Finding::new(Check::Index, &index.name, statements, Advice::Text("a conversion writes the right one"))
    });
    let told = folder.warnings().iter().filter_map(|warning| warning.strip_prefix("tensor ")?.split_once("; "));
    let copies =
        told.map(|(holds, index)| Finding::new(Check::Index, "tensor", [holds, index].map(str::to_owned), None));
    copies.chain(total).collect()
}

/// Conditions on scales. Each entry: true for a violation, text of the finding, expected state.
fn odd(part: Part, dtype: DType, seen: &Survey) -> [(bool, String, &'static str); 5] {
    let (least, most) = seen.range.map_or((0.0, 0.0), |(least, most)| (least.nearest, most.nearest));
    let is_unsigned = part == Part::Global || dtype == DType::F8E4M3Fn;
    let are_zero = part != Part::Biases && seen.elements > 0 && seen.zero == seen.elements;
    let share = |count: u64, what: &str| format!("{count} of {} are {what}", seen.elements);
    [
        (are_zero, share(seen.zero, "0"), "its codes differ"),
        (seen.nan > 0, share(seen.nan, "NaN"), "a scale is a number"),
        (seen.inf > 0, share(seen.inf, "Inf"), "a scale is finite"),
        (is_unsigned && least < 0.0, "some are negative".into(), "the scheme has no negative scales"),
        (most.max(-least) >= IMPLAUSIBLE_SCALE, "some are 2^40 or more".into(), "weights are smaller"),
    ]
}

fn of_scales(folder: &Folder, groups: &[Group], stored: &[Stored], level: Level) -> Result<Vec<Finding>, Error> {
    let mut firsts = Firsts::new();
    for group in groups {
        for part in [Part::Scales, Part::Global, Part::Biases] {
            let (Some(number), Some((plane, _))) = (group.tensor(part), group.layout.plane(part)) else { continue };
            let Code::Float(dtype) = plane.code else { continue };
            let at = stored[number];
            let seen = survey(at.source(folder), at.tensor, dtype, level)?;
            for (kind, (is_odd, is, should)) in odd(part, dtype, &seen).into_iter().enumerate() {
                // A tensor of zeros may have zero scales.
                if is_odd && (kind > 0 || !is_constant(folder, stored[group.parts[0].1])?) {
                    let place = format!("tensor {}", Escaped(&at.header(folder).name));
                    let finding = Finding::new(Check::Scales, place, [is, should.to_string()], None);
                    firsts.entry(kind).and_modify(|(_, others)| *others += 1).or_insert((finding, 0));
                }
            }
        }
    }
    Ok(told(firsts))
}

fn is_constant(folder: &Folder, codes: Stored) -> Result<bool, Error> {
    let bytes = codes.read(folder, 0..codes.header(folder).bytes().min(PIECE))?;
    Ok(bytes.windows(2).all(|pair| pair[0] == pair[1]))
}

/// Finds weights that vLLM stores in one layer although their global scales differ. Each entry of `all` is (family,
/// weight name, position) of a global scale.
///
/// # Errors
/// An unreadable file.
pub(crate) fn global_scales(
    folder: &Folder,
    all: impl Iterator<Item = (Family, Arc<str>, Stored)>,
) -> Result<Vec<Finding>, Error> {
    let (mut usual, mut known, mut firsts) = (HashMap::new(), HashMap::new(), Firsts::new());
    for (family, name, at) in all {
        let sets = usual.entry(family).or_insert_with(|| SharedGlobalScale::usual(family)).iter().enumerate();
        let Some(set) = sets.filter_map(|(i, set)| Some((i, set.group(&name)?.to_string()))).next() else { continue };
        let scale = at.read(folder, 0..at.header(folder).bytes())?;
        let (other, first) = known.entry(set).or_insert_with(|| (name.clone(), scale.clone()));
        if *first != scale {
            let differs = format!("differs from {} in its global scale", Escaped(other));
            let statements = [differs, "vLLM takes the largest for both".to_string()];
            let place = format!("tensor {}", Escaped(&name));
            let finding =
                Finding::new(Check::GlobalScales, place, statements, Advice::Text("requantizing gives them one"));
            firsts.entry(0).and_modify(|(_, others)| *others += 1).or_insert((finding, 0));
        }
    }
    Ok(told(firsts))
}
