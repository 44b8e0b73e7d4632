//! Neighboring decimal texts, for tests.

/// Subtracts one unit of the last digit from a nonzero decimal text.
pub fn one_less(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for digit in bytes.iter_mut().rev().filter(|b| **b != b'.') {
        if *digit != b'0' {
            *digit -= 1;
            break;
        }
        *digit = b'9';
    }
    String::from_utf8(bytes).unwrap()
}
