//! Tables of results for lookups.

use super::plan::Plan;
use super::source::{OfRow, Source};
use crate::scaled::lookup::{self, Table16, Table256};
use crate::scaled::products::Blocks;
use crate::scaled::values::{Buffers, Operands, TILE, spread};

#[derive(Default)]
pub(super) struct Tables {
    /// Bits of the global scale, and one table per scale code.
    by_scale: Option<(u32, Box<[Table16; 256]>)>,
    tables16: Vec<Table16>,
    tables256: Vec<Table256>,
}

impl Tables {
    pub fn make_tables16(&mut self, plan: &Plan, source: &Source<'_>, factor: Option<f32>, buffers: &mut Buffers) {
        let operands = source.operands();
        self.tables16.resize(operands.scales.len() / 4, [0; 32]);
        tables16(plan, operands, factor, &mut self.tables16, buffers);
    }

    /// Makes a table of 16 results for each code of a scale.
    pub fn make_by_scale(&mut self, plan: &Plan, source: &mut Source<'_>, buffers: &mut Buffers) {
        let Source::Grid(grid) = source else { return };
        let bits = grid.global_bits();
        if self.by_scale.as_ref().is_some_and(|(made_for, _)| *made_for == bits) {
            return;
        }
        let mut tables = Box::new([[0; 32]; 256]);
        let scales = grid.all_scales();
        tables16(plan, OfRow { scales: &scales, zeros: None, biases: None }, None, &mut tables[..], buffers);
        self.by_scale = Some((bits, tables));
    }

    pub fn make_tables256(&mut self, plan: &Plan, source: &Source<'_>, buffers: &mut Buffers) {
        let operands = source.operands();
        let tables = &mut self.tables256;
        tables.resize(operands.scales.len() / 4, [[0; 256]; 2]);
        if let Some((narrow, how)) = plan.values.combination(operands.zeros.is_some(), plan.decoder.has_nan()) {
            narrow.tables256(plan.exec.level, how, plan.of_codes.as_chunks().0, blocks(operands), tables);
            return;
        }
        let mut both = [0; 512];
        for (i, [low, high]) in tables.iter_mut().enumerate() {
            let of = |all: Option<&'_ [u8]>| all.map(|all| all[4 * i..4 * i + 4].to_vec());
            let (scale, zero, bias) = (of(Some(operands.scales)), of(operands.zeros), of(operands.biases));
            let one =
                OfRow { scales: scale.as_deref().unwrap_or(&[]), zeros: zero.as_deref(), biases: bias.as_deref() };
            results(plan, one, None, &mut both, buffers);
            for ((low, high), result) in low.iter_mut().zip(high).zip(both.as_chunks::<2>().0) {
                [*low, *high] = *result;
            }
        }
    }

    /// `scales` has the codes of one-byte scales.
    pub fn tables16<'a>(&'a self, scales: Option<&'a [u8]>) -> lookup::Tables<'a> {
        match (&self.by_scale, scales) {
            (Some((_, tables)), Some(scales)) => lookup::Tables::ByScale { tables, scales },
            _ => lookup::Tables::InOrder(&self.tables16),
        }
    }

    pub fn tables256(&self) -> &[Table256] {
        &self.tables256
    }
}

fn blocks(operands: OfRow<'_>) -> Blocks<'_> {
    Blocks { s: operands.scales.as_chunks().0, u: operands.others().as_chunks().0, block: 0 }
}

fn tables16(plan: &Plan, operands: OfRow<'_>, factor: Option<f32>, tables: &mut [Table16], buffers: &mut Buffers) {
    match plan.values.combination(operands.zeros.is_some(), plan.decoder.has_nan()) {
        Some((narrow, how)) if factor.is_none() => {
            narrow.tables16(plan.exec.level, how, plan.of_codes.as_chunks().0, blocks(operands), tables);
        }
        _ => results(plan, operands, factor, tables.as_flattened_mut(), buffers),
    }
}

/// Two-byte results for each block's operands, and for each code.
fn results(plan: &Plan, operands: OfRow<'_>, factor: Option<f32>, results: &mut [u8], buffers: &mut Buffers) {
    let OfRow { scales, zeros, biases } = operands;
    let n_codes = plan.of_codes.len() / 4;
    let step = TILE / n_codes;
    let n_scales = scales.len() / 4;
    let (mut values, mut of_codes) = (vec![0; 4 * TILE], [vec![0; 4 * TILE], Vec::new(), Vec::new()]);
    of_codes[1].resize(if zeros.is_some() { 4 * TILE } else { 0 }, 0);
    of_codes[2].resize(if biases.is_some() { 4 * TILE } else { 0 }, 0);
    for first in (0..n_scales).step_by(step) {
        let n = step.min(n_scales - first);
        let len = n * n_codes * 4;
        let values = &mut values[..len];
        values.chunks_mut(4 * n_codes).for_each(|codes| codes.copy_from_slice(&plan.of_codes));
        for (all, to) in [Some(scales), zeros, biases].into_iter().zip(&mut of_codes) {
            if let Some(all) = all {
                spread(&all[4 * first..4 * (first + n)], n_codes, 0, &mut to[..len]);
            }
        }
        let operands = Operands {
            scales: &of_codes[0][..len],
            zeros: zeros.map(|_| &of_codes[1][..len]),
            biases: biases.map(|_| &of_codes[2][..len]),
            factor,
        };
        plan.values.run(values, operands, &mut results[first * n_codes * 2..(first + n) * n_codes * 2], buffers);
    }
}
