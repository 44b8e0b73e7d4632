//! Tables for lookups: the two-byte results of all codes with the operands of a block.

use super::plan::Plan;
use super::source::Source;
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
        let operands = Operands { factor, ..source.operands() };
        self.tables16.resize(operands.len(), [0; 32]);
        fill_tables16(plan, operands, &mut self.tables16, buffers);
    }

    /// Makes a table of 16 results for each code of a scale.
    pub fn make_by_scale(&mut self, plan: &Plan, source: &mut Source<'_>, buffers: &mut Buffers) {
        let Source::Grid(grid) = source else { return };
        let bits = grid.global().to_bits();
        if self.by_scale.as_ref().is_some_and(|(made_for, _)| *made_for == bits) {
            return;
        }
        let mut tables = Box::new([[0; 32]; 256]);
        let scales = grid.all_scales();
        fill_tables16(plan, Operands { scales: &scales, ..Operands::default() }, &mut tables[..], buffers);
        self.by_scale = Some((bits, tables));
    }

    pub fn make_tables256(&mut self, plan: &Plan, source: &Source<'_>, buffers: &mut Buffers) {
        let operands = source.operands();
        let tables = &mut self.tables256;
        tables.resize(operands.len(), [[0; 256]; 2]);
        if let Some((narrow, combination)) = plan.values.combination(operands.zeros.is_some(), plan.decoder.has_nan()) {
            let codes = plan.code_values.as_chunks().0;
            narrow.tables256(plan.exec.level, combination, codes, blocks(operands), tables);
            return;
        }
        let mut results = vec![0; 512 * tables.len()];
        compute(plan, operands, &mut results, buffers);
        for ([low, high], results) in tables.iter_mut().zip(results.chunks_exact(512)) {
            for ((low, high), result) in low.iter_mut().zip(high).zip(results.as_chunks::<2>().0) {
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

fn blocks(operands: Operands<'_>) -> Blocks<'_> {
    Blocks { s: operands.scales.as_chunks().0, u: operands.zeros_or_biases().as_chunks().0, block: 0 }
}

fn fill_tables16(plan: &Plan, operands: Operands<'_>, tables: &mut [Table16], buffers: &mut Buffers) {
    match plan.values.combination(operands.zeros.is_some(), plan.decoder.has_nan()) {
        Some((narrow, combination)) if operands.factor.is_none() => {
            let codes = plan.code_values.as_chunks().0;
            narrow.tables16(plan.exec.level, combination, codes, blocks(operands), tables);
        }
        _ => compute(plan, operands, tables.as_flattened_mut(), buffers),
    }
}

/// Computes the results of all codes with the operands of each block, one operation after the other.
fn compute(plan: &Plan, operands: Operands<'_>, results: &mut [u8], buffers: &mut Buffers) {
    let n_codes = plan.code_values.len() / 4;
    let blocks_at_once = TILE / n_codes;
    for (i, results) in results.chunks_mut(2 * n_codes * blocks_at_once).enumerate() {
        let n_blocks = results.len() / (2 * n_codes);
        let for_each_code = |operand: &[u8]| {
            let mut repeated = vec![0; 4 * n_codes * n_blocks];
            spread(&operand[4 * i * blocks_at_once..][..4 * n_blocks], n_codes, 0, &mut repeated);
            repeated
        };
        let scales = for_each_code(operands.scales);
        let (zeros, biases) = (operands.zeros.map(for_each_code), operands.biases.map(for_each_code));
        let operands =
            Operands { scales: &scales, zeros: zeros.as_deref(), biases: biases.as_deref(), factor: operands.factor };
        plan.values.run(&mut plan.code_values.repeat(n_blocks), operands, results, buffers);
    }
}
