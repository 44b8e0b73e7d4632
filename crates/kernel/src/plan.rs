//! Which route a conversion takes. Reference: `docs/kernels.md §2`, and §3 for why a hub never rounds twice.
//!
//! Routes are tried in a fixed order and are additive: a format or a policy adds data to a row, not a row per pair. A
//! lane's constructor answers `None` where a policy asks for something that it does not compute; the plan then goes on
//! to the next route, and ends at the definition itself.

use crate::lane::Lane;
use crate::lane::decode::*;
use crate::lane::encode::*;
use crate::lane::int::*;
use crate::lane::to_int::*;
use crate::lane::wide::*;
use crate::level::Level;
use crate::slot::Slot;
use crate::stage::{LaneStage, Pipeline, Scalar, Stage, Streaming, slot_bytes};
use crate::table::{fits_table8, packed8, table8, table16};
use std::marker::PhantomData as Of;
use truecast_core::exact::{decode, encode};
use truecast_core::format::{F32, F64};
use truecast_core::policy::*;
use truecast_core::{CastSpec, DType, Exact, FloatFormat, IntFormat, Kind, Rounding};

/// How a pair is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// Bytes as they are.
    Copy,
    /// 256 results, filled by the definition.
    Table8,
    /// 65,536 results, filled by the definition.
    Table16,
    /// One lane from the source to a narrow float.
    Fused,
    /// Exactly or rounded to odd into f32, then encoded.
    Hub32,
    /// Lanes to f32, f64, an integer or bool.
    Direct,
    /// The definition per element.
    Scalar,
}

/// Why a conversion cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Text and complex numbers are not converted by value.
    #[error("{src} cannot be converted to {dst} by value")]
    Unsupported {
        /// Source type.
        src: DType,
        /// Destination type.
        dst: DType,
    },
}

type Stages = Vec<Box<dyn Stage>>;

const SUBNORMAL: u8 = shape::SUBNORMALS | shape::NEGATIVE_ZERO;
const SUBNORMAL_SPECIAL: u8 = SUBNORMAL | shape::SPECIAL;
const SUBNORMAL_PAYLOAD: u8 = SUBNORMAL_SPECIAL | shape::PAYLOAD;
const UNSIGNED_ZERO: u8 = shape::SUBNORMALS;
const UNSIGNED_ZERO_SPECIAL: u8 = UNSIGNED_ZERO | shape::SPECIAL;
const SAME_RANGE_SPECIAL: u8 = shape::NEGATIVE_ZERO | shape::SPECIAL;
const SAME_RANGE_PAYLOAD: u8 = SAME_RANGE_SPECIAL | shape::PAYLOAD;
const UPPER_BITS: u8 = SAME_RANGE_SPECIAL | shape::UPPER_BITS;
const UPPER_BITS_PAYLOAD: u8 = SAME_RANGE_PAYLOAD | shape::UPPER_BITS;

pub(crate) fn plan(spec: &CastSpec, level: Level) -> Result<(Route, Pipeline), PlanError> {
    let CastSpec { src, dst, .. } = *spec;
    if src == DType::String || dst == DType::String || (src != dst && !(src.is_numeric() && dst.is_numeric())) {
        return Err(PlanError::Unsupported { src, dst });
    }
    let (route, stages) = stages(spec, level);
    let pipeline = Pipeline::new(src, dst, level, stages);
    let bytes = if route == Route::Table8 { packed8(spec, level) } else { None };
    Ok((route, pipeline.with_bytes(bytes)))
}

fn stages(spec: &CastSpec, level: Level) -> (Route, Stages) {
    let src = spec.src;
    if is_copy(spec) {
        return (Route::Copy, Vec::new());
    }
    if let Some(stage) = (Planner { spec, level }).bytes_to_f32() {
        return (Route::Direct, vec![stage]);
    }
    if fits_table8(src)
        && let Some(stage) = table8(spec, level)
    {
        return (Route::Table8, vec![stage]);
    }
    let lanes = if fits_table8(src) { None } else { Planner { spec, level }.lanes() };
    if let Some((route, stages)) = lanes {
        return (route, if is_one_loop(route, &stages) { stages } else { split(spec, level, stages) });
    }
    if slot_bytes(src) == 2 && slot_bytes(spec.dst) <= 2 && !refuses(&spec.policy) {
        return (Route::Table16, split(spec, level, vec![table16(spec)]));
    }
    (Route::Scalar, vec![Box::new(Scalar(*spec))])
}

/// Conversion instructions in one loop, which take less than tables.
fn is_one_loop(route: Route, stages: &Stages) -> bool {
    matches!(&stages[..], [stage] if route == Route::Direct && stage.streaming() == Streaming::Itself)
}

/// Stages from 16-bit elements to bytes, or what looks their results up (`docs/kernels.md §2.4`).
#[cfg(target_arch = "x86_64")]
fn split(spec: &CastSpec, level: Level, stages: Stages) -> Stages {
    use crate::split::Split16;
    match level {
        Level::Avx512(token) if Split16::fits(spec.src, spec.dst) => {
            vec![Box::new(Split16::new(Pipeline::new(spec.src, spec.dst, level, stages), token))]
        }
        _ => stages,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn split(_: &CastSpec, _: Level, stages: Stages) -> Stages {
    stages
}

/// Asked of the policy, not assumed from equal types (`docs/kernels.md §2.2`).
fn is_copy(spec: &CastSpec) -> bool {
    let CastSpec { src, dst, policy, .. } = spec;
    if src != dst || matches!(src, DType::Bool | DType::I1 | DType::Tf32) {
        return src == dst && !src.is_numeric(); // their storage has bits that a copy would not normalise
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

/// Whether some value is refused. Then the definition finds the first such element.
fn refuses(policy: &CastPolicy) -> bool {
    policy.overflow == Overflow::Error
        || policy.inf == Overflow::Error
        || policy.nan == NanRule::Error
        || policy.int_overflow == IntOverflow::Error
        || policy.nan_to_int == NanToInt::Error
        || policy.negative == Unrepresentable::Error
        || policy.vanishing == Unrepresentable::Error
}

/// f64 values below f32's normal range may be reduced for destinations whose smallest value is at least 2 to this power
/// (`docs/kernels.md §4.12`).
const REDUCED_FROM: i32 = -125;

/// Whether wide integers may be clamped to ±2^24 on their way (`docs/kernels.md §4.13`): every clamped magnitude lies
/// above the threshold, as the value itself did.
fn overflows_below_2_24(dst: &FloatFormat) -> bool {
    let (sig, exp) = dst.overflow_threshold();
    exp + 64 - sig.leading_zeros() as i32 <= 24 && dst.has_zero
}

/// Routes made of lanes, for sources wider than a byte.
struct Planner<'a> {
    spec: &'a CastSpec,
    level: Level,
}

impl Planner<'_> {
    fn stage<L: Lane>(&self, lane: L) -> Box<dyn Stage> {
        Box::new(LaneStage { lane, level: self.level })
    }

    /// i8 and u8 to f32, where a conversion takes fewer instructions than a table: 256 entries in four vectors take less.
    fn bytes_to_f32(&self) -> Option<Box<dyn Stage>> {
        match (self.spec.src, self.spec.dst, self.level) {
            (_, _, Level::Avx512(_)) => None,
            (DType::I8, DType::F32, _) => Some(self.stage(IntToF32::<u8, true>(Of))),
            (DType::U8, DType::F32, _) => Some(self.stage(IntToF32::<u8, false>(Of))),
            _ => None,
        }
    }

    fn lanes(&self) -> Option<(Route, Stages)> {
        let CastSpec { src, dst, policy, .. } = self.spec;
        if policy.subnormals != Subnormals::Keep || policy.nan == NanRule::Error {
            return None;
        }
        // On the way through f32 values beyond it are its largest, which a destination of the same range takes for its own.
        if policy.overflow == Overflow::NonfiniteAlways && *src == DType::F64 {
            return None;
        }
        // Only E8M0's lane tests the range of the source.
        let zeroless = matches!(dst.kind(), Kind::Float(f) if !f.has_zero);
        if policy.range == RangeTest::Source && dst.is_float() && !zeroless {
            return None;
        }
        match dst.kind() {
            Kind::Bool => Some((Route::Direct, vec![self.to_bool()?])),
            Kind::Int(f) => match src.kind() {
                Kind::Int(s) => Some((Route::Direct, vec![self.int_to_int(s, f)?])),
                _ => Some((Route::Direct, self.float_to_int(&f)?)),
            },
            Kind::Float(f) if f == F64 => Some((Route::Direct, self.to_f64()?)),
            Kind::Float(f) if f == F32 => Some((Route::Direct, self.to_f32()?)),
            // The identity keeps NaN bits, which encoders do not.
            Kind::Float(f) if src == dst && policy.nan == NanRule::Keep => {
                Some((Route::Direct, vec![self.tf32_identity(&f)?]))
            }
            Kind::Float(f) => {
                if let Some(stage) = self.fused(&f) {
                    return Some((Route::Fused, vec![stage]));
                }
                let mut stages = self.to_hub(&f)?;
                let route = if stages.is_empty() { Route::Fused } else { Route::Hub32 };
                stages.push(self.encode(&f)?);
                Some((route, stages))
            }
            Kind::Fixed(_) | Kind::Book(_) | Kind::Complex(_) | Kind::String => None,
        }
    }

    // ---- the f32 hub ----

    /// The source in f32, exactly or rounded to odd; no stage if it is f32. `docs/kernels.md §2.6`.
    fn to_hub(&self, dst: &FloatFormat) -> Option<Stages> {
        const { assert!(F32.is_safe_odd_intermediate_for(&truecast_core::format::BF16), "docs/kernels.md §3.3") };
        match self.spec.src.kind() {
            Kind::Float(f) if f == F32 => Some(Vec::new()),
            Kind::Float(f) if f.embeds_in(&F32) => Some(vec![self.embed(NanBits::HUB)?]),
            _ if !F32.is_safe_odd_intermediate_for(dst) => None,
            Kind::Float(f) if f == F64 && dst.quantum() >= REDUCED_FROM => Some(vec![self.stage(F64ToF32Odd::<true>)]),
            Kind::Float(f) if f == F64 => Some(vec![self.stage(F64ToF32Odd::<false>)]),
            Kind::Int(f) if f.bits <= 24 => Some(vec![self.int_to_f32(f)?]),
            Kind::Int(f) => {
                let clamps = overflows_below_2_24(dst);
                Some(vec![match (clamps, f.signed, slot_bytes(self.spec.src)) {
                    (true, true, 4) => self.stage(ClampToF32::<u32, true>(Of)),
                    (true, false, 4) => self.stage(ClampToF32::<u32, false>(Of)),
                    (true, true, _) => self.stage(ClampToF32::<u64, true>(Of)),
                    (true, false, _) => self.stage(ClampToF32::<u64, false>(Of)),
                    (false, true, 4) if dst.precision() <= 15 => self.stage(Int32ToF32Odd::<true>),
                    (false, false, 4) if dst.precision() <= 15 => self.stage(Int32ToF32Odd::<false>),
                    (false, _, 4) => return None,
                    (false, true, _) => self.stage(Int64ToF32Odd::<true>),
                    (false, false, _) => self.stage(Int64ToF32Odd::<false>),
                }])
            }
            _ => None,
        }
    }

    /// Loader and encoder in one loop, where there is one (`docs/kernels.md §2.5`).
    #[cfg(target_arch = "x86_64")]
    fn fused(&self, dst: &FloatFormat) -> Option<Box<dyn Stage>> {
        use crate::x86::e8m0;
        use crate::x86::fused::{source, stage};
        let CastSpec { src, dst: to, policy, .. } = self.spec;
        if !F32.is_safe_odd_intermediate_for(dst) || dst.has_zero && policy.to_float != Rounding::NearestEven {
            return None;
        }
        let clamps = overflows_below_2_24(dst);
        let source = match (src, clamps) {
            (DType::F32, _) => source::F32,
            (DType::Bf16, _) => source::BF16,
            (DType::F16, _) => source::F16,
            (DType::I16, _) => source::I16,
            (DType::U16, _) => source::U16,
            (DType::F64, _) if dst.quantum() >= REDUCED_FROM => source::F64_REDUCED,
            (DType::F64, _) => source::F64,
            (DType::I32, true) => source::I32_CLAMPED,
            (DType::U32, true) => source::U32_CLAMPED,
            (DType::I32, false) => source::I32_ODD,
            (DType::U32, false) => source::U32_ODD,
            (DType::I64, true) => source::I64_CLAMPED,
            (DType::U64, true) => source::U64_CLAMPED,
            (DType::I64, false) => source::I64_ODD,
            (DType::U64, false) => source::U64_ODD,
            _ => return None,
        };
        if !dst.has_zero {
            let Level::Avx512(token) = self.level else { return None };
            return e8m0::stage(token, source, EncodeE8m0::new(*to, dst, policy)?.cut()?);
        }
        let encoder = Encoder::new(*to, dst, policy)?;
        let f16 = *to == DType::F16 && encoder.is_ieee_f16();
        let (numbers, bytes) = (encoder.nearest()?, slot_bytes(*to));
        match self.level {
            Level::Baseline => None,
            Level::Avx2(token) => stage(token, source, numbers, bytes, f16),
            Level::Avx512(token) => stage(token, source, numbers, bytes, f16),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn fused(&self, _dst: &FloatFormat) -> Option<Box<dyn Stage>> {
        None
    }

    /// Sources of 16 bits or more whose every value is an f32.
    fn embed(&self, nan: NanBits) -> Option<Box<dyn Stage>> {
        let stage = self.by_instruction(self.spec.src, Hub::F32, nan.keeps_payload());
        match self.spec.src {
            DType::F16 => Some(stage.unwrap_or_else(|| self.stage(F16ToF32(nan)))),
            DType::Bf16 => Some(stage.unwrap_or_else(|| self.stage(Bf16ToF32(nan)))),
            DType::Tf32 => Some(self.stage(F32ToF32 { nan, mask: !0x1fff, inf: [0x7f80_0000, 0xff80_0000] })),
            _ => None,
        }
    }

    /// tf32 to tf32 clears the bits of its storage that are not part of its code.
    fn tf32_identity(&self, f: &FloatFormat) -> Option<Box<dyn Stage>> {
        let CastSpec { dst, policy, .. } = self.spec;
        let inf = SpecialCodes::new(*dst, f, policy)?.inf.map(|c| dst.storage_of_code(c) as u32);
        (*dst == DType::Tf32).then(|| self.stage(F32ToF32 { nan: NanBits::HUB, mask: !0x1fff, inf }))
    }

    fn int_to_f32(&self, src: IntFormat) -> Option<Box<dyn Stage>> {
        if let Some(stage) = self.by_instruction(self.spec.src, Hub::F32, true) {
            return Some(stage);
        }
        Some(match (slot_bytes(self.spec.src), src.signed) {
            (2, true) => self.stage(IntToF32::<u16, true>(Of)),
            (2, false) => self.stage(IntToF32::<u16, false>(Of)),
            (4, true) => self.stage(IntToF32::<u32, true>(Of)),
            (4, false) => self.stage(IntToF32::<u32, false>(Of)),
            (8, true) => self.stage(IntToF32::<u64, true>(Of)),
            (8, false) => self.stage(IntToF32::<u64, false>(Of)),
            _ => return None,
        })
    }

    fn encode(&self, f: &FloatFormat) -> Option<Box<dyn Stage>> {
        let CastSpec { dst, policy, .. } = self.spec;
        if !f.has_zero {
            let encoder = EncodeE8m0::new(*dst, f, policy)?;
            return Some(encoder.cut().map_or_else(|| self.stage(encoder), |lane| self.stage(lane)));
        }
        let encoder = Encoder::new(*dst, f, policy)?;
        let bytes = slot_bytes(*dst);
        let nearest = encoder.nearest().filter(|_| policy.to_float == Rounding::NearestEven);
        let by_nearest = nearest.and_then(|numbers| match (bytes, numbers.shape) {
            (2, SUBNORMAL_PAYLOAD) if encoder.is_ieee_f16() => {
                Some(self.stage(EncodeF16(EncodeNearest::<_, SUBNORMAL_PAYLOAD>(numbers, Of))))
            }
            (2, SUBNORMAL_SPECIAL) if encoder.is_ieee_f16() => {
                Some(self.stage(EncodeF16(EncodeNearest::<_, SUBNORMAL_SPECIAL>(numbers, Of))))
            }
            (1, _) => self.nearest_in::<u8>(numbers),
            (2, _) => self.nearest_in::<u16>(numbers),
            _ => self.nearest_in::<u32>(numbers),
        });
        Some(by_nearest.unwrap_or_else(|| match bytes {
            1 if encoder.replaces_negative() => self.stage(EncodeAny::<u8, true>(encoder, Of)),
            1 => self.stage(EncodeAny::<u8, false>(encoder, Of)),
            2 => self.stage(EncodeAny::<u16, false>(encoder, Of)),
            _ => self.stage(EncodeAny::<u32, false>(encoder, Of)),
        }))
    }

    /// The nearest-even encoder of a shape, for the shapes that types and policies have.
    fn nearest_in<D: Slot>(&self, numbers: Nearest) -> Option<Box<dyn Stage>> {
        Some(match numbers.shape {
            SUBNORMAL => self.stage(EncodeNearest::<D, SUBNORMAL>(numbers, Of)),
            SUBNORMAL_SPECIAL => self.stage(EncodeNearest::<D, SUBNORMAL_SPECIAL>(numbers, Of)),
            SUBNORMAL_PAYLOAD => self.stage(EncodeNearest::<D, SUBNORMAL_PAYLOAD>(numbers, Of)),
            UNSIGNED_ZERO => self.stage(EncodeNearest::<D, UNSIGNED_ZERO>(numbers, Of)),
            UNSIGNED_ZERO_SPECIAL => self.stage(EncodeNearest::<D, UNSIGNED_ZERO_SPECIAL>(numbers, Of)),
            UPPER_BITS => self.stage(EncodeNearest::<D, UPPER_BITS>(numbers, Of)),
            UPPER_BITS_PAYLOAD => self.stage(EncodeNearest::<D, UPPER_BITS_PAYLOAD>(numbers, Of)),
            SAME_RANGE_SPECIAL => self.stage(EncodeNearest::<D, SAME_RANGE_SPECIAL>(numbers, Of)),
            SAME_RANGE_PAYLOAD => self.stage(EncodeNearest::<D, SAME_RANGE_PAYLOAD>(numbers, Of)),
            _ => return None,
        })
    }

    // ---- f32 and f64 as destinations ----

    fn to_f32(&self) -> Option<Stages> {
        let CastSpec { src, dst, policy, .. } = self.spec;
        let special = SpecialCodes::new(*dst, &F32, policy)?;
        let nan = if policy.nan == NanRule::Keep { NanBits::QUIET } else { NanBits::CANONICAL };
        let nearest = policy.to_float == Rounding::NearestEven;
        let from_f64 = || {
            let lane = F64ToF32::new(&special, policy.to_float);
            let stage = || self.by_instruction(DType::F64, Hub::F32, policy.nan == NanRule::Keep);
            match nearest {
                true if lane.overflows_to_inf() => stage().unwrap_or_else(|| self.stage(F64ToF32Nearest(lane))),
                true => self.stage(F64ToF32Nearest(lane)),
                false => self.stage(lane),
            }
        };
        match src.kind() {
            Kind::Float(f) if f == F64 => Some(vec![from_f64()]),
            Kind::Float(f) if f.embeds_in(&F32) => {
                // The identity keeps NaN bits even where it changes Inf.
                let nan = if src == dst && policy.nan == NanRule::Keep { NanBits::HUB } else { nan };
                let inf = special.inf.map(|c| c as u32);
                let finish = || self.stage(F32ToF32 { nan, mask: !0, inf });
                match (self.embed(nan), policy.inf) {
                    (Some(load), Overflow::Nonfinite) => Some(vec![load]),
                    (Some(load), _) => Some(vec![load, finish()]),
                    (None, _) => Some(vec![finish()]),
                }
            }
            Kind::Int(f) if nearest || f.bits <= 24 => Some(vec![self.int_to_f32(f)?]),
            // Rounded to odd into f64, which is an odd hub for f32, then once into f32.
            Kind::Int(f) if F64.is_safe_odd_intermediate_for(&F32) => {
                Some(vec![self.int_to_f64::<true>(f)?, from_f64()])
            }
            _ => None,
        }
    }

    fn to_f64(&self) -> Option<Stages> {
        let CastSpec { src, dst, policy, .. } = self.spec;
        let special = SpecialCodes::new(*dst, &F64, policy)?;
        match src.kind() {
            Kind::Float(f) if f.embeds_in(&F32) => {
                let lane = F32ToF64::new(&special);
                let stage = || self.by_instruction(DType::F32, Hub::F64, policy.nan == NanRule::Keep);
                let widen = if lane.keeps_inf() { stage() } else { None }.unwrap_or_else(|| self.stage(lane));
                Some(if f == F32 { vec![widen] } else { vec![self.embed(NanBits::HUB)?, widen] })
            }
            Kind::Int(f) if f.bits <= 53 || policy.to_float == Rounding::NearestEven => {
                Some(vec![self.int_to_f64::<false>(f)?])
            }
            _ => None,
        }
    }

    fn int_to_f64<const ODD: bool>(&self, src: IntFormat) -> Option<Box<dyn Stage>> {
        if let (false, Some(stage)) = (ODD, self.by_instruction(self.spec.src, Hub::F64, true)) {
            return Some(stage);
        }
        Some(match (slot_bytes(self.spec.src), src.signed) {
            (2, true) => self.stage(IntToF64::<u16, true, ODD>(Of)),
            (2, false) => self.stage(IntToF64::<u16, false, ODD>(Of)),
            (4, true) => self.stage(IntToF64::<u32, true, ODD>(Of)),
            (4, false) => self.stage(IntToF64::<u32, false, ODD>(Of)),
            (8, true) => self.stage(IntToF64::<u64, true, ODD>(Of)),
            (8, false) => self.stage(IntToF64::<u64, false, ODD>(Of)),
            _ => return None,
        })
    }

    /// By the conversion instructions to f32 or f64, nearest even, Inf to Inf, where they are used.
    #[cfg(target_arch = "x86_64")]
    fn by_instruction(&self, from: DType, to: Hub, payload: bool) -> Option<Box<dyn Stage>> {
        use crate::x86::convert::{to_f32, to_f64};
        use crate::x86::fused::source;
        let Level::Avx512(token) = self.level else { return None };
        let source = match (from, from.kind()) {
            (DType::F16, _) => source::F16,
            (DType::Bf16, _) => source::BF16,
            (DType::F32, _) => source::F32,
            (DType::F64, _) => source::F64,
            (_, Kind::Int(f)) => match (slot_bytes(from), f.signed) {
                (4, true) => source::I32,
                (4, false) => source::U32,
                (8, true) => source::I64,
                (8, false) => source::U64,
                _ => return None,
            },
            _ => return None,
        };
        match to {
            Hub::F32 => to_f32(token, source, payload),
            Hub::F64 => to_f64(token, source, payload),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn by_instruction(&self, _from: DType, _to: Hub, _payload: bool) -> Option<Box<dyn Stage>> {
        None
    }

    // ---- integers and bool as destinations ----

    fn float_to_int(&self, f: &IntFormat) -> Option<Stages> {
        let CastSpec { src, dst, policy, .. } = self.spec;
        let numbers = ToInt::new(*dst, f, policy)?;
        let bytes = slot_bytes(*dst);
        if let Some(stage) = self.truncated(&numbers) {
            return Some(vec![stage]);
        }
        if *src == DType::F64 {
            return Some(vec![match bytes {
                1 => self.stage(F64ToInt::<u8>(numbers, Of)),
                2 => self.stage(F64ToInt::<u16>(numbers, Of)),
                4 => self.stage(F64ToInt::<u32>(numbers, Of)),
                _ => self.stage(F64ToInt::<u64>(numbers, Of)),
            }]);
        }
        let mut stages = if *src == DType::F32 { Vec::new() } else { vec![self.embed(NanBits::HUB)?] };
        stages.push(match bytes {
            1 if numbers.truncates_and_wraps() => self.stage(F32ToIntTrunc::<u8>(numbers, Of)),
            2 if numbers.truncates_and_wraps() => self.stage(F32ToIntTrunc::<u16>(numbers, Of)),
            4 if numbers.truncates_and_wraps() => self.stage(F32ToIntTrunc::<u32>(numbers, Of)),
            8 if numbers.truncates_and_wraps() => self.stage(F32ToIntTrunc::<u64>(numbers, Of)),
            1 => self.stage(F32ToInt32::<u8>(numbers, Of)),
            2 => self.stage(F32ToInt32::<u16>(numbers, Of)),
            4 => self.stage(F32ToInt32::<u32>(numbers, Of)),
            _ => self.stage(F32ToInt64(numbers)),
        });
        Some(stages)
    }

    /// By the instructions that truncate, where they are used.
    #[cfg(target_arch = "x86_64")]
    fn truncated(&self, numbers: &ToInt) -> Option<Box<dyn Stage>> {
        use crate::x86::fused::source;
        use crate::x86::integer::{Truncate, stage};
        let Level::Avx512(token) = self.level else { return None };
        let source = match self.spec.src {
            DType::F32 => source::F32,
            DType::Bf16 => source::BF16,
            DType::F16 => source::F16,
            DType::F64 => source::F64,
            _ => return None,
        };
        let (nan, mask) = numbers.truncates_and_wraps().then(|| numbers.nan_and_mask())?;
        stage(token, source, Truncate { nan, mask }, slot_bytes(self.spec.dst))
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn truncated(&self, _numbers: &ToInt) -> Option<Box<dyn Stage>> {
        None
    }

    fn int_to_int(&self, src: IntFormat, dst: IntFormat) -> Option<Box<dyn Stage>> {
        if self.spec.policy.int_overflow == IntOverflow::Error {
            return None;
        }
        if let Some(stage) = self.narrowed(src, dst) {
            return Some(stage);
        }
        fn to<S: Slot, const SIGNED: bool>(planner: &Planner<'_>, dst: IntFormat) -> Box<dyn Stage> {
            let overflow = planner.spec.policy.int_overflow;
            match slot_bytes(planner.spec.dst) {
                1 => planner.stage(IntToInt::<S, u8, SIGNED>::new(dst, overflow)),
                2 => planner.stage(IntToInt::<S, u16, SIGNED>::new(dst, overflow)),
                4 => planner.stage(IntToInt::<S, u32, SIGNED>::new(dst, overflow)),
                _ => planner.stage(IntToInt::<S, u64, SIGNED>::new(dst, overflow)),
            }
        }
        Some(match (slot_bytes(self.spec.src), src.signed) {
            (2, true) => to::<u16, true>(self, dst),
            (2, false) => to::<u16, false>(self, dst),
            (4, true) => to::<u32, true>(self, dst),
            (4, false) => to::<u32, false>(self, dst),
            (8, true) => to::<u64, true>(self, dst),
            (8, false) => to::<u64, false>(self, dst),
            _ => return None,
        })
    }

    /// Integers to narrower ones, where that is one store for 64 elements.
    #[cfg(target_arch = "x86_64")]
    fn narrowed(&self, src: IntFormat, dst: IntFormat) -> Option<Box<dyn Stage>> {
        use crate::x86::narrow::{Narrow, stage};
        let Level::Avx512(token) = self.level else { return None };
        let widths = (slot_bytes(self.spec.src), slot_bytes(self.spec.dst));
        let saturates = self.spec.policy.int_overflow == IntOverflow::Saturate;
        let bounds = saturates.then(|| int_bounds(src.signed, dst));
        stage(token, src.signed, Narrow { bounds, mask: dst.mask() }, widths)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn narrowed(&self, _src: IntFormat, _dst: IntFormat) -> Option<Box<dyn Stage>> {
        None
    }

    /// `docs/kernels.md §4.18`: an integer test of the bits that make the value.
    fn to_bool(&self) -> Option<Box<dyn Stage>> {
        let src = self.spec.src;
        let storage_mask = src.storage_of_code(u64::MAX >> (64 - src.code_bits()));
        let mask = match src.kind() {
            Kind::Float(f) if f.has_negative_zero() => storage_mask & !src.storage_of_code(f.sign_bit()),
            _ => storage_mask,
        };
        #[cfg(target_arch = "x86_64")]
        if let Level::Avx512(token) = self.level
            && let Some(stage) = crate::x86::narrow::nonzero(token, mask, slot_bytes(src))
        {
            return Some(stage);
        }
        Some(match slot_bytes(src) {
            2 => self.stage(NonZero::<u16> { mask, src: Of }),
            4 => self.stage(NonZero::<u32> { mask, src: Of }),
            8 => self.stage(NonZero::<u64> { mask, src: Of }),
            _ => return None,
        })
    }
}

/// The type in which values are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hub {
    F32,
    F64,
}

impl Hub {
    pub fn dtype(self) -> DType {
        match self {
            Hub::F32 => DType::F32,
            Hub::F64 => DType::F64,
        }
    }

    pub fn bytes(self) -> usize {
        slot_bytes(self.dtype())
    }
}

/// The pipeline that reads a type as values of a hub that holds them exactly, for measuring; 64-bit integers become the
/// nearest f64, which [`residual`] completes. It may be used only in the default floating-point environment, and does
/// not keep the bits of a NaN.
pub(crate) fn values(src: DType, hub: Hub, level: Level) -> Pipeline {
    let spec = CastSpec { dst: hub.dtype(), ..CastSpec::copy(src) };
    let planner = Planner { spec: &spec, level };
    let to_f32 = match src {
        DType::F32 => Some(Vec::new()),
        _ => planner.embed(NanBits::HUB).map(|load| vec![load]),
    };
    let stages = match (to_f32, hub) {
        (Some(stages), Hub::F32) => stages,
        (Some(mut stages), Hub::F64) => {
            stages.push(planner.stage(F32Value));
            stages
        }
        (None, _) => stages(&spec, level).1,
    };
    Pipeline::new(src, hub.dtype(), level, stages)
}

/// What [`values`] leaves out of a 64-bit integer.
pub(crate) fn residual(src: DType, level: Level) -> Option<Pipeline> {
    let stage: Box<dyn Stage> = match src {
        DType::I64 => Box::new(LaneStage { lane: IntResidual::<true>, level }),
        DType::U64 => Box::new(LaneStage { lane: IntResidual::<false>, level }),
        _ => return None,
    };
    Some(Pipeline::new(src, DType::F64, level, vec![stage]))
}

/// The smallest f64 of a sign that a policy takes out of the destination's range (`Condition::Overflow`), as a magnitude; Inf
/// if no finite value does. Found by bisection over the bits of f64, whose order is that of the magnitudes.
pub(crate) fn overflow_from(dst: DType, policy: &CastPolicy, neg: bool) -> f64 {
    let overflows = |bits: u64| {
        let Exact::Finite { sig, exp, .. } = decode(DType::F64, bits) else { return true };
        encode(dst, policy, Exact::Finite { neg, sig, exp, sticky: false }).condition == Some(Condition::Overflow)
    };
    let (mut fits, mut over) = (0, f64::INFINITY.to_bits());
    while over - fits > 1 {
        let middle = fits + (over - fits) / 2;
        if overflows(middle) { over = middle } else { fits = middle }
    }
    f64::from_bits(over)
}
