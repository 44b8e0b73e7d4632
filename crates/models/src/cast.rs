//! Converts whole tensors, and counts the results that the standard leaves open.

use std::sync::Arc;

use truecast_core::policy::Condition;
use truecast_core::{CastSpec, DType, Layout, Outcome};
use truecast_kernel::text::{TextCaster, TextError, Texts};
use truecast_kernel::{CastError, CastOptions, Caster, Counting, Elements, ElementsMut, PlanError};

use crate::evaluate::OpenResults;
use crate::tensor::{Data, Tensor};

/// Reason why a conversion was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages show the fields.
pub enum DeniedCast {
    #[error(transparent)]
    Value(#[from] CastError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error("no memory for {bytes} bytes")]
    Memory { bytes: u64 },
}

/// Converts a tensor. Also returns the open results, which name the conversion by `label`.
pub(crate) fn cast(
    spec: &CastSpec,
    source: &Arc<Tensor>,
    exec: &CastOptions,
    label: &str,
) -> Result<(Arc<Tensor>, Option<OpenResults>), DeniedCast> {
    let len = source.len();
    let (data, undefined) = match &source.data {
        Data::Texts(_) if spec.dst == DType::String => return Ok((source.clone(), None)),
        Data::Texts(texts) => parse(spec, texts, exec)?,
        _ if spec.dst == DType::String => print(spec, &source.codes(), len, exec)?,
        _ => {
            let converted = convert(spec, &source.codes(), (Layout::Packed, Layout::Packed), len, exec)?;
            (Data::Codes(converted.0), converted.1)
        }
    };
    let open = (undefined > 0).then(|| OpenResults {
        conversion: label.into(),
        elements: len,
        undefined,
        clause: spec.clause,
    });
    Ok((Arc::new(Tensor { dtype: spec.dst, shape: source.shape.clone(), data }), open))
}

fn convert(
    spec: &CastSpec,
    codes: &[u8],
    layouts: (Layout, Layout),
    len: u64,
    exec: &CastOptions,
) -> Result<(Vec<u8>, u64), DeniedCast> {
    let counting = if spec.undefined.is_empty() { Counting::Off } else { Counting::Full };
    let caster = Caster::new(spec, &CastOptions { counting, ..*exec })?;
    let mut result = zeros(spec.dst, layouts.1, len)?;
    let len = len as usize;
    let source = Elements::with_layout(spec.src, layouts.0, len, codes)?;
    let counts = caster.cast(source, ElementsMut::with_layout(spec.dst, layouts.1, len, &mut result)?)?;
    Ok((result, counts.undefined))
}

/// Parses texts, and packs the elements if the type is narrower than a byte.
fn parse(spec: &CastSpec, texts: &Texts, exec: &CastOptions) -> Result<(Data, u64), DeniedCast> {
    let len = texts.len() as u64;
    let mut bytes = zeros(spec.dst, Layout::Bytes, len)?;
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

fn print(spec: &CastSpec, codes: &[u8], len: u64, exec: &CastOptions) -> Result<(Data, u64), DeniedCast> {
    let mut texts = Texts::default();
    let caster = TextCaster::new(spec)?;
    if spec.src.granule() == 1 {
        caster.print(codes, &mut texts)?;
    } else {
        let (bytes, _) = convert(&CastSpec::copy(spec.src), codes, (Layout::Packed, Layout::Bytes), len, exec)?;
        caster.print(&bytes, &mut texts)?;
    }
    // A standard leaves either all texts open or none, so elements need no examination.
    let is_open = spec.undefined.iter().any(|open| open.condition == Condition::Any);
    Ok((Data::Texts(texts), if is_open { len } else { 0 }))
}

pub(crate) fn zeros(dtype: DType, layout: Layout, len: u64) -> Result<Vec<u8>, DeniedCast> {
    let bytes = dtype.bytes_in(layout, len).unwrap_or(u64::MAX);
    truecast_io::zeros(bytes).map_err(|_| DeniedCast::Memory { bytes })
}
