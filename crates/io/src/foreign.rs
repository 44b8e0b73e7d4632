//! What a path names that this crate neither reads nor writes: folders, streams, other people's files. Known by name and
//! first bytes, so that an error can say what was found. What to do about it is not said here.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::look;

/// What was found where a file of tensors was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// Standard input or output, a pipe, a device.
    Stream,
    /// A folder.
    Folder {
        /// Files in it that end in `.safetensors`.
        safetensors: usize,
    },
    /// The index of a checkpoint of several files.
    Index,
    /// A pickle, as `torch.save` writes it.
    Pickle,
    /// A `.gguf` file.
    Gguf,
    /// Bytes without a header, by the name.
    Raw,
    /// Anything else.
    Unknown,
}

/// Extensions of pickles.
const PICKLES: [&str; 5] = ["pt", "pth", "ckpt", "pkl", "pickle"];
/// Extensions of bytes without a header, unless the first bytes say otherwise.
const RAW: [&str; 4] = ["bin", "raw", "dat", "data"];
/// A zip archive, which `torch.save` writes, and protocols 2 to 5 of pickle.
const PICKLE_BYTES: [&[u8]; 5] = [b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"];

impl Foreign {
    /// Looks at a path whose extension names no container. Reads at most four bytes of a regular file.
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
            _ if name.ends_with(".index.json") => Foreign::Index,
            _ if extension == "gguf" || begin == b"GGUF" => Foreign::Gguf,
            _ if PICKLES.contains(&extension) => Foreign::Pickle,
            _ if RAW.contains(&extension) && is_pickle => Foreign::Pickle,
            _ if RAW.contains(&extension) => Foreign::Raw,
            _ => Foreign::Unknown,
        }
    }
}

fn safetensors_in(folder: &Path) -> usize {
    // Only a sentence depends on it.
    let names = look::names(folder).unwrap_or_default();
    let extension = |name: &OsString| Path::new(name).extension().map(|extension| extension.to_ascii_lowercase());
    names.iter().filter(|name| extension(name).is_some_and(|extension| extension == "safetensors")).count()
}

fn first_bytes(path: &Path) -> Vec<u8> {
    let mut begin = Vec::new();
    // A file that cannot be read is known by its name.
    if let Ok(file) = File::open(path) {
        file.take(4).read_to_end(&mut begin).ok();
    }
    begin
}

/// As it is said of a path, after a colon.
impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = "; expected a .safetensors, .gguf, .npy, .npz, .pb or .onnx file, or the folder of a checkpoint";
        match self {
            Foreign::Stream => write!(f, "standard streams, pipes and devices are not supported{files}"),
            Foreign::Folder { safetensors: 0 } => write!(f, "is a folder, and folders are not supported{files}"),
            Foreign::Folder { safetensors: 1 } => {
                f.write_str("is a folder with 1 safetensors file, and folders are not supported")
            }
            Foreign::Folder { safetensors } => {
                write!(f, "is a folder of {safetensors} safetensors files, and folders are not supported")
            }
            Foreign::Index => f.write_str("is the index of a checkpoint, which is converted as a whole"),
            Foreign::Pickle => write!(f, "is a pickle, as torch.save writes it, and pickles are not supported{files}"),
            Foreign::Gguf => write!(f, "is a GGUF file, which only inspect, convert, verify and compare read{files}"),
            Foreign::Raw => write!(f, "is taken for bytes without a header, which are not supported{files}"),
            Foreign::Unknown => {
                f.write_str("unknown kind of file; expected .safetensors, .gguf, .npy, .npz, .pb or .onnx")
            }
        }
    }
}
