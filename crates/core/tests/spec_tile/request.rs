//! One conversion between two types of truecast, `docs/interfaces.md §2`.

use super::*;
use truecast_core::spec::SpecError;
use truecast_core::{Outcome, cast_one};

fn conversion(src: DType, to: DType) -> Conversion {
    Cast::to(to).conversion(src).unwrap_or_else(|e| panic!("{src} to {to}: {e}")).0
}

#[test]
fn operations_by_type() {
    use DType::*;
    use Signedness::{Signed, Unsigned};
    assert_eq!(conversion(F32, F16), ftof('E'));
    assert_eq!(conversion(F32, I8), ftoi(Signed, false));
    assert_eq!(conversion(F32, U8), ftoi(Unsigned, false));
    assert_eq!(conversion(F32, Bool), ftoi(Unsigned, false));
    assert_eq!(conversion(U64, F32), itof(Unsigned));
    assert_eq!(conversion(Bool, F32), itof(Unsigned));
    assert_eq!(conversion(I1, F32), itof(Signed));
    assert_eq!(conversion(I8, U16), Conversion::Exti { signedness: Signed });
    assert_eq!(conversion(Bool, I16), Conversion::Exti { signedness: Unsigned });
    assert_eq!(conversion(U32, I4), Conversion::Trunci { overflow: IntegerOverflow::None });
    assert_eq!(conversion(I8, U8), Conversion::Bitcast);
    assert_eq!(conversion(F32, F32), Conversion::Bitcast);
}

#[test]
fn casts_agree_with_their_meaning() {
    let mut casts = 0;
    for profile in Profile::ALL {
        for src in DType::ALL.into_iter().filter(|d| d.is_numeric() && d.code_bits() <= 8) {
            for to in DType::ALL.into_iter().filter(|d| d.is_numeric()) {
                for (saturating, rounding) in [(false, None), (true, None), (false, Some(RoundingMode::Zero))] {
                    let cast = Cast { profile, saturating, rounding, ..Cast::to(to) };
                    let Ok(meaning) = cast.meaning(src) else {
                        assert!(cast.resolve(src).is_err(), "{src} to {to}");
                        continue;
                    };
                    match cast.resolve(src) {
                        Ok(spec) => {
                            casts += 1;
                            assert_eq!((spec.src, spec.dst), (src, to));
                            for code in 0..1 << src.code_bits() {
                                let (cast, element) = (cast_one(&spec, code), meaning.element(code).outcome);
                                assert_eq!(cast, element, "{src} {code:x} to {to}, {cast:?}");
                            }
                        }
                        Err(SpecError::NoSingleCast { .. }) => {}
                        Err(error) => panic!("{src} to {to}: {error}"),
                    }
                }
            }
        }
    }
    assert!(casts > 500, "{casts}");
}

#[test]
fn what_is_no_single_cast() {
    use DType::*;
    let refused = |cast: Cast, src| matches!(cast.resolve(src), Err(SpecError::NoSingleCast { .. }));
    assert!(refused(Cast { profile: Profile::Hw, ..Cast::to(I8) }, F32)); // through 16 bits
    assert!(refused(Cast::to(Bool), F32)); // a test, with the undefined inputs of the text
    assert!(refused(Cast::to(Bool), I32)); // bit 0, which no cast to bool is
    assert!(!refused(Cast { saturating: true, ..Cast::to(Bool) }, F32));
    let hw = Cast { profile: Profile::Hw, ..Cast::to(I32) }.resolve(F32).unwrap();
    assert_eq!(cast_one(&hw, 1e20f32.to_bits().into()), Outcome::Defined(0x7FFF_FFFF));
}

#[test]
fn refusals() {
    use DType::*;
    let error = |cast: Cast, src| cast.resolve(src).unwrap_err();
    for dtype in [U2, F6E2M3, F8E4M3Fnuz, I48, String, U1, C64] {
        assert!(matches!(error(Cast::to(dtype), F32), SpecError::Type { .. }), "{dtype}");
        assert!(matches!(error(Cast::to(F32), dtype), SpecError::Type { .. }), "{dtype}");
    }
    for (dtype, since) in [(F8E8M0, Release::V13_2), (F4E2M1, Release::V13_3), (F8E5M3Fnu, Release::V13_4)] {
        for release in Release::ALL {
            let lacks = matches!(Cast { release, ..Cast::to(F32) }.resolve(dtype), Err(SpecError::Type { .. }));
            assert_eq!(lacks, release < since, "{dtype} in {release}");
        }
    }
    let early = Cast { saturating: true, release: Release::V13_3, ..Cast::to(I8) };
    assert!(matches!(error(early, F32), SpecError::Attribute { name: "saturating", .. }));
    let message = error(Cast::to(F8E8M0), F32).to_string();
    assert!(message.starts_with("T008: ftof: nearest_even is not allowed"), "{message}");
    for text in ["13.0", "13.6", "", "newest"] {
        assert!(text.parse::<Rules>().is_err(), "{text}");
    }
    assert_eq!("file".parse::<Rules>().unwrap().release(Release::V13_2), Release::V13_2);
    assert_eq!("13.4".parse::<Rules>().unwrap().release(Release::V13_2), Release::V13_4);
    assert!("gpu".parse::<Profile>().is_err());
    let mut options = OFF;
    for name in [
        "preserve_inf", "e4m3_nan=spec-literal", "canonical_nan", "i1_ftoi=truncate", "tf32_as_32_bit",
        "legacy_double_rounding", "strict",
    ] {
        let before = options;
        options.set(name).unwrap();
        assert_ne!(before, options, "{name}");
    }
    for name in ["", "strict=1", "i1_ftoi", "e4m3_nan=448"] {
        assert!(options.set(name).is_err(), "{name}");
    }
}
