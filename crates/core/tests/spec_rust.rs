//! `rust`: the table against the casts of the compiler.

use truecast_core::spec::table::Cast;
use truecast_core::{DType, Outcome, cast_one};

trait Native: Copy {
    const DTYPE: DType;
    fn of(code: u64) -> Self;
    fn code(self) -> u64;
    /// All NaN are equal here.
    fn is_nan(self) -> bool;
}

macro_rules! natives {
    ($($native:ident $dtype:ident $of:expr, $code:expr, $is_nan:expr;)*) => {$(
        impl Native for $native {
            const DTYPE: DType = DType::$dtype;
            fn of(code: u64) -> Self { ($of)(code) }
            fn code(self) -> u64 { ($code)(self) }
            fn is_nan(self) -> bool { ($is_nan)(self) }
        }
    )*};
}

natives! {
    i8 I8 |c| c as i8, |x: i8| u64::from(x as u8), |_| false;
    u8 U8 |c| c as u8, u64::from, |_| false;
    i16 I16 |c| c as i16, |x: i16| u64::from(x as u16), |_| false;
    u16 U16 |c| c as u16, u64::from, |_| false;
    i32 I32 |c| c as i32, |x: i32| u64::from(x as u32), |_| false;
    u32 U32 |c| c as u32, u64::from, |_| false;
    i64 I64 |c| c as i64, |x: i64| x as u64, |_| false;
    u64 U64 |c| c, |x| x, |_| false;
    f32 F32 |c| f32::from_bits(c as u32), |x: f32| u64::from(x.to_bits()), f32::is_nan;
    f64 F64 f64::from_bits, f64::to_bits, f64::is_nan;
}

fn codes() -> Vec<u64> {
    let mut codes: Vec<u64> = (0..1 << 16).collect();
    let mut near = |code: u64| codes.extend((0..4).flat_map(|off| [code.wrapping_add(off), code.wrapping_sub(off)]));
    for power in 0..1100i32 {
        for sign in [1.0, -1.0] {
            for value in [2f64.powi(power - 550), 1.5 * 2f64.powi(power - 550)] {
                near((sign * value).to_bits());
                near(u64::from(((sign * value) as f32).to_bits()));
            }
        }
    }
    (0..64).for_each(|bit| near(1 << bit));
    [f64::NAN.to_bits(), f64::INFINITY.to_bits(), u64::from(f32::NAN.to_bits()), u64::from(f32::INFINITY.to_bits())]
        .into_iter()
        .for_each(&mut near);
    let mut state = 1u64;
    codes.extend((0..1 << 18).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 31
    }));
    codes
}

fn agrees<S: Native, D: Native>(codes: &[u64], cast: fn(S) -> D) {
    if S::DTYPE == D::DTYPE {
        return;
    }
    let spec = Cast { to: D::DTYPE, ..Cast::find("rust", None).unwrap().unwrap() }.resolve(S::DTYPE).unwrap();
    let mask = u64::MAX >> (64 - S::DTYPE.code_bits());
    for code in codes.iter().map(|code| code & mask) {
        let by_language = cast(S::of(code));
        let Outcome::Defined(by_table) = cast_one(&spec, code) else { panic!("{} to {}", S::DTYPE, D::DTYPE) };
        let same = by_language.code() == by_table || (by_language.is_nan() && D::of(by_table).is_nan());
        assert!(same, "{} {code:#x} to {}: {:#x}, not {by_table:#x}", S::DTYPE, D::DTYPE, by_language.code());
    }
}

#[test]
fn as_this_compiler() {
    let codes = codes();
    macro_rules! from {
        ($($src:ident)*) => {$( from!(@to $src i8 u8 i16 u16 i32 u32 i64 u64 f32 f64); )*};
        (@to $src:ident $($dst:ident)*) => {$( agrees::<$src, $dst>(&codes, |x| x as $dst); )*};
    }
    from!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);
}
