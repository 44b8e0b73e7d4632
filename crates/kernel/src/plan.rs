//! Choice of a conversion's route. Reference: `docs/kernels.md §2`; §3 on intermediates that never round twice.
//!
//! Routes are tried in a fixed order. A lane's constructor returns `None` for a policy that the lane does not compute.
//! The last route is the definition.

use crate::intermediate::Intermediate;
use crate::lane::stage::{self as lane, has_nearest};
use crate::level::Level;
use crate::numbers::SpecialCodes;
use crate::numbers::e8m0::{ClampToE8m0, EncodeE8m0};
use crate::numbers::encode::Encoder;
use crate::numbers::int::{IntRange, ToInt};
use crate::numbers::op::{Int, Op};
use crate::numbers::wide::{F32ToF32, F32ToF64, F64ToF32, NanBits};
use crate::pipeline::Pipeline;
use crate::route::{Method, Route};
use crate::split::Split16;
use crate::stage::{Multiply, Scalar, Stage, slot_bytes};
use crate::table::{fits_table8, packed8, table8, table16};
use truecast_core::format::{F32, F64};
use truecast_core::policy::*;
use truecast_core::{CastSpec, DType, FloatFormat, IntFormat, Kind, Rounding};

/// Error for a conversion that cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum PlanError {
    /// Text and complex numbers have no conversion by value.
    #[error("{src} cannot be converted to {dst} by value")]
    Unsupported {
        src: DType,
        /// Destination type.
        dst: DType,
    },
    /// Stochastic rounding requires types whose numbers have a last place.
    #[error(
        "stochastic rounding does not apply to {src} to {dst}; it rounds numbers to floats, integers and fixed point"
    )]
    NotStochastic {
        src: DType,
        /// Destination type.
        dst: DType,
    },
}

type Stages = Vec<Box<dyn Stage>>;

pub(crate) fn plan(spec: &CastSpec, level: Level) -> Result<(Route, Pipeline), PlanError> {
    let CastSpec { src, dst, .. } = *spec;
    if src == DType::String || dst == DType::String || (src != dst && !(src.is_numeric() && dst.is_numeric())) {
        return Err(PlanError::Unsupported { src, dst });
    }
    let (route, stages) = stages(spec, level);
    let pipeline = Pipeline::new(src, dst, level, stages);
    let bytes = if route.methods() == [Method::Table8] { packed8(spec, level) } else { None };
    Ok((route, pipeline.with_bytes(bytes)))
}

fn stages(spec: &CastSpec, level: Level) -> (Route, Stages) {
    let src = spec.src;
    if is_copy(spec) {
        return (Route::of([Method::Copy]), Vec::new());
    }
    let has_lanes = !is_beyond_lanes(&spec.policy);
    // A conversion takes fewer instructions than a lookup, except on AVX-512, where four vectors hold all 256 entries.
    let is_byte = matches!((src, spec.dst), (DType::I8 | DType::U8, DType::F32)) && !matches!(level, Level::Avx512(_));
    let is_table = fits_table8(src) && !(is_byte && has_lanes);
    if is_table && let Some(stage) = table8(spec, level) {
        return (Route::of([Method::Table8]), vec![stage]);
    }
    if !is_table
        && has_lanes
        && let Some(ops) = (Planner { spec }).ops()
    {
        let (route, stages) = stages_of(&ops, level);
        return if is_instruction(&route) { (route, stages) } else { split(spec, level, route, stages) };
    }
    if spec.policy.refuses() {
        return (Route::of([Method::Definition]), vec![Box::new(Scalar(*spec))]);
    }
    if slot_bytes(src) == 2 && slot_bytes(spec.dst) <= 2 {
        return split(spec, level, Route::of([Method::Table16]), vec![table16(spec)]);
    }
    // Remaining conversions are two casts, one after the other. Neither cast refuses an element.
    let (legs, between): (_, Stages) = match (spec.legs(), around_scale(spec)) {
        (Some(legs), _) => (legs, Vec::new()),
        (None, Some((legs, factor))) => (legs, vec![Box::new(Multiply(factor))]),
        (None, None) => return (Route::of([Method::Definition]), vec![Box::new(Scalar(*spec))]),
    };
    let [(first, before), (second, after)] = legs.map(|leg| stages(&leg, level));
    let methods = first.methods().iter().chain(between.iter().map(|_| &Method::Lane)).chain(second.methods()).copied();
    (Route::of(methods.collect::<Vec<_>>()), before.into_iter().chain(between).chain(after).collect())
}

/// Splits a cast with a scale into a cast to f64, a factor, and a cast from f64. f64 holds sources of at most 32 bits
/// and their products exactly.
fn around_scale(spec: &CastSpec) -> Option<([CastSpec; 2], f64)> {
    let CastSpec { src, dst, policy, .. } = *spec;
    let exponent = i32::from(policy.scale_exponent);
    if exponent == 0 || exponent.abs() > 800 || src.code_bits() > 32 || src == dst {
        return None;
    }
    let subnormals = Subnormals::new(policy.subnormals.flushes_source(), false);
    let widening = CastSpec { dst: DType::F64, policy: CastPolicy { subnormals, ..CastPolicy::IEEE }, ..*spec };
    let rest = CastSpec { src: DType::F64, policy: CastPolicy { scale_exponent: 0, ..policy }, ..*spec };
    Some(([widening, rest], 2f64.powi(exponent)))
}

fn is_beyond_lanes(policy: &CastPolicy) -> bool {
    policy.relu
        || policy.via.is_some()
        || policy.scale_exponent != 0
        || matches!(policy.int_overflow, IntOverflow::Indefinite | IntOverflow::SaturateToF32)
        || matches!(policy.nan_to_int, NanToInt::Indefinite | NanToInt::TopBit)
}

/// One stage if a kernel or a lane computes all operations together, else one stage per operation.
fn stages_of(ops: &[Op], level: Level) -> (Route, Stages) {
    if let Some(kernel) = level.kernels().operations(ops) {
        return (Route::of([Method::of_kernel(ops)]), vec![kernel]);
    }
    if let [load, encode] = ops
        && let Some(stage) = lane::of_two(load, encode, level)
    {
        return (Route::of([Method::Lane]), vec![stage]);
    }
    let one = |op: &Op| match level.kernels().operations(std::slice::from_ref(op)) {
        Some(kernel) => (Method::of_kernel(std::slice::from_ref(op)), kernel),
        None => (Method::Lane, lane::stage_for(op, level)),
    };
    let (methods, stages): (Vec<Method>, Stages) = ops.iter().map(one).unzip();
    (Route::of(methods), stages)
}

/// Whether a route is one loop of conversion instructions, which is faster than tables.
fn is_instruction(route: &Route) -> bool {
    matches!(route.methods(), [Method::Instruction | Method::Narrow])
}

/// Replaces stages by one lookup stage, if the level and the types have one (`docs/kernels.md §2.4`).
fn split(spec: &CastSpec, level: Level, route: Route, stages: Stages) -> (Route, Stages) {
    if !level.kernels().has_split() || !Split16::fits(spec.src, spec.dst) {
        return (route, stages);
    }
    let split = Split16::new(spec.src, Pipeline::new(spec.src, spec.dst, level, stages), level);
    (route.split(), vec![Box::new(split)])
}

/// Whether bytes are copied. The policy decides, not equal types (`docs/kernels.md §2.2`).
fn is_copy(spec: &CastSpec) -> bool {
    let CastSpec { src, dst, policy, .. } = spec;
    if is_beyond_lanes(policy) {
        return false;
    }
    if src != dst || matches!(src, DType::Bool | DType::I1 | DType::Tf32) {
        return src == dst && !src.is_numeric(); // their storage has bits that a copy would not normalize
    }
    match src.kind() {
        Kind::Float(f) => {
            let keeps_inf = f.inf_code().is_none() || policy.inf == Overflow::Nonfinite;
            let keeps_nan = f.nan_code().is_none() || policy.nan == NanRule::Keep;
            keeps_inf && keeps_nan && policy.subnormals == Subnormals::Keep
        }
        _ => true,
    }
}

/// Exponent of the smallest value of a destination from which f64 values below f32's normal range may be reduced
/// (`docs/kernels.md §4.12`).
const REDUCED_FROM: i32 = -125;

/// Whether wide integers may first be clamped to ±2^24 (`docs/kernels.md §4.13`): a clamped integer overflows if the
/// integer overflows.
fn overflows_below_2_24(dst: &FloatFormat) -> bool {
    let (sig, exp) = dst.overflow_threshold();
    exp + 64 - sig.leading_zeros() as i32 <= 24 && dst.has_zero
}

type Ops = Vec<Op>;

struct Planner<'a> {
    spec: &'a CastSpec,
}

impl Planner<'_> {
    fn ops(&self) -> Option<Ops> {
        let CastSpec { src, dst, policy, .. } = self.spec;
        if policy.subnormals != Subnormals::Keep || policy.nan == NanRule::Error {
            return None;
        }
        // In the intermediate, values beyond f32 become f32's largest value, which does not overflow a destination with
        // the same range.
        if policy.overflow == Overflow::NonfiniteAlways && *src == DType::F64 {
            return None;
        }
        // Only E8M0's lane tests the range of the source.
        let zeroless = matches!(dst.kind(), Kind::Float(f) if !f.has_zero);
        if policy.range == RangeTest::Source && dst.is_float() && !zeroless {
            return None;
        }
        match dst.kind() {
            Kind::Bool => Some(vec![self.to_bool()?]),
            Kind::Int(f) => match src.kind() {
                Kind::Int(_) => Some(vec![self.int_to_int(f)?]),
                _ => self.float_to_int(&f),
            },
            Kind::Float(f) if f == F64 => self.to_f64(),
            Kind::Float(f) if f == F32 => self.to_f32(),
            // The identity keeps NaN bits; encoders do not.
            Kind::Float(f) if src == dst && policy.nan == NanRule::Keep => Some(vec![self.tf32_identity(&f)?]),
            Kind::Float(f) if !f.has_zero => self.to_e8m0(&f),
            Kind::Float(f) => {
                let mut ops = self.to_intermediate(&f)?;
                ops.push(self.encode(&f)?);
                Some(ops)
            }
            Kind::Fixed(_) | Kind::Book(_) | Kind::Complex(_) | Kind::String => None,
        }
    }

    fn int(&self, f: IntFormat) -> Int {
        Int { bytes: slot_bytes(self.spec.src), signed: f.signed }
    }

    /// Operations that convert the source to f32, exactly or rounded to odd. Empty if the source is f32.
    /// `docs/kernels.md §2.6`.
    fn to_intermediate(&self, dst: &FloatFormat) -> Option<Ops> {
        const { assert!(F32.is_safe_odd_intermediate_for(&truecast_core::format::BF16), "docs/kernels.md §3.3") };
        match self.spec.src.kind() {
            Kind::Float(f) if f == F32 => Some(Vec::new()),
            Kind::Float(f) if f.embeds_in(&F32) => Some(vec![self.embed(NanBits::INTERMEDIATE)?]),
            _ if !F32.is_safe_odd_intermediate_for(dst) => None,
            Kind::Float(f) if f == F64 => Some(vec![Op::F64ToF32Odd { reduced: dst.quantum() >= REDUCED_FROM }]),
            Kind::Int(f) if f.bits <= 24 => Some(vec![Op::IntToF32(self.int(f))]),
            Kind::Int(f) if overflows_below_2_24(dst) => Some(vec![Op::IntToF32Clamped(self.int(f))]),
            // Rounding 32-bit integers to odd keeps at least 17 bits: enough for a precision of at most 15.
            Kind::Int(f) if f.bits == 32 && dst.precision() > 15 => None,
            Kind::Int(f) => Some(vec![Op::IntToF32Odd(self.int(f))]),
            _ => None,
        }
    }

    /// Operation from f16, bf16 or tf32 to f32, which is exact; `None` for other sources.
    fn embed(&self, nan: NanBits) -> Option<Op> {
        match self.spec.src {
            DType::F16 => Some(Op::F16ToF32(nan)),
            DType::Bf16 => Some(Op::Bf16ToF32(nan)),
            DType::Tf32 => Some(Op::F32ToF32(F32ToF32 { nan, mask: !0x1fff, inf: [0x7f80_0000, 0xff80_0000] })),
            _ => None,
        }
    }

    /// Operation from tf32 to tf32: clears storage bits outside the code.
    fn tf32_identity(&self, f: &FloatFormat) -> Option<Op> {
        let CastSpec { dst, policy, .. } = self.spec;
        let inf = SpecialCodes::new(*dst, f, policy)?.inf.map(|c| dst.storage_of_code(c) as u32);
        (*dst == DType::Tf32).then_some(Op::F32ToF32(F32ToF32 { nan: NanBits::INTERMEDIATE, mask: !0x1fff, inf }))
    }

    /// Returns the operations to E8M0: from f32 where clamping suffices, elsewhere from bf16, rounded to odd.
    fn to_e8m0(&self, f: &FloatFormat) -> Option<Ops> {
        let CastSpec { src, dst, policy, .. } = *self.spec;
        let numbers = EncodeE8m0::new(dst, f, &policy)?;
        if src == DType::Bf16 {
            return Some(vec![Op::E8m0(numbers)]);
        }
        let mut ops = self.to_intermediate(f)?;
        match ClampToE8m0::new(&numbers) {
            Some(clamp) => ops.push(Op::ClampToE8m0(clamp)),
            None => ops.extend([Op::F32ToBf16Odd, Op::E8m0(numbers)]),
        }
        Some(ops)
    }

    fn encode(&self, f: &FloatFormat) -> Option<Op> {
        let CastSpec { dst, policy, .. } = self.spec;
        let (encoder, bytes) = (Encoder::new(*dst, f, policy)?, slot_bytes(*dst));
        let nearest = encoder
            .nearest()
            .filter(|numbers| policy.to_float == Rounding::NearestEven && has_nearest(numbers.shape, bytes));
        Some(match nearest {
            Some(numbers) => Op::Nearest { numbers, bytes },
            None => Op::Encode { numbers: encoder, bytes },
        })
    }

    fn to_f32(&self) -> Option<Ops> {
        let CastSpec { src, dst, policy, .. } = self.spec;
        let special = SpecialCodes::new(*dst, &F32, policy)?;
        let nan = if policy.nan == NanRule::Keep { NanBits::QUIET } else { NanBits::CANONICAL };
        let nearest = policy.to_float == Rounding::NearestEven;
        let from_f64 = || {
            let lane = F64ToF32::new(&special, policy.to_float);
            if nearest { Op::F64ToF32Nearest(lane) } else { Op::F64ToF32(lane) }
        };
        match src.kind() {
            Kind::Float(f) if f == F64 => Some(vec![from_f64()]),
            Kind::Float(f) if f.embeds_in(&F32) => {
                // The identity keeps NaN bits, also if Inf changes.
                let nan = if src == dst && policy.nan == NanRule::Keep { NanBits::INTERMEDIATE } else { nan };
                let finish = Op::F32ToF32(F32ToF32 { nan, mask: !0, inf: special.inf.map(|c| c as u32) });
                match (self.embed(nan), policy.inf) {
                    (Some(load), Overflow::Nonfinite) => Some(vec![load]),
                    (Some(load), _) => Some(vec![load, finish]),
                    (None, _) => Some(vec![finish]),
                }
            }
            Kind::Int(f) if nearest || f.bits <= 24 => Some(vec![Op::IntToF32(self.int(f))]),
            // Rounds to odd into f64, a safe intermediate for f32, then once into f32.
            Kind::Int(f) if F64.is_safe_odd_intermediate_for(&F32) => {
                Some(vec![Op::IntToF64 { from: self.int(f), odd: true }, from_f64()])
            }
            _ => None,
        }
    }

    fn to_f64(&self) -> Option<Ops> {
        let CastSpec { src, dst, policy, .. } = self.spec;
        let special = SpecialCodes::new(*dst, &F64, policy)?;
        match src.kind() {
            Kind::Float(f) if f.embeds_in(&F32) => {
                let widen = Op::F32ToF64(F32ToF64::new(&special));
                Some(if f == F32 { vec![widen] } else { vec![self.embed(NanBits::INTERMEDIATE)?, widen] })
            }
            Kind::Int(f) if f.bits <= 53 || policy.to_float == Rounding::NearestEven => {
                Some(vec![Op::IntToF64 { from: self.int(f), odd: false }])
            }
            _ => None,
        }
    }

    fn float_to_int(&self, f: &IntFormat) -> Option<Ops> {
        let CastSpec { src, dst, policy, .. } = self.spec;
        let (numbers, bytes) = (ToInt::new(*dst, f, policy)?, slot_bytes(*dst));
        let convert = Op::F32ToInt { numbers, bytes };
        match src {
            DType::F64 => Some(vec![Op::F64ToInt { numbers, bytes }]),
            DType::F32 => Some(vec![convert]),
            _ => Some(vec![self.embed(NanBits::INTERMEDIATE)?, convert]),
        }
    }

    fn int_to_int(&self, dst: IntFormat) -> Option<Op> {
        let (overflow, Kind::Int(src)) = (self.spec.policy.int_overflow, self.spec.src.kind()) else { return None };
        let range = IntRange::new(src.signed, dst, overflow);
        let op = Op::IntToInt { from: self.int(src), range, bytes: slot_bytes(self.spec.dst) };
        (overflow != IntOverflow::Error).then_some(op)
    }

    /// Operation to bool (`docs/kernels.md §4.18`), which tests the value's bits as an integer.
    fn to_bool(&self) -> Option<Op> {
        let src = self.spec.src;
        let storage_mask = src.storage_of_code(u64::MAX >> (64 - src.code_bits()));
        let mask = match src.kind() {
            Kind::Float(f) if f.has_negative_zero() => storage_mask & !src.storage_of_code(f.sign_bit()),
            _ => storage_mask,
        };
        Some(Op::NonZero { bytes: slot_bytes(src), mask })
    }
}

/// Pipeline from elements to values of an intermediate type, for measuring in the default floating-point environment.
/// Values are exact, except that 64-bit integers become the nearest f64 (see [`residual`]). NaN bits are not kept.
pub(crate) fn values(src: DType, intermediate: Intermediate, level: Level) -> Pipeline {
    let spec = CastSpec { dst: intermediate.dtype(), ..CastSpec::copy(src) };
    let to_f32 = match src {
        DType::F32 => Some(Vec::new()),
        _ => Planner { spec: &spec }.embed(NanBits::INTERMEDIATE).map(|load| vec![load]),
    };
    let stages = match (to_f32, intermediate) {
        (Some(ops), Intermediate::F32) => stages_of(&ops, level).1,
        (Some(mut ops), Intermediate::F64) => {
            ops.push(Op::F32Value);
            stages_of(&ops, level).1
        }
        (None, _) => stages(&spec, level).1,
    };
    Pipeline::new(src, intermediate.dtype(), level, stages)
}

/// Pipeline that computes the difference of 64-bit integers from [`values`]. `None` for other types.
pub(crate) fn residual(src: DType, level: Level) -> Option<Pipeline> {
    let signed = match src {
        DType::I64 => true,
        DType::U64 => false,
        _ => return None,
    };
    Some(Pipeline::new(src, DType::F64, level, stages_of(&[Op::IntResidual { signed }], level).1))
}
