//! What conversions write down about themselves, and what is told of activations: JSON that is read back.

use truecast::convert::recorded;
use truecast::report::Provenance;
use truecast::verify::Record;

use crate::harmless;
use crate::place::Place;

thread_local! {
    static REPORT: Place = Place::new("report.json");
    static MANIFEST: Place = Place::new("truecast-manifest.json");
    static RANGES: Place = Place::new("ranges.json");
}

/// A report of `convert`, as `verify --report` reads it.
pub fn report(input: &[u8]) {
    REPORT.with(|place| match Record::read(place.holding(input)) {
        Ok(record) => says_the_same(&record.provenance),
        Err(error) => harmless(error),
    });
}

/// The manifest of a folder.
pub fn manifest(input: &[u8]) {
    MANIFEST.with(|place| {
        place.holding(input);
        match recorded(place.folder()) {
            Ok(provenance) => says_the_same(&provenance.expect("the folder has a manifest")),
            Err(error) => harmless(error),
        }
    });
}

/// What is read and written is read again.
fn says_the_same(provenance: &Provenance) {
    assert_eq!(Provenance::from_json(&provenance.to_json()).as_ref(), Ok(provenance));
}

/// The file of `--activation-ranges`.
pub fn activation_ranges(input: &[u8]) {
    RANGES.with(|place| match truecast::convert::activation_ranges(place.holding(input)) {
        Ok(ranges) => assert!(ranges.values().all(|range| range.is_finite() && *range > 0.0)),
        Err(error) => harmless(error),
    });
}
