//! Table of all 256 results. It serves 8-bit inputs with one scale.

use super::pass::{Pass, Tally};
use crate::level::{Level, Task};
use crate::stage::Stage;
use crate::table::table_of;
use truecast_core::rescale::RescaleSpec;

#[derive(Debug)]
pub(super) struct OfTable {
    table: Box<dyn Stage>,
    level: Level,
    /// Inputs whose results fit the output; `None` if all results fit.
    within: Option<Within>,
}

/// Range of inputs, ordered by value. RESCALE is monotone, so the inputs whose results fit are a range.
#[derive(Clone, Copy, Debug)]
struct Within {
    /// Bits to flip so that unsigned bytes have the order of the values.
    flip: u8,
    low: u8,
    /// `None` if the range is empty.
    span: Option<u8>,
}

impl OfTable {
    /// `None` unless inputs have 8 bits and one scale, or if some input fails a requirement.
    pub fn new(spec: &RescaleSpec, level: Level) -> Option<Self> {
        if spec.input.bits != 8 || spec.channels.len() != 1 {
            return None;
        }
        let mut results = [0; 256];
        let flip = if spec.input.signed { 0x80 } else { 0 };
        let mut fitting: Option<(u8, u8)> = None;
        for value in 0..=255u8 {
            let code = value ^ flip;
            let one = spec.rescale_one(0, code.into()).ok()?;
            results[code as usize] = one.code;
            if !one.saturated {
                fitting = Some((fitting.map_or(value, |(low, _)| low), value));
            }
        }
        let within = match fitting {
            Some((0, 255)) => None,
            Some((low, high)) => Some(Within { flip, low, span: Some(high - low) }),
            None => Some(Within { flip, low: 0, span: None }),
        };
        let table = table_of(&results, spec.output.bits as usize / 8, level, 8);
        Some(Self { table, level, within })
    }
}

impl Pass for OfTable {
    fn run(&self, _first: usize, src: &[u8], dst: &mut [u8]) -> Tally {
        self.table.run(src, dst).expect("a table refuses nothing");
        let saturated = match self.within {
            None => 0,
            Some(Within { span: None, .. }) => src.len() as u64,
            Some(Within { flip, low, span: Some(span) }) => {
                self.level.run(CountOutside { flip, low, span, bytes: src })
            }
        };
        Tally { saturated, failed: false }
    }
}

struct CountOutside<'a> {
    flip: u8,
    low: u8,
    span: u8,
    bytes: &'a [u8],
}

impl Task for CountOutside<'_> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        /// Maximum number of blocks before the byte counters could overflow.
        const FULL: usize = 255;
        let outside = |byte: u8| ((byte ^ self.flip).wrapping_sub(self.low) > self.span) as u8;
        let (blocks, rest) = self.bytes.as_chunks::<64>();
        let mut total: u64 = rest.iter().map(|&b| u64::from(outside(b))).sum();
        for blocks in blocks.chunks(FULL) {
            let mut counts = [0u8; 64];
            for block in blocks {
                for (count, &byte) in counts.iter_mut().zip(block) {
                    *count += outside(byte);
                }
            }
            total += counts.iter().map(|&c| u64::from(c)).sum::<u64>();
        }
        total
    }
}
