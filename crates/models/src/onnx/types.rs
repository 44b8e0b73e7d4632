//! Element types of the outputs of ONNX's operators, derived from inputs and attributes.
//!
//! Source: those rules in the schemas of ONNX 1.23 that hold in all versions. Operators with sequences or subgraphs are
//! missing.

use super::node::{ElementType, Known};
use std::collections::HashMap;
use std::sync::LazyLock;
use truecast_core::DType;
use truecast_core::spec::onnx::DataType;
use truecast_io::onnx::{AttributeValue, Node};

/// Types of the outputs, one word per output, and the operators with these outputs:
///
/// | word | type of the output |
/// |---|---|
/// | `0\|2` | type of input 0 or 2, which are equal |
/// | `*` | type of any input |
/// | `0+` | all further outputs are the same |
/// | `bool` | this type |
/// | `dtype=0` | type named by the attribute, else the type or the input after `=` |
const OUTPUTS: &[(&str, &str)] = &[
    (
        "0",
        "Abs Acos Acosh AffineGrid Asin Asinh Atan Atanh AveragePool BitwiseNot Ceil Celu CenterCropPad Clip Col2Im \
         Compress Cos Cosh CumProd CumSum DFT DepthToSpace Det Dropout Elu Erf Exp Expand Flatten Floor Gather \
         GatherElements GatherND Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample HardSigmoid HardSwish \
         Hardmax LRN LeakyRelu Log LogSoftmax LpNormalization LpPool MaxUnpool MeanVarianceNormalization Mish Neg Not \
         Pad Pow Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd \
         ReduceSum ReduceSumSquare Relu Reshape Resize ReverseSequence Round Selu Shrink Sigmoid Sign Sin Sinh Slice \
         Softmax Softplus Softsign SpaceToDepth Sqrt Squeeze StringNormalizer Swish Tan Tanh ThresholdedRelu Tile \
         Transpose Trilu Unsqueeze Upsample",
    ),
    (
        "0|1",
        "Add BitShift BitwiseAnd BitwiseOr BitwiseXor Div MatMul MaxRoiPool Mod Mul PRelu RoiAlign StringConcat Sub \
         SwiGLU TensorScatter",
    ),
    ("bool", "And Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual OptionalHasElement Or RegexFullMatch Xor"),
    (
        "0|1|2",
        "Conv ConvTranspose Gemm GroupNormalization InstanceNormalization LayerNormalization Range RotaryEmbedding",
    ),
    ("*", "Concat Einsum Max Mean Min Sum"),
    ("i64", "ArgMax ArgMin NonZero SequenceLength Shape Size"),
    ("0|2", "NegativeLogLikelihoodLoss STFT Scatter ScatterElements ScatterND"),
    ("dtype=0", "Bernoulli EyeLike RandomNormalLike RandomUniformLike"),
    ("output_datatype=f32", "BlackmanWindow HammingWindow HannWindow MelWeightMatrix"),
    ("0 i64", "MaxPool TopK"),
    ("0|1|2|3|5 0|1|2|3|5", "GRU RNN"),
    ("2", "NonMaxSuppression OneHot"),
    ("7", "QLinearConv QLinearMatMul"),
    ("dtype=f32", "RandomNormal RandomUniform"),
    ("i32", "ConvInteger MatMulInteger"),
    ("0 3|4 3|4 0|1|2|3|4 0|1|2|3|4", "BatchNormalization"),
    ("0 i64 i64 i64", "Unique"),
    ("0+", "Split"),
    ("0|1|2|3 0|1|2|3", "CausalConvWithState"),
    ("0|1|2|3|4", "DeformConv"),
    ("0|1|2|3|5|6|7 0|1|2|3|5|6|7 0|1|2|3|5|6|7", "LSTM"),
    ("0|1|2|4|5 3", "LinearAttention"),
    ("0|1|4 0|1|4 2|5 0|1|4", "Attention"),
    ("0|2 0|2", "SoftmaxCrossEntropyLoss"),
    ("1", "RMSNormalization"),
    ("1|2", "Where"),
    ("dtype=i32", "Multinomial"),
    ("f32", "TfIdfVectorizer"),
    ("output_dtype=1", "DequantizeLinear"),
    ("output_dtype=2", "QuantizeLinear"),
    ("string i64", "StringSplit"),
    ("to=", "BitCast"),
    ("u8", "ImageDecoder"),
    ("u8 f32 u8", "DynamicQuantizeLinear"),
    ("value=f32", "ConstantOfShape"),
];

static BY_OPERATOR: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    OUTPUTS.iter().flat_map(|(outputs, names)| names.split(' ').map(|name| (name, *outputs))).collect()
});

/// Output types of an operator in the default domain; `None` for an unknown type. `input` finds a value's type by
/// name.
pub(super) fn outputs(operator: &str, node: &Node, input: &dyn Fn(&str) -> Option<Known>) -> Vec<Option<ElementType>> {
    let Some(outputs) = BY_OPERATOR.get(operator) else { return Vec::new() };
    let of_input = |index: usize| input(node.inputs.get(index).filter(|name| !name.is_empty())?)?.ok();
    let plain = |word: &str| match word {
        "*" => (0..node.inputs.len()).find_map(of_input),
        _ => word.split('|').find_map(|word| match word.parse() {
            Ok(index) => of_input(index),
            Err(_) => DType::parse(word).ok().and_then(DataType::of),
        }),
    };
    let one = |word: &str| {
        let Some((attribute, otherwise)) = word.split_once('=') else { return plain(word) };
        match node.attribute(attribute) {
            Some(AttributeValue::Int(code @ 1..)) => DataType::of_code(*code),
            Some(AttributeValue::Tensor(tensor)) => Some(tensor.data_type),
            // The attribute is missing or UNDEFINED.
            None | Some(AttributeValue::Int(0)) => plain(otherwise),
            Some(_) => None,
        }
    };
    match outputs.strip_suffix('+') {
        Some(all) => vec![one(all); node.outputs.len()],
        None => outputs.split(' ').map(one).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_in_the_table_once_and_every_word_is_known() {
        let names = || OUTPUTS.iter().flat_map(|(_, names)| names.split(' '));
        assert_eq!(names().count(), BY_OPERATOR.len());
        for word in OUTPUTS.iter().flat_map(|(outputs, _)| outputs.trim_end_matches('+').split([' ', '|'])) {
            let word = word.split_once('=').map_or(word, |(_, otherwise)| otherwise);
            let is_known =
                word.is_empty() || word == "*" || word.parse::<usize>().is_ok() || DType::parse(word).is_ok();
            assert!(is_known, "{word}");
        }
    }
}
