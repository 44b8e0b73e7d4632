//! Multiplier and shift for a scale: `docs/spec/tosa.md §4.7`.

use truecast_core::rescale::{Channel, ScaleError};
use truecast_testkit::random::Random;

/// The multiplier is the nearest at the shift. With the shift, the multiplier has all its significant bits.
#[test]
fn nearest_and_normal() {
    let mut random = Random::seeded(1);
    for i in 0..20_000 {
        let scale = (1.0 + (random.next() >> 12) as f64 / (1u64 << 52) as f64) * 2f64.powi(i % 90 - 62);
        for (scale32, bits) in [(true, 31), (false, 15)] {
            let Ok(Channel { multiplier, shift }) = Channel::of_scale(scale, scale32) else {
                assert!(scale >= 2f64.powi(bits - 3), "{scale}");
                continue;
            };
            assert!((2..=62).contains(&shift) && (0..1i64 << bits).contains(&i64::from(multiplier)));
            assert!(shift == 62 || multiplier >= 1 << (bits - 1), "{scale}: {multiplier} {shift}");
            let exact = scale * 2f64.powi(shift.into()); // a power of two changes no bit
            assert!((exact - f64::from(multiplier)).abs() <= 0.5, "{scale}: {multiplier} {shift}");
        }
    }
}

/// §4.7: scale 1.0, powers of two, and the largest and smallest scales.
#[test]
fn by_hand() {
    let of = |scale, scale32| Channel::of_scale(scale, scale32).map(|c| (c.multiplier, c.shift));
    assert_eq!((of(1.0, true), of(1.0, false)), (Ok((1 << 30, 30)), Ok((1 << 14, 14))));
    assert_eq!(of(1.5, true), Ok((3 << 29, 30)));
    assert_eq!(of(2f64.powi(28), true), Ok((1 << 30, 2)));
    assert_eq!(of(2f64.powi(29), true), Err(ScaleError::TooLarge { scale: 2f64.powi(29), largest: 2f64.powi(28) }));
    // Rounds up to the next power of two.
    assert_eq!(of(1.0 - 2f64.powi(-33), true), Ok((1 << 30, 30)));
    assert_eq!(
        (of(2f64.powi(-62), true), of(2f64.powi(-63), true), of(2f64.powi(-64), true)),
        (Ok((1, 62)), Ok((1, 62)), Ok((0, 62)))
    );
    assert_eq!(of(0.0, true), Ok((0, 62)));
    for wrong in [-1.0, f64::NAN, f64::INFINITY, -f64::MIN_POSITIVE] {
        assert!(matches!(of(wrong, true), Err(ScaleError::NotAScale(_))), "{wrong}");
    }
}
