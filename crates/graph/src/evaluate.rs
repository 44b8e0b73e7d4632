//! Running a graph: in order, holding a value from its making to its last use.

use std::collections::HashMap;
use std::sync::Arc;

use truecast_core::{CastSpec, DType, Layout};
use truecast_io::Shown;
use truecast_kernel::{CastError, Caster, Codes, CodesMut, Exec, PlanError};

use crate::graph::{Dimension, Graph, Input, Output, Producer, ValueId};
use crate::tensor::{Data, Tensor};

/// Why a graph was not evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum EvaluationError {
    /// An input was not fed and has no default.
    #[error("input {} is missing", Shown(name))]
    Missing { name: String },
    /// An input is of another type than the graph declares.
    #[error("input {}: elements are {found}, the model declares {declared}", Shown(name))]
    Type { name: String, found: DType, declared: DType },
    /// A tensor has another shape than the graph declares.
    #[error("{what} {}: shape {found:?} where the model declares {declared}", Shown(name))]
    Shape { what: &'static str, name: String, found: Vec<u64>, declared: String },
    /// A tensor's elements are not as many as its shape says.
    #[error("{}: the elements do not fill the shape {shape:?}", Shown(name))]
    Inconsistent { name: String, shape: Vec<u64> },
    /// A conversion was refused.
    #[error("{}: {cause}", Shown(label))]
    Cast { label: String, cause: CastError },
    /// A conversion cannot be planned.
    #[error("{}: {cause}", Shown(label))]
    Plan { label: String, cause: PlanError },
    /// A constant could not be read.
    #[error("{}: {cause}", Shown(label))]
    Constant { label: String, cause: truecast_io::Error },
    /// A result takes more memory than there is.
    #[error("{}: no memory for {bytes} bytes", Shown(label))]
    Memory { label: String, bytes: u64 },
}

/// Evaluates a graph.
///
/// `provide` is asked once for every input, when it is first needed, and may leave it to its default; `deliver` is given
/// each output once, as soon as it is there. Conversions whose value nobody uses are left out.
/// Cost: a value lives from its making to its last use.
///
/// # Errors
/// [`EvaluationError`], and whatever `provide` and `deliver` return.
pub fn evaluate<E: From<EvaluationError>>(
    graph: &Graph,
    exec: &Exec,
    provide: impl FnMut(&Input) -> Result<Option<Tensor>, E>,
    mut deliver: impl FnMut(&Output, &Tensor) -> Result<(), E>,
) -> Result<(), E> {
    let mut values = Values::new(graph, provide);
    for (id, value) in graph.values.iter().enumerate() {
        if let Producer::Cast { spec, input } = &value.producer
            && values.uses[id] > 0
        {
            let source = values.take(*input)?;
            values.held[id] = Some(Arc::new(cast(spec, &source, exec, &value.label)?));
        }
        // Inputs and constants are loaded at their first use by a conversion, or here if they are outputs themselves.
        for output in graph.outputs.iter().filter(|output| output.value.0 == id) {
            let tensor = values.take(output.value)?;
            values.names.check("output", &output.name, &output.shape, &tensor)?;
            deliver(output, &tensor)?;
        }
    }
    // What nothing uses must still be what was declared.
    for input in graph.inputs.iter().filter(|input| values.uses_at_first[input.value.0] == 0) {
        values.load(input.value)?;
    }
    Ok(())
}

/// The values that are alive.
struct Values<'a, P> {
    graph: &'a Graph,
    provide: P,
    held: Vec<Option<Arc<Tensor>>>,
    /// Uses that are still to come.
    uses: Vec<usize>,
    uses_at_first: Vec<usize>,
    names: Names,
}

impl<'a, E: From<EvaluationError>, P: FnMut(&Input) -> Result<Option<Tensor>, E>> Values<'a, P> {
    fn new(graph: &'a Graph, provide: P) -> Self {
        let mut uses = vec![0; graph.values.len()];
        graph.outputs.iter().for_each(|output| uses[output.value.0] += 1);
        // Backwards, so that what only an unused conversion uses is not used.
        for (id, value) in graph.values.iter().enumerate().rev() {
            if let Producer::Cast { input, .. } = value.producer
                && uses[id] > 0
            {
                uses[input.0] += 1;
            }
        }
        let held = graph.values.iter().map(|_| None).collect();
        Values { graph, provide, held, uses_at_first: uses.clone(), uses, names: Names::default() }
    }

    /// Uses a value once; after the last time nothing of it is left here.
    fn take(&mut self, id: ValueId) -> Result<Arc<Tensor>, E> {
        let tensor = match self.held[id.0].take() {
            Some(tensor) => tensor,
            None => Arc::new(self.load(id)?),
        };
        self.uses[id.0] -= 1;
        if self.uses[id.0] > 0 {
            self.held[id.0] = Some(tensor.clone());
        }
        Ok(tensor)
    }

    fn load(&mut self, id: ValueId) -> Result<Tensor, E> {
        let value = &self.graph.values[id.0];
        let label = || value.label.clone();
        let read =
            |load: &dyn crate::Load| load.load().map_err(|cause| EvaluationError::Constant { label: label(), cause });
        let tensor = match &value.producer {
            Producer::Input(index) => {
                let input = &self.graph.inputs[*index];
                let tensor = match ((self.provide)(input)?, &input.default) {
                    (Some(tensor), _) => tensor,
                    (None, Some(default)) => read(&**default)?,
                    (None, None) => return Err(EvaluationError::Missing { name: label() }.into()),
                };
                if tensor.dtype != input.dtype {
                    let (found, declared) = (tensor.dtype, input.dtype);
                    return Err(EvaluationError::Type { name: label(), found, declared }.into());
                }
                self.names.check("input", &input.name, &input.shape, &tensor)?;
                tensor
            }
            Producer::Constant(constant) => read(&**constant)?,
            Producer::Cast { .. } => unreachable!("values are made before their first use, and kept until their last"),
        };
        if !tensor.is_consistent() || tensor.dtype != value.dtype {
            return Err(EvaluationError::Inconsistent { name: label(), shape: tensor.shape }.into());
        }
        Ok(tensor)
    }
}

/// The numbers that named dimensions stand for.
#[derive(Default)]
struct Names(HashMap<String, u64>);

impl Names {
    fn check(
        &mut self,
        what: &'static str,
        name: &str,
        declared: &Option<Vec<Dimension>>,
        tensor: &Tensor,
    ) -> Result<(), EvaluationError> {
        let Some(declared) = declared else { return Ok(()) };
        let fits = declared.len() == tensor.shape.len()
            && declared.iter().zip(&tensor.shape).all(|(dimension, &found)| match dimension {
                Dimension::Known(n) => *n == found,
                Dimension::Named(symbol) => *self.0.entry(symbol.clone()).or_insert(found) == found,
                Dimension::Any => true,
            });
        match fits {
            true => Ok(()),
            false => Err(EvaluationError::Shape {
                what,
                name: name.into(),
                found: tensor.shape.clone(),
                declared: self.shown(declared),
            }),
        }
    }

    fn shown(&self, shape: &[Dimension]) -> String {
        let dimension = |d: &Dimension| match d {
            Dimension::Known(n) => n.to_string(),
            Dimension::Named(name) => match self.0.get(name) {
                Some(n) => format!("{} = {n}", Shown(name)),
                None => Shown(name).to_string(),
            },
            Dimension::Any => "?".into(),
        };
        format!("[{}]", shape.iter().map(dimension).collect::<Vec<_>>().join(", "))
    }
}

/// Converts a tensor.
fn cast(spec: &CastSpec, source: &Tensor, exec: &Exec, label: &str) -> Result<Tensor, EvaluationError> {
    let label = || label.to_string();
    let shape = source.shape.clone();
    let result = |data| Ok(Tensor { dtype: spec.dst, shape, data });
    if spec.src == DType::String && spec.dst == DType::String {
        return result(source.data.clone());
    }
    let caster = Caster::new(spec, exec).map_err(|cause| EvaluationError::Plan { label: label(), cause })?;
    let Data::Codes(codes) = &source.data else { unreachable!("text is never planned") };
    let too_big = |bytes| EvaluationError::Memory { label: label(), bytes };
    let len = source.len();
    let bytes = spec.dst.bytes_in(Layout::Packed, len).ok_or_else(|| too_big(u64::MAX))?;
    let mut converted = Vec::new();
    let size = usize::try_from(bytes).map_err(|_| too_big(bytes))?;
    converted.try_reserve_exact(size).map_err(|_| too_big(bytes))?;
    converted.resize(size, 0);
    let convert = |converted: &mut [u8]| {
        let len = len as usize;
        caster.cast(Codes::new(spec.src, len, codes)?, CodesMut::new(spec.dst, len, converted)?)
    };
    convert(&mut converted).map_err(|cause| EvaluationError::Cast { label: label(), cause })?;
    result(Data::Codes(converted))
}
