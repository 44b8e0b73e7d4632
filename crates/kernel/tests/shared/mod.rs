//! The levels that tests run at, and the codes that they convert.

#[allow(dead_code, reason = "not every test needs it")]
pub mod codes;

use truecast_kernel::Level;

/// Every level of this CPU, weakest first, as it is printed. `TRUECAST_REQUIRE_LEVELS` demands some, by their names
/// with commas between: a runner without them fails instead of passing unrun.
///
/// # Panics
/// If the CPU lacks a demanded level.
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

/// The first of the demanded levels that is not in `names`.
fn missing<'a>(demanded: &'a str, names: &[&str]) -> Option<&'a str> {
    demanded.split(',').map(str::trim).find(|level| !level.is_empty() && !names.contains(level))
}

#[test]
fn a_level_that_is_not_there_is_missed() {
    assert_eq!(missing("avx2, avx512", &["baseline", "avx2"]), Some("avx512"));
    assert_eq!(missing("baseline,avx2", &["baseline", "avx2"]), None);
    assert_eq!(missing("", &["baseline"]), None);
}
