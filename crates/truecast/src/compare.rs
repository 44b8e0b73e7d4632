//! How two files differ as numbers, across types.

use crate::error::Error;
use crate::parts::Parts;
use crate::report::insert_counts;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;
use truecast_core::DType;
use truecast_io::{Reading, Source, Tensor};
use truecast_kernel::measure::Measure;
use truecast_kernel::{Counts, Exec};

/// One tensor that both files have.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its type in either file.
    pub types: (DType, DType),
    /// How the second file's values differ from the first's.
    pub counts: Counts,
}

/// How two files differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Tensors that both have, with equal shapes.
    pub rows: Vec<Row>,
    /// Tensors of the first file only.
    pub only_first: Vec<String>,
    /// Tensors of the second file only.
    pub only_second: Vec<String>,
    /// Tensors whose shapes differ, or that are not numbers: (name, why).
    pub incomparable: Vec<(String, String)>,
    /// The sum of the rows.
    pub total: Counts,
}

impl Comparison {
    /// Both files have the same tensors with the same values.
    pub fn equal(&self) -> bool {
        self.structural_differences() == 0 && self.total.exact == self.total.elements
    }

    /// Tensors that could not be compared at all.
    pub fn structural_differences(&self) -> u64 {
        (self.only_first.len() + self.only_second.len() + self.incomparable.len()) as u64
    }

    /// `tensors`, `total` and what could not be compared.
    pub fn to_json(&self) -> Map<String, Value> {
        let row = |row: &Row| {
            let mut object = Map::new();
            object.insert("name".into(), json!(row.name));
            object.insert("shape".into(), json!(row.shape));
            object.insert("from".into(), json!(row.types.0.name()));
            object.insert("to".into(), json!(row.types.1.name()));
            object.insert("elements".into(), json!(row.counts.elements));
            insert_counts(&mut object, &row.counts);
            Value::from(object)
        };
        let mut total = Map::new();
        total.insert("elements".into(), json!(self.total.elements));
        insert_counts(&mut total, &self.total);
        let mut object = Map::new();
        object.insert("equal".into(), json!(self.equal()));
        object.insert("tensors".into(), self.rows.iter().map(row).collect());
        object.insert("total".into(), total.into());
        object.insert("only_first".into(), json!(self.only_first));
        object.insert("only_second".into(), json!(self.only_second));
        let incomparable = self.incomparable.iter().map(|(name, why)| json!({ "name": name, "why": why }));
        object.insert("incomparable".into(), incomparable.collect());
        object
    }
}

/// How the two files are read: the types of the elements of arrays whose headers do not say, and how strictly.
pub type Readings = (Reading, Reading);

/// Compares two containers tensor by tensor, by name; an array (`.npy`, `.pb`) with any single tensor. What a model that
/// truecast made stores for a value counts under the value's name.
///
/// Cost: bounded memory; one pass over both. `progress` is told the bytes of the first file that are done.
///
/// # Errors
/// Files that cannot be read. Differences are not errors.
pub fn compare(
    a: &Path,
    b: &Path,
    readings: Readings,
    exec: &Exec,
    mut progress: impl FnMut(u64),
) -> Result<Comparison, Error> {
    let (a, b) = (Source::open_with(a, readings.0)?, Source::open_with(b, readings.1)?);
    let single = (a.kind().holds_one() || b.kind().holds_one()) && a.tensors().len() == 1 && b.tensors().len() == 1;
    let names = (a.value_names(), b.value_names());
    let by_name: HashMap<_, _> = names.1.iter().enumerate().map(|(j, name)| (name.as_str(), j)).collect();
    let mut result = Comparison::default();
    let mut done = 0;
    for (i, (x, name)) in a.tensors().iter().zip(&names.0).enumerate() {
        let found = if single { Some(0) } else { by_name.get(name.as_str()).copied() };
        let Some(j) = found else {
            result.only_first.push(name.clone());
            continue;
        };
        let y = &b.tensors()[j];
        if let Some(why) = incomparable(x, y) {
            result.incomparable.push((name.clone(), why));
            continue;
        }
        let measure = Measure::between(x.dtype, y.dtype, exec);
        let (mut xs, mut ys) = (Parts::new(&a, i, x.dtype)?, Parts::new(&b, j, y.dtype)?);
        let mut counts = Counts::default();
        while let (Some(x), Some(y)) = (xs.next()?, ys.next()?) {
            measure.compare(x, y).iter().for_each(|part| counts.add(part));
            done += x.bytes().len() as u64;
            progress(done);
        }
        result.total.add(&counts);
        result.rows.push(Row { name: name.clone(), shape: x.shape.clone(), types: (x.dtype, y.dtype), counts });
    }
    if !single {
        let known: std::collections::HashSet<_> = names.0.iter().collect();
        result.only_second = names.1.iter().filter(|name| !known.contains(name)).cloned().collect();
    }
    Ok(result)
}

fn incomparable(x: &Tensor, y: &Tensor) -> Option<String> {
    if x.shape != y.shape {
        return Some(format!("shapes {:?} and {:?}", x.shape, y.shape));
    }
    let odd = [x.dtype, y.dtype].into_iter().find(|t| !t.is_numeric())?;
    Some(format!("{odd} is not a number"))
}
