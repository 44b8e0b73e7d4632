//! Models of conversions: what flows through them, and what can be wrong with them. [`run`](mod@crate::run) opens them.

pub use truecast_models::{
    Data, DeniedCast, Dimension, Error, Graph, Input, OpenResults, Output, Reason, Tensor, Texts, UndefinedResult,
    evaluate,
};

/// ONNX models.
pub mod onnx {
    pub use truecast_models::onnx::{ModelError, NodeError};
}

/// OpenVINO IR.
pub mod openvino {
    pub use truecast_models::openvino::{InputHeader, IrError, LayerError, ModelError, Packing};
}

/// TOSA graphs.
pub mod tosa {
    pub use truecast_models::tosa::{ElementType, FileError, GraphError};
}

/// Tile IR modules.
pub mod tile {
    pub use truecast_models::tile::{Cause, Diagnostic, EntryError, Place};

    /// How modules are evaluated.
    pub mod evaluate {
        pub use truecast_models::tile::evaluate::Settings;
    }
}
