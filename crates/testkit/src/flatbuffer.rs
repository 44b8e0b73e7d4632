//! `.tosa` files for tests. Slots and numbers: `docs/spec/tosa.md §8`.

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, TableFinishedWIPOffset, Vector, WIPOffset};

type Builder<'b> = FlatBufferBuilder<'b>;

/// A tensor: name, shape, number of the element type, data.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a>(pub &'a str, pub &'a [i32], pub u32, pub &'a [u8]);

/// An operator: number, operands, results. RESCALE also has flags and a rounding mode.
#[derive(Debug, Clone, Copy)]
pub struct Operator<'a>(pub u32, pub &'a [&'a str], pub &'a [&'a str], pub Option<([bool; 4], u32)>);

/// A graph with one block.
#[derive(Debug)]
pub struct Graph<'a> {
    /// Version of the format.
    pub version: i32,
    /// All tensors.
    pub tensors: &'a [Tensor<'a>],
    /// Operators in order of evaluation.
    pub operators: &'a [Operator<'a>],
    /// Names of the inputs.
    pub inputs: &'a [&'a str],
    /// Names of the outputs.
    pub outputs: &'a [&'a str],
}

fn table(b: &mut Builder<'_>, fill: impl FnOnce(&mut Builder<'_>)) -> WIPOffset<TableFinishedWIPOffset> {
    let start = b.start_table();
    fill(b);
    b.end_table(start)
}

fn strings<'b>(b: &mut Builder<'b>, all: &[&str]) -> WIPOffset<Vector<'b, ForwardsUOffset<&'b str>>> {
    let offsets: Vec<_> = all.iter().map(|s| b.create_string(s)).collect();
    b.create_vector(&offsets)
}

impl Graph<'_> {
    /// Returns the bytes of the file.
    pub fn file(&self) -> Vec<u8> {
        let mut builder = Builder::new();
        let b = &mut builder;
        let tensors: Vec<_> = self
            .tensors
            .iter()
            .map(|Tensor(name, shape, dtype, data)| {
                let (name, shape, data) = (b.create_string(name), b.create_vector(shape), b.create_vector(data));
                table(b, |b| {
                    b.push_slot_always(4, name);
                    b.push_slot_always(6, shape);
                    b.push_slot_always(8, *dtype);
                    b.push_slot_always(10, data);
                })
            })
            .collect();
        let operators: Vec<_> = self
            .operators
            .iter()
            .map(|Operator(op, inputs, outputs, rescale)| {
                let (inputs, outputs) = (strings(b, inputs), strings(b, outputs));
                let attribute = table(b, |b| {
                    if let Some(([scale32, per_channel, input_unsigned, output_unsigned], mode)) = rescale {
                        b.push_slot(4, *scale32, false);
                        b.push_slot(6, *mode, 0);
                        b.push_slot(8, *per_channel, false);
                        b.push_slot(10, *input_unsigned, false);
                        b.push_slot(12, *output_unsigned, false);
                    }
                });
                table(b, |b| {
                    b.push_slot_always(4, *op);
                    b.push_slot_always(6, *op as u8);
                    b.push_slot_always(8, attribute);
                    b.push_slot_always(10, inputs);
                    b.push_slot_always(12, outputs);
                })
            })
            .collect();
        let (operators, tensors) = (b.create_vector(&operators), b.create_vector(&tensors));
        let (inputs, outputs) = (strings(b, self.inputs), strings(b, self.outputs));
        let block = table(b, |b| {
            b.push_slot_always(6, operators);
            b.push_slot_always(8, tensors);
            b.push_slot_always(10, inputs);
            b.push_slot_always(12, outputs);
        });
        let blocks = b.create_vector(&[block]);
        let region = table(b, |b| b.push_slot_always(6, blocks));
        let regions = b.create_vector(&[region]);
        let version = table(b, |b| {
            b.push_slot_always(4, self.version);
            b.push_slot_always(6, 0i32);
            b.push_slot_always(8, 2i32);
        });
        let root = table(b, |b| {
            b.push_slot_always(4, version);
            b.push_slot_always(6, regions);
        });
        b.finish(root, Some("TOSA"));
        b.finished_data().to_vec()
    }
}
