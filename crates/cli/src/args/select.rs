//! Options of `convert`, `verify` and others: selection of tensors, types, strictness for ONNX files, and rows of a
//! report.

use crate::value_parsers;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use truecast::DType;
use truecast::report::Named;
use truecast::select::quantize_options::Layer;

// Options that choose tensors and their types.
#[derive(Args, Debug, Clone)]
pub struct SelectArgs {
    /// Type, such as bf16; see `truecast formats`
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    /// Round casts stochastically, from this seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Read the elements as this type; in a checkpoint, only in tensors that a rule selects
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Type of tensors with a matching name (of result or source); `*` matches anything, the first match wins
    #[arg(long, value_name = "GLOB=TYPE")]
    pub rule: Vec<String>,
    /// Leave tensors with a matching name unchanged
    #[arg(long, value_name = "GLOB")]
    pub keep: Vec<String>,
    /// Quantize tensors that are otherwise kept, such as embeddings
    #[arg(long, value_name = "GLOB", requires = "quantizes")]
    pub quantize: Vec<String>,
    /// Keep norms, embeddings, router, lm_head or ssm, with all vectors; or unquantized
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value_parsers::PRESET, hide_possible_values = true)]
    pub keep_preset: Vec<Layer>,
    /// ONNX: leave tensors with fewer elements, unless a rule names them
    #[arg(long, value_name = "N", default_value = "1024")]
    pub min_elements: u64,
    #[command(flatten)]
    pub onnx: OnnxArgs,
}

#[derive(Args, Debug, Clone, Copy)]
pub struct OnnxArgs {
    /// ONNX: ignore surplus bytes and unused bits
    #[arg(long)]
    pub lenient: bool,
    /// Accept links that lead out of the folder
    #[arg(long)]
    pub follow_links: bool,
}

impl OnnxArgs {
    pub fn options(self) -> truecast::io::onnx::Options {
        truecast::io::onnx::Options { lenient: self.lenient, links: self.follow_links.into() }
    }
}

// Order and number of the tensors in a report.
#[derive(Args, Debug, Clone)]
pub struct ListArgs {
    /// Sort the tensors by name, size, elements, sqnr_db, rmse, cosine, max_abs_error, max_rel_error or a count
    #[arg(long, value_name = "COLUMN", value_parser = value_parsers::COLUMN, hide_possible_values = true)]
    pub sort: Option<String>,
    /// Name the N worst tensors (default: up to 5)
    #[arg(long, value_name = "N")]
    pub worst: Option<usize>,
    /// Print only totals, not each tensor
    #[arg(long)]
    pub summary: bool,
}

impl ListArgs {
    /// Tensors to list below the table.
    pub fn named(&self) -> Named {
        self.worst.map_or(Named::LostMuch(5), Named::Worst)
    }
}

const RULES: [&str; 3] = ["rule", "keep", "quantize"];

/// The options `--rule`, `--keep` and `--quantize`, in the order of the command line.
#[derive(Debug, Default)]
pub struct RuleOrder {
    rules: Vec<(usize, &'static str, String)>,
    names_spec: bool,
}

impl RuleOrder {
    pub fn of(matches: &ArgMatches) -> Self {
        let (mut all, mut names_spec) = (Vec::new(), false);
        if let Some((name, sub)) = matches.subcommand()
            && matches!(name, "convert" | "quantize" | "dequantize" | "verify")
        {
            names_spec = sub.value_source("spec") == Some(ValueSource::CommandLine);
            for id in RULES {
                let values = sub.get_many::<String>(id).into_iter().flatten();
                all.extend(sub.indices_of(id).into_iter().flatten().zip(values).map(|(at, v)| (at, id, v.clone())));
            }
        }
        all.sort();
        Self { rules: all, names_spec }
    }

    /// True if `--spec` was typed, even with the default value.
    pub fn names_spec(&self) -> bool {
        self.names_spec
    }

    /// Name of the option, without dashes, and text of each rule.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.rules.iter().map(|(_, option, text)| (*option, text.as_str()))
    }
}
