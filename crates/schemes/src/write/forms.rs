//! Form of each writable scheme: the layout, and the types and shapes of its parts.

use truecast_core::DType::{self, F4E2M1, F6E2M3, F8E4M3Fn, F8E5M2, F8E8M0, F32, I8, I32, I64, U8, U32};
use truecast_core::scaled::{Code, Coding, Global, GlobalRule, Layout, Packing, Part, Plane, Planes, Zero};

use crate::catalogue::{entry, has_input_rows};
use crate::configuration::{packed_strategy, strategy};
use crate::grid::in_groups;
use crate::scheme::{Family, Parameters, ScaleType, Scheme, Strategy};
use crate::table::Written;

/// Form in which a scheme stores a stack of matrices.
pub(super) struct Form {
    scheme: Scheme,
    pub(super) layout: Layout,
    lead: Vec<u64>,
    /// Stored types of codes and scales.
    codes: DType,
    scales: DType,
    /// Shape of scales, if it differs from the grid's.
    scale_shape: Option<Vec<u64>>,
    global_shape: Vec<u64>,
    /// Shape of codes, if it differs from the matrices'.
    code_shape: Option<Vec<u64>>,
}

const BYTES: Packing = Packing::BYTES;

impl Form {
    /// Returns the form of a stack of matrices with dimensions `lead`, each of `rows` by `cols`. `None` for a scheme
    /// without a form.
    ///
    /// # Errors
    /// The reason why the matrices do not fit the scheme.
    pub(super) fn of(scheme: Scheme, name: &str, lead: &[u64], [rows, cols]: [u64; 2]) -> Result<Option<Form>, String> {
        let parameters = scheme.parameters;
        let scale = parameters.scale.map_or(F32, ScaleType::dtype);
        let count: u64 = lead.iter().product();
        let whole = [rows, cols];
        let all = [rows * count, cols];
        // If one scale applies to the whole stack, the layout is a single matrix with the rows of all.
        let stack = |planes| Layout::new(count, whole, Coding::Planes(planes));
        let one = |planes| Layout::new(1, all, Coding::Planes(planes));
        let float = Plane::of(F8E4M3Fn);
        let form = |layout, codes, scales| Form {
            scheme,
            layout,
            lead: lead.to_vec(),
            codes,
            scales,
            scale_shape: None,
            global_shape: Vec::new(),
            code_shape: None,
        };
        let in_groups = |group| in_groups(cols, group);
        let single =
            |layout, codes, shape: &[u64]| Form { scale_shape: Some(shape.to_vec()), ..form(layout, codes, F32) };
        let by_strategy = |strategy, codes: Plane, dtype| -> Result<Form, String> {
            let zero = match (codes.code, parameters.symmetric) {
                (Code::Int(_), Some(false)) => Zero::Grid { plane: codes, plus: 0 },
                _ => Zero::None,
            };
            let planes = |block| Planes { zero, ..Planes::times(codes, Plane::of(scale), block) };
            Ok(match strategy {
                Strategy::Tensor => Form { scale_shape: Some(vec![1]), ..form(one(planes(all)), dtype, scale) },
                Strategy::Channel => form(stack(planes([1, cols])), dtype, scale),
                Strategy::Block => form(stack(planes(parameters.block.unwrap_or([128, 128]))), dtype, scale),
                Strategy::Group => form(stack(planes(in_groups(parameters.group.unwrap_or(128))?)), dtype, scale),
            })
        };
        let mx = |codes: Plane, dtype| -> Result<Form, String> {
            Ok(form(stack(Planes::times(codes, Plane::of(F8E8M0), in_groups(32)?)), dtype, U8))
        };
        let nvfp4 = |rule, shape: &[u64]| -> Result<Form, String> {
            let planes = Planes::times(Plane::of(F4E2M1), Plane::of(F8E4M3Fn), in_groups(16)?);
            let global = Some(Global { rule, block: all });
            Ok(Form { global_shape: shape.to_vec(), ..form(one(Planes { global, ..planes }), U8, F8E4M3Fn) })
        };
        Ok(Some(match scheme.family {
            Family::Fp8Block => {
                let planes = Planes::times(float, Plane::of(scale), parameters.block.unwrap_or([128, 128]));
                form(stack(planes), F8E4M3Fn, scale)
            }
            Family::Fp8Tensor | Family::ModelOptFp8 => {
                // transformers stacks the scales of experts as matrices, so each has two dimensions (§4.1).
                let is_expert = scheme.family == Family::Fp8Tensor && name.contains(".experts.");
                let shape: &[u64] = if is_expert { &[1, 1] } else { &[] };
                single(one(Planes::times(float, Plane::of(F32), all)), F8E4M3Fn, shape)
            }
            Family::Fp8Channel => by_strategy(Strategy::Channel, float, F8E4M3Fn)?,
            Family::CtFloatQuantized => by_strategy(strategy(&parameters), float, F8E4M3Fn)?,
            Family::CtIntQuantized => {
                by_strategy(strategy(&parameters), Plane { code: Code::signed(8), packing: BYTES }, I8)?
            }
            Family::CtPackQuantized => packed(&parameters, in_groups, |planes| form(stack(planes), I32, scale), whole)?,
            Family::CtNvfp4 => nvfp4(GlobalRule::Divide, &[1])?,
            Family::ModelOptNvfp4 | Family::ModelOptNvfp4Weights => nvfp4(GlobalRule::Times, &[])?,
            Family::ModelOptFp8PerChannel => {
                let stacked = stack(Planes::times(float, Plane::of(F32), [1, cols]));
                Form { scale_shape: Some([lead, &[rows]].concat()), ..form(stacked, F8E4M3Fn, F32) }
            }
            // The scales have a dimension of size 1 after each dimension of the grid.
            Family::ModelOptFp8Blocks => {
                let block = parameters.block.unwrap_or([128, 128]);
                in_groups(block[1])?;
                let layout = stack(Planes::times(float, Plane::of(F32), block));
                let [down, across] = layout.grid(block);
                Form { scale_shape: Some([lead, &[down, 1, across, 1]].concat()), ..form(layout, F8E4M3Fn, F32) }
            }
            Family::GptOss if lead.len() == 1 && has_input_rows(name) => gpt_oss(scheme, lead, rows, cols)?,
            Family::GptOss => return Err("it is not experts.gate_up_proj or experts.down_proj".to_owned()),
            Family::CtMxfp4 => mx(Plane::of(F4E2M1), U8)?,
            Family::CtMxfp6 => mx(Plane::of(F6E2M3), U8)?,
            Family::MlxMxfp4 => mx(Plane::of(F4E2M1).packed(Packing::WORDS), U32)?,
            Family::MlxMxfp8 => mx(float.packed(Packing::WORDS), U32)?,
            Family::ComfyFp8E4M3 | Family::ComfyFp8E5M2 | Family::ComfyNvfp4 | Family::ComfyMxfp8 => {
                if !lead.is_empty() {
                    return Err("it has more than two dimensions".to_owned());
                }
                match scheme.family {
                    Family::ComfyFp8E4M3 => single(one(Planes::times(float, Plane::of(F32), all)), F8E4M3Fn, &[]),
                    Family::ComfyFp8E5M2 => {
                        single(one(Planes::times(Plane::of(F8E5M2), Plane::of(F32), all)), F8E5M2, &[])
                    }
                    _ => tiled(scheme.family, whole, form),
                }
            }
            family => {
                let Some(Written { planes, types: [codes, scales] }) = entry(family).and_then(|of| of.written) else {
                    return Ok(None);
                };
                form(stack(planes(&parameters, whole)?), codes, scales)
            }
        }))
    }

    /// Returns the stored type and shape of a part; `None` if the form lacks it.
    pub(super) fn stored(&self, part: Part) -> Option<(DType, Vec<u64>)> {
        let planes = self.layout.planes()?;
        let Layout { rows, cols, .. } = self.layout;
        // A stack whose layout is one matrix has one grid, but its tensors keep the dimensions of the stack.
        let stacked = if self.layout.matrices == 1 { self.lead.iter().product::<u64>().max(1) } else { 1 };
        let divided = |[r, c]: [u64; 2]| [r / stacked, c];
        let grid = self.layout.scale_grid()?;
        match (part, planes) {
            (Part::Codes, _) if self.code_shape.is_some() => Some((self.codes, self.code_shape.clone()?)),
            (Part::Codes, _) => Some(stored_as(planes.codes, self.codes, &self.lead, divided([rows, cols]))),
            (Part::Scales, _) => Some(match &self.scale_shape {
                Some(shape) => (self.scales, shape.clone()),
                None => stored_as(planes.scales.plane, self.scales, &self.lead, divided(grid)),
            }),
            (Part::Global, Planes { global: Some(_), .. }) => Some((F32, self.global_shape.clone())),
            (Part::Zeros, Planes { zero: Zero::Grid { plane, .. }, .. }) => Some(match &self.scale_shape {
                Some(shape) => (self.codes, shape.clone()),
                None => stored_as(*plane, self.codes, &self.lead, grid),
            }),
            _ => None,
        }
    }

    /// Returns the tensors whose bytes do not depend on the values: name, type, shape, bytes.
    pub(super) fn constants(&self, name: &str, shape: &[u64]) -> Vec<(String, DType, Vec<u64>, Vec<u8>)> {
        let format = self.scheme.family.name().strip_prefix("comfy:");
        let marker = format.zip(name.strip_suffix("weight")).map(|(format, front)| {
            let bytes = format!(r#"{{"format": "{format}"}}"#).into_bytes();
            (format!("{front}comfy_quant"), U8, vec![bytes.len() as u64], bytes)
        });
        let stated = (self.scheme.family == Family::CtPackQuantized).then(|| {
            let bytes = shape.iter().flat_map(|n| n.to_le_bytes()).collect();
            (format!("{name}_shape"), I64, vec![shape.len() as u64], bytes)
        });
        marker.into_iter().chain(stated).collect()
    }
}

/// Returns the form of gpt-oss experts (§4.3). A stored row is an output with its inputs in blocks of 32; the
/// unquantized tensor has a row for each input.
fn gpt_oss(scheme: Scheme, lead: &[u64], rows: u64, cols: u64) -> Result<Form, String> {
    let group = 32;
    if !rows.is_multiple_of(group) {
        return Err(format!("its {rows} inputs are not a whole number of groups of {group}"));
    }
    let planes = Planes::times(Plane::of(F4E2M1), Plane::of(F8E8M0), [1, group]);
    let layout = Layout::new(lead.iter().product(), [cols, rows], Coding::Planes(planes));
    let shape = |last: &[u64]| Some([lead, &[cols, rows / group], last].concat());
    Ok(Form {
        scheme,
        layout: Layout { transposed: true, ..layout },
        lead: lead.to_vec(),
        codes: U8,
        scales: U8,
        scale_shape: shape(&[]),
        global_shape: Vec::new(),
        code_shape: shape(&[group / 2]),
    })
}

/// Returns the form of integers in words that are one bit stream (§4.4.2).
fn packed(
    parameters: &Parameters,
    in_groups: impl Fn(u64) -> Result<[u64; 2], String>,
    form: impl Fn(Planes) -> Form,
    [_, cols]: [u64; 2],
) -> Result<Form, String> {
    let bits = parameters.bits.unwrap_or(4);
    let code = Code::unsigned(bits as u8);
    let block = match packed_strategy(parameters) {
        Strategy::Channel => [1, cols],
        Strategy::Group => in_groups(parameters.group.unwrap_or(128))?,
        other => return Err(format!("its strategy is {}", other.name())),
    };
    let zero = match parameters.symmetric {
        Some(false) => Zero::Grid { plane: Plane { code, packing: Packing::Columns { word: 32 } }, plus: 0 },
        _ => Zero::Constant(1 << (bits - 1)),
    };
    let scale = Plane::of(parameters.scale.map_or(F32, ScaleType::dtype));
    Ok(form(Planes { zero, ..Planes::times(Plane { code, packing: Packing::WORDS }, scale, block) }))
}

/// Returns the form of ComfyUI's formats with padded codes and tiled scales (§4.6.2).
fn tiled(family: Family, [rows, cols]: [u64; 2], form: impl Fn(Layout, DType, DType) -> Form) -> Form {
    let is_fp4 = family == Family::ComfyNvfp4;
    let (unit, group) = if is_fp4 { (16, 16) } else { (32, 32) };
    let (padded_rows, padded_cols) = (rows.next_multiple_of(unit), cols.next_multiple_of(unit));
    let (codes, scales) =
        if is_fp4 { (Plane::of(F4E2M1).packed(Packing::HighFirst), F8E4M3Fn) } else { (Plane::of(F8E4M3Fn), F8E8M0) };
    let planes = Planes::times(codes, Plane::of(scales).packed(Packing::Swizzled), [1, group]);
    let global = is_fp4.then_some(Global { rule: GlobalRule::Times, block: [padded_rows, padded_cols] });
    let layout = Layout::new(1, [padded_rows, padded_cols], Coding::Planes(Planes { global, ..planes }));
    let layout = Layout { kept: [rows, cols], ..layout };
    if is_fp4 { form(layout, U8, F8E4M3Fn) } else { form(layout, F8E4M3Fn, U8) }
}

/// Returns the stored type and shape of a plane. `dtype` is the type of the stored elements, which may each hold
/// several codes.
fn stored_as(plane: Plane, dtype: DType, lead: &[u64], [rows, cols]: [u64; 2]) -> (DType, Vec<u64>) {
    let bits = u64::from(plane.code.bits());
    let last = match plane.packing {
        Packing::Swizzled => [rows.div_ceil(128) * 128, cols.div_ceil(4) * 4],
        Packing::Columns { word } => [(rows * bits).div_ceil(word.into()), cols],
        _ => [rows, (cols * bits).div_ceil(u64::from(dtype.storage_bits().unwrap_or(8)))],
    };
    (dtype, [lead, &last[..]].concat())
}
