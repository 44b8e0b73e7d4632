//! Words and numbers of command lines, configurations, reports and manifests.

use truecast_core::promote::Element;
use truecast_core::spec::{onnx, tosa};
use truecast_core::{DType, Ecosystem, decimal, literal};
use truecast_schemes::Scheme;

/// Parses the input as a number, a type, a scheme and a version.
pub fn words(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let (Ok(number), Ok(literal::Literal::Number(typed))) = (decimal::parse(text), literal::read(text)) {
        assert_eq!(number, typed, "{text}");
    }
    let _ = literal::ratio(text);
    if let Ok(dtype) = DType::parse(text) {
        assert_eq!(DType::parse(dtype.name()), Ok(dtype));
    }
    for words in [Ecosystem::OpenVino, Ecosystem::Onnx] {
        let _ = Element::parse(text, Some(words));
    }
    match text.parse::<Scheme>() {
        Ok(scheme) => assert_eq!(scheme.to_string().parse(), Ok(scheme), "{text}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let _ = (text.parse::<tosa::Version>(), text.parse::<tosa::Feature>(), text.parse::<tosa::Freedoms>());
    let _ = text.parse::<onnx::RoundMode>();
}
