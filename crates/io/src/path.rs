//! Properties of a path, without asking the system.

use std::path::Path;

/// Returns the folder of `path`; for a bare name, the current folder.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
