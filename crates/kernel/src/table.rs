//! Tables of results, filled by the definition for any policy (`docs/kernels.md §2.3, §2.4`).

use crate::level::{Level, Task};
use crate::pipeline::Pipeline;
use crate::slot::Slot;
use crate::stage::{Refusal, Scalar, Stage, scalar, slot_bytes};
use std::sync::OnceLock;
use truecast_core::{CastSpec, DType};

/// Table stage for a source of at most 8 bits, with one result per storage byte. `None` if the policy refuses a code.
pub(crate) fn table8(spec: &CastSpec, level: Level) -> Option<Box<dyn Stage>> {
    let mut results = [0; 256];
    for (storage, result) in results.iter_mut().enumerate() {
        *result = scalar(spec, storage as u64).ok()?;
    }
    Some(table_of(&results, slot_bytes(spec.dst), level, spec.src.storage_bits().unwrap_or(8)))
}

/// Pipeline from bytes of packed elements to packed results. `None` if the results of one byte do not fill an integer
/// type, or the policy refuses a code.
pub(crate) fn packed8(spec: &CastSpec, level: Level) -> Option<Pipeline> {
    let (src_bits, dst_bits) = (spec.src.storage_bits()?, spec.dst.storage_bits()?);
    if !matches!(src_bits, 1 | 2 | 4) || dst_bits >= 8 {
        return None;
    }
    let codes_of = |bits: u32| (1u64 << bits) - 1;
    let dst = match 8 / src_bits * dst_bits {
        2 => DType::U2,
        4 => DType::U4,
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        _ => return None,
    };
    let mut results = [0; 256];
    for (byte, result) in results.iter_mut().enumerate() {
        for i in 0..8 / src_bits {
            let code = byte as u64 >> (i * src_bits) & codes_of(src_bits);
            *result |= (scalar(spec, code).ok()? & codes_of(dst_bits)) << (i * dst_bits);
        }
    }
    let table = table_of(&results, slot_bytes(dst), level, 8);
    Some(Pipeline::new(DType::U8, dst, level, vec![table]))
}

/// Table stage for results of `dst_bytes` bytes. The source has bytes, or packed codes of `code_bits` bits.
pub(crate) fn table_of(results: &[u64; 256], dst_bytes: usize, level: Level, code_bits: u32) -> Box<dyn Stage> {
    if let Some(stage) = level.kernels().table(results, dst_bytes, code_bits) {
        return stage;
    }
    match dst_bytes {
        1 => Table8::<u8>::stage(results, level),
        2 => Table8::<u16>::stage(results, level),
        4 => Table8::<u32>::stage(results, level),
        _ => Table8::<u64>::stage(results, level),
    }
}

struct Table8<D> {
    table: Box<[D; 256]>,
    level: Level,
}

impl<D: Slot> std::fmt::Debug for Table8<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table8 to {} bytes", D::BYTES)
    }
}

impl<D: Slot> Table8<D> {
    fn stage(results: &[u64; 256], level: Level) -> Box<dyn Stage> {
        Box::new(Table8 { table: Box::new(results.map(D::low)), level })
    }
}

struct Lookup<'a, D: Slot> {
    table: &'a [D; 256],
    src: &'a [u8],
    dst: &'a mut [D::Bytes],
}

impl<D: Slot> Task for Lookup<'_, D> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (d, s) in self.dst.iter_mut().zip(self.src) {
            *d = self.table[*s as usize].store();
        }
    }
}

impl<D: Slot> Stage for Table8<D> {
    fn widths(&self) -> (usize, usize) {
        (1, D::BYTES)
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        self.level.run_at_most_avx2(Lookup { table: &self.table, src, dst: D::view_mut(dst) });
        Ok(())
    }
}

/// Minimum number of elements for a table: below, filling the table costs more than the definition.
pub(crate) const TABLE16_FROM: usize = 131_072;

/// Table of one result per code of a 16-bit source. The first long conversion fills the table.
pub(crate) struct Table16<D> {
    table: OnceLock<Box<[D]>>,
    spec: CastSpec,
}

impl<D: Slot> std::fmt::Debug for Table16<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table16 to {} bytes", D::BYTES)
    }
}

/// Table stage for a 16-bit source and a destination of at most 16 bits. The policy must not refuse any code.
pub(crate) fn table16(spec: &CastSpec) -> Box<dyn Stage> {
    match slot_bytes(spec.dst) {
        1 => Box::new(Table16::<u8> { table: OnceLock::new(), spec: *spec }),
        _ => Box::new(Table16::<u16> { table: OnceLock::new(), spec: *spec }),
    }
}

impl<D: Slot> Stage for Table16<D> {
    fn widths(&self) -> (usize, usize) {
        (2, D::BYTES)
    }
    fn prepare(&self, len: usize) {
        if len >= TABLE16_FROM {
            self.table.get_or_init(|| {
                (0..=u16::MAX as u64).map(|code| D::low(scalar(&self.spec, code).unwrap_or(0))).collect()
            });
        }
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        let Some(table) = self.table.get() else { return Scalar(self.spec).run(src, dst) };
        for (d, s) in D::view_mut(dst).iter_mut().zip(u16::view(src)) {
            *d = table[u16::load(*s) as usize].store();
        }
        Ok(())
    }
}

/// Whether an unpacked source element is one byte.
pub(crate) fn fits_table8(src: DType) -> bool {
    slot_bytes(src) == 1
}
