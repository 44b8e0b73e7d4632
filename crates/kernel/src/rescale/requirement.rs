//! Requirements on elements: whether any input can fail, and a test of R3.

use super::arithmetic::{Params, Scales};
use super::pass::{Pass, Tally};
use crate::level::{Level, Task};
use crate::slot::Slot;
use std::marker::PhantomData;
use truecast_core::rescale::RescaleSpec;

/// Whether no input fails a requirement. RESCALE is monotone, so the two ends of the input range decide.
pub(super) fn is_safe(spec: &RescaleSpec) -> bool {
    let ends = [spec.input.min(), spec.input.max()].map(|end| spec.input.code(end));
    (0..spec.channels.len()).all(|channel| ends.iter().all(|&end| spec.rescale_one(channel, end).is_ok()))
}

/// Pass followed by a test of R3: all bits of a value from bit s - 1 up must equal the sign.
#[derive(Debug)]
pub(super) struct WithR3<S> {
    pass: Box<dyn Pass>,
    level: Level,
    params: Params,
    scales: Scales,
    source: PhantomData<S>,
}

impl<S: Slot> WithR3<S> {
    pub fn new(pass: Box<dyn Pass>, spec: &RescaleSpec, level: Level) -> Self {
        let (params, scales) = (Params::new(spec), Scales::new(&spec.channels));
        Self { pass, level, params, scales, source: PhantomData }
    }
}

impl<S: Slot> Pass for WithR3<S> {
    fn run(&self, first: usize, src: &[u8], dst: &mut [u8]) -> Tally {
        let tally = self.pass.run(first, src, dst);
        let shifts = match &self.scales {
            Scales::One(_, shift) => std::slice::from_ref(shift),
            Scales::Rows { shifts, .. } => shifts,
        };
        let fails = self.level.run(FailsR3::<S> { params: self.params, shifts, first, src: S::view(src) });
        Tally { failed: tally.failed | fails, ..tally }
    }
}

struct FailsR3<'a, S: Slot> {
    params: Params,
    shifts: &'a [u32],
    first: usize,
    src: &'a [S::Bytes],
}

impl<S: Slot> Task for FailsR3<'_, S> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let fails = |s: &S::Bytes, shift: u32| {
            let narrow = self.params.narrow(S::load(*s));
            ((narrow ^ (narrow >> 31)) as u32).wrapping_shr(shift.wrapping_sub(1).min(31))
        };
        if let [shift] = *self.shifts {
            return self.src.iter().fold(0, |any, s| any | fails(s, shift)) != 0;
        }
        let (mut src, mut any) = (self.src, 0);
        let mut at = self.first % self.shifts.len();
        while !src.is_empty() {
            let (row, rest) = src.split_at((self.shifts.len() - at).min(src.len()));
            any |= row.iter().zip(&self.shifts[at..]).fold(0, |any, (s, shift)| any | fails(s, *shift));
            (src, at) = (rest, 0);
        }
        any != 0
    }
}
