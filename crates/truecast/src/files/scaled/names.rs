//! Names of schemes, as people type them.

use std::path::Path;
use truecast_io::{FileFormat, gguf, look};
use truecast_schemes::{Family, Scheme, SchemeError, Writing};

/// Short name of a form, and its scheme; parameters may follow after commas.
pub const NAMES: [(&str, &str); 11] = [
    ("fp8", "fp8-channel"),
    ("fp8_scaled", "fp8-channel"),
    ("fp8_e4m3fn", "fp8-channel"),
    ("mxfp4", "ct:mxfp4-pack-quantized"),
    ("mxfp6", "ct:mxfp6-pack-quantized"),
    ("nvfp4", "ct:nvfp4-pack-quantized"),
    ("int4-group", "ct:pack-quantized,bits=4,strategy=group"),
    ("int4-channel", "ct:pack-quantized,bits=4,strategy=channel"),
    ("int8-group", "ct:int-quantized,strategy=group"),
    ("int8-channel", "ct:int-quantized,strategy=channel"),
    ("int8-tensor", "ct:int-quantized,strategy=tensor"),
];

/// Name that several schemes share, and these schemes.
const AMBIGUOUS: [(&str, &[&str]); 2] =
    [("int4", &["int4-group", "int4-channel"]), ("int8", &["int8-channel", "int8-group", "int8-tensor"])];

/// Short name, and the scheme of a single `.safetensors` file, which ComfyUI loads. Folders have the scheme of
/// [`NAMES`], which vLLM and transformers load (`docs/loads.md`).
const OF_SINGLE_FILE: [(&str, &str); 5] = [
    ("fp8", "comfy:float8_e4m3fn"),
    ("fp8_scaled", "comfy:float8_e4m3fn"),
    ("fp8_e4m3fn", "comfy:float8_e4m3fn"),
    ("nvfp4", "comfy:nvfp4"),
    ("mxfp8", "comfy:mxfp8"),
];

/// Scheme of a name, for certain files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Scheme.
    pub scheme: Scheme,
    /// `a single file` or `a folder`, if the name has a meaning for these.
    pub files: Option<&'static str>,
}

/// Finds the scheme of a name for a job from `sources` to `dst`. A few short names mean ComfyUI's form if every source
/// is a single `.safetensors` file, and `mxfp4` means blocks for a `.gguf` destination.
///
/// # Errors
/// The problem with the name.
///
/// # Examples
/// ```
/// use std::path::Path;
/// let (file, folder) = (Path::new("flux.safetensors"), Path::new("llama"));
/// let scheme = |source| truecast::scaled::scheme_for("nvfp4", &[source], Path::new("out")).unwrap().scheme.to_string();
/// assert_eq!([scheme(file), scheme(folder)], ["comfy:nvfp4", "ct:nvfp4-pack-quantized"]);
/// ```
pub fn scheme_for(name: &str, sources: &[&Path], dst: &Path) -> Result<Meaning, SchemeError> {
    if gguf::is_named(dst)
        && let Some(family) = gguf_type(name).filter(|family| family.writing() == Writing::Gguf)
    {
        return Ok(Meaning { scheme: Scheme::of(family), files: None });
    }
    let scheme = scheme(name)?;
    let Some((_, of_file)) = OF_SINGLE_FILE.iter().find(|(short, _)| short.eq_ignore_ascii_case(name)) else {
        return Ok(Meaning { scheme, files: None });
    };
    let is_safetensors = |path: &Path| FileFormat::of_path(path) == Some(FileFormat::Safetensors);
    let is_file = |path: &&Path| is_safetensors(path) && !look::is_folder(path).unwrap_or(false);
    if sources.iter().all(is_file) && !gguf::is_named(dst) {
        return Ok(Meaning { scheme: of_file.parse()?, files: Some("a single file") });
    }
    let are_folders = sources.iter().all(|path| look::is_folder(path).unwrap_or(false));
    Ok(Meaning { scheme, files: are_folders.then_some("a folder") })
}

/// Finds a scheme by its name (`docs/spec/checkpoints.md §5.6`), by one of [`NAMES`], by a GGUF type or mixture
/// (`q4_k_m`), or by a [`truecast_schemes::preset`]. For files use [`scheme_for`].
///
/// # Errors
/// The problem with the name.
///
/// # Examples
/// ```
/// let scheme = truecast::scaled::scheme("int4-group,group=32")?;
/// assert_eq!(scheme.to_string(), "ct:pack-quantized,bits=4,strategy=group,group=32");
/// assert_eq!(truecast::scaled::scheme("int4-group:32")?, scheme);
/// assert_eq!(truecast::scaled::scheme("FP8_DYNAMIC")?.to_string(), "ct:float-quantized,strategy=channel");
/// let error = truecast::scaled::scheme("q8_0:64").unwrap_err().to_string();
/// assert!(error.contains("group"), "{error}");
/// # Ok::<(), truecast::scaled::SchemeError>(())
/// ```
pub fn scheme(name: &str) -> Result<Scheme, SchemeError> {
    let (front, rest) = name.find(',').map_or((name, ""), |at| name.split_at(at));
    // The size of a group may follow the name: `int4-group:32`.
    let sized = front.split_once(':').filter(|(_, size)| size.bytes().all(|byte| byte.is_ascii_digit()));
    let (front, size) = sized.map_or((front, String::new()), |(front, size)| (front, format!(",group={size}")));
    let is_it = |known: &str| known.eq_ignore_ascii_case(front);
    if let Some((_, choices)) = AMBIGUOUS.iter().find(|(known, _)| is_it(known)) {
        return Err(SchemeError::Ambiguous { name: front.into(), choices });
    }
    if let Some((_, whole)) = NAMES.iter().find(|(short, _)| is_it(short)) {
        return format!("{whole}{size}{rest}").parse();
    }
    let as_typed: Result<Scheme, SchemeError> = name.parse();
    as_typed.or_else(|error| match &error {
        SchemeError::Unknown { .. } => {
            let preset = || truecast_schemes::preset(&front.replace('-', "_"));
            let known = gguf_type(front).map(Scheme::of).or_else(preset).ok_or(error)?;
            format!("{known}{size}{rest}").parse()
        }
        _ => Err(error),
    })
}

/// Finds a type of GGUF files by its name without the prefix: `q8_0`, `Q4-K`, `q4km`.
fn gguf_type(name: &str) -> Option<Family> {
    let is_letter = |c: &u8| !matches!(c, b'_' | b'-');
    let letters = |name: &str| name.bytes().filter(is_letter).map(|c| c.to_ascii_lowercase()).collect::<Vec<_>>();
    let is_it = |known: &str| letters(known) == letters(name);
    Family::all().find(|family| family.name().strip_prefix("gguf:").is_some_and(is_it))
}
