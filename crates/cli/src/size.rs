//! Sizes on the command line: bytes, KiB/MiB/GiB (short: K, M, G), kB/MB/GB.

/// Parses `32MiB`, `1.5GB`, `512M` or `65536`. A unit of one letter is binary: `M` means MiB.
///
/// # Errors
/// A message with the expected notation.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim_start());
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => {
            return Err(format!(
                "unknown unit {unit:?}; known units are K or KiB, M or MiB, G or GiB, and the decimal units kB, MB, GB"
            ));
        }
    };
    let value: f64 = number.parse().map_err(|_| format!("{text:?} is not a size such as 64MiB"))?;
    let bytes = value * factor as f64;
    if bytes.is_finite() && bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(format!("{text:?} is too large")) }
}
