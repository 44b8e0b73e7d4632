//! Tables of `docs/spec/tile-ir.md` as literal rows. Section numbers refer to the page.

mod legality;
mod oracle;
mod request;
mod values;

use truecast_core::DType;
use truecast_core::spec::tile::*;

/// Element type that a short name of §1.3 means.
fn number(name: &str) -> DType {
    match name {
        "e4m3" => DType::F8E4M3Fn,
        "e5m2" => DType::F8E5M2,
        "e8m0" => DType::F8E8M0,
        "e2m1" => DType::F4E2M1,
        "ue5m3" => DType::F8E5M3Fnu,
        _ => Number::of_name(name).unwrap_or_else(|| panic!("{name}")).dtype,
    }
}

fn element(name: &str) -> ElementType {
    match name.strip_prefix("ptr ") {
        Some(pointee) => ElementType::Pointer(number(pointee)),
        None => ElementType::Number(number(name)),
    }
}

fn mode(letter: char) -> RoundingMode {
    match letter {
        'E' => RoundingMode::NearestEven,
        'Z' => RoundingMode::Zero,
        'N' => RoundingMode::NegativeInf,
        'P' => RoundingMode::PositiveInf,
        'A' => RoundingMode::NearestAway,
        _ => panic!("{letter}"),
    }
}

fn ftof(letter: char) -> Conversion {
    Conversion::Ftof { rounding: mode(letter) }
}

fn ftoi(signedness: Signedness, saturating: bool) -> Conversion {
    Conversion::Ftoi { signedness, rounding: RoundingMode::NearestIntToZero, saturating }
}

fn itof(signedness: Signedness) -> Conversion {
    Conversion::Itof { signedness, rounding: RoundingMode::NearestEven }
}

const OFF: Options = Cast::to(DType::F32).options;
