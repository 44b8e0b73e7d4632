//! What a path says by itself, without asking the system.

use std::path::Path;

/// The folder that holds `path`; a bare name lies in the current one.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
