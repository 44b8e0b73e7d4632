//! `.tosa` files: `docs/spec/tosa.md §8`. Damaged files are errors, never panics.

use truecast_models::tosa::FileError;
use truecast_models::tosa::read::{RescaleAttribute, op, parse};
use truecast_testkit::flatbuffer::{Graph, Operator, Tensor};

fn rescale() -> Graph<'static> {
    Graph {
        version: 1,
        tensors: &[
            Tensor("x", &[4], 5, &[]),
            Tensor("m", &[1], 5, &[0, 0, 0, 64, 0, 0, 0, 0]), // padded to a multiple of 8
            Tensor("y", &[4], 3, &[]),
        ],
        operators: &[
            Operator(op::CONST, &[], &["m"], None),
            Operator(op::RESCALE, &["x", "m"], &["y"], Some(([true, false, false, true], 3))),
        ],
        inputs: &["x"],
        outputs: &["y"],
    }
}

#[test]
fn a_graph_is_taken_apart() {
    let file = rescale().file();
    let graph = parse(&file).unwrap();
    assert_eq!((graph.version, &graph.inputs[..], &graph.outputs[..]), ((1, 0, 2), &["x"][..], &["y"][..]));
    let [constant, rescale] = &graph.operators[..] else { panic!("{:?}", graph.operators) };
    assert_eq!((constant.op, constant.rescale), (op::CONST, None));
    assert_eq!((rescale.op, &rescale.inputs[..]), (op::RESCALE, &["x", "m"][..]));
    let expected = RescaleAttribute {
        scale32: true,
        rounding_mode: 3,
        per_channel: false,
        input_unsigned: false,
        output_unsigned: true,
    };
    assert_eq!(rescale.rescale, Some(expected));
    let m = &graph.tensors["m"];
    assert_eq!((&m.shape[..], m.dtype, &m.data[..4], m.is_unranked), (&[1][..], 5, &[0, 0, 0, 64][..], false));
}

#[test]
fn other_files_are_refused() {
    assert_eq!(parse(b"").unwrap_err(), FileError::Identifier);
    assert_eq!(parse(b"\x08\0\0\0ONNX").unwrap_err(), FileError::Identifier);
    let old = Graph { version: 0, ..rescale() }.file();
    assert_eq!(parse(&old).unwrap_err(), FileError::Version { major: 0, minor: 0, patch: 2 });
    let twice = Graph { tensors: &[Tensor("x", &[4], 5, &[]), Tensor("x", &[4], 5, &[])], ..rescale() }.file();
    assert_eq!(parse(&twice).unwrap_err(), FileError::Duplicate { name: "x".into() });
    let many = vec!["x"; 65];
    let operators = [Operator(op::CAST, &many, &["y"], None)];
    let wide = Graph { operators: &operators, ..rescale() }.file();
    assert_eq!(parse(&wide).unwrap_err(), FileError::Operands);
}

/// Every prefix, every byte changed in several ways, every group of four bytes made huge.
#[test]
fn damage_is_an_error_or_another_graph() {
    let file = rescale().file();
    for end in 0..file.len() {
        assert!(parse(&file[..end]).is_err() || end + 8 > file.len(), "{end}");
    }
    for at in 0..file.len() {
        for change in [1, 0x80, 0xff, 0x55] {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            parse(&damaged).ok();
        }
        let mut huge = file.clone();
        huge[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff);
        parse(&huge).ok();
    }
}
