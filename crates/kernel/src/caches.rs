//! Sizes of caches, read from `/sys` on Linux.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Sizes of data caches in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// L2 of one core.
    pub l2: u64,
    /// One last-level cache.
    pub llc: u64,
    /// Sum of all last-level caches; a processor of several chiplets has several.
    pub all_llcs: u64,
}

/// Sizes of a common server core, for systems that report no sizes.
const FALLBACK: Caches = Caches { l2: 1 << 20, llc: 32 << 20, all_llcs: 32 << 20 };

impl Caches {
    /// Returns the caches that the system reports, read once. The fallback is 1 MiB of L2 and 32 MiB of last-level
    /// cache.
    pub fn of_this_machine() -> Caches {
        static CACHES: OnceLock<Caches> = OnceLock::new();
        *CACHES.get_or_init(|| Caches::described_in(Path::new("/sys/devices/system/cpu")))
    }

    /// Returns the bytes of last-level cache that a conversion can expect. Above 96 MiB, dozens of cores share a cache,
    /// often with other virtual machines, so 8 MiB are expected (`docs/kernels.md §8`).
    pub fn counted_on(&self) -> u64 {
        const OF_FEW_CORES: u64 = 96 << 20;
        if self.llc > OF_FEW_CORES { 8 << 20 } else { self.llc }
    }

    fn described_in(folder: &Path) -> Caches {
        let of_first = DataCache::all_of(&folder.join("cpu0/cache"));
        let l2 = of_first.iter().find(|c| c.level == 2).map_or(FALLBACK.l2, |c| c.bytes);
        let Some(last) = of_first.iter().max_by_key(|c| c.level) else { return FALLBACK };
        let cpus = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path().join("cache"));
        let of_last_level = cpus.flat_map(|cpu| DataCache::all_of(&cpu)).filter(|c| c.level == last.level);
        let llcs: BTreeSet<(String, u64)> = of_last_level.map(|c| (c.shared_by, c.bytes)).collect();
        Caches { l2, llc: last.bytes, all_llcs: llcs.iter().map(|(_, bytes)| bytes).sum() }
    }
}

struct DataCache {
    level: u32,
    bytes: u64,
    /// Cores that share the cache, in the system's notation.
    shared_by: String,
}

impl DataCache {
    fn all_of(folder: &Path) -> Vec<DataCache> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| DataCache::described_in(&entry.path())).collect()
    }

    fn described_in(folder: &Path) -> Option<DataCache> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_string());
        let holds_data = read("type")? != "Instruction";
        let cache = DataCache {
            level: read("level")?.parse().ok()?,
            bytes: size(&read("size")?)?,
            shared_by: read("shared_cpu_list")?,
        };
        (holds_data && cache.bytes > 0).then_some(cache)
    }
}

/// Returns the number of bytes that a text states, for example `1024K` or `32M`.
fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match &text[digits..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(folder: &Path, cpu: u32, index: u32, [level, kind, size, shared]: [&str; 4]) {
        let folder = folder.join(format!("cpu{cpu}/cache/index{index}"));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)] {
            fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn caches_of_two_chiplets() {
        let folder = tempfile::tempdir().unwrap();
        for cpu in 0..4 {
            let [own, pair] = [cpu.to_string(), if cpu < 2 { "0-1".into() } else { "2-3".to_string() }];
            describe(folder.path(), cpu, 0, ["1", "Data", "48K", &own]);
            describe(folder.path(), cpu, 1, ["1", "Instruction", "32K", &own]);
            describe(folder.path(), cpu, 2, ["2", "Unified", "512K", &own]);
            describe(folder.path(), cpu, 3, ["3", "Unified", "16M", &pair]);
        }
        let expected = Caches { l2: 512 << 10, llc: 16 << 20, all_llcs: 32 << 20 };
        assert_eq!(Caches::described_in(folder.path()), expected);
    }

    #[test]
    fn a_cache_of_dozens_of_cores_is_not_counted_on() {
        let of = |llc| Caches { l2: 2 << 20, llc, all_llcs: llc }.counted_on();
        assert_eq!([of(32 << 20), of(96 << 20)], [32 << 20, 96 << 20]);
        assert_eq!([of(105 << 20), of(480 << 20)], [8 << 20; 2]);
    }

    #[test]
    fn a_system_that_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Caches::described_in(folder.path()), FALLBACK);
        assert_eq!(Caches::described_in(&folder.path().join("missing")), FALLBACK);
        describe(folder.path(), 0, 0, ["2", "Unified", "many", "0"]);
        assert_eq!(Caches::described_in(folder.path()), FALLBACK);
    }

    #[test]
    fn sizes() {
        assert_eq!(["48K", "32M", "1G", "7"].map(size), [Some(48 << 10), Some(32 << 20), Some(1 << 30), Some(7)]);
        assert_eq!(["", "K", "1T"].map(size), [None; 3]);
    }
}
