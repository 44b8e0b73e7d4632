//! Keyword arguments, each read by its name. `None` and the default have no effect. The remaining arguments are
//! settings of the specification.

use crate::error::{Class, raise};
use crate::{dtypes, request};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::fmt::Display;
use std::path::PathBuf;
use truecast::DType;
use truecast::convert::Partition;
use truecast::flag::Flag;
use truecast::request::Request;
use truecast_cli::did_you_mean;

pub const DEFAULTS: [(&str, &str); 5] = [
    ("max_memory", "256MiB"),
    ("min_elements", "1024"),
    ("mx_scale", "auto"),
    ("nonfinite", "error"),
    ("sample_seed", "0"),
];

pub struct Keywords<'py> {
    left: Bound<'py, PyDict>,
    /// Names of the arguments that were read and have an effect.
    said: Vec<&'static str>,
}

impl<'py> Keywords<'py> {
    pub fn of(all: &Bound<'py, PyDict>) -> PyResult<Keywords<'py>> {
        Ok(Keywords { left: all.copy()?, said: Vec::new() })
    }

    /// Command options for the arguments that were read and have an effect.
    pub fn options(&self) -> Vec<String> {
        let option = |name: &&str| {
            let flag = Flag::ALL.iter().find(|flag| flag.keyword() == *name);
            flag.map_or_else(|| name.replace('_', "-"), |flag| flag.name().into())
        };
        self.said.iter().map(option).collect()
    }

    /// The first of `names` that was read and has an effect.
    pub fn first_said(&self, names: &[&str]) -> Option<&'static str> {
        self.said.iter().copied().find(|name| names.contains(name))
    }

    fn take(&mut self, name: &'static str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(value) = self.left.get_item(name)? else { return Ok(None) };
        self.left.del_item(name)?;
        let default = DEFAULTS.into_iter().find(|(known, _)| *known == name);
        let says_nothing = match default {
            Some((_, default)) => value.str()?.to_cow()? == default,
            None => false,
        };
        if value.is_none() || says_nothing {
            return Ok(None);
        }
        self.said.push(name);
        Ok(Some(value))
    }

    fn refused<T>(&self, name: &str, value: &Bound<'py, PyAny>, expected: &str) -> PyResult<T> {
        let message = format_args!("{name} = {}: expected {expected}", value.repr()?);
        Err(raise(value.py(), Class::Usage, message))
    }

    pub fn switch(&mut self, name: &'static str, default: bool) -> PyResult<bool> {
        let Some(value) = self.take(name)? else { return Ok(default) };
        let Ok(is_on) = value.extract::<bool>() else { return self.refused(name, &value, "True or False") };
        if is_on == default {
            self.said.pop();
        }
        Ok(is_on)
    }

    pub fn read<T, E: Display>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> PyResult<Option<T>> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let text = value.str()?.to_cow()?.into_owned();
        read(&text).map(Some).map_err(|why| {
            let (why, shown) = (why.to_string(), format!("{text:?}"));
            let shown = if why.contains(&shown) { String::new() } else { format!(" {shown}") };
            raise(value.py(), Class::Usage, format_args!("{name}{shown}: {why}"))
        })
    }

    pub fn word<T: Copy, const N: usize>(
        &mut self,
        name: &'static str,
        words: [(&'static str, T); N],
    ) -> PyResult<Option<T>> {
        self.read(name, |text| {
            let known = || words.iter().map(|(word, _)| *word);
            let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
            let expected = || known().collect::<Vec<_>>().join(", ");
            found.ok_or_else(|| format!("expected {}{}", expected(), did_you_mean(text, known())))
        })
    }

    pub fn number(&mut self, name: &'static str) -> PyResult<Option<u64>> {
        self.read(name, |text| text.parse().map_err(|_| "expected a whole number, 0 or more"))
    }

    /// Takes a partition. It is text such as `2/4`, or two numbers.
    pub fn part(&mut self) -> PyResult<Option<Partition>> {
        if let Some((number, of)) = self.left.get_item("part")?.and_then(|part| part.extract::<(usize, usize)>().ok()) {
            self.left.set_item("part", format!("{number}/{of}"))?;
        }
        self.read("part", str::parse)
    }

    /// Takes a list of texts, or a single text.
    pub fn texts(&mut self, name: &'static str) -> PyResult<Vec<String>> {
        let Some(value) = self.take(name)? else { return Ok(Vec::new()) };
        if let Ok(one) = value.extract::<String>() {
            return Ok(vec![one]);
        }
        let all = value.try_iter().and_then(|all| all.map(|one| one?.extract()).collect::<PyResult<Vec<String>>>());
        let Ok(all) = all else { return self.refused(name, &value, "a string, or several") };
        if all.is_empty() {
            self.said.pop();
        }
        Ok(all)
    }

    pub fn path(&mut self, name: &'static str) -> PyResult<Option<PathBuf>> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        value.extract().map(Some).or_else(|_| self.refused(name, &value, "a path"))
    }

    pub fn dtype(&mut self, name: &'static str) -> PyResult<Option<DType>> {
        self.take(name)?.as_ref().map(dtypes::of_object).transpose()
    }

    /// Takes pairs of a pattern and a type; `None` keeps the type.
    pub fn pairs(&mut self, name: &'static str) -> PyResult<Vec<(String, Option<DType>)>> {
        let Some(value) = self.take(name)? else { return Ok(Vec::new()) };
        let items = if value.hasattr("items")? { value.call_method0("items")? } else { value.clone() };
        let pairs = items.try_iter().and_then(|all| all.map(|pair| pair?.extract()).collect());
        let Ok(pairs): PyResult<Vec<(String, Bound<'py, PyAny>)>> = pairs else {
            return self.refused(
                name,
                &value,
                "a mapping of patterns to types, or pairs such as (\"*.bias\", \"f32\")",
            );
        };
        if pairs.is_empty() {
            self.said.pop();
        }
        let one = |(glob, to): (String, Bound<'py, PyAny>)| {
            let to = (!to.is_none()).then(|| dtypes::of_object(&to)).transpose()?;
            Ok((glob, to))
        };
        pairs.into_iter().map(one).collect()
    }

    /// Takes `spec` and all remaining arguments. `None` without arguments.
    pub fn request(&mut self) -> PyResult<Option<Request>> {
        let (py, spec) = (self.left.py(), self.take("spec")?);
        let spec: Option<Bound<'py, PyString>> = match &spec {
            None => None,
            Some(value) => match value.cast::<PyString>() {
                Ok(text) => Some(text.clone()),
                Err(_) => return self.refused("spec", value, "the name of a specification"),
            },
        };
        if spec.is_none() && self.left.is_empty() {
            return Ok(None);
        }
        let spec = spec.as_ref().map(|spec| spec.to_cow()).transpose()?;
        request::parse(py, spec.as_deref(), Some(&self.left)).map(Some)
    }
}
