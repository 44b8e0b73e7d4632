//! Every key of a declaration is read, is known to say nothing about the values of weights, or is an error.
//!
//! A [`Keys`] is data: what an object may hold. [`super::known`] has one for each method.

use serde_json::{Map, Value};

use super::declaration::Declaration;
use super::value::wrong;
use crate::error::Error;
use crate::modules::brief;

/// The keys of an object that are known. A key whose value is `null` is as good as absent, known or not.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Read: another value gives other weights, or is an error.
    pub(super) used: &'static [&'static str],
    /// Lists of keys that say nothing about the values of weights.
    pub(super) silent: &'static [&'static [&'static str]],
    /// Known with these values alone, as JSON.
    pub(super) only: &'static [(&'static str, &'static [&'static str])],
    /// Objects with keys of their own.
    pub(super) objects: &'static [(&'static str, Inner)],
    /// What stands under every other name, as modules do.
    pub(super) others: Option<&'static Keys>,
}

/// What an object within an object holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inner {
    /// Keys.
    One(&'static Keys),
    /// Names of any kind, each with an object of keys, or with something that is read otherwise.
    Each(&'static Keys),
}

impl Keys {
    pub(super) const NONE: Keys = Keys { used: &[], silent: &[], only: &[], objects: &[], others: None };

    /// Checks the keys of an object.
    ///
    /// # Errors
    /// [`Error::Unexplained`] for the first key that is not known, or not with its value; it names the scheme of the declaration
    /// as the way to read the weights in spite of it.
    pub(super) fn check(
        &self,
        object: &Map<String, Value>,
        place: &str,
        declaration: Option<&Declaration>,
    ) -> Result<(), Error> {
        self.walk(object, "").map_err(|unknown| match unknown {
            Unknown::Key { key, found } => {
                let families = declaration.map(Declaration::families).unwrap_or_default();
                let mut families = families.into_iter();
                let scheme = families.next().filter(|_| families.next().is_none());
                Error::Unexplained { place: place.to_owned(), key, found, scheme: scheme.map(|family| family.name()) }
            }
            Unknown::Kind { key, found } => wrong(place, &key, &found, "an object"),
        })
    }

    /// Checks the keys of an object that no scheme's name could stand for.
    pub(crate) fn check_alone(&self, object: &Map<String, Value>, place: &str) -> Result<(), Error> {
        self.check(object, place, None)
    }

    fn walk(&self, object: &Map<String, Value>, path: &str) -> Result<(), Unknown> {
        for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let unknown = || Unknown::Key { key: truecast_io::Shown(&full).to_string(), found: brief(value) };
            let inner = self.objects.iter().find(|(known, _)| known == key).map(|(_, inner)| *inner);
            match (inner, value) {
                (Some(Inner::One(keys)), Value::Object(object)) => keys.walk(object, &full)?,
                (Some(Inner::Each(keys)), Value::Object(object)) => {
                    for (name, value) in object {
                        let Value::Object(object) = value else { continue };
                        keys.walk(object, &format!("{full}.{name}"))?;
                    }
                }
                (Some(_), _) if !self.used.contains(&key.as_str()) => {
                    return Err(Unknown::Kind { key: full, found: value.clone() });
                }
                (Some(_), _) => {}
                (None, _) if self.used.contains(&key.as_str()) => {}
                (None, _) if self.silent.iter().any(|list| list.contains(&key.as_str())) => {}
                (None, _) => match self.only.iter().find(|(known, _)| known == key) {
                    Some((_, values)) if values.contains(&value.to_string().as_str()) => {}
                    Some(_) => return Err(unknown()),
                    None => match (self.others, value) {
                        (Some(keys), Value::Object(object)) => keys.walk(object, &full)?,
                        (Some(_), Value::Bool(_)) => {}
                        _ => return Err(unknown()),
                    },
                },
            }
        }
        Ok(())
    }
}

/// What is not known.
enum Unknown {
    Key { key: String, found: String },
    Kind { key: String, found: Value },
}
