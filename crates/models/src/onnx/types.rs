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

/// Types of the outputs, one word per output, and the operators with these outputs, in the order of the words:
///
/// | word | type of the output |
/// |---|---|
/// | `0\|2` | type of input 0 or 2, which are equal |
/// | `*` | type of any input |
/// | `0+` | all further outputs are the same |
/// | `bool` | this type |
/// | `dtype=0` | type that the attribute names, or that its tensor has; else the type or the input after `=` |
const OUTPUTS: &[(&str, &str)] = &[
    ("*", "Concat Einsum Max Mean Min Sum"),
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
    ("0 3|4 3|4 0|1|2|3|4 0|1|2|3|4", "BatchNormalization"),
    ("0 i64", "MaxPool TopK"),
    ("0 i64 i64 i64", "Unique"),
    ("0+", "Split"),
    (
        "0|1",
        "Add BitShift BitwiseAnd BitwiseOr BitwiseXor Div MatMul MaxRoiPool Mod Mul PRelu RoiAlign StringConcat Sub \
         SwiGLU TensorScatter",
    ),
    (
        "0|1|2",
        "Conv ConvTranspose Gemm GroupNormalization InstanceNormalization LayerNormalization Range RotaryEmbedding",
    ),
    ("0|1|2|3 0|1|2|3", "CausalConvWithState"),
    ("0|1|2|3|4", "DeformConv"),
    ("0|1|2|3|5 0|1|2|3|5", "GRU RNN"),
    ("0|1|2|3|5|6|7 0|1|2|3|5|6|7 0|1|2|3|5|6|7", "LSTM"),
    ("0|1|2|4|5 3", "LinearAttention"),
    ("0|1|4 0|1|4 2|5 0|1|4", "Attention"),
    ("0|2", "NegativeLogLikelihoodLoss STFT Scatter ScatterElements ScatterND"),
    ("0|2 0|2", "SoftmaxCrossEntropyLoss"),
    ("1", "RMSNormalization"),
    ("1|2", "Where"),
    ("2", "NonMaxSuppression OneHot"),
    ("7", "QLinearConv QLinearMatMul"),
    ("bool", "And Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual OptionalHasElement Or RegexFullMatch Xor"),
    ("dtype=0", "Bernoulli EyeLike RandomNormalLike RandomUniformLike"),
    ("dtype=f32", "RandomNormal RandomUniform"),
    ("dtype=i32", "Multinomial"),
    ("f32", "TfIdfVectorizer"),
    ("i32", "ConvInteger MatMulInteger"),
    ("i64", "ArgMax ArgMin NonZero SequenceLength Shape Size"),
    ("output_datatype=f32", "BlackmanWindow HammingWindow HannWindow MelWeightMatrix"),
    ("output_dtype=1", "DequantizeLinear"),
    ("output_dtype=2", "QuantizeLinear"),
    ("string i64", "StringSplit"),
    ("to=", "BitCast"),
    ("u8", "ImageDecoder"),
    ("u8 f32 u8", "DynamicQuantizeLinear"),
    ("value=f32", "ConstantOfShape"),
];

static BY_OPERATOR: LazyLock<HashMap<&str, Outputs>> = LazyLock::new(|| {
    OUTPUTS.iter().flat_map(|(words, names)| names.split(' ').map(|name| (name, Outputs::parse(words)))).collect()
});

enum Outputs {
    /// One for each output.
    Each(Vec<Output>),
    /// The same for all outputs.
    All(Output),
}

/// Type of an output.
enum Output {
    /// Type of the first of these inputs that is known.
    Inputs(Vec<usize>),
    AnyInput,
    Type(ElementType),
    Attribute {
        name: &'static str,
        otherwise: Option<Box<Output>>,
    },
}

impl Outputs {
    /// # Panics
    /// If the table's language lacks a word.
    fn parse(words: &'static str) -> Outputs {
        match words.strip_suffix('+') {
            Some(all) => Outputs::All(Output::parse(all)),
            None => Outputs::Each(words.split(' ').map(Output::parse).collect()),
        }
    }
}

impl Output {
    fn parse(word: &'static str) -> Output {
        if let Some((name, otherwise)) = word.split_once('=') {
            let otherwise = (!otherwise.is_empty()).then(|| Box::new(Output::parse(otherwise)));
            return Output::Attribute { name, otherwise };
        }
        if word == "*" {
            return Output::AnyInput;
        }
        match word.split('|').map(str::parse).collect::<Result<Vec<usize>, _>>() {
            Ok(inputs) => Output::Inputs(inputs),
            Err(_) => {
                let data_type = DType::parse(word).ok().and_then(DataType::of);
                Output::Type(data_type.unwrap_or_else(|| panic!("{word} is no type")))
            }
        }
    }

    /// `input`: type of the input with this index.
    fn resolve(&self, node: &Node, input: &dyn Fn(usize) -> Option<ElementType>) -> Option<ElementType> {
        match self {
            Output::Inputs(inputs) => inputs.iter().find_map(|index| input(*index)),
            Output::AnyInput => (0..node.inputs.len()).find_map(input),
            Output::Type(data_type) => Some(*data_type),
            Output::Attribute { name, otherwise } => match node.attribute(name) {
                Some(AttributeValue::Int(code @ 1..)) => DataType::of_code(*code),
                Some(AttributeValue::Tensor(tensor)) => Some(tensor.data_type),
                // The attribute is missing or UNDEFINED.
                None | Some(AttributeValue::Int(0)) => otherwise.as_ref()?.resolve(node, input),
                Some(_) => None,
            },
        }
    }
}

/// Output types of an operator in the default domain; `None` for an unknown type. `input` finds a value's type by
/// name.
pub(super) fn outputs(operator: &str, node: &Node, input: &dyn Fn(&str) -> Option<Known>) -> Vec<Option<ElementType>> {
    let of_input = |index: usize| input(node.inputs.get(index).filter(|name| !name.is_empty())?)?.ok();
    match BY_OPERATOR.get(operator) {
        None => Vec::new(),
        Some(Outputs::Each(outputs)) => outputs.iter().map(|output| output.resolve(node, &of_input)).collect(),
        Some(Outputs::All(output)) => vec![output.resolve(node, &of_input); node.outputs.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_in_the_table_once() {
        let names = || OUTPUTS.iter().flat_map(|(_, names)| names.split(' '));
        assert_eq!(names().count(), BY_OPERATOR.len());
    }
}
