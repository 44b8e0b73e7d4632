//! Reads OpenVINO IR: a network as XML, and the elements of constants from a second file. Source:
//! `docs/spec/openvino.md §10.1` to §11.
//!
//! Files are not trusted. The XML must have no document type and at most [`MAX_XML_BYTES`] bytes. Ranges are checked
//! against the weights file before memory is allocated.

pub mod network;
pub mod weights;

pub use network::{Edge, Layer, Network, Port, PortId, Release};
pub use weights::{Constant, Packing};

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use super::error::MAX_XML_BYTES;

use super::error::IrError;
use crate::Error;
use truecast_io::{look, open_regular};

/// An opened OpenVINO IR.
#[derive(Debug)]
pub struct IrFile {
    path: PathBuf,
    network: Network,
    weights: Option<Weights>,
    /// Packing of 3-bit and 6-bit elements, if the caller states one.
    odd_packing: Option<Packing>,
}

#[derive(Debug)]
struct Weights {
    path: PathBuf,
    file: Arc<File>,
    bytes: u64,
}

impl IrFile {
    /// Opens `NAME.xml`, and `NAME.bin` if it exists.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Ir`] if the XML is not a network.
    pub fn open(path: &Path) -> Result<IrFile, Error> {
        let wrong = |cause| Error::Ir { path: path.into(), cause };
        let (file, found) = open_regular(path)?;
        if found.len() > MAX_XML_BYTES {
            return Err(wrong(IrError::TooLarge { bytes: found.len() }));
        }
        let mut bytes = Vec::new();
        file.take(MAX_XML_BYTES).read_to_end(&mut bytes).map_err(|source| truecast_io::Error::Io {
            path: path.into(),
            action: "reading",
            source,
        })?;
        let text =
            String::from_utf8(bytes).map_err(|e| wrong(IrError::Utf8 { offset: e.utf8_error().valid_up_to() }))?;
        let network = network::network(&text).map_err(wrong)?;
        let beside = path.with_extension("bin");
        let weights = if look::at_itself(&beside)?.is_some() {
            let (file, found) = open_regular(&beside)?;
            Some(Weights { path: beside, file: Arc::new(file), bytes: found.len() })
        } else {
            None
        };
        Ok(IrFile { path: path.into(), network, weights, odd_packing: None })
    }

    /// Sets the packing of 3-bit and 6-bit elements, which changed after release 2026.4. By default, the file's
    /// release decides.
    pub fn with_odd_packing(self, packing: Option<Packing>) -> IrFile {
        IrFile { odd_packing: packing, ..self }
    }

    /// Path that `open` was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Layers and edges.
    pub fn network(&self) -> &Network {
        &self.network
    }
}
