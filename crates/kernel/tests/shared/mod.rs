//! Levels and codes for tests.

#[allow(dead_code, reason = "not every test needs it")]
pub mod codes;

use truecast_kernel::Level;

/// Every level of this CPU, weakest first; prints the list. `TRUECAST_REQUIRE_LEVELS` has required levels, separated by
/// commas: a CPU without a required level fails the test.
///
/// # Panics
/// If the CPU lacks a required level.
pub fn levels() -> Vec<Level> {
    let levels = Level::available();
    let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
    println!("levels: {}", names.join(", "));
    let demanded = std::env::var("TRUECAST_REQUIRE_LEVELS").unwrap_or_default();
    if let Some(missing) = missing(&demanded, &names) {
        panic!("TRUECAST_REQUIRE_LEVELS demands {missing}, and this CPU has {}", names.join(", "));
    }
    levels
}

#[allow(dead_code, reason = "not every test needs it")]
pub fn strongest() -> Level {
    *levels().last().expect("there is a baseline")
}

/// First required level that is not in `names`.
fn missing<'a>(demanded: &'a str, names: &[&str]) -> Option<&'a str> {
    demanded.split(',').map(str::trim).find(|level| !level.is_empty() && !names.contains(level))
}

#[test]
fn a_level_that_is_not_there_is_missed() {
    assert_eq!(missing("avx2, avx512", &["baseline", "avx2"]), Some("avx512"));
    assert_eq!(missing("baseline,avx2", &["baseline", "avx2"]), None);
    assert_eq!(missing("", &["baseline"]), None);
}
