//! Importance of the columns of matrices, which `llama-imatrix` measures: a GGUF file, or the older binary file
//! (`docs/spec/checkpoints.md §9.11`).

use crate::files::convert::error::CheckpointError;
use crate::files::error::Error;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_io::gguf::Keys;
use truecast_io::{Escaped, Source, Tensor, open_regular};

/// Means of squared inputs, by name of the matrix. A stack of matrices has all columns of each.
#[derive(Default)]
pub(crate) struct Importance {
    pub values: HashMap<String, Arc<[f32]>>,
    /// Text that was run through the model, and number of its chunks, if the file states them.
    dataset: Option<String>,
    chunks: u64,
}

const SUMS: &str = ".in_sum2";
const COUNTS: &str = ".counts";

impl Importance {
    /// Key of the place of the file.
    pub const FILE: &str = "quantize.imatrix.file";

    /// Reads a file. Cost: memory for all values.
    ///
    /// # Errors
    /// An unreadable or malformed file; a value that cannot be a mean of squares.
    pub fn read(path: &Path) -> Result<Importance, Error> {
        let failed = |why: String| Error::checkpoint(path, CheckpointError::Importance { why });
        let (mut file, found) = open_regular(path)?;
        let mut start = [0; 4];
        let is_gguf = found.len() >= 4 && {
            std::io::Read::read_exact(&mut file, &mut start).map_err(|error| unreadable(path, error))?;
            start == *b"GGUF"
        };
        let all = if is_gguf {
            of_gguf(&Source::open_gguf(path)?, failed)?
        } else {
            let bytes = std::fs::read(path).map_err(|error| unreadable(path, error))?;
            of_dat(&bytes).ok_or_else(|| failed("it is damaged, or llama-imatrix did not write it".to_owned()))?
        };
        let is_mean = |value: &f32| value.is_finite() && *value >= 0.0;
        for (name, values) in &all.values {
            if let Some(value) = values.iter().find(|value| !is_mean(value)) {
                return Err(failed(format!("a value of {} is {value}, not a mean of squares", Escaped(name))));
            }
        }
        if all.values.is_empty() { Err(failed("it has no values".to_owned())) } else { Ok(all) }
    }

    /// Keys that llama.cpp records.
    pub fn record(&self, path: &Path, keys: &mut Keys) {
        keys.set(Importance::FILE, &path.display().to_string());
        if let Some(dataset) = &self.dataset {
            keys.set("quantize.imatrix.dataset", dataset);
        }
        keys.set("quantize.imatrix.entries_count", &(self.values.len() as u32));
        if let Some(chunks) = u32::try_from(self.chunks).ok().filter(|chunks| *chunks > 0) {
            keys.set("quantize.imatrix.chunks_count", &chunks);
        }
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> truecast_io::Error {
    truecast_io::Error::Io { path: path.into(), action: "reading", source }
}

/// Reads sums and counts: f32 tensors, with a count for each matrix of a stack.
fn of_gguf(source: &Source, failed: impl Fn(String) -> Error) -> Result<Importance, Error> {
    let keys = Keys::of(source)?;
    let read = |(index, tensor): (usize, &Tensor)| {
        let mut bytes = truecast_io::zeros(tensor.bytes()).map_err(|error| unreadable(source.path(), error))?;
        source.read_at(index, 0, &mut bytes)?;
        Ok::<Vec<f32>, Error>(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    };
    let tensors = || source.tensors().iter().enumerate();
    let by_name: HashMap<&str, (usize, &Tensor)> = tensors().map(|at| (&*at.1.name, at)).collect();
    let mut values = HashMap::new();
    for at in tensors() {
        let Some(name) = at.1.name.strip_suffix(SUMS) else { continue };
        let counts = by_name.get(&*format!("{name}{COUNTS}")).copied();
        let counts = counts.filter(|counts| [at, *counts].iter().all(|(_, tensor)| tensor.dtype == DType::F32));
        let counts = counts.ok_or_else(|| failed(format!("{} has no counts, or is not f32", Escaped(name))))?;
        let (mut sums, counts) = (read(at)?, read(counts)?);
        if counts.is_empty() || sums.is_empty() || !sums.len().is_multiple_of(counts.len()) {
            let why = format!("{} has {} sums and {} counts", Escaped(name), sums.len(), counts.len());
            return Err(failed(why));
        }
        let columns = sums.len() / counts.len();
        for (sums, count) in sums.chunks_mut(columns).zip(counts) {
            let count = count.round();
            // A matrix that was never used has no preference.
            sums.iter_mut().for_each(|sum| *sum = if count > 0.0 { *sum / count } else { 1.0 });
        }
        values.insert(name.to_owned(), sums.into());
    }
    let dataset = keys.text("imatrix.datasets").map(str::to_owned);
    Ok(Importance { values, dataset, chunks: keys.number("imatrix.chunk_count").unwrap_or(0) })
}

/// Reads the older file: a number of matrices, each with its name, number of calls and sums; then the number of chunks
/// and the name of the text. Numbers have 32 bits.
fn of_dat(mut file: &[u8]) -> Option<Importance> {
    fn number(file: &mut &[u8]) -> Option<i32> {
        file.split_off(..4)?.try_into().ok().map(i32::from_le_bytes)
    }
    fn text<'a>(file: &mut &'a [u8]) -> Option<&'a str> {
        let len = usize::try_from(number(file)?).ok()?;
        std::str::from_utf8(file.split_off(..len)?).ok()
    }
    let mut all = Importance::default();
    for _ in 0..number(&mut file)? {
        let name = text(&mut file)?.to_owned();
        let (calls, len) = (number(&mut file)?, number(&mut file)?);
        let bytes = file.split_off(..usize::try_from(len).ok()?.checked_mul(4)?)?;
        let sums = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        all.values.insert(name, sums.map(|sum| if calls > 0 { sum / calls as f32 } else { sum }).collect());
    }
    all.chunks = number(&mut file).and_then(|chunks| chunks.try_into().ok()).unwrap_or(0);
    all.dataset = text(&mut file).map(str::to_owned);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_file() {
        let numbers = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let sums = [3f32, 4.5].map(f32::to_le_bytes).concat();
        let entry =
            |name: &[u8], calls| [&numbers(&[name.len() as i32])[..], name, &numbers(&[calls, 2]), &sums].concat();
        let entries = [numbers(&[2]), entry(b"a", 3), entry(b"b.weight", 0)].concat();
        let all = of_dat(&[&entries[..], &numbers(&[7, 4]), b"text"].concat()).unwrap();
        assert_eq!((&all.values["a"][..], &all.values["b.weight"][..]), (&[1.0, 1.5][..], &[3.0, 4.5][..]));
        assert_eq!((all.chunks, all.dataset.as_deref()), (7, Some("text")));
        // The end may be missing.
        assert_eq!(of_dat(&entries).unwrap().chunks, 0);
        assert!((0..entries.len()).all(|end| of_dat(&entries[..end]).is_none()));
        for wrong in [[1, -1, 0, 0], [1, i32::MAX, 0, 0], [1, 0, 1, -1], [1, 0, 1, i32::MAX]] {
            assert!(of_dat(&numbers(&wrong)).is_none(), "{wrong:?}");
        }
    }
}
