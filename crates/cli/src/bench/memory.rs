//! Free memory, as Linux reports it under `/proc`.

/// Returns the bytes that can be allocated without moving other programs out of memory; `None` if the system does not
/// report them.
pub(super) fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
