//! Opens, checks and describes models of any kind, and builds their graphs.

use super::error::RunError;
use super::files::Reads;
use crate::openvino::{IrFile, Packing};
use crate::tosa::read::parse_blocks;
use crate::{Description, Graph, LegalityReport, onnx, openvino, tosa};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::policy::TextStyle;
use truecast_core::spec::tile;
use truecast_core::spec::tosa::Target;
use truecast_io::onnx::{ModelFile, Options};
use truecast_io::open_regular;

/// An opened model.
#[derive(Debug)]
pub struct Model {
    path: PathBuf,
    file: File,
    text: TextStyle,
}

#[derive(Debug)]
enum File {
    Onnx(Arc<ModelFile>),
    OpenVino(Arc<IrFile>),
    Tile(Vec<u8>),
    Tosa(Vec<u8>),
}

/// Kinds of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// `.onnx`.
    Onnx,
    /// `.tosa`, which [`super::tosa::run`] evaluates.
    Tosa,
    /// OpenVINO IR, `.xml`.
    OpenVino,
    /// A Tile IR module: text or bytecode.
    Tile,
}

impl ModelKind {
    /// Kind of a model. The extension decides, or the first bytes of a bytecode module.
    ///
    /// # Errors
    /// [`RunError::UnknownKind`]; [`RunError::File`] if the extension does not decide and the file cannot be read.
    pub fn of(path: &Path) -> Result<ModelKind, RunError> {
        let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        match extension.as_deref() {
            Some("onnx") => Ok(ModelKind::Onnx),
            Some("tosa") => Ok(ModelKind::Tosa),
            Some("xml") => Ok(ModelKind::OpenVino),
            Some("mlir" | "tileir" | "tilebc" | "tileirbc") => Ok(ModelKind::Tile),
            _ if begins_as_bytecode(path)? => Ok(ModelKind::Tile),
            _ => Err(RunError::UnknownKind { path: path.display().to_string() }),
        }
    }
}

/// Rules for checking conversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelRules {
    /// ONNX at an opset; `None` for the opset that the model imports.
    Onnx(Option<u32>),
    /// OpenVINO.
    OpenVino,
    /// Tile IR with a profile and options.
    Tile(tile::Rules, tile::Profile, tile::Options),
    /// TOSA with the features of a target; `None` for the version in the file.
    Tosa(Option<Target>),
}

pub(super) type Parameter = (String, Option<DType>);

impl Model {
    /// Opens a model.
    ///
    /// # Errors
    /// [`RunError::UnknownKind`], [`RunError::File`].
    pub fn open(path: &Path) -> Result<Model, RunError> {
        Model::open_with(path, None)
    }

    /// Opens a model. `odd_packing` is the packing of 3-bit and 6-bit elements in an OpenVINO network, which changed
    /// after release 2026.4.
    ///
    /// # Errors
    /// The errors of [`Model::open`].
    pub fn open_with(path: &Path, odd_packing: Option<Packing>) -> Result<Model, RunError> {
        let file = match ModelKind::of(path)? {
            ModelKind::Onnx => File::Onnx(Arc::new(ModelFile::open(path, Options::default())?)),
            ModelKind::OpenVino => File::OpenVino(Arc::new(IrFile::open(path)?.with_odd_packing(odd_packing))),
            ModelKind::Tile => File::Tile(read_up_to(path, MAX_MODULE_BYTES)?),
            ModelKind::Tosa => File::Tosa(read_up_to(path, u64::MAX)?),
        };
        Ok(Model { path: path.into(), file, text: TextStyle::default() })
    }

    /// Sets the notation of floating-point numbers in conversions to text.
    #[must_use]
    pub fn with_text_style(self, text: TextStyle) -> Model {
        Model { text, ..self }
    }

    /// Checks the legality of every conversion.
    ///
    /// # Errors
    /// [`RunError::Rules`] if the rules are for another kind of model; [`RunError::Model`] if the file is malformed.
    pub fn check(&self, rules: ModelRules) -> Result<LegalityReport, RunError> {
        match (&self.file, rules) {
            (File::Onnx(file), ModelRules::Onnx(opset)) => {
                Ok(onnx::check(file.model(), opset).in_words(|cause| cause.to_string()))
            }
            (File::OpenVino(file), ModelRules::OpenVino) => {
                let types = openvino::types(file, &BTreeMap::new()).map_err(|cause| self.wrong(cause))?;
                Ok(types.report.in_words(|cause| cause.to_string()))
            }
            (File::Tile(_), ModelRules::Tile(rules, profile, options)) => {
                Ok(crate::tile::check(&self.tile_module(rules)?, rules, profile, &options).into())
            }
            (File::Tosa(bytes), ModelRules::Tosa(target)) => {
                let graphs = parse_blocks(bytes).map_err(|cause| self.wrong(cause))?;
                let reports = graphs.iter().map(|graph| tosa::check(graph, &target.unwrap_or(tosa::target_of(graph))));
                Ok(reports.fold(LegalityReport::default(), LegalityReport::and).in_words(|error| error.reason()))
            }
            (File::Tosa(_) | File::Tile(_) | File::Onnx(_) | File::OpenVino(_), _) => Err(self.of_another_kind()),
        }
    }

    /// Describes a model other than ONNX. For ONNX use [`truecast_io::Source::model`].
    ///
    /// # Errors
    /// [`RunError::Model`] and [`RunError::Tile`] if the model cannot be read; [`RunError::UnknownKind`] for ONNX.
    pub fn describe(&self) -> Result<Description, RunError> {
        match &self.file {
            File::OpenVino(file) => openvino::describe(file).map_err(|cause| self.wrong(cause)),
            File::Tile(bytes) => {
                let module = self.tile_module(tile::Rules::Of(tile::Release::NEWEST))?;
                Ok(crate::tile::describe(&module, bytes))
            }
            File::Tosa(bytes) => Ok(tosa::describe(&parse_blocks(bytes).map_err(|cause| self.wrong(cause))?)),
            File::Onnx(_) => Err(RunError::UnknownKind { path: self.shown() }),
        }
    }

    /// Parameters whose types the graph needs: those of an OpenVINO network. An ONNX model states every type.
    pub(super) fn open_parameters(&self) -> Option<Vec<Parameter>> {
        match &self.file {
            File::Onnx(_) | File::Tile(_) | File::Tosa(_) => None,
            File::OpenVino(file) => Some(openvino::inputs(file)),
        }
    }

    /// Builds the graph with every type resolved; also returns warnings. `fed` states types that an OpenVINO network
    /// leaves open.
    ///
    /// # Errors
    /// [`RunError::Model`].
    pub fn graph(&self, fed: &BTreeMap<String, openvino::InputHeader>) -> Result<(Graph, Vec<String>), RunError> {
        match &self.file {
            File::Onnx(file) => {
                onnx::build(file, self.text).map(|graph| (graph, Vec::new())).map_err(|cause| self.wrong(cause))
            }
            File::OpenVino(file) => openvino::build(file, fed).map_err(|cause| self.wrong(cause)),
            File::Tile(_) | File::Tosa(_) => Err(self.of_another_kind()),
        }
    }

    /// Whether the model is a Tile IR module, for [`Model::run_tile`].
    #[must_use]
    pub fn is_tile(&self) -> bool {
        matches!(self.file, File::Tile(_))
    }

    /// Parses the Tile IR module. Text is parsed by the release of the rules.
    pub(crate) fn tile_module(&self, rules: tile::Rules) -> Result<crate::tile::Module, RunError> {
        match &self.file {
            File::Tile(bytes) => crate::tile::read(bytes, rules.release(tile::Release::NEWEST))
                .map_err(|cause| RunError::Tile { path: self.shown(), cause }),
            File::Onnx(_) | File::OpenVino(_) | File::Tosa(_) => Err(self.of_another_kind()),
        }
    }

    fn of_another_kind(&self) -> RunError {
        let fitting = match &self.file {
            File::Onnx(_) => "onnx or onnx@OPSET",
            File::OpenVino(_) => "openvino",
            File::Tile(_) => "tile or tile@RELEASE",
            File::Tosa(_) => "tosa or tosa@VERSION",
        };
        RunError::Rules { path: self.shown(), fitting }
    }

    pub(super) fn wrong(&self, cause: impl Into<crate::Error>) -> RunError {
        RunError::Model { path: self.shown(), cause: Box::new(cause.into()) }
    }

    pub(super) fn reads(&self, inputs: &[String]) -> Result<Reads, RunError> {
        let data = match &self.file {
            File::Onnx(file) => file.data_files(),
            File::OpenVino(_) | File::Tile(_) | File::Tosa(_) => BTreeSet::new(),
        };
        Ok(Reads::new(&self.path, data, inputs)?)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

/// Limit on the size of a module. Hand-written modules have kilobytes; constants of 2^24 elements as text have some
/// hundred megabytes.
const MAX_MODULE_BYTES: u64 = 512 << 20;

fn begins_as_bytecode(path: &Path) -> Result<bool, RunError> {
    let mut file = match open_regular(path) {
        Ok((file, _)) => file,
        // Reading the first bytes of a pipe would consume them.
        Err(truecast_io::Error::NotRegular { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let mut first = [0; crate::tile::bytecode::MAGIC.len()];
    Ok(std::io::Read::read_exact(&mut file, &mut first).is_ok() && first == crate::tile::bytecode::MAGIC)
}

pub(super) fn read_up_to(path: &Path, limit: u64) -> Result<Vec<u8>, RunError> {
    let failed = |source| truecast_io::Error::Io { path: path.into(), action: "reading", source };
    let (file, found) = open_regular(path)?;
    let (mut bytes, most) = (Vec::new(), limit.saturating_add(1));
    let room = usize::try_from(found.len().min(most)).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(room).map_err(|_| truecast_io::Error::Memory { path: path.into(), bytes: found.len() })?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, most), &mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        Err(RunError::TooLarge { path: path.display().to_string(), limit })
    } else {
        Ok(bytes)
    }
}
