//! `truecast convert SRC.. FOLDER`: converts each source to a file or folder of the same name.

use super::{convert_source, options};
use crate::args::{ConvertArgs, RuleOrder};
use crate::command::Context;
use crate::failure::Failure;
use crate::table::Mark;
use crate::{message, output, signals};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::Ordering;
use truecast::ErrorKind;
use truecast::convert::Plan;
use truecast::io::{NewFolder, look};
use truecast::paths;

/// Converts the sources in order; a failure does not stop the next ones. Usage errors and missing sources are reported
/// before anything is written. Returns the highest exit code.
pub fn run(
    sources: &[&Path],
    folder: &Path,
    args: &ConvertArgs,
    rules: &RuleOrder,
    context: &Context,
) -> Result<u8, Failure> {
    check_options(args)?;
    paths::check_folder(folder)
        .map_err(|error| Failure::from(error).with_hint("the last of several paths is the folder to write to"))?;
    let options = options(args, rules, context.exec)?;
    let mut requests: Vec<ConvertArgs> = Vec::new();
    for source in sources {
        let dst = look::inside(folder, Path::new(name_of(source)?))?;
        if let Some(other) = requests.iter().find(|other| other.dst == dst) {
            let [first, second, dst] = [&other.src, *source, &dst].map(|path| path.display());
            return Err(failure!(
                DestinationExists,
                "{first} and {second} would both become {dst}; convert one of them alone"
            ));
        }
        requests.push(ConvertArgs { src: source.to_path_buf(), dst, more: Vec::new(), ..args.clone() });
    }
    // Dropping `_made` removes the folder if the folder is still empty.
    let _made = NewFolder::make(folder)?;
    for ConvertArgs { src, dst, .. } in &requests {
        match Plan::new(src, dst, &options).and_then(|plan| plan.check()) {
            Err(error) if error.kind() == ErrorKind::Usage || look::at(src)?.is_none() => return Err(error.into()),
            _ => {}
        }
    }
    let mut worst = 0;
    for (at, request) in requests.iter().enumerate() {
        if context.prints_text() {
            let name = context.terminal.paint(Mark::Strong, &message::one_line(&request.src.display().to_string()));
            output::text(&format!("{}{name}\n", if at == 0 { "" } else { "\n" }))?;
        }
        let code = match convert_source(request, options.clone(), context) {
            Ok(code) => code,
            Err(failure) if signals::stop_flag(context.json).load(Ordering::Relaxed) => return Err(failure),
            Err(failure) => failure.report(context.json),
        };
        worst = worst.max(code);
    }
    Ok(worst)
}

fn check_options(args: &ConvertArgs) -> Result<(), Failure> {
    let given =
        [("--report", args.report.is_some()), ("--part", args.folder.part.is_some()), ("--merge", args.folder.merge)];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(failure!(InapplicableOption, "{option} belongs to a single source; convert each alone"))
        }
        None => Ok(()),
    }
}

fn name_of(source: &Path) -> Result<&OsStr, Failure> {
    let path = source.display();
    source.file_name().ok_or_else(|| failure!(InvalidValue, "{path}: no name for the result; write the folder's name"))
}
