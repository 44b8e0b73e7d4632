//! Unquantized reference of a quantized checkpoint. Gives the shapes before padding, and the order of nibbles
//! (`docs/spec/checkpoints.md §4.6.2`, §5.4).

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::dequantize::values::{self, Logical, Values, logical};
use crate::files::convert::error::CheckpointError;
use crate::files::convert::found::Contents;
use crate::files::convert::options::Options;
use crate::files::error::Error;
use crate::files::opened::Opened;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{Coding, Packing, Plane, Planes};
use truecast_io::folder::Folder;
use truecast_io::{Links, OnnxOptions, OpenOptions};
use truecast_kernel::CastOptions;
use truecast_kernel::measure::Measure;
use truecast_schemes::ShapeOf;

pub(crate) struct Reference {
    opened: Opened,
    shapes: HashMap<Arc<str>, Arc<[u64]>>,
}

impl Reference {
    pub fn of(options: &Options) -> Result<Option<Reference>, Error> {
        let path = options.source_scheme.reference.as_deref();
        path.map(|path| Reference::open(path, options.onnx.links)).transpose()
    }

    fn open(path: &Path, links: Links) -> Result<Reference, Error> {
        let options = OpenOptions { from: None, onnx: OnnxOptions { links, ..OnnxOptions::default() } };
        let (opened, _) = values::open(path, options)?;
        let shapes = logical(&opened)?.into_iter().map(|tensor| (tensor.name, tensor.shape)).collect();
        Ok(Reference { opened, shapes })
    }

    pub fn shape(&self, name: &str) -> Option<Vec<u64>> {
        self.shapes.get(name).map(|shape| shape.to_vec())
    }

    /// Compares tensors whose nibble order is ambiguous with the reference. Returns the finding as a sentence.
    ///
    /// # Errors
    /// The other order is nearer to the reference.
    pub fn check_nibbles(&self, folder: &Folder, all: &[Quantized]) -> Result<Option<String>, Error> {
        let tensors = logical(&self.opened)?;
        let by_name: HashMap<&str, &Logical<'_>> = tensors.iter().map(|tensor| (&*tensor.name, tensor)).collect();
        // Sums of squared errors. The first is under the nibble order in use, and the second under the other order.
        let (mut noise, mut compared) = ([0.0, 0.0], 0);
        for quantized in all {
            let (Some(swapped), Some(dense)) = (swapped(quantized), by_name.get(&*quantized.name)) else {
                continue;
            };
            let is_same = dense.shape.iter().product::<u64>() == quantized.layout.elements();
            if !dense.dtype.is_float() || !is_same {
                continue;
            }
            let measure = Measure::between(dense.dtype, DType::F32, &CastOptions::default());
            for (noise, quantized) in noise.iter_mut().zip([quantized.clone(), swapped]) {
                let made = Logical::of_quantized(folder, quantized, dense.shape.clone());
                let (mut theirs, mut ours) = (Values::new(dense)?, Values::new(&made)?);
                if let (Some(theirs), Some(ours)) = (theirs.next()?, ours.next()?) {
                    *noise += measure.compare(theirs, ours).iter().map(|counts| counts.noise).sum::<f64>();
                }
            }
            compared += 1;
        }
        let reference = self.opened.path();
        match noise {
            _ if compared == 0 => Ok(None),
            [ours, other] if other < ours => Err(Error::checkpoint(reference, CheckpointError::Nibbles)),
            _ => {
                Ok(Some(format!("{}: the nibble order fits {compared} tensors of this reference", reference.display())))
            }
        }
    }
}

pub(crate) fn contents(folder: &Folder, options: &Options, reference: Option<&Reference>) -> Result<Contents, Error> {
    let shape = |name: &str| reference.and_then(|reference| reference.shape(name));
    let shape: Option<&ShapeOf<'_>> = if reference.is_some() { Some(&shape) } else { None };
    Contents::detect(folder, &options.detection(shape))
}

/// The tensor with swapped nibbles, if its file does not state the order.
fn swapped(quantized: &Quantized) -> Option<Quantized> {
    let Coding::Planes(planes) = quantized.layout.coding else { return None };
    let packing = match planes.codes.packing {
        Packing::HighFirst => Packing::BYTES,
        Packing::BYTES if planes.scales.plane.packing == Packing::Swizzled && planes.global.is_some() => {
            Packing::HighFirst
        }
        _ => return None,
    };
    let codes = Plane { packing, ..planes.codes };
    let coding = Coding::Planes(Planes { codes, ..planes });
    Some(Quantized { layout: truecast_core::scaled::Layout { coding, ..quantized.layout }, ..quantized.clone() })
}
