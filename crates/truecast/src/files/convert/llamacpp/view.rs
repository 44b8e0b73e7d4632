//! A checkpoint as llama.cpp stores it: other names, and tensors that are rearranged, stacked or dequantized.

use super::StoredAs;
use super::fields::refused;
use super::strided::Strided;
use crate::files::convert::dequantize::dequantizer::{Quantized, TensorDequantizer};
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::stream::{room, zeros};
use crate::request::Request;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::Arc;
use truecast_core::{DType, Layout};
use truecast_io::folder::Folder;
use truecast_io::{Escaped, Tensor, View};
use truecast_kernel::{CastOptions, Caster, Elements, ElementsMut};

/// Source of values.
#[derive(Clone, Debug)]
pub(super) enum Values {
    Plain(Stored),
    Quantized(Box<Quantized>),
    /// f32 values that the configuration determines.
    Known(Vec<f32>),
}

impl Values {
    /// Name of the tensor in the source; `None` for known values.
    pub fn name(&self, folder: &Folder) -> Option<Arc<str>> {
        match self {
            Values::Plain(at) => Some(at.header(folder).name.clone()),
            Values::Quantized(of) => Some(of.name.clone()),
            Values::Known(_) => None,
        }
    }
}

/// Part of a tensor: all of it, or one expert.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub values: Values,
    pub order: Strided,
}

/// A piece with its shape: one of the experts, or the whole tensor.
pub(super) struct Part {
    pub expert: Option<u64>,
    pub shape: Vec<u64>,
    /// Type of the source's values.
    pub dtype: DType,
    pub piece: Piece,
}

/// A tensor that is made of pieces. They follow each other, or their elements alternate.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub tensor: Tensor,
    /// Type of the pieces before the result is widened to f32.
    pub from: DType,
    pub pieces: Vec<Piece>,
    /// True if the elements of the pieces alternate.
    pub alternates: bool,
    /// Summand of each value.
    pub add: Option<f32>,
}

impl Target {
    /// Tensor of pieces that follow each other. `dtype` is the type of the source's values.
    pub fn new(name: &str, shape: &[u64], dtype: DType, pieces: Vec<Piece>) -> Target {
        let tensor = Tensor { name: name.into(), dtype, layout: Layout::Packed, shape: shape.into() };
        Target { tensor, from: dtype, pieces, alternates: false, add: None }
    }

    /// Tensor of one part, or the matrices of all experts, stacked.
    pub fn of_parts(name: &str, mut parts: Vec<Part>) -> Result<Target, String> {
        parts.sort_by_key(|part| part.expert);
        let [Part { expert, ref shape, dtype, .. }, ref others @ ..] = parts[..] else {
            return Err(format!("no tensor is the source of {}", Escaped(name)));
        };
        if !others.is_empty() && expert.is_none() {
            return Err(format!("two tensors are the source of {}", Escaped(name)));
        }
        if others.iter().any(|part| (&part.shape, part.dtype) != (shape, dtype)) {
            return Err(format!("the parts of {} have different types or shapes", Escaped(name)));
        }
        if (0..).zip(&parts).any(|(number, part)| part.expert.is_some_and(|expert| expert != number)) {
            return Err(format!("experts of {} are missing", Escaped(name)));
        }
        let count = [parts.len() as u64];
        let shape = [if expert.is_some() { &count[..] } else { &[] }, &shape[..]].concat();
        Ok(Target::new(name, &shape, dtype, parts.into_iter().map(|part| part.piece).collect()))
    }

    /// Vector of known values.
    pub fn known(name: &str, values: Vec<f32>) -> Target {
        let len = values.len() as u64;
        let piece = Piece { values: Values::Known(values), order: Strided::whole(len) };
        Target::new(name, &[len], DType::F32, vec![piece])
    }

    /// Form of the first piece in the source, and bytes of all pieces. `None` for known values.
    pub fn stored_as(&self) -> Option<StoredAs> {
        let bytes = |piece: &Piece| match &piece.values {
            Values::Plain(_) | Values::Known(_) => self.from.bytes_in(Layout::Packed, piece.order.len()).unwrap_or(0),
            Values::Quantized(of) => {
                let all = u128::from(of.bytes) * u128::from(piece.order.len());
                u64::try_from(all / u128::from(of.layout.elements().max(1))).unwrap_or(0)
            }
        };
        let (dtype, scheme) = match &self.pieces.first()?.values {
            Values::Plain(_) => (self.from, None),
            Values::Quantized(of) => (of.layout.code_type(), Some(of.scheme.clone())),
            Values::Known(_) => return None,
        };
        Some(StoredAs { dtype, scheme, bytes: self.pieces.iter().map(bytes).sum() })
    }

    /// Widens floating-point values to f32.
    pub fn widened(mut self) -> Target {
        if self.from.is_float() {
            self.tensor.dtype = DType::F32;
        }
        self
    }
}

/// Tensors that are computed from those of a folder.
#[derive(Debug)]
pub(super) struct Renamed {
    folder: Arc<Folder>,
    targets: Vec<Planned>,
}

#[derive(Debug)]
struct Planned {
    target: Target,
    /// Dequantizer of each piece that is quantized.
    dequantizers: Vec<Option<TensorDequantizer>>,
    widen: Option<Caster>,
}

thread_local! {
    static STORED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static NARROW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Renamed {
    /// Plans the tensors.
    ///
    /// # Errors
    /// Elements of less than a byte; scales that cannot be dequantized.
    pub fn new(folder: Arc<Folder>, targets: Vec<Target>) -> Result<Renamed, Error> {
        let failed = |target: &Target, cause| Error::tensor(folder.path(), &target.tensor.name, cause);
        let plan = |target: Target| {
            // Smaller elements cannot be rearranged.
            if !target.from.storage_bits().is_some_and(|bits| bits.is_multiple_of(8)) {
                let what = format!("the elements of {} are less than a byte", Escaped(&target.tensor.name));
                return Err(Error::checkpoint(folder.path(), refused(what)));
            }
            let exec = CastOptions { threads: NonZeroUsize::MIN, ..CastOptions::default() };
            let dequantizer = |piece: &Piece| match &piece.values {
                Values::Quantized(quantized) => TensorDequantizer::new(quantized, None, &exec).map(Some),
                _ => Ok(None),
            };
            let dequantizers: Result<_, Cause> = target.pieces.iter().map(dequantizer).collect();
            let dequantizers = dequantizers.map_err(|cause| failed(&target, cause))?;
            let (from, to) = (target.from, target.tensor.dtype);
            let widen = (from != to).then(|| {
                let cast = Request::default().resolve(from, to).map_err(Cause::from)?;
                Ok(Caster::new(&cast, &exec)?)
            });
            let widen = widen.transpose().map_err(|cause: Cause| failed(&target, cause))?;
            Ok(Planned { target, dequantizers, widen })
        };
        let targets = targets.into_iter().map(plan).collect::<Result<_, Error>>()?;
        Ok(Renamed { folder, targets })
    }

    /// Folder of the tensors, as one shard.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn into_folder(self) -> Result<Folder, Error> {
        let of = self.folder.clone();
        let tensors = self.targets.iter().map(|planned| planned.target.tensor.clone()).collect();
        Ok(Folder::of_view(&of, tensors, Arc::new(self))?)
    }

    /// The first values of a tensor of type f32, at most `most`.
    ///
    /// # Errors
    /// An unreadable file; scales without a value.
    pub fn first_values(&self, tensor: usize, most: usize) -> Result<Vec<f32>, Error> {
        let len = self.targets[tensor].target.tensor.len().min(most as u64);
        let mut bytes = vec![0; len as usize * 4];
        self.read(tensor, 0, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect())
    }

    fn read(&self, tensor: usize, first: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let Planned { target, widen, .. } = &self.targets[tensor];
        let Some(caster) = widen else {
            self.read_pieces(tensor, first, bytes)?;
            add(bytes, target.add);
            return Ok(());
        };
        NARROW.with_borrow_mut(|narrow| {
            let len = bytes.len() / 4;
            let size = target.from.storage_bits().unwrap_or(8) as usize / 8;
            let narrow = room(narrow, (len * size) as u64)?;
            self.read_pieces(tensor, first, narrow)?;
            let failed = |cause: Cause| Error::tensor(self.folder.path(), &target.tensor.name, cause);
            let src = Elements::new(target.from, len, narrow).map_err(|cause| failed(cause.into()))?;
            let dst = ElementsMut::new(DType::F32, len, bytes).map_err(|cause| failed(cause.into()))?;
            caster.cast(src, dst).map_err(|cause| failed(cause.into()))?;
            add(bytes, target.add);
            Ok(())
        })
    }

    fn read_pieces(&self, tensor: usize, first: u64, mut bytes: &mut [u8]) -> Result<(), Error> {
        let target = &self.targets[tensor].target;
        let size = target.from.storage_bits().unwrap_or(8) as usize / 8;
        if target.alternates {
            return self.read_alternating(tensor, first, size, bytes);
        }
        let mut at = first;
        for (piece, of) in target.pieces.iter().enumerate() {
            let here = of.order.len();
            if at < here {
                let len = ((bytes.len() / size) as u64).min(here - at);
                let now = bytes.split_off_mut(..len as usize * size).expect("the piece ends within the bytes");
                of.order.read(at, size, now, &mut |at, bytes| self.values(tensor, piece, at, bytes))?;
            }
            at = at.saturating_sub(here);
        }
        Ok(())
    }

    fn read_alternating(&self, tensor: usize, first: u64, size: usize, bytes: &mut [u8]) -> Result<(), Error> {
        let pieces = &self.targets[tensor].target.pieces;
        let (count, end) = (pieces.len() as u64, first + (bytes.len() / size) as u64);
        for (piece, of) in pieces.iter().enumerate() {
            // Element `i` of the piece is element `count * i + piece` of the tensor.
            let of_piece = |at: u64| (at + count - 1 - piece as u64) / count;
            let (start, stop) = (of_piece(first), of_piece(end));
            let mut own = zeros((stop - start) * size as u64)?;
            of.order.read(start, size, &mut own, &mut |at, bytes| self.values(tensor, piece, at, bytes))?;
            for (at, value) in (start..stop).zip(own.chunks_exact(size)) {
                let to = (at * count + piece as u64 - first) as usize * size;
                bytes[to..to + size].copy_from_slice(value);
            }
        }
        Ok(())
    }

    /// Reads consecutive source elements from `first` on.
    fn values(&self, tensor: usize, piece: usize, first: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let Planned { target, dequantizers, .. } = &self.targets[tensor];
        match &target.pieces[piece].values {
            Values::Plain(stored) => {
                let size = u64::from(target.from.storage_bits().unwrap_or(8)) / 8;
                Ok(stored.source(&self.folder).read_at(stored.tensor, first * size, bytes)?)
            }
            Values::Known(values) => {
                for (value, bytes) in values[first as usize..].iter().zip(bytes.chunks_exact_mut(4)) {
                    bytes.copy_from_slice(&value.to_le_bytes());
                }
                Ok(())
            }
            Values::Quantized(quantized) => STORED.with_borrow_mut(|stored| {
                let dequantizer = dequantizers[piece].as_ref().expect("the piece is quantized");
                let len = bytes.len() as u64 / 4;
                let read = dequantizer.read(&self.folder, quantized, first, len, stored)?;
                let failed = |cause| Error::tensor(self.folder.path(), &quantized.name, cause);
                dequantizer.values(first, len as usize, &stored[..read], bytes).map_err(failed)
            }),
        }
    }
}

impl View for Renamed {
    fn read_at(&self, tensor: usize, first: u64, bytes: &mut [u8]) -> Result<(), truecast_io::Error> {
        let size = u64::from(self.targets[tensor].target.tensor.dtype.storage_bits().unwrap_or(8)) / 8;
        self.read(tensor, first / size, bytes).map_err(|error| match error {
            Error::Io(error) => error,
            error => truecast_io::Error::ReadTensor {
                path: self.folder.path().to_path_buf(),
                tensor: self.targets[tensor].target.tensor.name.to_string(),
                offset: first,
                source: std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string()),
            },
        })
    }
}

/// Adds to each f32.
fn add(bytes: &mut [u8], summand: Option<f32>) {
    let Some(summand) = summand else { return };
    for value in bytes.as_chunks_mut::<4>().0 {
        *value = (f32::from_le_bytes(*value) + summand).to_le_bytes();
    }
}
