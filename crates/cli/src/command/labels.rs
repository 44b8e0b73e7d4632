//! Labels of answers: the name of the specification, with as many attributes as are needed to distinguish the answers.

use truecast::spec::Interpretation;

/// Text such as `onnx@28`.
pub fn name_of(spec: &str, version: &str) -> String {
    if version.is_empty() { spec.into() } else { format!("{spec}@{version}") }
}

/// Text such as `onnx@28:saturate=0`, in the notation of `differ`.
pub fn words(i: &Interpretation) -> String {
    with(name_of(i.spec, &i.version), attributes(i))
}

/// Short names of the answers in each class. A short name has only the attributes that distinguish the class from all
/// other classes, and the version if needed.
pub fn by_class(all: &[(&Interpretation, usize)]) -> Vec<Vec<String>> {
    let classes = all.iter().map(|(_, class)| class + 1).max().unwrap_or(0);
    let mut labels = vec![Vec::new(); classes];
    for one in all {
        let label = short(one, all);
        if !labels[one.1].contains(&label) {
            labels[one.1].push(label);
        }
    }
    labels
}

fn attributes(i: &Interpretation) -> impl Iterator<Item = &str> {
    i.attributes.split(", ").filter(|attribute| !attribute.is_empty())
}

fn setting(attribute: &str) -> &str {
    attribute.split('=').next().unwrap_or_default()
}

fn with<'a>(name: String, attributes: impl Iterator<Item = &'a str>) -> String {
    let attributes: Vec<&str> = attributes.collect();
    if attributes.is_empty() { name } else { format!("{name}:{}", attributes.join(",")) }
}

fn chosen_of<'a>(i: &'a Interpretation, settings: &'a [&str]) -> impl Iterator<Item = &'a str> {
    attributes(i).filter(|attribute| settings.contains(&setting(attribute)))
}

/// The name with the fewest attributes that determine the class. If the attributes do not determine the class: the
/// version and all attributes.
fn short((i, class): &(&Interpretation, usize), all: &[(&Interpretation, usize)]) -> String {
    let of_name = || all.iter().filter(|(other, _)| other.spec == i.spec);
    let mut known: Vec<&str> = Vec::new();
    for attribute in of_name().flat_map(|(other, _)| attributes(other)) {
        if !known.contains(&setting(attribute)) {
            known.push(setting(attribute));
        }
    }
    let chosen = |set: u32| -> Vec<&str> {
        let is_in = |(at, _): &(usize, &&str)| set >> at & 1 == 1;
        known.iter().enumerate().filter(is_in).map(|(_, setting)| *setting).collect()
    };
    let decides = |settings: &Vec<&str>| {
        let mine = with(i.spec.into(), chosen_of(i, settings));
        of_name().all(|(other, of)| of == class || with(other.spec.into(), chosen_of(other, settings)) != mine)
    };
    let mut sets: Vec<u32> = (0..1 << known.len()).collect();
    sets.sort_by_key(|set| set.count_ones());
    let fewest = sets.into_iter().map(chosen).find(decides);
    fewest.map_or_else(|| words(i), |settings| with(i.spec.into(), chosen_of(i, &settings)))
}
