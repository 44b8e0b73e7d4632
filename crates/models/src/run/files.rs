//! Writes files of one tensor, and derives their names.

use super::error::RunError;
use crate::array::relaid;
use crate::{Data, Tensor, Texts};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use truecast_core::Layout;
use truecast_io::onnx::text_tensor;
use truecast_io::{Existing, FileFormat, FileId, Finished, OutputFile, Writer, layout_for};
use truecast_kernel::CastOptions;

/// Maximum length of a file name in bytes, on all usual file systems.
pub(super) const LONGEST_NAME: usize = 255;

/// Escapes a name for use as a file name. Letters, digits, `_`, `-` stay, and dots after the first byte; other bytes
/// become `%XX`.
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

pub(super) struct Reads(Vec<FileId>);

impl Reads {
    /// Lists the model, the other files that it names, and the inputs, given as `NAME=FILE`. A name may contain `=`, so
    /// the text after each `=` counts as a file.
    pub(super) fn new(
        model: &Path,
        named: impl IntoIterator<Item = PathBuf>,
        inputs: &[String],
    ) -> Result<Reads, truecast_io::Error> {
        let given =
            inputs.iter().flat_map(|text| text.match_indices('=').map(|(at, _)| PathBuf::from(&text[at + 1..])));
        let all = std::iter::once(model.to_path_buf()).chain(named).chain(given);
        let found = all.map(|path| FileId::of(&path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Reads(found.into_iter().flatten().collect()))
    }

    pub(super) fn allow(&self, result: &Path) -> Result<(), RunError> {
        match FileId::of(result)? {
            Some(found) if self.0.contains(&found) => Err(RunError::Read { path: result.display().to_string() }),
            _ => Ok(()),
        }
    }
}

pub(super) fn write(
    path: &Path,
    kind: FileFormat,
    name: &str,
    tensor: &Tensor,
    existing: Existing,
    exec: &CastOptions,
) -> Result<Finished, RunError> {
    let failed = |cause: truecast_io::Error| RunError::Output { name: name.into(), cause: cause.into() };
    let described = |layout| truecast_io::Tensor {
        name: name.into(),
        dtype: tensor.dtype,
        layout,
        shape: tensor.shape.as_slice().into(),
    };
    let create =
        |layout| Writer::create(path, kind, vec![described(layout)], &BTreeMap::new(), existing).map_err(failed);
    match &tensor.data {
        Data::Texts(texts) if kind == FileFormat::TensorProto => {
            let mut file = OutputFile::create(path, existing).map_err(failed)?;
            let message = text_tensor(name, &tensor.shape, texts.iter());
            let writing = |source| failed(truecast_io::Error::Io { path: path.into(), action: "writing", source });
            file.write_all(&message).map_err(writing)?;
            Ok(file.into())
        }
        Data::Texts(texts) => {
            let width = cell_width(texts).map_err(|(index, why)| RunError::Text { name: name.into(), index, why })?;
            let mut writer = create(Layout::Utf32 { width })?;
            write_cells(texts, width, |cells| writer.write(cells)).map_err(failed)?;
            writer.complete().map_err(failed)
        }
        _ => {
            let codes = &*tensor.codes();
            let layout = layout_for(kind, tensor.dtype).unwrap_or_default();
            let moved = relaid(tensor.dtype, codes, (Layout::Packed, layout), tensor.len(), exec);
            let mut writer = create(layout)?;
            writer.write(moved.as_deref().unwrap_or(codes)).map_err(failed)?;
            writer.complete().map_err(failed)
        }
    }
}

/// Number of characters in the longest text, but at least 1. The error has the index of a text that UTF-32 cells cannot
/// store exactly, and the reason.
fn cell_width(texts: &Texts) -> Result<u32, (usize, &'static str)> {
    let mut width = 1;
    for (index, text) in texts.iter().enumerate() {
        let wrong = |why| (index, why);
        let text = std::str::from_utf8(text).map_err(|_| wrong("is not UTF-8"))?;
        if text.ends_with('\0') {
            return Err(wrong("ends with NUL"));
        }
        let points = u32::try_from(text.chars().count()).map_err(|_| wrong("is too long"))?;
        width = width.max(points);
    }
    Ok(width)
}

/// Writes texts cell by cell, because all cells together may need far more memory than the texts.
fn write_cells<E>(texts: &Texts, width: u32, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut cell = vec![[0; 4]; width as usize];
    for text in texts.iter() {
        let mut points = std::str::from_utf8(text).unwrap_or_default().chars();
        cell.fill_with(|| points.next().map_or(0, u32::from).to_le_bytes());
        write(cell.as_flattened())?;
    }
    Ok(())
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

    fn cells(texts: &Texts) -> (Vec<u8>, u32) {
        let width = cell_width(texts).unwrap();
        let mut all = Vec::new();
        write_cells(texts, width, |cells| all.write_all(cells)).unwrap();
        (all, width)
    }

    #[test]
    fn cells_hold_any_text() {
        let texts: Texts = ["1.5", "", "\u{1f980}x"].into_iter().collect();
        let (cells, width) = cells(&texts);
        assert_eq!((cells.len(), width), (36, 3));
        assert_eq!(texts_of_cells(&cells, width, 3), texts);
    }

    #[test]
    fn cells_are_as_wide_as_the_longest_text() {
        let texts: Texts = ["a".repeat(50_000), String::new(), "\u{1f980}".repeat(40_000)].into_iter().collect();
        let (cells, width) = cells(&texts);
        assert_eq!((cells.len(), width), (600_000, 50_000));
        assert_eq!(texts_of_cells(&cells, width, 3), texts);
    }

    #[test]
    fn cells_are_refused_what_they_would_change() {
        let refused = |texts: [&[u8]; 2]| cell_width(&texts.into_iter().collect()).unwrap_err();
        assert_eq!(refused([b"ok", b"\xff"]), (1, "is not UTF-8"));
        assert_eq!(refused([b"a\0", b"ok"]), (0, "ends with NUL"));
    }
}
