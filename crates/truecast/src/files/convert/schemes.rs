//! Schemes and parameters of an opened file or folder.

use crate::files::convert::found::Contents;
use crate::files::error::Error;
use crate::files::opened::Opened;
use std::collections::{BTreeMap, BTreeSet};
use truecast_io::FileFormat;
use truecast_io::folder::Folder;
use truecast_schemes::Options;

/// Quantization of a file or folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuantizedParts {
    /// Schemes, each with its number of tensors; empty without quantized tensors.
    pub schemes: Vec<(String, u64)>,
    /// Number of elements of each quantized tensor, by the index of its codes in [`Opened::tensors`].
    pub elements: BTreeMap<usize, u64>,
    /// Indices of the other parts, such as scales, whose elements are not parameters.
    pub others: BTreeSet<usize>,
}

/// Returns the quantization of a folder or a `.safetensors` file; empty for other files. Also returns `opened`.
///
/// # Errors
/// Quantized tensors that cannot be interpreted.
///
/// # Examples
/// ```
/// use truecast::convert::schemes;
/// use truecast::io::OpenOptions;
/// use truecast::opened::Opened;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.safetensors");
/// // A file without tensors.
/// std::fs::write(&path, b"\x02\0\0\0\0\0\0\0{}")?;
/// let (opened, found) = schemes(Opened::open(&path, OpenOptions::default())?);
/// assert!(found?.schemes.is_empty() && opened.tensors().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn schemes(opened: Opened) -> (Opened, Result<QuantizedParts, Error>) {
    let folder = match opened {
        Opened::Folder(folder) => {
            let found = of_folder(&folder);
            return (Opened::Folder(folder), found);
        }
        Opened::File(source) if source.format() == FileFormat::Safetensors => Folder::of_source(*source),
        other => return (other, Ok(QuantizedParts::default())),
    };
    let found = of_folder(&folder);
    let source = folder.into_source().expect("it was made of one");
    (Opened::File(Box::new(source)), found)
}

fn of_folder(folder: &Folder) -> Result<QuantizedParts, Error> {
    let contents = Contents::detect(folder, &Options::default())?;
    // A file lists its tensors as its header does, a folder in the order of their data.
    let place = |number: usize| if folder.is_file() { contents.stored[number].tensor } else { number };
    let (mut schemes, mut parts) = (BTreeMap::<String, u64>::new(), QuantizedParts::default());
    for group in &contents.found.groups {
        *schemes.entry(group.scheme.to_string()).or_default() += 1;
        let mut indices = group.parts.iter().map(|(_, number)| place(*number));
        // Several groups may share their codes.
        let codes = indices.next().expect("codes come first");
        *parts.elements.entry(codes).or_default() += group.shape.iter().product::<u64>();
        parts.others.extend(indices);
    }
    parts.schemes = schemes.into_iter().collect();
    Ok(parts)
}
