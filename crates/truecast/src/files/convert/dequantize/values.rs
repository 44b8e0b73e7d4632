//! Tensors of a file or folder as values; quantized tensors are dequantized to f32.

use crate::files::convert::dequantize::dequantizer::{Quantized, TensorDequantizer};
use crate::files::convert::found::{Contents, quantized};
use crate::files::error::Error;
use crate::files::opened::{Opened, TensorRef};
use crate::files::parts::{PART, Parts};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_io::{FileFormat, OpenOptions, Source};
use truecast_kernel::{CastOptions, Elements};
use truecast_schemes::Role;

#[derive(Clone)]
pub(crate) struct Logical<'a> {
    pub name: Arc<str>,
    pub shape: Arc<[u64]>,
    pub dtype: DType,
    /// Stored bytes, including scales.
    pub bytes: u64,
    origin: Origin<'a>,
}

#[derive(Clone)]
enum Origin<'a> {
    Held(TensorRef<'a>),
    Quantized(&'a Folder, Box<Quantized>),
}

impl<'a> Logical<'a> {
    /// Type of the values; for a quantized tensor, type of the codes.
    pub fn code_type(&self) -> DType {
        match &self.origin {
            Origin::Held(_) => self.dtype,
            Origin::Quantized(_, quantized) => quantized.layout.code_type(),
        }
    }

    pub fn scheme(&self) -> Option<Arc<str>> {
        match &self.origin {
            Origin::Held(_) => None,
            Origin::Quantized(_, quantized) => Some(quantized.scheme.clone()),
        }
    }

    pub(crate) fn of_quantized(folder: &'a Folder, quantized: Quantized, shape: Arc<[u64]>) -> Logical<'a> {
        let (name, bytes) = (quantized.name.clone(), quantized.bytes);
        let origin = Origin::Quantized(folder, Box::new(quantized));
        Logical { name, shape, dtype: DType::F32, bytes, origin }
    }
}

/// Opens a container or folder. A quantized file is opened as a checkpoint. Also returns the reason if the scales of a
/// file are not applied.
///
/// # Errors
/// As [`Opened::open`].
pub(crate) fn open(path: &Path, options: OpenOptions) -> Result<(Opened, Option<String>), Error> {
    let source = match Opened::open(path, options)? {
        Opened::File(source) if source.format() == FileFormat::Safetensors => source,
        opened => return Ok((opened, None)),
    };
    let folder = Folder::of_source(*source);
    let note = match Contents::detect(&folder, &truecast_schemes::Options::default()) {
        Ok(contents) if contents.is_quantized() => return Ok((Opened::Folder(Box::new(folder)), None)),
        Ok(_) => None,
        Err(cause) => Some(cause.to_string()),
    };
    let source = folder.into_source().expect("it was made of one");
    Ok((Opened::File(Box::new(source)), note))
}

/// Tensors of a file or folder. Tensors of a file are described on request, because a file may have very many.
pub(crate) enum Contained<'a> {
    /// A file. If it is a model, its values have these names.
    File(&'a Source, Vec<Arc<str>>),
    Folder(Vec<Logical<'a>>),
}

impl<'a> Contained<'a> {
    /// Lists the tensors of a folder; a file is described on request.
    ///
    /// # Errors
    /// Quantized tensors that cannot be interpreted.
    pub fn of(opened: &'a Opened) -> Result<Contained<'a>, Error> {
        Ok(match opened.file() {
            Some(source) => Contained::File(source, source.model().map_or(Vec::new(), |_| source.value_names())),
            None => Contained::Folder(logical(opened)?),
        })
    }

    pub fn len(&self) -> usize {
        match self {
            Contained::File(source, _) => source.tensors().len(),
            Contained::Folder(all) => all.len(),
        }
    }

    pub fn name(&self, index: usize) -> &Arc<str> {
        match self {
            Contained::File(source, names) => names.get(index).unwrap_or_else(|| &source.tensors()[index].name),
            Contained::Folder(all) => &all[index].name,
        }
    }

    pub fn get(&self, index: usize) -> Logical<'a> {
        match self {
            Contained::File(source, _) => of_held(TensorRef { source, index, shard: None }, self.name(index).clone()),
            Contained::Folder(all) => all[index].clone(),
        }
    }
}

/// Lists all tensors. They are sorted by file, then by offset of their data.
///
/// # Errors
/// Quantized tensors that cannot be interpreted.
pub(crate) fn logical(opened: &Opened) -> Result<Vec<Logical<'_>>, Error> {
    let names = opened.value_names();
    let Opened::Folder(folder) = opened else {
        return Ok(opened.tensors().into_iter().zip(names).map(|(held, name)| of_held(held, name)).collect());
    };
    let Contents { stored, found, .. } = Contents::detect(folder, &truecast_schemes::Options::default())?;
    let original = original_shapes(folder)?;
    let shape_of = |name: &str, stored: Arc<[u64]>| original.get(name).cloned().unwrap_or(stored);
    let mut all = Vec::new();
    for (number, (held, name)) in opened.tensors().into_iter().zip(names).enumerate() {
        match found.roles[number] {
            Role::Plain => {
                let value = of_held(held, name);
                all.push(Logical { shape: shape_of(&value.name, value.shape.clone()), ..value });
            }
            Role::Part { group, part: truecast_core::scaled::Part::Codes } => {
                let group = &found.groups[group];
                let quantized = quantized(folder, &stored, group);
                all.push(Logical::of_quantized(folder, quantized, shape_of(&group.name, group.shape.clone())));
            }
            Role::Part { .. } | Role::Dropped(_) => {}
        }
    }
    Ok(all)
}

/// Returns a stored tensor, such as the codes or scales of a quantized one.
pub(crate) fn stored<'a>(opened: &'a Opened, name: &str) -> Option<Logical<'a>> {
    let mut all = opened.tensors().into_iter().zip(opened.value_names());
    all.find(|(_, stored)| **stored == *name).map(|(held, name)| of_held(held, name))
}

/// Shapes before the tensors were stored in a GGUF file.
///
/// # Errors
/// [`Source::original_shapes`].
pub(crate) fn original_shapes(folder: &Folder) -> Result<HashMap<Arc<str>, Arc<[u64]>>, Error> {
    let mut all = HashMap::new();
    for shard in folder.shards() {
        all.extend(shard.source.original_shapes()?);
    }
    Ok(all)
}

fn of_held(held: TensorRef<'_>, name: Arc<str>) -> Logical<'_> {
    let tensor = held.tensor();
    let (shape, dtype, bytes) = (tensor.shape.clone(), tensor.dtype, tensor.bytes());
    Logical { name, shape, dtype, bytes, origin: Origin::Held(held) }
}

/// Iterator over the values of a tensor, in pieces of equal length.
pub(crate) enum Values<'a> {
    Stored(Box<Parts>),
    Made(Box<MadeValues<'a>>),
}

pub(crate) struct MadeValues<'a> {
    folder: &'a Folder,
    quantized: &'a Quantized,
    maker: TensorDequantizer,
    first: u64,
    len: u64,
    source: Vec<u8>,
    values: Vec<u8>,
}

impl<'a> Values<'a> {
    pub fn new(tensor: &'a Logical<'_>) -> Result<Values<'a>, Error> {
        match &tensor.origin {
            Origin::Held(held) => Ok(Values::Stored(Box::new(Parts::new(held.source, held.index, tensor.dtype)?))),
            Origin::Quantized(folder, quantized) => {
                let maker = TensorDequantizer::new(quantized, None, &CastOptions::default());
                let maker = maker.map_err(|cause| Error::tensor(folder.path(), &tensor.name, cause))?;
                let len = tensor.shape.iter().product();
                let (source, values) = (Vec::new(), Vec::new());
                Ok(Values::Made(Box::new(MadeValues { folder, quantized, maker, first: 0, len, source, values })))
            }
        }
    }

    pub fn next(&mut self) -> Result<Option<Elements<'_>>, Error> {
        let made = match self {
            Values::Stored(parts) => return Ok(parts.next()?),
            Values::Made(made) => made,
        };
        let MadeValues { folder, quantized, maker, first, len, source, values } = &mut **made;
        let now = PART.min(*len - *first);
        if now == 0 {
            return Ok(None);
        }
        let read = maker.read(folder, quantized, *first, now, source)?;
        values.resize(now as usize * 4, 0);
        let run = maker.values(*first, now as usize, &source[..read], values);
        run.map_err(|cause| Error::tensor(folder.path(), &quantized.name, cause))?;
        *first += now;
        let made = Elements::new(DType::F32, now as usize, &values[..]);
        Ok(Some(made.expect("the buffer was made for these elements")))
    }
}
