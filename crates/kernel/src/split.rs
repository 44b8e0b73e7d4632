//! Stage that looks up results of 16-bit codes in [`Split`] tables. An f32 is first rounded to odd to bf16
//! (`docs/kernels.md §2.4`).

use crate::level::Level;
use crate::numbers::split::Split;
use crate::pipeline::{Pipeline, Scratch, Source, Stores, Target};
use crate::stage::{Refusal, Stage, Streaming, slot_bytes};
use crate::table::TABLE16_FROM;
use std::sync::OnceLock;
use truecast_core::format::BF16;
use truecast_core::{DType, Kind, Layout};

/// Conversion of a 16-bit or f32 source to bytes by [`Split`] tables. The first long conversion fills the tables with
/// the results of `stages`.
/// `stages` convert before that, and always if the results do not fit the tables.
#[derive(Debug)]
pub(crate) struct Split16 {
    src_bytes: usize,
    stages: Pipeline,
    tables: OnceLock<Option<Box<Split>>>,
    level: Level,
}

impl Split16 {
    /// Whether tables can convert a pair. A result must be one byte, and depend on 16 bits of the source, or on bf16
    /// rounded to odd (`docs/kernels.md §3.1`). From f32 to E8M0, the lane is used instead.
    pub fn fits(src: DType, dst: DType) -> bool {
        let odd = || matches!(dst.kind(), Kind::Float(f) if f.has_zero && BF16.is_safe_odd_intermediate_for(&f));
        slot_bytes(dst) == 1 && (slot_bytes(src) == 2 || src == DType::F32 && odd())
    }

    /// `stages` must convert every element of the source without refusals.
    pub fn new(src: DType, stages: Pipeline, level: Level) -> Self {
        Self { src_bytes: slot_bytes(src), stages, tables: OnceLock::new(), level }
    }

    fn tables(&self) -> Option<&Split> {
        self.tables.get()?.as_deref()
    }

    /// The only stage, before the tables are filled.
    fn stage(&self) -> Option<&dyn Stage> {
        if self.tables().is_none() { self.stages.only_stage() } else { None }
    }

    fn by_stages(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        let len = dst.len();
        let (src, dst) = (Source { layout: Layout::Packed, bytes: src }, Target { layout: Layout::Bytes, bytes: dst });
        self.stages.run(src, dst, len, Stores::PLAIN, &mut Scratch::default(), None)
    }

    fn fill(&self) -> Option<Box<Split>> {
        let below = self.src_bytes - 2;
        let codes: Vec<u8> =
            (0..=u16::MAX).flat_map(|code| [0; 2].into_iter().take(below).chain(code.to_le_bytes())).collect();
        let mut results = vec![0; 1 << 16];
        self.by_stages(&codes, &mut results).ok()?;
        Split::of(results.as_chunks().0).map(Box::new)
    }
}

impl Stage for Split16 {
    fn widths(&self) -> (usize, usize) {
        (self.src_bytes, 1)
    }
    fn prepare(&self, len: usize) {
        if len >= TABLE16_FROM && self.tables.get_or_init(|| self.fill()).is_none() {
            self.stages.prepare(len);
        }
    }
    fn streaming(&self) -> Streaming {
        match self.stage() {
            Some(stage) => stage.streaming(),
            None if self.tables().is_some() => Streaming::Itself,
            None => Streaming::ByWidth,
        }
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        match self.tables() {
            Some(tables) => {
                let (n, bits) = (src.len() / self.src_bytes, 8 * self.src_bytes as u32);
                let looked_up = self.level.kernels().look_up(tables, (bits, src), (8, dst), n, false);
                assert!(looked_up, "planned only where there is a lookup");
            }
            None => self.by_stages(src, dst)?,
        }
        Ok(())
    }
    fn writes_packed(&self, bits: u32) -> bool {
        match self.stage() {
            Some(stage) => stage.writes_packed(bits),
            None => self.tables().is_some() && self.level.kernels().split_packs(self.src_bytes, bits),
        }
    }
    fn run_in_place(&self, src: (u32, &[u8]), dst: (u32, &mut [u8]), n: usize, streams: bool) -> bool {
        match (self.stage(), self.tables()) {
            (Some(stage), _) => stage.run_in_place(src, dst, n, streams),
            (None, Some(tables)) => self.level.kernels().look_up(tables, src, dst, n, streams),
            (None, None) if streams => false,
            (None, None) => unreachable!("several stages write no packed elements here"),
        }
    }
}
