//! Options that reproduce a result, from `truecast::report::Provenance`.

use crate::message::quoted;
use truecast::convert::Options;
use truecast::io::Links;
use truecast::report::Provenance;
use truecast::setting::Setting;

/// Options such as `--spec onnx@28 --to f16 --keep '*norm*'`.
pub fn typed(provenance: &Provenance) -> String {
    let Provenance { request, seed, selection, min_elements, onnx, quantize, source_scheme, detected: _ } = provenance;
    let mut words = Vec::new();
    let mut say = |name: &str, value: Option<&str>| {
        words.push(value.map_or(format!("--{name}"), |value| format!("--{name} {}", quoted(value))));
    };
    if provenance.casts() {
        let version = request.version().map(|version| format!("@{version}"));
        say("spec", Some(&(request.spec().to_string() + &version.unwrap_or_default())));
        for (name, value) in request.attributes() {
            let is_flag = Setting::of_name(name).is_some_and(Setting::is_flag);
            say(&name.replace('_', "-"), Some(value.as_str()).filter(|_| !is_flag));
        }
    }
    if let Some(seed) = seed {
        say("seed", Some(&seed.to_string()));
    }
    for (name, dtype) in [("to", selection.to), ("from", selection.from)] {
        dtype.iter().for_each(|dtype| say(name, Some(dtype.name())));
    }
    if let Some(quantize) = quantize {
        say("scheme", Some(&quantize.scheme.to_string()));
        quantize.options().iter().for_each(|(name, value)| say(name, Some(value)));
    }
    if !selection.keep.is_empty() {
        let presets: Vec<&str> = selection.keep.iter().map(|preset| preset.name()).collect();
        say("keep-preset", Some(&presets.join(",")));
    }
    source_scheme.options().iter().for_each(|(name, value)| say(name, value.as_deref()));
    selection.rules.iter().for_each(|rule| say(rule.option(), Some(&rule.to_string())));
    if *min_elements != Options::default().min_elements {
        say("min-elements", Some(&min_elements.to_string()));
    }
    for (name, is_set) in [("lenient", onnx.lenient), ("follow-links", onnx.links == Links::All)] {
        if is_set {
            say(name, None);
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, RuleOrder};
    use clap::{CommandFactory, FromArgMatches};

    fn provenance(line: &[&str]) -> Provenance {
        let matches = Cli::command().get_matches_from(line);
        let Command::Convert(args) = Cli::from_arg_matches(&matches).unwrap().command else { panic!("{line:?}") };
        let options = Options {
            selection: super::super::select::selection(&args.select, &RuleOrder::of(&matches)).unwrap(),
            request: super::super::select::request(&args.policy, args.select.seed, false).unwrap(),
            seed: args.select.seed,
            min_elements: args.select.min_elements,
            onnx: args.select.onnx.options(),
            source_scheme: super::super::select::reading(&args.scheme),
            ..Options::default()
        };
        Provenance::of(&options)
    }

    #[test]
    fn options_become_options_again() {
        for line in [
            "--to f16",
            "--spec onnx@21 --saturate false --to f8e4m3fn",
            "--spec onnx@28 --seed 18446744073709551615 --to bf16",
            "--spec onnx@28 --round-mode nearest --nan canonical --to f8e8m0 --from f8e5m2",
            "--spec tosa@1.1 --to i8",
            "--spec onnx@28 --string-style plain --to string",
            "--spec ieee --string-style plain --rounding up --to string",
            "--spec openvino --to i8",
            "--spec ptx@9 --relu --to f16",
            "--spec arm --scale-exponent -3 --to f8e4m3fn",
            "--spec tile@13.5 --to f16",
            "--spec tile@13.4 --profile hw --rounding zero --saturating --tile-option preserve_inf \
             --tile-option e4m3_nan=spec-literal --to f8e5m2",
            "--spec ieee --rounding odd --overflow error --inf saturate --int-overflow saturate --nan-to-int error \
             --subnormals flush --to f16",
            "--rule a=b*=f16 --keep *.norm --rule *=bf16 --min-elements 1 --lenient --follow-links",
            "--to f16 --keep-preset norms,ssm --from-scheme fp8-block:64x128 --trust-scales --nibbles low --reference x",
        ] {
            let start = ["truecast", "convert", "a", "b"];
            let asked = provenance(&start.into_iter().chain(line.split_whitespace()).collect::<Vec<_>>());
            let said = typed(&asked);
            let words: Vec<String> = said.split(' ').map(|word| word.replace('\'', "")).collect();
            let again = provenance(&start.into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>());
            assert_eq!(again, asked, "{line}: {said}");
        }
    }
}
