//! Records of conversions, and activation ranges: JSON that is read back.

use truecast::convert::recorded;
use truecast::report::Provenance;
use truecast::verify::Record;

use crate::accepted;
use crate::input_file::InputFile;

thread_local! {
    static REPORT: InputFile = InputFile::new("report.json");
    static MANIFEST: InputFile = InputFile::new("truecast-manifest.json");
    static RANGES: InputFile = InputFile::new("ranges.json");
}

/// A report, as in `verify --report`.
pub fn report(input: &[u8]) {
    REPORT.with(|file| {
        let record = accepted(Record::read(file.write(input)));
        record.iter().for_each(|record| says_the_same(&record.provenance));
    });
}

/// The manifest of a folder.
pub fn manifest(input: &[u8]) {
    MANIFEST.with(|file| {
        file.write(input);
        let provenance = accepted(recorded(file.folder()));
        provenance.iter().for_each(|found| says_the_same(found.as_ref().expect("the folder has a manifest")));
    });
}

fn says_the_same(provenance: &Provenance) {
    assert_eq!(Provenance::from_json(&provenance.to_json()).as_ref(), Ok(provenance));
}

/// A file for `--activation-ranges`.
pub fn activation_ranges(input: &[u8]) {
    RANGES.with(|file| {
        let ranges = accepted(truecast::convert::activation_ranges(file.write(input)));
        assert!(ranges.iter().flat_map(|ranges| ranges.values()).all(|range| range.is_finite() && *range > 0.0));
    });
}
