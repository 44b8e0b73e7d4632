//! Projects an array of f64 into a format of IEEE P3109: from standard input to standard output, both little-endian; a
//! code of up to 8 bits takes one byte, a wider one eight.
//!
//!     cargo run --release --example p3109 -- binary8p4se NearestTiesToEven SatNone < numbers > codes
//!     cargo run --release --example p3109 -- binary8p4se StochasticA:5/3 SatFinite < numbers > codes

use std::error::Error;
use std::io::{Read, Write, stdin, stdout};
use truecast::exact::{RandomBits, Stochastic, decode};
use truecast::spec::p3109::{Format, ROUNDINGS, Saturation};
use truecast::{DType, Exact};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [format, rounding, saturation] = &words[..] else { return Err("FORMAT ROUNDING SATURATION".into()) };
    let format: Format = format.parse()?;
    let saturation = Saturation::of_name(saturation).ok_or("SatFinite, SatPropagate or SatNone")?;
    let fixed = ROUNDINGS.into_iter().find(|(name, _)| name == rounding);
    let project: Box<dyn Fn(Exact) -> u64> = match (fixed, rounding.split_once(':')) {
        (Some((_, rounding)), _) => Box::new(move |value| format.project(rounding, saturation, value)),
        (None, Some((variant, random))) => {
            let variant = Stochastic::of_name(variant).ok_or("StochasticA, StochasticB or StochasticC")?;
            let (bits, count) = random.split_once('/').ok_or("random bits are R/N")?;
            let random = RandomBits::new(bits.parse()?, count.parse()?).ok_or("R is below 2^N")?;
            Box::new(move |value| format.project_stochastic(variant, random, saturation, value))
        }
        (None, None) => return Err(format!("{rounding} is not a rounding mode").into()),
    };
    let mut numbers = Vec::new();
    stdin().read_to_end(&mut numbers)?;
    let bytes = if format.float().bits() > 8 { 8 } else { 1 };
    let mut codes = Vec::with_capacity(numbers.len() / 8 * bytes);
    for number in numbers.as_chunks::<8>().0 {
        let code = project(decode(DType::F64, u64::from_le_bytes(*number)));
        codes.extend_from_slice(&code.to_le_bytes()[..bytes]);
    }
    Ok(stdout().write_all(&codes)?)
}
