//! Totals of a report, in `convert` and `compare` (`docs/interfaces.md §6`).

use super::counts::{Origin, put_counts, put_measures};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use truecast_core::{DType, Kind};
use truecast_kernel::Counts;

/// Group of tensors with common error measures. Integers are a separate group: a few large integers would hide the
/// noise of all weights.
///
/// # Examples
/// ```
/// use truecast::{DType, report::Group};
/// assert_eq!(Group::of_types(DType::F32, DType::F8E4M3Fn), Group::Converted);
/// assert_eq!(Group::of_types(DType::F32, DType::F32), Group::Kept);
/// assert_eq!(Group::of_types(DType::I64, DType::I64), Group::Integers);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The type changed.
    Converted,
    /// The type is unchanged.
    Kept,
    /// The source has integers or truth values.
    Integers,
}

impl Group {
    /// All groups, in the order of reports.
    pub const ALL: [Group; 3] = [Group::Converted, Group::Kept, Group::Integers];

    /// Group of an unquantized tensor.
    #[must_use]
    pub fn of_types(from: DType, to: DType) -> Group {
        match from.kind() {
            Kind::Int(_) | Kind::Bool => Group::Integers,
            _ if from == to => Group::Kept,
            _ => Group::Converted,
        }
    }

    /// Group of a tensor, by its types and schemes before and after. The types of a quantized tensor do not count,
    /// because they are types of codes.
    #[must_use]
    pub fn of_tensors(from: DType, to: DType, schemes: (Option<&str>, Option<&str>)) -> Group {
        match schemes {
            (None, None) => Group::of_types(from, to),
            (Some(before), Some(after)) if before == after => Group::Kept,
            _ => Group::Converted,
        }
    }

    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Group::Converted => "converted",
            Group::Kept => "kept",
            Group::Integers => "integers",
        }
    }
}

/// Sum over tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Number of tensors.
    pub tensors: u64,
    /// Number of elements.
    pub elements: u64,
    /// Size before, in bytes.
    pub bytes_in: u64,
    /// Size after, in bytes.
    pub bytes_out: u64,
    /// Sums of the counts; maxima of the largest errors.
    pub counts: Counts,
    /// Sums of the counts over the tensors that have an error. Error measures use these sums, because unchanged tensors
    /// would hide the loss.
    pub inexact: Counts,
}

impl Sum {
    fn put_sizes<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("tensors", &self.tensors)?;
        map.serialize_entry("elements", &self.elements)?;
        map.serialize_entry("bytes_in", &self.bytes_in)?;
        map.serialize_entry("bytes_out", &self.bytes_out)
    }
}

/// The totals of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// All tensors. Error measures over several groups would mislead, so reports have none.
    pub all: Sum,
    groups: [Sum; 3],
}

impl Total {
    /// The tensors of a group.
    #[must_use]
    pub fn of(&self, group: Group) -> &Sum {
        &self.groups[group as usize]
    }

    pub(crate) fn add(&mut self, group: Group, elements: u64, bytes: (u64, u64), counts: &Counts) {
        for sum in [&mut self.all, &mut self.groups[group as usize]] {
            sum.tensors += 1;
            sum.elements += elements;
            sum.bytes_in += bytes.0;
            sum.bytes_out += bytes.1;
            sum.counts.add(counts);
            if counts.noise > 0.0 {
                sum.inexact.add(&counts.extrapolated());
            }
        }
    }
}

/// JSON object `total`. `origin` is `None` without counting.
pub(crate) struct TotalJson<'a> {
    pub total: &'a Total,
    pub origin: Option<Origin>,
}

impl Serialize for TotalJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let all = &self.total.all;
        all.put_sizes(&mut map)?;
        self.origin.map_or(Ok(()), |origin| put_counts(&mut map, &all.counts, origin))?;
        for group in Group::ALL {
            map.serialize_entry(group.name(), &SumJson { sum: self.total.of(group), origin: self.origin })?;
        }
        map.end()
    }
}

struct SumJson<'a> {
    sum: &'a Sum,
    origin: Option<Origin>,
}

impl Serialize for SumJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.sum.put_sizes(&mut map)?;
        if let Some(origin) = self.origin {
            put_counts(&mut map, &self.sum.counts, origin)?;
            put_measures(&mut map, &self.sum.inexact, self.sum.inexact.is_sampled())?;
        }
        map.end()
    }
}
