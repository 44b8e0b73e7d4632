//! Dequantization of tensors in files, piece by piece.
//!
//! A tensor may exceed memory, because each piece reads only its own bytes. Parts of a tensor may be in several files.

use crate::files::convert::action::NumberCaster;
use crate::files::convert::quantize::flat::flat;
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::report::Magnitudes;
use crate::files::stream::room;
use crate::files::windows::dequantize;
use std::borrow::Cow;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::Arc;
use truecast_core::scaled::{Layout, Part};
use truecast_core::{CastSpec, DType};
use truecast_io::folder::Folder;
use truecast_kernel::measure::{Measure, Sample};
use truecast_kernel::scaled::{Dequantizer, Read};
use truecast_kernel::{CastOptions, Counts, Elements, ElementsMut};

#[derive(Clone, Debug)]
pub(crate) struct Quantized {
    pub name: Arc<str>,
    pub layout: Layout,
    pub parts: Vec<(Part, Stored)>,
    pub scheme: Arc<str>,
    /// Size of all parts in bytes.
    pub bytes: u64,
}

impl Quantized {
    /// Treats a stack of small matrices as one matrix.
    pub fn flat(self) -> Quantized {
        Quantized { layout: flat(&self.layout), ..self }
    }

    pub fn transposed(self) -> Quantized {
        let layout = Layout { transposed: !self.layout.transposed, ..self.layout };
        Quantized { layout, ..self }
    }

    /// Memory per element in bits: all stored parts and the intermediate f32. Rounded up.
    pub fn bits(&self) -> u32 {
        let bits = (self.bytes.saturating_mul(8)).div_ceil(self.layout.elements().max(1));
        32 + u32::try_from(bits).unwrap_or(64).min(64)
    }

    pub fn stored(&self, part: Part) -> Stored {
        let found = self.parts.iter().find(|(of, _)| *of == part);
        found.expect("a group has the parts of its layout").1
    }
}

#[derive(Debug)]
pub(crate) struct TensorDequantizer {
    dequantizer: Dequantizer,
    last: Last,
}

/// Step after the computation of f32 values.
#[derive(Debug)]
enum Last {
    /// Rounding to the type of the result.
    Cast(DType, NumberCaster),
    /// No step: the result has type f32.
    Keep(Box<Measure>),
}

thread_local! {
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl TensorDequantizer {
    /// Plans a dequantization. `cast` has the conversion of the f32 values, and the seed of stochastic rounding. `None`
    /// keeps f32.
    ///
    /// # Errors
    /// A layout or conversion that is not supported.
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

    /// Reads the source bytes of elements `first .. first + len` into the start of `buffer`. Returns their number.
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

    /// Computes elements `first .. first + len` from the source bytes. Returns partial counts of the cast from f32, in
    /// element order. Adds to the magnitudes, if they are counted.
    pub fn run(
        &self,
        first: u64,
        len: usize,
        src: &[u8],
        dst: &mut [u8],
        sample: Sample,
        magnitudes: &mut Option<Magnitudes>,
    ) -> Result<Vec<Counts>, Cause> {
        let mut count = |sides: [Elements<'_>; 2]| {
            magnitudes.iter_mut().for_each(|all| all.add(sides, first, sample, NonZeroUsize::MIN));
        };
        match &self.last {
            Last::Keep(measure) => {
                self.values(first, len, src, dst)?;
                let values = Elements::new(DType::F32, len, &*dst)?;
                count([values; 2]);
                Ok(measure.compare_some(values, values, first, sample))
            }
            Last::Cast(dtype, caster) => VALUES.with_borrow_mut(|values| {
                let values = room(values, len as u64 * 4)?;
                self.values(first, len, src, values)?;
                let values = Elements::new(DType::F32, len, &*values)?;
                let counts = caster.cast_parts(first, values, ElementsMut::new(*dtype, len, dst)?, sample)?;
                let results = Elements::new(*dtype, len, &*dst)?;
                count([values, results]);
                Ok(counts)
            }),
        }
    }

    /// Computes f32 values, as bytes.
    pub fn values(&self, first: u64, len: usize, mut src: &[u8], dst: &mut [u8]) -> Result<(), Cause> {
        let next = |read: &Read| {
            let (bytes, rest) = src.split_at(read.bytes() as usize);
            src = rest;
            Cow::Borrowed(bytes)
        };
        Ok(dequantize(&self.dequantizer, first..first + len as u64, next, dst)?)
    }
}

/// Largest gap in bytes between two reads that are joined.
const GAP: u64 = 4096;
/// Largest joined read in bytes.
const TOGETHER: u64 = 1 << 20;

/// Reads all ranges into the start of `buffer`, one after the other. Returns the number of bytes.
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
