//! Files of one tensor, written from memory, and their names.

use super::RunError;
use crate::array::relaid;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use truecast_core::Layout;
use truecast_graph::{Data, Tensor, Texts};
use truecast_io::onnx::text_tensor;
use truecast_io::{Existing, FileId, Kind, OutputFile, Writer, layout_for};
use truecast_kernel::Exec;

/// A name as a part of a path: letters, digits, `_`, `-` and inner dots stay, every other byte is `%XX`.
pub(super) fn file_name(name: &str) -> String {
    let mut escaped = String::new();
    for (i, byte) in name.bytes().enumerate() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' => escaped.push(byte.into()),
            b'.' if i > 0 => escaped.push('.'),
            _ => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

/// The files that a run reads. No result may replace one.
pub(super) struct Reads(Vec<FileId>);

impl Reads {
    /// A model, other files that it names, and inputs as `NAME=FILE`; a name may hold `=` too.
    pub(super) fn of(model: &Path, named: impl IntoIterator<Item = PathBuf>, inputs: &[String]) -> Reads {
        let given =
            inputs.iter().flat_map(|text| text.match_indices('=').map(|(at, _)| PathBuf::from(&text[at + 1..])));
        let all = std::iter::once(model.to_path_buf()).chain(named).chain(given);
        Reads(all.filter_map(|path| FileId::of(&path)).collect())
    }

    pub(super) fn allow(&self, result: &Path) -> Result<(), RunError> {
        match FileId::of(result) {
            Some(found) if self.0.contains(&found) => Err(RunError::Read { path: result.display().to_string() }),
            _ => Ok(()),
        }
    }
}

/// A file that is written, and not yet there under its name.
pub(super) enum Pending {
    Container(Writer),
    Message(OutputFile),
}

impl Pending {
    pub(super) fn finish(self) -> Result<u64, truecast_io::Error> {
        match self {
            Pending::Container(writer) => writer.finish(),
            Pending::Message(file) => file.commit(),
        }
    }
}

/// Starts a file and writes the elements.
pub(super) fn write(
    path: &Path,
    kind: Kind,
    name: &str,
    tensor: &Tensor,
    existing: Existing,
    exec: &Exec,
) -> Result<Pending, truecast_io::Error> {
    let (bytes, layout) = match (&tensor.data, kind) {
        (Data::Texts(texts), Kind::TensorProto) => {
            let mut file = OutputFile::create(path, existing)?;
            let message = text_tensor(name, &tensor.shape, texts.iter());
            let failed = |source| truecast_io::Error::Io { path: path.into(), action: "writing", source };
            file.write_all(&message).map_err(failed)?;
            return Ok(Pending::Message(file));
        }
        (Data::Texts(texts), _) => {
            let (cells, width) = cells_of_texts(texts);
            (Some(cells), Layout::Utf32 { width })
        }
        (Data::Codes(codes), _) => {
            let layout = layout_for(kind, tensor.dtype).unwrap_or_default();
            (relaid(tensor.dtype, codes, (Layout::Packed, layout), tensor.len(), exec), layout)
        }
    };
    let shape = tensor.shape.clone();
    let described = truecast_io::Tensor { name: name.into(), dtype: tensor.dtype, layout, shape };
    let mut writer = Writer::create(path, kind, vec![described], &BTreeMap::new(), existing)?;
    match (&bytes, &tensor.data) {
        (Some(bytes), _) => writer.write(bytes)?,
        (None, Data::Codes(codes)) => writer.write(codes)?,
        (None, Data::Texts(_)) => {}
    }
    Ok(Pending::Container(writer))
}

/// Cells as wide as the longest text. What is not UTF-8 becomes U+FFFD: NumPy has no other form for it.
fn cells_of_texts(texts: &Texts) -> (Vec<u8>, u32) {
    let points = |text: &[u8]| String::from_utf8_lossy(text).chars().map(u32::from).collect::<Vec<_>>();
    let width = texts.iter().map(|text| points(text).len()).max().unwrap_or(0).max(1);
    let mut cells = Vec::with_capacity(4 * width * texts.len());
    for text in texts.iter() {
        let points = points(text);
        let padding = std::iter::repeat_n(0, width - points.len());
        cells.extend(points.iter().copied().chain(padding).flat_map(u32::to_le_bytes));
    }
    (cells, width as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::texts_of_cells;

    #[test]
    fn names_are_harmless_and_stay_apart() {
        let rows = [
            ("y", "y"),
            ("a/b", "a%2Fb"),
            ("..", "%2E."),
            (".hidden", "%2Ehidden"),
            ("v1.0_x-y", "v1.0_x-y"),
            ("100%", "100%25"),
            ("\u{e9}", "%C3%A9"),
            ("a b\0", "a%20b%00"),
            ("a:0", "a%3A0"),
        ];
        for (name, file) in rows {
            assert_eq!(file_name(name), file);
        }
    }

    #[test]
    fn cells_hold_any_text() {
        let texts: Texts = ["1.5", "", "\u{1f980}x"].into_iter().collect();
        let (cells, width) = cells_of_texts(&texts);
        assert_eq!((cells.len(), width), (36, 3));
        assert_eq!(texts_of_cells(&cells, width, 3), texts);
    }
}
