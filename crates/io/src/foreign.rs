//! Paths that this crate neither reads nor writes: folders, streams, files of other programs. The kind is recognized
//! by name and first bytes, and is stated in errors.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::tensor::FileFormat;

/// Kind of a path that is not a file of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// Standard input or output, a pipe, a device.
    Stream,
    /// A folder.
    Folder {
        /// Number of `.safetensors` files in the folder.
        safetensors: usize,
    },
    /// Index or configuration of a checkpoint.
    Index,
    /// A pickle of `torch.save`.
    Pickle,
    /// Weights of another library; the text describes the format in messages.
    Weights(&'static str),
    /// A `.gguf` file.
    Gguf,
    /// A file of tensors with the extension of another format.
    Misnamed(FileFormat),
    /// Bytes without a header, according to the extension.
    Raw,
    /// A pointer of Git LFS in place of the file.
    LfsPointer,
    /// A web page, such as a login.
    Html,
    /// Other text.
    Text,
    /// Anything else.
    Unknown,
}

const PICKLES: [&str; 5] = ["pt", "pth", "ckpt", "pkl", "pickle"];
const WEIGHTS: [(&str, Foreign); 4] = [
    ("distcp", Foreign::Weights("part of a checkpoint that dcp_to_torch_save of PyTorch merges")),
    ("h5", Foreign::Weights("HDF5, as Keras writes it")),
    ("msgpack", Foreign::Weights("MessagePack, as Flax writes it")),
    ("nemo", Foreign::Weights("a tar archive of NeMo")),
];
const RAW: [&str; 4] = ["bin", "raw", "dat", "data"];
/// First bytes of foreign files: a zip archive (written by `torch.save`), or pickle protocols 2 to 5.
const PICKLE_BYTES: [&[u8]; 5] = [b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"];

const BEGIN_BYTES: u64 = 512;
const LEAST_TEXT_BYTES: usize = 16;

impl Foreign {
    /// Classifies a path without a container's extension. Reads only the first bytes of a regular file.
    ///
    /// # Examples
    /// ```
    /// use std::path::Path;
    /// use truecast_io::Foreign;
    /// assert_eq!(Foreign::of(Path::new("-")), Foreign::Stream);
    /// assert_eq!(Foreign::of(Path::new("model.safetensors.index.json")), Foreign::Index);
    /// assert_eq!(Foreign::of(Path::new("model.pt")), Foreign::Pickle);
    /// ```
    pub fn of(path: &Path) -> Foreign {
        let is_stream = |name: &str| path == Path::new(name);
        if ["-", "/dev/stdin", "/dev/stdout"].into_iter().any(is_stream) {
            return Foreign::Stream;
        }
        let found = fs::metadata(path).ok();
        if found.as_ref().is_some_and(|found| found.is_dir()) {
            return Foreign::Folder { safetensors: safetensors_in(path) };
        }
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            return Foreign::Stream;
        }
        let begin = if found.is_some() { first_bytes(path) } else { Vec::new() };
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let is_pickle = PICKLE_BYTES.iter().any(|bytes| begin.starts_with(bytes));
        match extension {
            _ if matches!(of_text(&begin), Some(Foreign::LfsPointer)) => Foreign::LfsPointer,
            _ if name.ends_with(".index.json") || name == "config.json" => Foreign::Index,
            _ if extension == "gguf" || begin.starts_with(b"GGUF") => Foreign::Gguf,
            _ if PICKLES.contains(&extension) => Foreign::Pickle,
            _ if RAW.contains(&extension) && is_pickle => Foreign::Pickle,
            _ if RAW.contains(&extension) => Foreign::Raw,
            _ => WEIGHTS.iter().find(|(of, _)| *of == extension).map_or(Foreign::Unknown, |(_, found)| *found),
        }
    }

    /// First of `names` that is a pickle, GGUF, raw bytes or weights of another library. Also returns its kind.
    pub(crate) fn among(folder: &Path, names: &[String]) -> Option<(String, Foreign)> {
        let mut found = names.iter().map(|name| (name.clone(), Foreign::of(&folder.join(name))));
        found.find(|(_, found)| matches!(found, Foreign::Pickle | Foreign::Weights(_) | Foreign::Gguf | Foreign::Raw))
    }

    /// Kind of a text file, or of a container of another format, that has a container's extension. No container begins
    /// like text.
    pub(crate) fn instead(path: &Path) -> Option<Foreign> {
        let begin = first_bytes(path);
        let is_named = |found: &FileFormat| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(found.extension()));
        let misnamed = || format_of(&begin).filter(|found| !is_named(found)).map(Foreign::Misnamed);
        of_text(&begin).or_else(misnamed)
    }

    /// Kind of a text file that begins with these bytes. `None` if they are fewer than 16, or not text.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::Foreign;
    /// assert_eq!(Foreign::of_bytes(b"<!doctype html><title>"), Some(Foreign::Html));
    /// ```
    #[must_use]
    pub fn of_bytes(begin: &[u8]) -> Option<Foreign> {
        of_text(begin)
    }
}

/// Format of a file with these first bytes. The header of a safetensors file is JSON after its length in 8 bytes.
fn format_of(begin: &[u8]) -> Option<FileFormat> {
    match begin {
        [b'G', b'G', b'U', b'F', ..] => Some(FileFormat::Gguf),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(FileFormat::Npy),
        [_, _, _, _, 0, 0, 0, 0, b'{', ..] => Some(FileFormat::Safetensors),
        _ => None,
    }
}

fn of_text(begin: &[u8]) -> Option<Foreign> {
    let text = match std::str::from_utf8(begin) {
        Ok(text) => text,
        // The text may be cut inside its last character.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&begin[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let is_text =
        text.len() >= LEAST_TEXT_BYTES && text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'));
    let page = text.trim_start().to_ascii_lowercase();
    is_text.then_some(if text.starts_with("version https://git-lfs.github.com/spec/") {
        Foreign::LfsPointer
    } else if page.starts_with("<!doctype html") || page.starts_with("<html") {
        Foreign::Html
    } else {
        Foreign::Text
    })
}

fn safetensors_in(folder: &Path) -> usize {
    // Errors are ignored, because the count affects only a message's wording.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|e| e.path().extension().is_some_and(|e| e.eq_ignore_ascii_case("safetensors"))).count()
}

fn first_bytes(path: &Path) -> Vec<u8> {
    let mut begin = Vec::new();
    if let Ok(file) = File::open(path) {
        file.take(BEGIN_BYTES).read_to_end(&mut begin).ok();
    }
    begin
}

/// Phrase for use after a path and a colon.
impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = "; expected a .safetensors, .gguf, .npy, .npz, .pb or .onnx file, or the folder of a checkpoint";
        match self {
            Foreign::Stream => write!(f, "standard streams, pipes and devices are not supported{files}"),
            Foreign::Folder { safetensors: 0 } => write!(f, "this is a folder, and folders are not supported{files}"),
            Foreign::Folder { safetensors: 1 } => {
                f.write_str("this is a folder with 1 safetensors file, and folders are not supported")
            }
            Foreign::Folder { safetensors } => {
                write!(f, "this is a folder of {safetensors} safetensors files, and folders are not supported")
            }
            Foreign::Index => f.write_str("this file describes a checkpoint, which is converted as a whole"),
            Foreign::Pickle => {
                write!(f, "this is a pickle, as torch.save writes it, and pickles are not supported{files}")
            }
            Foreign::Weights(what) => write!(f, "this is {what}, which is not supported{files}"),
            Foreign::Gguf => {
                write!(f, "this is a GGUF file, which only inspect, convert, verify and compare read{files}")
            }
            Foreign::Misnamed(format) => write!(f, "the extension is wrong: this is a .{} file", format.extension()),
            Foreign::Raw => write!(f, "this looks like bytes without a header, which are not supported{files}"),
            Foreign::LfsPointer => f.write_str("this is a Git LFS pointer, not the file itself"),
            Foreign::Html => f.write_str("this is an HTML page, not the file itself"),
            Foreign::Text => f.write_str("this is text, not a file of this kind"),
            Foreign::Unknown => {
                f.write_str("unknown kind of file; expected .safetensors, .gguf, .npy, .npz, .pb or .onnx, or a folder")
            }
        }
    }
}
