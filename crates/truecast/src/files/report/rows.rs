//! JSON object of a tensor, and selection of tensors in a report.

use super::blocks::Blocks;
use super::counts::{Number, Origin, put_counts, put_measures};
use super::magnitudes::Magnitudes;
use super::total::Group;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::json;
use truecast_core::decimal::to_decimal;
use truecast_core::{DType, Exact};
use truecast_kernel::Counts;

/// Tensors that a report lists in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows<'a> {
    /// All tensors, in the order of the data.
    All,
    /// Tensors with the given indices, in the given order.
    Ordered(&'a [usize]),
    /// No tensors.
    None,
}

pub(crate) struct RowJson<'a> {
    pub name: &'a str,
    pub shape: &'a [u64],
    pub types: (DType, DType),
    pub group: Group,
    /// Schemes of a quantized tensor. The first is the scheme before the conversion, and the second the scheme after
    /// it.
    pub schemes: (Option<&'a str>, Option<&'a str>),
    pub blocks: Option<Blocks>,
    /// `None` in comparisons.
    pub converted: Option<bool>,
    pub kept_by: Option<&'a str>,
    pub elements: u64,
    pub bytes: (u64, u64),
    /// `None` without counting.
    pub counts: Option<(&'a Counts, Origin)>,
    pub magnitudes: Option<&'a Magnitudes>,
    /// Index and values of the largest error, in comparisons.
    pub worst: Option<(Vec<u64>, &'a [Exact; 2])>,
}

impl Serialize for RowJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let (from, to) = self.types;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("shape", self.shape)?;
        map.serialize_entry("from", from.name())?;
        map.serialize_entry("to", to.name())?;
        self.schemes.0.map_or(Ok(()), |scheme| map.serialize_entry("scheme", scheme))?;
        self.schemes.1.map_or(Ok(()), |scheme| map.serialize_entry("to_scheme", scheme))?;
        self.converted.map_or(Ok(()), |converted| map.serialize_entry("converted", &converted))?;
        self.kept_by.map_or(Ok(()), |kept_by| map.serialize_entry("kept_by", kept_by))?;
        map.serialize_entry("group", self.group.name())?;
        map.serialize_entry("elements", &self.elements)?;
        map.serialize_entry("bytes_in", &self.bytes.0)?;
        map.serialize_entry("bytes_out", &self.bytes.1)?;
        if let Some((counts, origin)) = self.counts {
            put_counts(&mut map, counts, origin)?;
            put_measures(&mut map, counts, counts.is_sampled())?;
            map.serialize_entry("index_max_abs", &counts.index_max_abs)?;
        }
        if let Some((index, [first, second])) = &self.worst {
            let value = |value: &Exact| Number(to_decimal(*value).parse().unwrap_or(f64::NAN));
            let worst = json!({ "index": index, "first": value(first), "second": value(second) });
            map.serialize_entry("worst", &worst)?;
        }
        self.blocks.map_or(Ok(()), |blocks| blocks.put(&mut map))?;
        self.magnitudes.map_or(Ok(()), |all| map.serialize_entry("magnitudes", all))?;
        map.end()
    }
}

/// Writes tensors one by one, so that a long report is never in memory as text.
pub(crate) struct ListJson<'a, F> {
    pub len: usize,
    pub rows: Rows<'a>,
    pub row: F,
}

impl<'a, F: Fn(usize) -> RowJson<'a>> Serialize for ListJson<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        match self.rows {
            Rows::All => (0..self.len).try_for_each(|i| list.serialize_element(&(self.row)(i)))?,
            Rows::Ordered(order) => order.iter().try_for_each(|&i| list.serialize_element(&(self.row)(i)))?,
            Rows::None => {}
        }
        list.end()
    }
}
