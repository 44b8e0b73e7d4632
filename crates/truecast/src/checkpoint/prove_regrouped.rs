//! Codes and scales of blocks of another size recomputed by the definition (`truecast_core::scaled::Regrouping`), which shares
//! no code with what may have written them.

use super::prove::{Band, are_rows_together, bytes_of};
use super::prove_pieces::prove;
use super::regrouped::Regrouped;
use super::regrouper::Blocks;
use crate::error::{Cause, Error};
use crate::scan::Stretch;
use crate::stream::zeros;
use crate::verify::difference::FileDifference;
use crate::verify::found::Found;
use std::ops::{ControlFlow, Range};
use truecast_core::exact::Exact;
use truecast_core::scaled::{BlockExponent, BlockScale, Part, Planes, ScaledError};
use truecast_io::Source;
use truecast_io::folder::Folder;

/// About the elements of a band.
const BAND: u64 = 1 << 16;

/// Codes or scales that were made.
pub(super) struct RegroupedProof<'a> {
    pub folder: &'a Folder,
    pub regrouped: &'a Regrouped,
    /// The result, the tensor's place in it and its name.
    pub result: (&'a Source, usize, &'a str),
}

impl RegroupedProof<'_> {
    /// What differs in these entries of the result, and how many were recomputed: all of the rows of blocks that hold them.
    pub fn compare(
        &self,
        stretches: &[Stretch],
        progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<(Option<FileDifference>, u64), Error> {
        let mut bands: Vec<Band> = Vec::new();
        for stretch in stretches {
            let new = self.bands(stretch.first..stretch.first + stretch.len);
            bands.extend(new);
        }
        bands.dedup();
        type Seen = (Found<(u64, u64)>, u64);
        let merge = |a: Seen, b: Seen| (a.0.merge(b.0), a.1 + b.1);
        let of_band = |band: &Band| self.band(band);
        let (found, entries) = prove(bands, (Found::new(), 0), of_band, merge, |some| {
            let Blocks { matrices, rows, .. } = self.regrouped.alike.blocks;
            let n_rows: u64 = some.iter().map(|band| band.rows.end - band.rows.start).sum();
            progress((self.regrouped.bytes() as f64 * n_rows as f64 / (matrices * rows) as f64) as u64)
        })?;
        let difference = FileDifference::of_found(self.result.2, &found);
        Ok((difference, entries))
    }

    /// The bands that hold entries of the result.
    fn bands(&self, entries: Range<u64>) -> impl Iterator<Item = Band> + use<> {
        let blocks = self.regrouped.alike.blocks;
        let [of_matrix, cols] = match self.regrouped.alike.part {
            Part::Codes => [blocks.rows, blocks.cols],
            _ => blocks.grid(blocks.new, blocks.rows),
        };
        let height = if self.regrouped.alike.part == Part::Codes { 1 } else { blocks.new[0] };
        let together = (BAND / (blocks.unit() * blocks.cols).max(1)).max(1) * blocks.unit();
        // Rows of the source, counted over all matrices; bands are the same whatever is asked for.
        let row = |entry: u64| {
            let line = entry / cols;
            (line / of_matrix, (line % of_matrix * height).min(blocks.rows - 1) / together)
        };
        let last = entries.end.saturating_sub(1).max(entries.start);
        let (mut at, end) = (row(entries.start), row(last));
        let per_matrix = blocks.rows.div_ceil(together);
        let mut is_over = entries.is_empty();
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let (matrix, band) = at;
            is_over = at >= end;
            at = if band + 1 == per_matrix { (matrix + 1, 0) } else { (matrix, band + 1) };
            Some(Band { matrix, rows: band * together..((band + 1) * together).min(blocks.rows) })
        })
    }

    /// Bytes of rows of the result that are not what they should be, and how many entries were looked at.
    fn band(&self, Band { matrix, rows }: &Band) -> Result<(Found<(u64, u64)>, u64), Error> {
        let Regrouped { source, alike } = self.regrouped;
        let (layout, blocks, how) = (&source.layout, alike.blocks, alike.how);
        let failed = || {
            let cause = ScaledError::Layout { why: "codes and scales do not lie in planes" };
            Error::tensor(self.folder.path(), &source.name, Cause::Scaled(cause))
        };
        let planes: &Planes = layout.planes().ok_or_else(failed)?;
        let whole = !are_rows_together(layout);
        let stored = if whole { 0..layout.rows } else { rows.clone() };
        let read = |part| {
            let range = bytes_of(layout, part, *matrix, &stored).ok_or_else(failed)?;
            let at = source.stored(part);
            let mut bytes = zeros(range.end - range.start)?;
            self.folder.shards()[at.shard].source.read_at(at.tensor, range.start, &mut bytes)?;
            Ok::<_, Error>(bytes)
        };
        let (codes, scales) = (read(Part::Codes)?, read(Part::Scales)?);
        let n_stored = stored.end - stored.start;
        let skipped = rows.start - stored.start;
        let n_rows = rows.end - rows.start;
        let code = |row: u64, col: u64| planes.codes.get([n_stored, layout.cols], [skipped + row, col], &codes);
        let is_zero = |code: u64| matches!(planes.codes.code.value(code), Exact::Finite { sig: 0, .. });
        let grid = [n_stored.div_ceil(blocks.old[0]), layout.cols.div_ceil(blocks.old[1])];
        let of_source = |[row, col]: [u64; 2]| {
            let entry = planes.scales.plane.get(grid, [skipped / blocks.old[0] + row, col], &scales);
            let scale = BlockScale::of(planes.scales.plane.code, entry, alike.global);
            let (high, wide) = (row * blocks.old[0], col * blocks.old[1]);
            let mut all = (high..(high + blocks.old[0]).min(n_rows))
                .flat_map(|row| (wide..(wide + blocks.old[1]).min(blocks.cols)).map(move |col| [row, col]));
            (scale, all.all(|[row, col]| is_zero(code(row, col))))
        };
        let old = blocks.grid(blocks.old, n_rows);
        let sources: Vec<(BlockScale, bool)> =
            (0..old[0] * old[1]).map(|at| of_source([at / old[1], at % old[1]])).collect();
        let (shifts, exponents) = (how.shifts().ok_or_else(failed)?, how.exponents());
        let [down, across] = blocks.grid(blocks.new, n_rows);
        let of_result = |at: u64| {
            let blocks = blocks.sources([at / across, at % across], n_rows);
            how.block(blocks.map(|[row, col]| sources[(row * old[1] + col) as usize]), &shifts, &exponents).ok()
        };
        let made: Vec<Option<BlockExponent>> = (0..down * across).map(of_result).collect();
        let size = alike.entry();
        let entries = if alike.part == Part::Codes { n_rows * blocks.cols } else { down * across };
        let mut actual = zeros(entries * size)?;
        let begin = self.regrouped.offset((matrix * blocks.rows + rows.start) * blocks.cols);
        self.result.0.read_at(self.result.1, begin, &mut actual)?;
        let expected = |at: u64| match alike.part {
            Part::Codes => {
                let (row, col) = (at / blocks.cols, at % blocks.cols);
                let (scale, is_zero) = sources[(row / blocks.old[0] * old[1] + col / blocks.old[1]) as usize];
                let of_block = made[(row / blocks.new[0] * across + col / blocks.new[1]) as usize]?;
                match (scale, is_zero, of_block.exponent) {
                    (BlockScale::Power(k), false, Some(e)) => how.code(code(row, col), k - e),
                    (_, true, _) => how.code(code(row, col), *shifts.start()),
                    _ => None,
                }
            }
            _ => how.scale(how.held(made[at as usize]?, alike.second, &exponents)),
        };
        let mut found = Found::new();
        for (at, bytes) in (0..).zip(actual.chunks_exact(size as usize)) {
            let actual = bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte));
            let index = begin + at * size;
            match expected(at) {
                Some(expected) if expected == actual => {}
                // Where it has no equal, whatever stands there is wrong.
                expected => found.wrong(index, || (expected.unwrap_or(actual), actual)),
            }
        }
        Ok((found, entries))
    }
}
