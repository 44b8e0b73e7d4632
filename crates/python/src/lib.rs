//! The extension module `truecast._truecast`: arrays of NumPy, torch and JAX (`array`, `memory`), element types
//! (`dtypes`), and one file per function. The crate `truecast` computes the results; `truecast-cli` has the command.
//!
//! `unsafe` is used in `memory`, `array`, `torch` and `pages`.

mod array;
mod cast;
mod caster_cache;
mod command;
mod dtypes;
mod error;
mod files;
mod keywords;
mod memory;
mod pages;
mod pool;
mod report;
mod request;
mod rescale;
mod scaled;
mod source;
mod target;
mod text;
mod torch;
mod vectors;
mod watched;

/// Contents of the package. Nothing in it needs the interpreter's lock.
#[pyo3::pymodule(gil_used = false)]
mod _truecast {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        cast::cast,
        command::{answer, arguments, main, shown, switches},
        dtypes::{torch_dtype, type_name, type_names},
        files::{clear, compare, convert, load, verify},
        pages::release_memory,
        pool::{get_num_threads, set_num_threads},
        report::{cast_counted, counted_between},
        request::{attributes, spec_names},
        rescale::{rescale, rescale_factors},
        scaled::{dequantize, quantize, scheme_names},
        vectors::vectors,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("DEFAULTS", super::keywords::DEFAULTS.to_vec())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
