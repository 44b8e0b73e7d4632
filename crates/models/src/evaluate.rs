//! Running a graph: in order, holding a value from its making to its last use.

use std::collections::HashMap;
use std::sync::Arc;

use truecast_core::policy::Condition;
use truecast_core::{CastSpec, DType, Layout, Outcome};
use truecast_io::Shown;
use truecast_kernel::{CastError, CastOptions, Caster, Counting, Elements, ElementsMut, PlanError};
use truecast_text::{TextCaster, TextError, Texts};

use crate::error::Error;
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
    #[error("{label}: {cause}")]
    Cast { label: String, cause: Refusal },
    /// A constant could not be read.
    #[error("{label}: {cause}")]
    Constant { label: String, cause: Box<Error> },
}

/// Why a conversion was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum Refusal {
    /// An `error` policy refuses an element.
    #[error(transparent)]
    Value(#[from] CastError),
    /// The pair has no kernel.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A text is not a number, or an `error` policy refuses it.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The result takes more memory than there is.
    #[error("no memory for {bytes} bytes")]
    Memory { bytes: u64 },
}

/// Values that a conversion met and that its standard leaves open: each has the documented result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenResults {
    /// How errors name the conversion.
    pub conversion: String,
    /// Elements that it converted.
    pub elements: u64,
    /// Those that are left open.
    pub undefined: u64,
    /// Where the standard is cited.
    pub clause: &'static str,
}

/// Evaluates a graph, and says which conversions met values that their standard leaves open.
///
/// `provide` is asked once for every input, when it is first needed, and may leave it to its default; `deliver` is given
/// each output once, as soon as it is there. Conversions whose value nobody uses are left out.
/// Cost: a value lives from its making to its last use.
///
/// # Errors
/// [`EvaluationError`], and whatever `provide` and `deliver` return.
pub fn evaluate<E: From<EvaluationError>>(
    graph: &Graph,
    exec: &CastOptions,
    provide: impl FnMut(&Input) -> Result<Option<Tensor>, E>,
    mut deliver: impl FnMut(&Output, &Tensor) -> Result<(), E>,
) -> Result<Vec<OpenResults>, E> {
    let mut left_open = Vec::new();
    let mut values = Values::new(graph, provide);
    let mut outputs: HashMap<usize, Vec<&Output>> = HashMap::new();
    graph.outputs.iter().for_each(|output| outputs.entry(output.value.0).or_default().push(output));
    for (id, value) in graph.values.iter().enumerate() {
        if let Producer::Cast { spec, input } = &value.producer
            && values.uses[id] > 0
        {
            let source = values.take(*input)?;
            let (converted, undefined) = cast(spec, &source, exec, &value.label)?;
            if undefined > 0 {
                let (conversion, elements) = (value.label.to_string(), source.len());
                left_open.push(OpenResults { conversion, elements, undefined, clause: spec.clause });
            }
            values.held[id] = Some(converted);
        }
        // Inputs and constants are loaded at their first use by a conversion, or here if they are outputs themselves.
        for output in outputs.remove(&id).unwrap_or_default() {
            let tensor = values.take(output.value)?;
            values.names.check("output", &output.name, &output.shape, &tensor)?;
            deliver(output, &tensor)?;
        }
    }
    // What nothing uses must still be what was declared.
    for input in &graph.inputs {
        if values.uses_at_first[input.value.0] == 0 {
            values.load(input.value)?;
        }
    }
    Ok(left_open)
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
            None => self.load(id)?,
        };
        self.uses[id.0] -= 1;
        if self.uses[id.0] > 0 {
            self.held[id.0] = Some(tensor.clone());
        }
        Ok(tensor)
    }

    fn load(&mut self, id: ValueId) -> Result<Arc<Tensor>, E> {
        let value = &self.graph.values[id.0];
        let label = || value.label.to_string();
        let read = |load: &dyn crate::Load| {
            load.load().map_err(|cause| EvaluationError::Constant { label: label(), cause: cause.into() })
        };
        let tensor = match &value.producer {
            Producer::Input(index) => {
                let input = &self.graph.inputs[*index];
                let tensor = match ((self.provide)(input)?, &input.default) {
                    (Some(tensor), _) => Arc::new(tensor),
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
            return Err(EvaluationError::Inconsistent { name: label(), shape: tensor.shape.clone() }.into());
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
                Dimension::Between(least, most) => (*least..=*most).contains(&found),
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
            Dimension::Between(least, u64::MAX) => format!("{least}.."),
            Dimension::Between(least, most) => format!("{least}..{most}"),
            Dimension::Any => "?".into(),
        };
        format!("[{}]", shape.iter().map(dimension).collect::<Vec<_>>().join(", "))
    }
}

/// Converts a tensor, and counts the values that the standard leaves open.
fn cast(
    spec: &CastSpec,
    source: &Arc<Tensor>,
    exec: &CastOptions,
    label: &str,
) -> Result<(Arc<Tensor>, u64), EvaluationError> {
    let len = source.len();
    let converted = match &source.data {
        Data::Texts(_) if spec.dst == DType::String => return Ok((source.clone(), 0)),
        Data::Texts(texts) => parse(spec, texts, exec),
        Data::Codes(codes) if spec.dst == DType::String => print(spec, codes, len, exec),
        Data::Codes(codes) => {
            let converted = convert(spec, codes, (Layout::Packed, Layout::Packed), len, exec);
            converted.map(|(codes, undefined)| (Data::Codes(codes), undefined))
        }
    };
    let (data, undefined) = converted.map_err(|cause| EvaluationError::Cast { label: label.into(), cause })?;
    Ok((Arc::new(Tensor { dtype: spec.dst, shape: source.shape.clone(), data }), undefined))
}

fn convert(
    spec: &CastSpec,
    codes: &[u8],
    layouts: (Layout, Layout),
    len: u64,
    exec: &CastOptions,
) -> Result<(Vec<u8>, u64), Refusal> {
    let counting = if spec.undefined.is_empty() { Counting::Off } else { Counting::Full };
    let caster = Caster::new(spec, &CastOptions { counting, ..*exec })?;
    let mut result = room(spec.dst, layouts.1, len)?;
    let len = len as usize;
    let source = Elements::with_layout(spec.src, layouts.0, len, codes)?;
    let counts = caster.cast(source, ElementsMut::with_layout(spec.dst, layouts.1, len, &mut result)?)?;
    Ok((result, counts.undefined))
}

/// Text is read into, and written from, elements of whole bytes.
fn parse(spec: &CastSpec, texts: &Texts, exec: &CastOptions) -> Result<(Data, u64), Refusal> {
    let len = texts.len() as u64;
    let mut bytes = room(spec.dst, Layout::Bytes, len)?;
    let mut undefined = 0;
    let is_open = |outcome| matches!(outcome, Outcome::Undefined { .. });
    TextCaster::new(spec)?.parse_seen(texts.iter(), &mut bytes, |reading| {
        undefined += u64::from(is_open(reading.encoded.outcome(spec.undefined)));
    })?;
    if spec.dst.granule() == 1 {
        return Ok((Data::Codes(bytes), undefined));
    }
    let packed = convert(&CastSpec::copy(spec.dst), &bytes, (Layout::Bytes, Layout::Packed), len, exec);
    packed.map(|(codes, _)| (Data::Codes(codes), undefined))
}

fn print(spec: &CastSpec, codes: &[u8], len: u64, exec: &CastOptions) -> Result<(Data, u64), Refusal> {
    let mut texts = Texts::default();
    let caster = TextCaster::new(spec)?;
    if spec.src.granule() == 1 {
        caster.print(codes, &mut texts)?;
    } else {
        let (bytes, _) = convert(&CastSpec::copy(spec.src), codes, (Layout::Packed, Layout::Bytes), len, exec)?;
        caster.print(&bytes, &mut texts)?;
    }
    // How an element is written depends on no property of it.
    let is_open = spec.undefined.iter().any(|open| open.condition == Condition::Any);
    Ok((Data::Texts(texts), if is_open { len } else { 0 }))
}

/// Zeros for as many elements, if there is memory for them.
fn room(dtype: DType, layout: Layout, len: u64) -> Result<Vec<u8>, Refusal> {
    let bytes = dtype.bytes_in(layout, len).unwrap_or(u64::MAX);
    let size = usize::try_from(bytes).map_err(|_| Refusal::Memory { bytes })?;
    let mut room = Vec::new();
    room.try_reserve_exact(size).map_err(|_| Refusal::Memory { bytes })?;
    room.resize(size, 0);
    Ok(room)
}
