//! Contents of a model's file, from its first bytes: for programs that cannot open files.

use crate::files::error::Error;
use std::path::Path;
use truecast_core::Kind;
use truecast_io::Error::Io;
use truecast_io::safetensors::name_of;
use truecast_io::{Foreign, Tensor, gguf, safetensors};
use truecast_schemes::{
    Checkpoint, Detection, Documents, MAX_READ_BYTES, Options, Role, Stored, declared, detect, detect_gguf,
};

/// Largest header, as for files (`docs/spec/checkpoints.md §1.6`).
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Bytes that show whether a file is text.
const TEXT_BYTES: u64 = 512;

/// First bytes of a file.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Name of the file; its extension determines the format.
    pub name: &'a str,
    /// Size of the whole file.
    pub file_bytes: u64,
    /// The first bytes.
    pub bytes: &'a [u8],
}

/// Contents of a file.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// `safetensors`, `gguf` or `config.json`.
    pub format: &'static str,
    /// Tensors in data order.
    pub tensors: Vec<Listed>,
    /// Keys and values of the header, as text.
    pub metadata: Vec<(String, String)>,
    /// The schemes, each once. Empty for tensors without scales.
    pub schemes: Vec<String>,
    /// Number of values, dequantized. Integers that belong to no scheme do not count.
    pub parameters: u64,
    /// Bytes of these values, with their scales.
    pub weight_bytes: u64,
    /// Problems, as sentences.
    pub warnings: Vec<String>,
    /// True if types and shapes tell the schemes, because the data that state them were not read.
    pub is_inferred: bool,
}

/// A tensor in a file.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Listed {
    /// Name of the tensor.
    pub name: String,
    /// Type in the words of the file's format.
    pub dtype: String,
    /// Dimensions in elements.
    pub shape: Vec<u64>,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of dequantized values; 0 for scales and other parts.
    pub parameters: u64,
}

/// A header, or the number of bytes that are needed to read it.
#[derive(Clone, Debug)]
pub enum Read {
    /// The whole header was there.
    Outline(Outline),
    /// The header needs this many bytes from the start of the file.
    Needs(u64),
}

/// Reads bytes of the file: position and length.
pub type ReadAt<'a> = &'a mut dyn FnMut(u64, usize) -> std::io::Result<Vec<u8>>;

/// Reads the header of a `.safetensors` or `.gguf` file, or a `config.json`, from the first bytes. With `more`, a scheme
/// that is stated in the data of small tensors is known, too.
///
/// # Errors
/// [`Error::NotDescribed`] for another file, and for a header that breaks a rule.
///
/// # Examples
/// ```
/// use truecast::header::{Read, Start, read};
/// let text = br#"{"a.weight":{"dtype":"BF16","shape":[2,4],"data_offsets":[0,16]}}"#;
/// let bytes = [&(text.len() as u64).to_le_bytes()[..], text, &[0; 16]].concat();
/// let start = Start { name: "model.safetensors", file_bytes: bytes.len() as u64, bytes: &bytes };
/// let Read::Outline(outline) = read(&start, None)? else { panic!("the header is complete") };
/// assert_eq!((outline.tensors.len(), outline.parameters), (1, 8));
/// assert!(matches!(read(&Start { bytes: &[], ..start }, None)?, Read::Needs(needed) if needed == bytes.len() as u64));
/// # Ok::<(), truecast::files::Error>(())
/// ```
pub fn read(start: &Start<'_>, more: Option<ReadAt<'_>>) -> Result<Read, Error> {
    if i64::try_from(start.file_bytes).is_err() {
        return Err(start.error("no file has this size"));
    }
    let path = Path::new(start.name);
    if path.file_name().is_some_and(|name| name == "config.json") {
        return of_config(start);
    }
    let is = |name| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(name));
    if !is("safetensors") && !is("gguf") {
        return Err(start.error("only .safetensors and .gguf files, and config.json, have a header that is read here"));
    }
    let text_bytes = TEXT_BYTES.min(start.file_bytes);
    if let Some(needs) = start.needs(text_bytes)? {
        return Ok(needs);
    }
    if let Some(text) = Foreign::of_bytes(&start.bytes[..text_bytes as usize]) {
        return Err(start.error(text));
    }
    if is("gguf") { of_gguf(start) } else { of_safetensors(start, more) }
}

impl Start<'_> {
    fn error(&self, why: impl ToString) -> Error {
        Error::NotDescribed { path: self.name.into(), why: why.to_string() }
    }

    /// `None` if all `bytes` were given. A file that ends before them is an error.
    fn needs(&self, bytes: u64) -> Result<Option<Read>, Error> {
        if bytes > self.file_bytes {
            let why = format!("the header needs {bytes} bytes, but the file has {}: it is cut off", self.file_bytes);
            return Err(self.error(why));
        }
        Ok(((self.bytes.len() as u64) < bytes).then_some(Read::Needs(bytes)))
    }
}

fn of_safetensors(start: &Start<'_>, mut more: Option<ReadAt<'_>>) -> Result<Read, Error> {
    if let Some(needs) = start.needs(8)? {
        return Ok(needs);
    }
    let (length, rest) = start.bytes.split_at(8);
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
    if length > MAX_HEADER_BYTES {
        let why = format!(
            "its first 8 bytes state a header of {length} bytes, but the most is {MAX_HEADER_BYTES}: not a safetensors file"
        );
        return Err(start.error(why));
    }
    if let Some(needs) = start.needs(8 + length)? {
        return Ok(needs);
    }
    let text = &rest[..length as usize];
    let header = safetensors::Header::parse(text, start.file_bytes - 8 - length).map_err(|why| start.error(why))?;
    let documents = Documents::default();
    let held: Vec<Stored> = header.tensors.iter().map(|tensor| Stored { tensor: tensor.clone(), shard: 0 }).collect();
    let metadata = [header.metadata];
    let checkpoint = Checkpoint { tensors: &held, metadata: &metadata, documents: &documents };
    let is_whole = more.is_some();
    let mut read = |number: usize| {
        let (begin, bytes) = (8 + length + header.begins[number], header.tensors[number].bytes().min(MAX_READ_BYTES));
        let missing = Err(std::io::ErrorKind::UnexpectedEof.into());
        let read = more.as_mut().map_or(missing, |more| more(begin, bytes as usize));
        read.map_err(|source| Io { path: start.name.into(), action: "reading past the header", source })
    };
    let options = Options { lists: true, header_alone: !is_whole, ..Options::default() };
    let found = detect(checkpoint, &mut read, &options);
    let markers = header.tensors.iter().filter(|tensor| tensor.name.ends_with(".comfy_quant")).count();
    let listed = header.tensors.iter().map(|tensor| Listed {
        name: tensor.name.to_string(),
        dtype: name_of(tensor.dtype).unwrap_or(tensor.dtype.name()).into(),
        shape: tensor.shape.to_vec(),
        bytes: tensor.bytes(),
        parameters: 0,
    });
    let place = if is_whole { "" } else { " from the header alone" };
    let mut outline = outline("safetensors", &header.tensors, listed.collect(), found, place);
    outline.metadata = metadata[0].iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    outline.is_inferred = !is_whole && markers > 0 && !outline.schemes.is_empty();
    if outline.is_inferred {
        let said = outline.schemes.join(", ");
        let markers = truecast_io::counted(markers as u64, "comfy_quant marker");
        outline.warnings.push(format!("the header lacks the data of {markers}: types and shapes say {said}"));
    }
    Ok(Read::Outline(outline))
}

fn of_gguf(start: &Start<'_>) -> Result<Read, Error> {
    if let Some(needs) = start.needs(24)? {
        return Ok(needs);
    }
    let given = start.bytes.len() as u64;
    let header = gguf::Header::parse_start(start.bytes, start.file_bytes).map_err(|why| start.error(why))?;
    let Some(header) = header else {
        if given >= MAX_HEADER_BYTES {
            return Err(start.error(format!("its header has more than {MAX_HEADER_BYTES} bytes")));
        }
        let more = (2 * given).clamp(1 << 20, MAX_HEADER_BYTES).min(start.file_bytes);
        return Ok(start.needs(more)?.unwrap_or(Read::Needs(more)));
    };
    let tensors: Vec<Tensor> = header.tensors.iter().map(gguf::BlockTensor::listed).collect();
    let blocks: Vec<gguf::Block> = header.tensors.iter().map(|held| held.block).collect();
    let found = detect_gguf(&tensors.iter().collect::<Vec<_>>(), &blocks);
    let listed = header.tensors.iter().map(|held| Listed {
        name: held.name.to_string(),
        dtype: held.block.name().into(),
        shape: held.shape.to_vec(),
        bytes: held.bytes,
        parameters: 0,
    });
    let metadata = header.metadata.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
    Ok(Read::Outline(Outline { metadata, ..outline("gguf", &tensors, listed.collect(), found, "") }))
}

fn outline(
    format: &'static str,
    tensors: &[Tensor],
    mut listed: Vec<Listed>,
    found: Result<Detection, truecast_schemes::Error>,
    place: &str,
) -> Outline {
    let (schemes, warnings) = match &found {
        Ok(found) => {
            let said = found.findings.iter().map(ToString::to_string);
            let schemes = found.schemes.iter().map(ToString::to_string).collect();
            (schemes, found.warnings.iter().cloned().chain(said).collect())
        }
        Err(why) => (Vec::new(), vec![format!("the scheme is not known{place}: {why}")]),
    };
    let parameters = |number: usize, tensor: &Tensor| match &found {
        Ok(found) => match found.roles[number] {
            Role::Part { group, .. } if found.groups[group].parts[0].1 == number => {
                found.groups[group].shape.iter().fold(1, |product: u64, n| product.saturating_mul(*n))
            }
            Role::Plain if is_weight(tensor) => tensor.len(),
            _ => 0,
        },
        Err(_) => tensor.len() * u64::from(is_weight(tensor)),
    };
    let is_part = |number: usize| found.as_ref().is_ok_and(|found| matches!(found.roles[number], Role::Part { .. }));
    let (mut sum, mut weight_bytes) = (0u64, 0);
    for (number, row) in listed.iter_mut().enumerate() {
        row.parameters = parameters(number, &tensors[number]);
        sum = sum.saturating_add(row.parameters);
        weight_bytes += if row.parameters > 0 || is_part(number) { row.bytes } else { 0 };
    }
    Outline { format, tensors: listed, schemes, parameters: sum, weight_bytes, warnings, ..Outline::default() }
}

fn is_weight(tensor: &Tensor) -> bool {
    !matches!(tensor.dtype.kind(), Kind::Int(_) | Kind::Bool | Kind::String)
}

fn of_config(start: &Start<'_>) -> Result<Read, Error> {
    if start.file_bytes > MAX_HEADER_BYTES {
        return Err(start.error(format!("a configuration has at most {MAX_HEADER_BYTES} bytes")));
    }
    if let Some(needs) = start.needs(start.file_bytes)? {
        return Ok(needs);
    }
    let config = serde_json::from_slice(start.bytes).map_err(|why| start.error(why))?;
    let documents = Documents { config: Some(config), ..Documents::default() };
    let (schemes, warnings) = match declared(&documents) {
        Ok(schemes) => (schemes.iter().map(ToString::to_string).collect(), Vec::new()),
        Err(why) => (Vec::new(), vec![why.to_string()]),
    };
    Ok(Read::Outline(Outline { format: "config.json", schemes, warnings, ..Outline::default() }))
}
