//! Functions of an executable: name, address and machine code.

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Function with one of its names. The linker may give several names to one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Demangled name. It has no hash.
    pub name: String,
    pub address: u64,
    pub code: Vec<u8>,
}

/// Reason why an executable cannot be checked.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The messages name them.
pub enum Unreadable {
    /// The file cannot be read.
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: std::io::Error },
    /// The file is not a supported executable.
    #[error("{}: {error}", .path.display())]
    Format { path: PathBuf, error: object::Error },
}

/// Functions of a crate in an executable, in order of address.
///
/// # Errors
/// An unreadable file. Missing symbols are ignored.
pub fn functions(path: &Path, of: &str) -> Result<Vec<Function>, Unreadable> {
    let bytes = std::fs::read(path).map_err(|error| Unreadable::Io { path: path.into(), error })?;
    parse(&bytes, of).map_err(|error| Unreadable::Format { path: path.into(), error })
}

fn parse(bytes: &[u8], of: &str) -> object::Result<Vec<Function>> {
    let file = object::File::parse(bytes)?;
    // Some formats have no sizes: a function then ends at the start of the next.
    let starts: BTreeSet<u64> = file.symbols().filter(|s| s.is_definition()).map(|s| s.address()).collect();
    let mut functions = BTreeMap::new();
    for symbol in file.symbols().filter(|s| s.is_definition() && s.kind() == SymbolKind::Text) {
        let Some(section) = symbol.section_index() else { continue };
        let name = format!("{:#}", rustc_demangle::demangle(symbol.name()?));
        if !name.contains(of) {
            continue;
        }
        let section = file.section_by_index(section)?;
        let address = symbol.address();
        let end = section.address() + section.size();
        let size = match symbol.size() {
            0 => starts.range(address + 1..).next().map_or(end, |next| (*next).min(end)) - address,
            size => size,
        };
        if let Some(code) = section.data_range(address, size)? {
            functions.insert((address, name.clone()), Function { name, address, code: code.to_vec() });
        }
    }
    Ok(functions.into_values().collect())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::asm::instructions::decode;
    use iced_x86::Mnemonic;

    #[inline(never)]
    fn marked(x: u64) -> u64 {
        std::hint::black_box(x).wrapping_mul(0x5bd1_e995_1b87_3593)
    }

    #[test]
    fn this_executable_holds_its_own_code() {
        assert_eq!(marked(1), 0x5bd1_e995_1b87_3593);
        let functions = functions(&std::env::current_exe().unwrap(), module_path!()).unwrap();
        let found = functions.iter().find(|function| function.name.ends_with("tests::marked")).expect("a symbol");
        let code = decode(&found.code, found.address);
        assert_eq!(code.last().unwrap().mnemonic(), Mnemonic::Ret);
        assert!(code.iter().any(|one| one.immediate64() == 0x5bd1_e995_1b87_3593));
    }

    #[test]
    fn what_is_no_executable_is_an_error() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(matches!(functions(&path, "x"), Err(Unreadable::Format { .. })));
        assert!(matches!(functions(&path.join("none"), "x"), Err(Unreadable::Io { .. })));
    }
}
