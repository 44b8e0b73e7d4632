//! Tests of the command `truecast`: arguments, files, exit codes, text and JSON. Expected results come from
//! `docs/interfaces.md` and the pages in `docs/spec`.

mod bad_input;
mod bench;
mod checkpoint;
mod checkpoint_file;
mod checkpoint_writing;
mod compare_verify;
mod convert;
mod convert_several;
mod destination;
mod disk_and_pipe;
mod errors;
mod explain;
mod explore;
mod formats_inspect;
mod gguf;
mod groups;
mod help;
mod inspect;
mod llamacpp;
#[cfg(target_os = "linux")]
mod many;
mod models;
mod names;
mod openvino;
mod options;
mod policies;
mod promote;
mod report;
mod report_pages;
mod run;
#[cfg(unix)]
mod screen;
mod select;
mod sentences;
mod signals;
mod stochastic;
mod suite;
mod tile;
mod tosa;
mod tosa_choices;
mod verify;
