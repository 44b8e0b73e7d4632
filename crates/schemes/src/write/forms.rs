//! Form of each writable scheme: the layout, and the types and shapes of its parts.

use truecast_core::DType::{self, F4E2M1, F6E2M3, F8E4M3Fn, F8E5M2, F8E8M0, F32, I8, I32, I64, U8, U32};
use truecast_core::Layout::Packed;
use truecast_core::scaled::{Code, Coding, Global, GlobalRule, Layout, Packing, Part, Plane, Planes, Zero};
use truecast_io::Tensor;

use super::{Content, Output};
use crate::catalogue::{entry, has_input_rows};
use crate::configuration::{packed_strategy, strategy};
use crate::grid::{Stack, in_groups};
use crate::scheme::{Family, Parameters, ScaleType, Scheme, Strategy};
use crate::table::Written;

const DEFAULT_BLOCK: [u64; 2] = [128, 128];
const DEFAULT_GROUP: u64 = 128;
const MX_GROUP: u64 = 32;
const NVFP4_GROUP: u64 = 16;

const E4M3: Plane = Plane::of(F8E4M3Fn);
const E5M2: Plane = Plane::of(F8E5M2);
const E2M1: Plane = Plane::of(F4E2M1);
const F32_SCALES: Plane = Plane::of(F32);
const E8M0_SCALES: Plane = Plane::of(F8E8M0);

/// Form in which a scheme stores a stack of matrices.
pub(super) struct StoredForm {
    pub(super) layout: Layout,
    lead: Vec<u64>,
    codes: StoredPart,
    scales: StoredPart,
    global_shape: Vec<u64>,
}

struct StoredPart {
    dtype: DType,
    /// `None`: the shape of the grid.
    shape: Option<Vec<u64>>,
}

impl StoredForm {
    /// Returns the form of the matrices of a tensor. `None` for a scheme without a form.
    ///
    /// # Errors
    /// The reason why the matrices do not fit the scheme.
    pub(super) fn new(scheme: Scheme, name: &str, stack: Stack) -> Result<Option<StoredForm>, String> {
        let matrices = Matrices { stack, parameters: scheme.parameters };
        let (lead, parameters) = (&matrices.stack.lead, &matrices.parameters);
        Ok(Some(match scheme.family {
            Family::Fp8Block => matrices.by_strategy(Strategy::Block, E4M3, F8E4M3Fn)?,
            // transformers stacks the scales of experts as matrices, so each has two dimensions (§4.1).
            Family::Fp8Tensor if name.contains(".experts.") => matrices.single_scale(E4M3, F8E4M3Fn, &[1, 1]),
            Family::Fp8Tensor | Family::ModelOptFp8 | Family::ComfyFp8E4M3 => {
                matrices.single_scale(E4M3, F8E4M3Fn, &[])
            }
            Family::ComfyFp8E5M2 => matrices.single_scale(E5M2, F8E5M2, &[]),
            Family::Fp8Channel => matrices.by_strategy(Strategy::Channel, E4M3, F8E4M3Fn)?,
            Family::CtFloatQuantized => matrices.by_strategy(strategy(parameters), E4M3, F8E4M3Fn)?,
            Family::CtIntQuantized => {
                let bytes = Plane { code: Code::signed(8), packing: Packing::BYTES };
                matrices.by_strategy(strategy(parameters), bytes, I8)?
            }
            Family::CtPackQuantized => matrices.bit_stream()?,
            Family::CtNvfp4 => matrices.nvfp4(GlobalRule::Divide, &[1])?,
            Family::ModelOptNvfp4 | Family::ModelOptNvfp4Weights => matrices.nvfp4(GlobalRule::Times, &[])?,
            Family::ModelOptFp8PerChannel => matrices.scale_of_each_row(),
            Family::ModelOptFp8Blocks => matrices.spread_blocks()?,
            Family::GptOss if lead.len() == 1 && has_input_rows(name) => matrices.gpt_oss()?,
            Family::GptOss => return Err("it is not experts.gate_up_proj or experts.down_proj".to_owned()),
            Family::CtMxfp4 => matrices.mx(E2M1, U8)?,
            Family::CtMxfp6 => matrices.mx(Plane::of(F6E2M3), U8)?,
            Family::MlxMxfp4 => matrices.mx(E2M1.packed(Packing::WORDS), U32)?,
            Family::MlxMxfp8 => matrices.mx(E4M3.packed(Packing::WORDS), U32)?,
            Family::ComfyNvfp4 => {
                let codes = E2M1.packed(Packing::HighFirst);
                matrices.with_grid_shapes(
                    matrices.comfy_layout(codes, E4M3, NVFP4_GROUP, Some(GlobalRule::Times)),
                    U8,
                    F8E4M3Fn,
                )
            }
            Family::ComfyMxfp8 => {
                matrices.with_grid_shapes(matrices.comfy_layout(E4M3, E8M0_SCALES, MX_GROUP, None), F8E4M3Fn, U8)
            }
            family => {
                let Some(Written { planes, types: [codes, scales] }) = entry(family).and_then(|entry| entry.written)
                else {
                    return Ok(None);
                };
                matrices.with_grid_shapes(
                    matrices.layout_per_matrix(planes(parameters, matrices.size())?),
                    codes,
                    scales,
                )
            }
        }))
    }

    fn with_scales(mut self, shape: Vec<u64>) -> StoredForm {
        self.scales.shape = Some(shape);
        self
    }

    /// Returns the stored type and shape of a part; `None` if the form lacks it.
    pub(super) fn stored(&self, part: Part) -> Option<(DType, Vec<u64>)> {
        let (plane, block) = self.layout.plane(part)?;
        let (dtype, shape) = match part {
            Part::Global => return Some((F32, self.global_shape.clone())),
            Part::Codes => (self.codes.dtype, &self.codes.shape),
            Part::Zeros => (self.codes.dtype, &self.scales.shape),
            _ => (self.scales.dtype, &self.scales.shape),
        };
        // The layout of a stack may be one matrix with one grid; each stored matrix then has its share of the rows.
        let stacked = if self.layout.matrices == 1 { self.lead.iter().product::<u64>().max(1) } else { 1 };
        let [rows, cols] = self.layout.grid(block);
        let by_grid = || [&self.lead[..], &stored_size(plane, dtype, [rows / stacked, cols])].concat();
        Some((dtype, shape.clone().unwrap_or_else(by_grid)))
    }
}

/// Returns the tensors of a scheme whose bytes do not depend on the values.
pub(super) fn constants(scheme: Scheme, name: &str, shape: &[u64]) -> Vec<Output> {
    let constant = |name: String, dtype, len: usize, bytes| {
        let tensor = Tensor { name: name.into(), dtype, layout: Packed, shape: [len as u64].into() };
        Output { content: Content::Bytes(bytes), tensor }
    };
    let format = scheme.family.name().strip_prefix("comfy:");
    let marker = format.zip(name.strip_suffix("weight")).map(|(format, prefix)| {
        let bytes = format!(r#"{{"format": "{format}"}}"#).into_bytes();
        constant(format!("{prefix}comfy_quant"), U8, bytes.len(), bytes)
    });
    let shape_tensor = (scheme.family == Family::CtPackQuantized).then(|| {
        let bytes = shape.iter().flat_map(|n| n.to_le_bytes()).collect();
        constant(format!("{name}_shape"), I64, shape.len(), bytes)
    });
    marker.into_iter().chain(shape_tensor).collect()
}

/// The matrices to store, and the parameters of the scheme.
struct Matrices {
    stack: Stack,
    parameters: Parameters,
}

impl Matrices {
    /// Rows and columns of each matrix.
    fn size(&self) -> [u64; 2] {
        [self.stack.rows, self.stack.cols]
    }

    /// Rows of all matrices together, and columns.
    fn total_size(&self) -> [u64; 2] {
        [self.stack.rows * self.count(), self.stack.cols]
    }

    fn count(&self) -> u64 {
        self.stack.lead.iter().product()
    }

    /// Layout with a grid of scales for each matrix.
    fn layout_per_matrix(&self, planes: Planes) -> Layout {
        Layout::new(self.count(), self.size(), Coding::Planes(planes))
    }

    /// Layout of one matrix with the rows of all, for a scale that applies to the whole stack.
    fn layout_of_stack(&self, planes: Planes) -> Layout {
        Layout::new(1, self.total_size(), Coding::Planes(planes))
    }

    /// Form whose parts have the shapes of their grids.
    fn with_grid_shapes(&self, layout: Layout, codes: DType, scales: DType) -> StoredForm {
        let part = |dtype| StoredPart { dtype, shape: None };
        let (lead, global_shape) = (self.stack.lead.clone(), Vec::new());
        StoredForm { layout, lead, codes: part(codes), scales: part(scales), global_shape }
    }

    fn in_groups(&self, group: u64) -> Result<[u64; 2], String> {
        in_groups(self.stack.cols, group)
    }

    fn block(&self) -> [u64; 2] {
        self.parameters.block.unwrap_or(DEFAULT_BLOCK)
    }

    fn scale_type(&self) -> DType {
        self.parameters.scale.map_or(F32, ScaleType::dtype)
    }

    /// One f32 scale for all matrices, stored in this shape.
    fn single_scale(&self, codes: Plane, dtype: DType, shape: &[u64]) -> StoredForm {
        let layout = self.layout_of_stack(Planes::times(codes, F32_SCALES, self.total_size()));
        self.with_grid_shapes(layout, dtype, F32).with_scales(shape.to_vec())
    }

    fn by_strategy(&self, strategy: Strategy, codes: Plane, dtype: DType) -> Result<StoredForm, String> {
        let zero = match (codes.code, self.parameters.symmetric) {
            (Code::Int(_), Some(false)) => Zero::Grid { plane: codes, plus: 0 },
            _ => Zero::None,
        };
        let scale = self.scale_type();
        let planes = |block| Planes { zero, ..Planes::times(codes, Plane::of(scale), block) };
        let block = match strategy {
            Strategy::Tensor => {
                let layout = self.layout_of_stack(planes(self.total_size()));
                return Ok(self.with_grid_shapes(layout, dtype, scale).with_scales(vec![1]));
            }
            Strategy::Channel => [1, self.stack.cols],
            Strategy::Block => self.block(),
            Strategy::Group => self.in_groups(self.parameters.group.unwrap_or(DEFAULT_GROUP))?,
        };
        Ok(self.with_grid_shapes(self.layout_per_matrix(planes(block)), dtype, scale))
    }

    fn mx(&self, codes: Plane, dtype: DType) -> Result<StoredForm, String> {
        let planes = Planes::times(codes, E8M0_SCALES, self.in_groups(MX_GROUP)?);
        Ok(self.with_grid_shapes(self.layout_per_matrix(planes), dtype, U8))
    }

    fn nvfp4(&self, rule: GlobalRule, global_shape: &[u64]) -> Result<StoredForm, String> {
        let global = Some(Global { rule, block: self.total_size() });
        let planes = Planes { global, ..Planes::times(E2M1, E4M3, self.in_groups(NVFP4_GROUP)?) };
        let form = self.with_grid_shapes(self.layout_of_stack(planes), U8, F8E4M3Fn);
        Ok(StoredForm { global_shape: global_shape.to_vec(), ..form })
    }

    /// A scale for each row; the scales of a matrix are a vector.
    fn scale_of_each_row(&self) -> StoredForm {
        let layout = self.layout_per_matrix(Planes::times(E4M3, F32_SCALES, [1, self.stack.cols]));
        let shape = [&self.stack.lead[..], &[self.stack.rows]].concat();
        self.with_grid_shapes(layout, F8E4M3Fn, F32).with_scales(shape)
    }

    /// Blocks whose scales have a dimension of size 1 after each dimension of the grid.
    fn spread_blocks(&self) -> Result<StoredForm, String> {
        let block = self.block();
        // Only a check: rows must be whole blocks.
        self.in_groups(block[1])?;
        let layout = self.layout_per_matrix(Planes::times(E4M3, F32_SCALES, block));
        let [rows, cols] = layout.grid(block);
        let shape = [&self.stack.lead[..], &[rows, 1, cols, 1]].concat();
        Ok(self.with_grid_shapes(layout, F8E4M3Fn, F32).with_scales(shape))
    }

    /// Experts of gpt-oss (§4.3). A stored row is an output with its inputs in blocks; the unquantized tensor has a row
    /// for each input.
    fn gpt_oss(&self) -> Result<StoredForm, String> {
        let [inputs, outputs] = self.size();
        if !inputs.is_multiple_of(MX_GROUP) {
            return Err(format!("its {inputs} inputs are not a whole number of groups of {MX_GROUP}"));
        }
        let planes = Planes::times(E2M1, E8M0_SCALES, [1, MX_GROUP]);
        let layout = Layout::new(self.count(), [outputs, inputs], Coding::Planes(planes));
        let form = self.with_grid_shapes(Layout { transposed: true, ..layout }, U8, U8);
        let shape = |last: &[u64]| [&self.stack.lead[..], &[outputs, inputs / MX_GROUP], last].concat();
        let codes = StoredPart { shape: Some(shape(&[MX_GROUP / 2])), ..form.codes };
        Ok(StoredForm { codes, ..form }.with_scales(shape(&[])))
    }

    /// Integers in words that are one bit stream (§4.4.2).
    fn bit_stream(&self) -> Result<StoredForm, String> {
        let parameters = &self.parameters;
        let bits = parameters.bits.unwrap_or(4);
        let code = Code::unsigned(bits as u8);
        let block = match packed_strategy(parameters) {
            Strategy::Channel => [1, self.stack.cols],
            Strategy::Group => self.in_groups(parameters.group.unwrap_or(DEFAULT_GROUP))?,
            other => return Err(format!("its strategy is {}", other.name())),
        };
        let zero = match parameters.symmetric {
            Some(false) => Zero::Grid { plane: Plane { code, packing: Packing::Columns { word: 32 } }, plus: 0 },
            _ => Zero::Constant(1 << (bits - 1)),
        };
        let (codes, scale) = (Plane { code, packing: Packing::WORDS }, self.scale_type());
        let planes = Planes { zero, ..Planes::times(codes, Plane::of(scale), block) };
        Ok(self.with_grid_shapes(self.layout_per_matrix(planes), I32, scale))
    }

    /// Layout of ComfyUI's formats with padded codes and tiled scales (§4.6.2), and a global scale by `rule`.
    fn comfy_layout(&self, codes: Plane, scales: Plane, group: u64, rule: Option<GlobalRule>) -> Layout {
        let padded = self.size().map(|n| n.next_multiple_of(group));
        let global = rule.map(|rule| Global { rule, block: padded });
        let planes = Planes::times(codes, scales.packed(Packing::Swizzled), [1, group]);
        let layout = Layout::new(1, padded, Coding::Planes(Planes { global, ..planes }));
        Layout { kept: self.size(), ..layout }
    }
}

/// Returns the last two dimensions of a stored plane. `dtype` is the type of the stored elements, which may each hold
/// several codes.
fn stored_size(plane: Plane, dtype: DType, [rows, cols]: [u64; 2]) -> [u64; 2] {
    let bits = u64::from(plane.code.bits());
    match plane.packing {
        Packing::Swizzled => [rows.next_multiple_of(128), cols.next_multiple_of(4)],
        Packing::Columns { word } => [(rows * bits).div_ceil(word.into()), cols],
        _ => [rows, (cols * bits).div_ceil(u64::from(dtype.storage_bits().unwrap_or(8)))],
    }
}
