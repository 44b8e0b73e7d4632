//! Dense elements of quantized tensors: where the parts lie, how pieces of them are read, and what is made of them.
//!
//! A part may lie in any file of the checkpoint. Only what a piece needs is read, so that no tensor has to fit in memory.

use crate::files::convert::action::NumberCaster;
use crate::files::convert::quantize::flat::flat;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::stream::room;
use crate::files::windows::dequantize;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use truecast_core::scaled::{Layout, Part};
use truecast_core::{CastSpec, DType};
use truecast_io::folder::Folder;
use truecast_kernel::measure::{Measure, Sample};
use truecast_kernel::scaled::{Dequantizer, Read};
use truecast_kernel::{CastOptions, Counts, Elements, ElementsMut};

/// A quantized tensor of the source.
#[derive(Clone, Debug)]
pub(crate) struct Quantized {
    /// The name of the dense tensor.
    pub name: Arc<str>,
    pub layout: Layout,
    pub parts: Vec<(Part, Stored)>,
    /// The name of its scheme.
    pub scheme: Arc<str>,
    /// Bytes of its parts.
    pub bytes: u64,
}

impl Quantized {
    /// The same, a stack of small matrices as one.
    pub fn flat(self) -> Quantized {
        Quantized { layout: flat(&self.layout), ..self }
    }

    /// The same values with rows as columns.
    pub fn transposed(self) -> Quantized {
        let layout = Layout { transposed: !self.layout.transposed, ..self.layout };
        Quantized { layout, ..self }
    }

    /// Bits of all parts for each element, and of the f32 between them and the result; rounded up.
    pub fn bits(&self) -> u32 {
        let bits = (self.bytes.saturating_mul(8)).div_ceil(self.layout.elements().max(1));
        32 + u32::try_from(bits).unwrap_or(64).min(64)
    }

    pub fn stored(&self, part: Part) -> Stored {
        let found = self.parts.iter().find(|(of, _)| *of == part);
        found.expect("a group has the parts of its layout").1
    }
}

/// Makes the elements of one tensor, on any thread.
#[derive(Debug)]
pub(crate) struct TensorDequantizer {
    dequantizer: Dequantizer,
    last: Last,
}

/// What is done to the f32 values.
#[derive(Debug)]
enum Last {
    /// They are rounded once more.
    Cast(DType, NumberCaster),
    /// They are the result.
    Keep(Box<Measure>),
}

thread_local! {
    /// The f32 values of a piece.
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl TensorDequantizer {
    /// Plans it. `cast` says how f32 values become the result, if they are not the result themselves, with the seed of its
    /// random bits.
    ///
    /// # Errors
    /// A layout that is not understood, a conversion that is not.
    pub fn new(
        quantized: &Quantized,
        cast: Option<(&CastSpec, Option<u64>)>,
        exec: &CastOptions,
    ) -> Result<TensorDequantizer, Cause> {
        let values = CastSpec::copy(DType::F32);
        let dequantizer = Dequantizer::new(&quantized.layout, &values, exec)?;
        let last = match cast.filter(|(cast, _)| **cast != values) {
            Some((cast, seed)) => Last::Cast(cast.dst, NumberCaster::new(cast, seed, exec)?),
            None => Last::Keep(Box::new(Measure::between(DType::F32, DType::F32, exec))),
        };
        Ok(TensorDequantizer { dequantizer, last })
    }

    /// Reads what the elements `first .. first + len` are made of into the beginning of `buffer`. Returns how many bytes that
    /// are.
    pub fn read(
        &self,
        folder: &Folder,
        quantized: &Quantized,
        first: u64,
        len: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let windows = self.dequantizer.windows(first..first + len);
        let reads = windows.iter().flat_map(|window| self.dequantizer.reads(window));
        let reads: Vec<_> = reads.map(|read| (quantized.stored(read.part), read)).collect();
        read_all(folder, &reads, buffer)
    }

    /// Makes the elements `first .. first + len` of what was read. Counts in parts, to be added in order: of the last step,
    /// from the f32 value to the result.
    pub fn run(
        &self,
        (first, len): (u64, usize),
        src: &[u8],
        dst: &mut [u8],
        sample: Sample,
    ) -> Result<Vec<Counts>, Cause> {
        match &self.last {
            Last::Keep(measure) => {
                self.values(first, len, src, dst)?;
                let values = Elements::new(DType::F32, len, &*dst)?;
                Ok(measure.compare_some(values, values, first, sample))
            }
            Last::Cast(dtype, caster) => VALUES.with_borrow_mut(|values| {
                let values = room(values, len as u64 * 4)?;
                self.values(first, len, src, values)?;
                let values = Elements::new(DType::F32, len, &*values)?;
                Ok(caster.cast_parts(first, values, ElementsMut::new(*dtype, len, dst)?, sample)?)
            }),
        }
    }

    /// The f32 values, as bytes.
    pub fn values(&self, first: u64, len: usize, mut src: &[u8], dst: &mut [u8]) -> Result<(), Cause> {
        let next = |read: &Read| {
            let (bytes, rest) = src.split_at(read.bytes() as usize);
            src = rest;
            Cow::Borrowed(bytes)
        };
        Ok(dequantize(&self.dequantizer, first..first + len as u64, next, dst)?)
    }
}

/// Pieces that lie so near are read together.
const GAP: u64 = 4096;
/// At most so many bytes are read together.
const TOGETHER: u64 = 1 << 20;

/// Does these reads, one after the other, into the beginning of `buffer`. Returns how many bytes that are.
pub(crate) fn read_all(folder: &Folder, reads: &[(Stored, Read)], buffer: &mut Vec<u8>) -> Result<usize, Error> {
    let mut bytes = room(buffer, reads.iter().map(|(_, read)| read.bytes()).sum())?;
    let all = bytes.len();
    for (stored, read) in reads {
        let now = bytes.split_off_mut(..read.bytes() as usize).expect("there is room for all of them");
        read_into(folder, *stored, read, now)?;
    }
    Ok(all)
}

fn read_into(folder: &Folder, stored: Stored, read: &Read, mut into: &mut [u8]) -> Result<(), Error> {
    let source = stored.source(folder);
    let get = |at: u64, bytes: &mut [u8]| source.read_at(stored.tensor, at, bytes);
    let Read { first, len, stride, count, .. } = *read;
    if count <= 1 || stride == len || stride - len > GAP || stride > TOGETHER {
        for piece in 0..count {
            let (now, rest) = into.split_at_mut(len as usize);
            get(first + piece * stride, now)?;
            into = rest;
        }
        return Ok(());
    }
    let step = (TOGETHER / stride).max(1);
    let mut together = Vec::new();
    let mut piece = 0;
    while piece < count {
        let some = step.min(count - piece);
        let bytes = room(&mut together, (some - 1) * stride + len)?;
        get(first + piece * stride, bytes)?;
        for one in bytes.chunks(stride as usize) {
            let (now, rest) = into.split_at_mut(len as usize);
            now.copy_from_slice(&one[..len as usize]);
            into = rest;
        }
        piece += some;
    }
    Ok(())
}
