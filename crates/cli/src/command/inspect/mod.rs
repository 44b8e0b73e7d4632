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
use truecast::io::{OpenOptions, gguf::is_named, look};
use truecast::opened::Opened;
use truecast::run::Model;

pub fn run(args: &InspectArgs, context: &Context) -> Result<u8, Failure> {
    if args.check {
        return consistency::run(args, context);
    }
    let asked = Asked::new(args)?;
    if let [path] = &args.src[..]
        && let Ok([model]) = <[Inspectable; 1]>::try_from(models(path, args))
    {
        let seen = Seen::read(model, args, &asked, context)?;
        asked.check_filters(&seen.names(), args)?;
        if context.json {
            output::json("inspect", seen)?
        } else {
            output::stream(|out| seen.write(context, out))?
        }
        return Ok(0);
    }
    of_several(args, &asked, context)
}

/// A file, or the folder of a model.
struct Inspectable {
    path: PathBuf,
    /// The opened folder, if it was opened to find the models.
    folder: Option<Folder>,
}

/// The models at a path: the components of a folder without a model of its own, otherwise the path.
fn models(path: &Path, args: &InspectArgs) -> Vec<Inspectable> {
    // A path that cannot be read is an error of its own later.
    let is_checkpoint = look::is_folder(path).unwrap_or(false) && single(path).is_ok_and(|single| single == *path);
    let folder = is_checkpoint.then(|| Folder::open(path, args.onnx.options().links).ok()).flatten();
    match folder {
        Some(folder) if folder.shards().is_empty() => {
            let components = folder.components().iter();
            components.map(|component| Inspectable { path: path.join(component), folder: None }).collect()
        }
        folder => vec![Inspectable { path: path.to_path_buf(), folder }],
    }
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
    fn read(model: Inspectable, args: &InspectArgs, asked: &Asked, context: &Context) -> Result<Seen, Failure> {
        if let Some(folder) = model.folder {
            return Ok(Seen::Tensors(Box::new(Listing::read(Opened::of_folder(folder)?, args, asked, context)?)));
        }
        let path = &single(&model.path)?;
        if is_named(path) && !look::is_folder(path)? {
            return Ok(Seen::Gguf(Box::new(GgufListing::read(path, args, asked)?)));
        }
        if describe::is_model(path) {
            let description = Model::open(path)?.describe()?;
            let object = describe::to_json(&path.display().to_string(), &description);
            return Ok(Seen::Model { object, text: describe::render(&description, &context.terminal) });
        }
        let opened = Opened::open(path, OpenOptions { from: args.from, onnx: args.onnx.options() })?;
        Ok(Seen::Tensors(Box::new(Listing::read(opened, args, asked, context)?)))
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
fn of_several(args: &InspectArgs, asked: &Asked, context: &Context) -> Result<u8, Failure> {
    let (mut all, mut worst) = (Vec::new(), 0);
    for model in args.src.iter().flat_map(|path| models(path, args)) {
        let name = model.path.display().to_string();
        let seen = match Seen::read(model, args, asked, context) {
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
