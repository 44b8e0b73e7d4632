//! Choice of the pass for a RESCALE.

use super::arithmetic::{Arithmetic, mode};
use super::pass::Pass;
use super::requirement::{WithR3, is_safe};
use super::results::OfTable;
use crate::level::Level;
use crate::slot::Slot;
use truecast_core::rescale::{RescaleSpec, RoundingMode};

/// `None` if a channel has no results (R1, R2). The definition then rescales every element.
pub(super) fn plan(spec: &RescaleSpec, level: Level) -> Option<Box<dyn Pass>> {
    if spec.channels.iter().any(|channel| channel.check().is_err()) {
        return None;
    }
    if let Some(pass) = OfTable::new(spec, level) {
        return Some(Box::new(pass));
    }
    Some(match (spec.input.bits, spec.output.bits) {
        (8, _) => to_output::<u8>(spec, level),
        (16, _) => to_output::<u16>(spec, level),
        (32, _) => to_output::<u32>(spec, level),
        // i48 has only 16-bit multipliers.
        (_, 8) => short::<u64, u8>(spec, level),
        (_, 16) => short::<u64, u16>(spec, level),
        _ => short::<u64, u32>(spec, level),
    })
}

fn to_output<S: Slot>(spec: &RescaleSpec, level: Level) -> Box<dyn Pass> {
    match spec.output.bits {
        8 => by_mode::<S, u8>(spec, level),
        16 => by_mode::<S, u16>(spec, level),
        _ => by_mode::<S, u32>(spec, level),
    }
}

fn by_mode<S: Slot, D: Slot>(spec: &RescaleSpec, level: Level) -> Box<dyn Pass> {
    let pass: Box<dyn Pass> = match (spec.scale32, spec.rounding) {
        (false, _) if const { S::BYTES == 4 } => return short::<S, D>(spec, level),
        (true, RoundingMode::Double) => {
            Box::new(Arithmetic::<S, D, { mode::DOUBLE }>::new(spec, &spec.channels, level))
        }
        _ => Box::new(Arithmetic::<S, D, { mode::SINGLE }>::new(spec, &spec.channels, level)),
    };
    // 8-bit and 16-bit inputs with 16-bit multipliers have no requirement to test.
    if !spec.scale32 || is_safe(spec) { pass } else { Box::new(WithR3::<S>::new(pass, spec, level)) }
}

fn short<S: Slot, D: Slot>(spec: &RescaleSpec, level: Level) -> Box<dyn Pass> {
    if is_safe(spec) {
        Box::new(Arithmetic::<S, D, { mode::SINGLE }>::new(spec, &spec.channels, level))
    } else {
        Box::new(Arithmetic::<S, D, { mode::SHORT }>::new(spec, &spec.channels, level))
    }
}
