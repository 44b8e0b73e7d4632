//! The stage that looks up results of 16-bit codes in the tables of [`Split`], once that pays.

use crate::by_hand;
use crate::level::Level;
use crate::numbers::split::Split;
use crate::pipeline::{Pipeline, Scratch, Stores};
use crate::stage::{Refusal, Stage, Streaming, slot_bytes};
use crate::table::TABLE16_FROM;
use std::sync::OnceLock;
use truecast_core::{DType, Layout};

/// Converts a 16-bit source to bytes by [`Split`] tables. They are filled by the first conversion that is long enough,
/// with the results of the stages that convert until then, and from then on if there is no room for them.
#[derive(Debug)]
pub(crate) struct Split16 {
    stages: Pipeline,
    tables: OnceLock<Option<Box<Split>>>,
    level: Level,
}

impl Split16 {
    /// Whether a pair has elements of the widths that the tables are for.
    pub fn fits(src: DType, dst: DType) -> bool {
        (slot_bytes(src), slot_bytes(dst)) == (2, 1)
    }

    /// `stages` convert any 16-bit code, and refuse none.
    pub fn new(stages: Pipeline, level: Level) -> Self {
        Self { stages, tables: OnceLock::new(), level }
    }

    fn is_filled(&self) -> bool {
        matches!(self.tables.get(), Some(Some(_)))
    }

    fn by_stages(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        let len = dst.len();
        let (src, dst) = ((Layout::Packed, src), (Layout::Bytes, dst));
        self.stages.run(src, dst, len, Stores::PLAIN, &mut Scratch::default(), None)
    }

    fn fill(&self) -> Option<Box<Split>> {
        let codes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut results = vec![0; 1 << 16];
        self.by_stages(&codes, &mut results).ok()?;
        Split::of(results.as_chunks().0).map(Box::new)
    }
}

impl Stage for Split16 {
    fn widths(&self) -> (usize, usize) {
        (2, 1)
    }
    fn prepare(&self, len: usize) {
        if len >= TABLE16_FROM && self.tables.get_or_init(|| self.fill()).is_none() {
            self.stages.prepare(len);
        }
    }
    fn streaming(&self) -> Streaming {
        if self.is_filled() { Streaming::Itself } else { Streaming::ByWidth }
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        match self.tables.get() {
            Some(Some(_)) => self.run_packed((16, src), (8, dst), src.len() / 2),
            _ => self.by_stages(src, dst)?,
        }
        Ok(())
    }
    fn writes_packed(&self, bits: u32) -> bool {
        self.is_filled() && by_hand::split_packs(bits)
    }
    fn run_streaming(&self, (_, src): (u32, &[u8]), dst: (u32, &mut [u8]), n: usize) -> bool {
        let Some(Some(tables)) = self.tables.get() else { return false };
        by_hand::look_up(tables, self.level, src, dst, n, true)
    }
    fn run_packed(&self, (_, src): (u32, &[u8]), (bits, dst): (u32, &mut [u8]), n: usize) {
        if let Some(Some(tables)) = self.tables.get() {
            let looked_up = by_hand::look_up(tables, self.level, src, (bits, dst), n, false);
            assert!(looked_up, "planned only where there is a lookup");
        }
    }
}
