//! `truecast inspect`: the contents of files. `tensors` describes containers of tensors, `describe` other models.

mod consistency;
mod describe;
mod gguf;
mod magnitudes;
mod onnx;
mod tensors;

use super::Context;
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::table::Mark;
use crate::{message, output};
use gguf::GgufListing;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use tensors::{Asked, Listing};
use truecast::io::folder::{Folder, single};
use truecast::io::{gguf::is_named, look};
use truecast::run::Model;

pub fn run(args: &InspectArgs, context: &Context) -> Result<u8, Failure> {
    if args.check {
        return consistency::run(args, context);
    }
    let asked = Asked::new(args)?;
    let paths = &models(&args.src, args)?;
    match &paths[..] {
        [one] if paths.len() == args.src.len() => {
            let seen = Seen::read(one, args, &asked, context)?;
            asked.check_filters(&seen.names(), args)?;
            if context.json {
                output::json("inspect", seen)?
            } else {
                output::stream(|out| seen.write(context, out))?
            }
            Ok(0)
        }
        several => of_several(several, args, &asked, context),
    }
}

/// The paths, with each folder of models without one of its own replaced by the folders of these models.
fn models(paths: &[PathBuf], args: &InspectArgs) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        let is_checkpoint = look::is_folder(path)? && single(path)? == *path;
        // An unreadable folder is an error of its own later.
        let folder = is_checkpoint.then(|| Folder::open(path, args.onnx.options().follow_links).ok()).flatten();
        match folder.filter(|folder| folder.shards().is_empty()) {
            Some(folder) => all.extend(folder.components().iter().map(|component| path.join(component))),
            None => all.push(path.clone()),
        }
    }
    Ok(all)
}

pub enum Seen {
    Tensors(Box<Listing>),
    Gguf(Box<GgufListing>),
    Model {
        object: Value,
        text: String,
    },
    /// JSON object of a file that cannot be read.
    Unread(Value),
}

impl Seen {
    fn read(path: &Path, args: &InspectArgs, asked: &Asked, context: &Context) -> Result<Seen, Failure> {
        let path = &single(path)?;
        if is_named(path) && !look::is_folder(path)? {
            return Ok(Seen::Gguf(Box::new(GgufListing::read(path, args, asked)?)));
        }
        if describe::is_model(path) {
            let description = Model::open(path)?.describe()?;
            let object = describe::to_json(&path.display().to_string(), &description);
            return Ok(Seen::Model { object, text: describe::render(&description, &context.terminal) });
        }
        Ok(Seen::Tensors(Box::new(Listing::read(path, args, asked, context)?)))
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Seen::Tensors(listing) => listing.names().collect(),
            Seen::Gguf(listing) => listing.names().collect(),
            Seen::Model { .. } | Seen::Unread(_) => Vec::new(),
        }
    }

    fn write(&self, context: &Context, out: &mut dyn Write) -> std::io::Result<()> {
        match self {
            Seen::Tensors(listing) => listing.write(&context.terminal, out),
            Seen::Gguf(listing) => listing.write(&context.terminal, out),
            Seen::Model { text, .. } => out.write_all(text.as_bytes()),
            Seen::Unread(_) => Ok(()),
        }
    }
}

impl Serialize for Seen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Seen::Tensors(listing) => listing.serialize(serializer),
            Seen::Gguf(listing) => listing.serialize(serializer),
            Seen::Model { object, .. } | Seen::Unread(object) => object.serialize(serializer),
        }
    }
}

/// Inspects several files. An unreadable file does not stop the others. Returns the highest exit code.
fn of_several(paths: &[PathBuf], args: &InspectArgs, asked: &Asked, context: &Context) -> Result<u8, Failure> {
    let (mut all, mut worst) = (Vec::new(), 0);
    for path in paths {
        let name = path.display().to_string();
        let seen = match Seen::read(path, args, asked, context) {
            Ok(seen) => seen,
            Err(failure) => {
                worst = worst.max(failure.exit_code());
                let object = json!({ "path": name, "error": failure.message(), "code": failure.code().name() });
                // The exit code is returned with the codes of the other files.
                let _ = failure.report(context.json);
                Seen::Unread(object)
            }
        };
        if !context.json && !matches!(seen, Seen::Unread(_)) {
            let heading = context.terminal.paint(Mark::Strong, &message::one_line(&name));
            let blank = if all.is_empty() { "" } else { "\n" };
            output::stream(|out| {
                writeln!(out, "{blank}{heading}")?;
                seen.write(context, out)
            })?;
        }
        all.push(seen);
    }
    asked.check_filters(&all.iter().flat_map(Seen::names).collect::<Vec<_>>(), args)?;
    if context.json {
        output::json("inspect", Files { files: &all })?;
    }
    Ok(worst)
}

#[derive(Serialize)]
struct Files<'a> {
    files: &'a [Seen],
}
