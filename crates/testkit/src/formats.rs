//! Narrow numbers by the words of their pages, for expectations that owe nothing to the code under test.

/// The value of an E4M3FN code: four bits of exponent of bias 7, three of fraction; 7F and FF are NaN.
#[must_use]
pub fn e4m3(code: u8) -> f32 {
    let (exponent, fraction) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => fraction * 2f32.powi(-9),
        _ => (8.0 + fraction) * 2f32.powi(exponent - 10),
    };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// The values of E2M1.
pub const E2M1: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// The nearest bf16, of ties the even one; NaN is 7FC0 with the sign.
#[must_use]
pub fn bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    match x.is_nan() {
        true => 0x7fc0 | (bits >> 16) as u16 & 0x8000,
        false => ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16,
    }
}

/// Elements of two bytes.
#[must_use]
pub fn halves(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}
