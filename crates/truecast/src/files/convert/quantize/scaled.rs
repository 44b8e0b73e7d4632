//! Tensors to quantize: output tensors, and division into pieces.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::quantize::flat::flat;
use crate::files::convert::stored::Stored;
use crate::files::report::Blocks;
use crate::files::stream::Item;
use std::ops::Range;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{Layout, Part, Quantization, ScaledError};
use truecast_io::Tensor;
use truecast_kernel::CastOptions;
use truecast_kernel::scaled::{BlockCounts, Quantizer};
use truecast_schemes::{Content, Output, Scheme, Target};

/// A source tensor to quantize, and its output tensors. The source may be quantized already.
#[derive(Clone, Debug)]
pub(crate) struct Scaled {
    /// Position of the tensor; of the codes, if the source is quantized.
    pub from: Stored,
    pub source: Option<Box<Quantized>>,
    /// Type of the tensor; f32 for a quantized source.
    pub dtype: DType,
    /// Layout of the output tensors. A stack of small matrices is one matrix where possible. Padding is zero.
    pub layout: Layout,
    /// True if the rows of the layout are columns of the source.
    pub transposed: bool,
    pub outputs: Vec<Output>,
    /// Indices of the outputs of each part.
    part_outputs: [Range<usize>; Part::ALL.len()],
    pub scheme: Arc<str>,
    pub how: Quantization,
    /// Importance of the columns, of each matrix of a stack.
    pub importance: Option<Arc<[f32]>>,
    /// Index of the set of tensors that share this global scale.
    pub share: Option<usize>,
    pub needs_amax: bool,
    /// Number of elements that are quantized and measured together.
    pub unit: u64,
}

/// Smallest number of elements over which errors are summed (`docs/spec/checkpoints.md §10`).
const MEASURED: u64 = 65_536;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    granule: u64,
    needs_amax: bool,
}

impl Cut {
    /// `layout` must be a result of [`flat`].
    ///
    /// # Errors
    /// A read-only layout.
    pub fn new(layout: &Layout, dtype: DType, how: &Quantization) -> Result<Cut, ScaledError> {
        let quantizer = Quantizer::new(layout, dtype, how, &CastOptions::default())?;
        Ok(Cut { granule: quantizer.granule().max(1), needs_amax: quantizer.needs_amax() })
    }
}

impl Scaled {
    /// Plans the pieces. `cut` returns the properties of a layout.
    ///
    /// # Errors
    /// The errors of `cut`.
    pub fn new(
        from: Stored,
        dtype: DType,
        source: Option<Box<Quantized>>,
        target: Target,
        scheme: Scheme,
        how: Quantization,
        cut: impl FnOnce(&Layout) -> Result<Cut, ScaledError>,
    ) -> Result<Scaled, ScaledError> {
        let Target { layout, tensors: outputs } = target;
        let transposed = layout.transposed && source.is_none();
        // Elements are in the order of the stored result.
        let (layout, source) = if layout.transposed {
            (Layout { transposed: false, ..layout }, source.map(|source| Box::new(source.transposed())))
        } else {
            (flat(&layout), source.map(|source| Box::new(source.flat())))
        };
        let Cut { granule, needs_amax } = cut(&layout)?;
        let [rows, cols] = layout.kept;
        let matrix = rows * cols;
        let unit = if layout.matrices > 1 && matrix < MEASURED {
            matrix * MEASURED.div_ceil(matrix.max(1))
        } else {
            (granule * MEASURED.div_ceil((granule * cols).max(1))).min(rows) * cols
        };
        let has_global = layout.planes().is_some_and(|planes| planes.global.is_some());
        // A piece with a whole matrix can compute the magnitude itself.
        let needs_amax = needs_amax && (has_global || unit < matrix);
        Ok(Scaled {
            from,
            source,
            dtype,
            layout,
            transposed,
            part_outputs: Part::ALL.map(|part| outputs_of(&outputs, part)),
            outputs,
            scheme: scheme.to_string().into(),
            how,
            importance: None,
            share: None,
            needs_amax,
            unit: unit.max(1),
        })
    }

    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.outputs.iter().map(|output| &output.tensor)
    }

    pub fn bytes_out(&self) -> u64 {
        self.tensors().map(Tensor::bytes).sum()
    }

    /// Indices of the outputs that hold `part`. Fused experts have one such output per layer.
    pub fn outputs_of(&self, part: Part) -> Range<usize> {
        self.part_outputs[part as usize].clone()
    }

    /// Splits `len` bytes of a part, from byte `first` on. Each item is (index of the output, first byte in the output,
    /// number of bytes). All outputs of a part have equal sizes.
    pub fn places(&self, part: Part, first: u64, len: u64) -> impl Iterator<Item = (usize, u64, u64)> {
        let outputs = self.outputs_of(part);
        let size = self.outputs.get(outputs.start).map_or(1, |output| output.tensor.bytes());
        let end = first + len;
        let cuts = (first / size..end.div_ceil(size)).map(move |at| (at * size).max(first)..((at + 1) * size).min(end));
        cuts.map(move |cut| (outputs.start + (cut.start / size) as usize, cut.start % size, cut.end - cut.start))
    }

    /// True if each output contains the whole part.
    pub fn is_repeated(&self, part: Part) -> bool {
        let outputs = self.outputs_of(part);
        outputs.len() > 1 && self.layout.part_bytes(part) == Ok(Some(self.outputs[outputs.start].tensor.bytes()))
    }

    /// Number of padding rows, number of padding columns, and totals of `counts`.
    pub fn blocks(&self, counts: &BlockCounts) -> Blocks {
        let Layout { rows, cols, kept, .. } = self.layout;
        Blocks { counts: counts.total(), pad_rows: rows - kept[0], pad_cols: cols - kept[1] }
    }

    pub fn matrix(&self) -> u64 {
        self.layout.kept[0] * self.layout.kept[1]
    }

    /// Item `index` of the stream. The stream is cut between units of rows, and between matrices larger than a unit.
    pub fn item(&self, index: usize) -> Item {
        let bits = self.dtype.storage_bits().unwrap_or(64);
        let out = (self.bytes_out() * 8).div_ceil(self.layout.elements().max(1));
        // Memory for dequantized values in f32, and for a padded copy.
        let is_padded = self.layout.kept != [self.layout.rows, self.layout.cols];
        let (values, copy) = (32, if is_padded { bits } else { 0 });
        let dst_bits = u32::try_from(out).unwrap_or(64).min(128) + values + copy;
        let period = if self.unit < self.matrix() { self.matrix() } else { u64::MAX };
        Item { index, len: self.layout.elements(), src_bits: self.src_bits(), dst_bits, unit: self.unit, period }
    }

    /// Memory per source element in bits, including computed values.
    pub fn src_bits(&self) -> u32 {
        self.source.as_ref().map_or(self.dtype.storage_bits().unwrap_or(64), |quantized| quantized.bits())
    }
}

fn outputs_of(outputs: &[Output], part: Part) -> Range<usize> {
    let is_of_part = |output: &Output| matches!(output.content, Content::Part(content) if content == part);
    let first = outputs.iter().position(is_of_part).unwrap_or(outputs.len());
    first..first + outputs[first..].iter().take_while(|output| is_of_part(output)).count()
}
