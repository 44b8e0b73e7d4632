//! Tensors in files: what is opened and written, and what can be wrong with it.

pub use truecast_io::{
    DeniedTensor, Error, Escaped, EscapedPath, Existing, FileFormat, FileId, Finished, Foreign, NewFolder, NoForm,
    OpenOptions, OutputFile, Source, Tensor, TensorReader, Writer, check_output, follow, is_unseen, layout_for, look,
    noun, one_line, open_regular,
};

/// Files that appear complete or not at all.
pub mod atomic {
    pub use truecast_io::atomic::abandon_all;

    /// What processes left that were killed.
    pub mod leftover {
        pub use truecast_io::atomic::leftover::{Leftover, in_folder, of};
    }
}

/// Checkpoints that are folders.
pub mod folder {
    pub use truecast_io::folder::{Folder, FolderError, Index, Shard, Sidecar, parse};
}

/// GGUF files: headers, read and written.
pub mod gguf {
    pub use truecast_io::gguf::{Block, BlockTensor, Header, HeaderError, Keys, NewFile, NewTensor, Value, is_named};
}

/// `.npy` files.
pub mod npy {
    pub use truecast_io::npy::{HeaderError, TENSOR_NAME, descr_of};
}

/// `.npz` archives.
pub mod npz {
    pub use truecast_io::npz::ArchiveError;
}

/// Safetensors files.
pub mod safetensors {
    pub use truecast_io::safetensors::{HeaderError, name_of};
}

/// ONNX files: models, and single tensors.
pub mod onnx {
    pub use truecast_io::onnx::{
        ExternalError, Graph, Listed, Model, ModelFile, Node, OpsetImport, Options, ProtoError, Role, TensorError,
        TensorFile, TensorProto, visit_nodes,
    };
}

/// Changes to the file system that tests let fail.
#[doc(hidden)]
pub mod change {
    pub use truecast_io::change::{Fault, failing, named_only};
}
