//! A custom floating-point format: values of codes, casts, neighbors.
//!
//!     cargo run --release --example own_format

use truecast::exact::{decode, decode_float, encode_float};
use truecast::explain::explain_format;
use truecast::format::{FormatError, Specials};
use truecast::{CastPolicy, DType, FloatFormat, decimal};

fn main() -> Result<(), FormatError> {
    // Seven bits: sign, three exponent bits, three fraction bits. No infinities, as in f8e4m3fn.
    let e3m3 = FloatFormat { specials: Specials::Fn, ..FloatFormat::ieee(3, 3)? };
    e3m3.check()?;
    let shown = |code| decimal::to_decimal(decode_float(&e3m3, code));
    println!("{} bits, largest {}, smallest {}", e3m3.bits(), shown(e3m3.max_code()), shown(1));

    for x in [0.1f32, 1.0625, -29.0, 1e9] {
        let value = decode(DType::F32, x.to_bits().into());
        let code = encode_float(&e3m3, &CastPolicy::IEEE, value).code.expect("no policy refuses anything");
        let place = explain_format(value, &e3m3)?;
        let near = [place.below, place.above].map(|e| e.map_or("-".into(), |e| decimal::to_decimal(e.value)));
        println!("{x:?} -> {code:#09b} = {}, between {} and {}: {:?}", shown(code), near[0], near[1], place.decision);
    }
    // Contradictory fields are an error.
    println!("{}", FloatFormat::ieee(8, 0).unwrap_err());
    Ok(())
}
