//! How two files differ as numbers, across types.

use crate::error::Error;
use crate::parts::Parts;
use crate::report::insert_counts;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;
use truecast_core::DType;
use truecast_io::{Kind, Source, Tensor};
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

/// Types in which the elements of arrays are to be read, where their headers do not say.
pub type From = (Option<DType>, Option<DType>);

/// Compares two containers tensor by tensor, by name; an array without a name (`.npy`) with any single tensor.
///
/// Cost: bounded memory; one pass over both. `progress` is told the bytes of the first file that are done.
///
/// # Errors
/// Files that cannot be read. Differences are not errors.
pub fn compare(
    a: &Path,
    b: &Path,
    from: From,
    exec: &Exec,
    mut progress: impl FnMut(u64),
) -> Result<Comparison, Error> {
    let (a, b) = (Source::open(a, from.0)?, Source::open(b, from.1)?);
    let single = [a.kind(), b.kind()].contains(&Kind::Npy) && a.tensors().len() == 1 && b.tensors().len() == 1;
    let by_name: HashMap<_, _> = b.tensors().iter().enumerate().map(|(j, t)| (t.name.as_str(), j)).collect();
    let mut result = Comparison::default();
    let mut done = 0;
    for (i, x) in a.tensors().iter().enumerate() {
        let found = if single { Some(0) } else { by_name.get(x.name.as_str()).copied() };
        let Some(j) = found else {
            result.only_first.push(x.name.clone());
            continue;
        };
        let y = &b.tensors()[j];
        if let Some(why) = incomparable(x, y) {
            result.incomparable.push((x.name.clone(), why));
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
        result.rows.push(Row { name: x.name.clone(), shape: x.shape.clone(), types: (x.dtype, y.dtype), counts });
    }
    if !single {
        let known: std::collections::HashSet<_> = a.tensors().iter().map(|t| t.name.as_str()).collect();
        let others = b.tensors().iter().filter(|t| !known.contains(t.name.as_str()));
        result.only_second = others.map(|t| t.name.clone()).collect();
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
