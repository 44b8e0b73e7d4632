//! Detects groups of tensors. The steps of `docs/spec/checkpoints.md §5.2` search in this order: headers (torchao),
//! markers (ComfyUI), configurations, names. Then [`complete`] checks the remaining tensors.

mod advice;
mod bitsandbytes;
mod claims;
mod complete;
mod consistency;
pub(crate) mod gguf;
mod leftover;
mod markers;
mod names;
mod signatures;

use crate::catalogue;
use crate::checkpoint::{Checkpoint, ReadTensor};
use crate::declared::{self, Declaration};
use crate::detection::{Detection, Options};
use crate::error::Error;
use crate::found::Setting;
use crate::modules::module_of;
use claims::{Claim, Claims};
pub use complete::is_auxiliary;
use foldhash::{HashSet, HashSetExt};
pub use gguf::detect_gguf;

/// Detects the meaning of every tensor.
///
/// `read` returns the data of a small tensor, such as a marker, a stated shape or a global scale (§5.1). For longer
/// zero points, the first bytes suffice.
///
/// Cost: memory and time proportional to the headers; time also grows with the entries of lists with patterns.
/// Source: `docs/spec/checkpoints.md §5`.
///
/// # Errors
/// [`Error`] for a contradiction, and for missing, leftover or unknown tensors.
pub fn detect(checkpoint: Checkpoint<'_>, read: ReadTensor<'_>, options: &Options<'_>) -> Result<Detection, Error> {
    let found = detect_as(checkpoint, &mut *read, options);
    let mut left = advice::TENSORS / checkpoint.tensors.len().max(1);
    found.map_err(|cause| {
        advice::advised(cause, |scheme| {
            left = left.checked_sub(1)?;
            let found = detect_as(checkpoint, &mut *read, &Options { from_scheme: Some(scheme), ..*options });
            match found.ok()?.schemes.as_slice() {
                [] => scheme.is_plain().then(|| scheme.to_string()),
                [one] => Some(one.to_string()),
                _ => Some(scheme.to_string()),
            }
        })
    })
}

fn detect_as(checkpoint: Checkpoint<'_>, read: ReadTensor<'_>, options: &Options<'_>) -> Result<Detection, Error> {
    checkpoint.documents.check()?;
    let mut claims = Claims::new(checkpoint, read, options)?;
    // With --from-scheme, declarations only add details to the same scheme.
    let declared = declared::read(checkpoint.documents, options.from_scheme.is_some());
    let declared = match options.from_scheme {
        Some(scheme) => vec![Declaration::asked(scheme, &declared.unwrap_or_default())],
        None => declared?,
    };
    markers::torchao(&mut claims)?;
    bitsandbytes::tensors(&mut claims)?;
    markers::layers(&mut claims)?;
    markers::scaled_fp8(&mut claims)?;
    configured(&mut claims, &declared)?;
    stale(&claims, &declared)?;
    if options.from_scheme.is_none() {
        names::claim(&mut claims)?;
    }
    consistency::check(&mut claims, &declared)?;
    complete::check(claims)
}

/// Claims the groups that configurations declare (step 5).
fn configured(claims: &mut Claims<'_>, declared: &[Declaration]) -> Result<(), Error> {
    for number in 0..claims.index.len() {
        if claims.is_claimed(number) {
            continue;
        }
        let mut found: Option<(Claim, &Declaration, Option<&str>)> = None;
        let mut error = None;
        let mut is_ignored = false;
        for declaration in declared {
            for (setting, name) in candidates(claims, declaration, number) {
                is_ignored |= declaration.ignores(module_of(&name));
                match (claims.attempt(&setting, &name, number), &found) {
                    (Ok(claim), Some((first, earlier, _))) if claim.group.scheme != first.group.scheme => {
                        if earlier.place == declaration.place {
                            continue;
                        }
                        return Err(Error::Contradiction {
                            tensor: name,
                            first: Box::new(first.group.scheme),
                            first_place: earlier.place.clone(),
                            second: Box::new(claim.group.scheme),
                            second_place: declaration.place.clone(),
                        });
                    }
                    (Ok(claim), None) => found = Some((claim, declaration, setting.symmetric)),
                    (Ok(_), Some(_)) => {}
                    (Err(cause), _) => error = error.or(Some(cause)),
                }
            }
        }
        match (found, error) {
            (Some((claim, declaration, symmetric)), _) => {
                if is_ignored {
                    claims.report(consistency::excluded(declaration, &claim.group))?;
                }
                claims.commit(claim)?;
                if let Some(statement) = symmetric {
                    consistency::zero_points(claims, declaration, statement)?;
                }
            }
            // A module in a list of exceptions need not fit the declared scheme.
            (None, Some(error)) if !is_ignored => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Settings under which a tensor may be the codes of a group. Each has the group's name.
fn candidates(claims: &Claims<'_>, declaration: &Declaration, number: usize) -> Vec<(Setting, String)> {
    let tensor = claims.index.tensor(number);
    let mut all = Vec::new();
    let mut tried = HashSet::new();
    // The group's name depends on the scheme, and the schemes depend on the group's module.
    for family in declaration.families() {
        let Some(name) = catalogue::entry(family).and_then(|entry| claims.logical(entry, tensor)) else { continue };
        if !tried.insert(name.clone()) {
            continue;
        }
        for setting in declaration.settings_of(module_of(&name)) {
            let entry = catalogue::entry(setting.scheme.family).filter(|_| !setting.scheme.family.is_told_by_tensors());
            if entry.and_then(|entry| claims.logical(entry, tensor)).as_ref() == Some(&name) {
                all.push((setting.clone(), name.clone()));
            }
        }
    }
    all
}

/// Rejects a declaration as out of date if no group uses its schemes (§2.5).
fn stale(claims: &Claims<'_>, declared: &[Declaration]) -> Result<(), Error> {
    for declaration in declared {
        let families = declaration.families();
        let is_used = claims.groups.iter().any(|group| families.contains(&group.scheme.family));
        if let Some(scheme) = declaration.scheme().filter(|scheme| !is_used && !scheme.is_plain()) {
            return Err(Error::Stale { place: declaration.place.clone(), scheme: Box::new(scheme) });
        }
    }
    Ok(())
}
