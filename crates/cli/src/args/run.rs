//! `run`.

use super::threads::ThreadsArgs;
use super::with_flag::with_flag;
use crate::value_parsers::{self, one_of};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use truecast::io::FileFormat;
use truecast::models::openvino::Packing;
use truecast::policy::TextStyle;

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct RunArgs {
    /// Model to evaluate
    #[arg(value_hint = ValueHint::FilePath)]
    pub model: PathBuf,
    /// File (.npy, .pb) for an input of the model
    #[arg(long, value_name = "NAME=FILE")]
    pub input: Vec<String>,
    /// Folder for the outputs, one file each
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output_dir: PathBuf,
    /// File format of the outputs
    #[arg(long, value_name = "FORMAT", default_value = "npy", value_parser = one_of(&ARRAY_FORMATS))]
    pub output_format: FileFormat,
    /// OpenVINO after 2026.4: packing of u3 and u6, groups of three bytes or one bit stream
    #[arg(long, value_name = "LAYOUT", value_parser = one_of(&[("groups", Packing::Groups), ("stream", Packing::LowFirst)]))]
    pub ir_layout: Option<Packing>,
    /// Replace existing outputs
    #[arg(long)]
    pub force: bool,
    /// ONNX: notation of floats as text (default reference)
    #[arg(long, value_name = "STYLE", value_parser = value_parsers::STRING_STYLE)]
    pub string_style: Option<TextStyle>,
    /// Tile IR: release (default the newest); options: truecast help specs
    #[arg(long, value_name = "NAME[@VERSION]", value_parser = value_parsers::TILE, hide_possible_values = true)]
    pub spec: Option<String>,
    /// Tile IR: the entry, if the module has several
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Tile IR: whose values (default spec). TOSA: choices that the text leaves open, joined with + (default strict)
    #[arg(long, value_name = "PROFILE", value_parser = value_parsers::RUN_PROFILE)]
    pub profile: Option<String>,
    /// Tile IR: choices where its sources differ
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = value_parsers::TILE_OPTION)]
    pub tile_option: Vec<String>,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

const ARRAY_FORMATS: [(&str, FileFormat); 2] = [("npy", FileFormat::Npy), ("pb", FileFormat::TensorProto)];
