//! Properties of a path, without asking the system.

use std::path::Path;

/// The folder of `path`; a bare name is in the current one.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
