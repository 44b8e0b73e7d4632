//! Evaluates every conversion of an entry, for every element (§6.1).
//!
//! An undefined element still has bits; operations compute from these bits, and their results are undefined for the
//! same reason. Values of other operations are unknown, unless supplied. Results come from `cast_one`, not from
//! kernels.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use truecast_core::Outcome;
use truecast_core::spec::tile::{Meaning, Options, Profile, TileType, meaning::REASONS};

use crate::error::Error;
use crate::evaluate::{Given, Program, Reason, UndefinedResult, run_program};
use crate::tensor::Tensor;
use crate::tile::error::{Cause, shown};
use crate::tile::module::{Function, Operation, Statement};
use crate::tile::pack;

/// Settings for the evaluation of modules.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Profile that decides where sources differ.
    pub profile: Profile,
    /// The options of §2.3.
    pub options: Options,
    /// Limit on the bytes of all values that are held at the same time.
    pub max_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { profile: Profile::default(), options: Options::default(), max_bytes: 1 << 30 }
    }
}

/// A tensor, with the reason for each undefined element.
#[derive(Clone, Debug, PartialEq)]
pub struct Elements {
    /// The codes.
    pub tensor: Arc<Tensor>,
    /// Reasons for undefined elements.
    pub undefined: Reasons,
}

/// Undefined elements and their reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reasons {
    /// The same for all elements.
    All(Option<&'static str>),
    /// One number per element: 0 if defined, else 1 plus an index into [`REASONS`].
    Each(Vec<u8>),
}

impl Reasons {
    /// Reason why an element is undefined; `None` if defined.
    pub fn of(&self, index: u64) -> Option<&'static str> {
        match self {
            Reasons::All(reason) => *reason,
            Reasons::Each(numbers) => match numbers[index as usize] {
                0 => None,
                n => Some(REASONS[n as usize - 1]),
            },
        }
    }
}

impl Elements {
    /// Creates elements that are all defined.
    pub fn defined(tensor: Arc<Tensor>) -> Self {
        Self { tensor, undefined: Reasons::All(None) }
    }

    fn held_bytes(&self) -> u64 {
        let reasons = match &self.undefined {
            Reasons::All(_) => 0,
            Reasons::Each(numbers) => numbers.len() as u64,
        };
        self.tensor.held_bytes() + reasons
    }
}

/// An evaluated conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted<'a> {
    /// Written name of the result.
    pub name: String,
    /// The operation.
    pub op: &'static str,
    /// Written name of the operand.
    pub operand: String,
    /// Type of the result.
    pub tile: &'a TileType,
    /// Elements of the result; `None` if the operand is unknown.
    pub elements: Option<&'a Elements>,
    /// Number of undefined elements by reason.
    pub undefined: BTreeMap<&'static str, u64>,
    /// For each behavior of §7, the number of elements that have another value in other sources.
    pub notes: BTreeMap<&'static str, u64>,
}

/// Evaluates an entry.
///
/// `supplied` lists values by name, such as `%x`; results of other operations are allowed. `deliver` is called for
/// every conversion in order.
///
/// # Errors
/// [`Error::Tile`], [`Error::Undefined`], [`Error::Memory`], [`Error::NoValue`], [`Error::Supplied`], and errors of
/// `deliver`.
pub fn evaluate<E: From<Error>>(
    function: &Function,
    settings: &Settings,
    supplied: Vec<(String, Tensor)>,
    mut deliver: impl FnMut(Converted<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let supplied = known(function, supplied)?;
    let mut statements = Vec::new();
    flatten(&function.body, &mut statements);
    run_program(&mut Entry { function, settings, statements, supplied, bytes: 0, deliver: &mut deliver })?;
    Ok(())
}

fn known(function: &Function, supplied: Vec<(String, Tensor)>) -> Result<HashMap<usize, Arc<Elements>>, Error> {
    let mut known = HashMap::new();
    for (name, tensor) in supplied {
        let id = function.value_of(&name);
        let id = id.ok_or_else(|| Error::NoValue { entry: shown(&function.name), name: name.clone() })?;
        if let Some(declared) = function.value(id).tile.as_deref()
            && (declared.len() != tensor.len() || declared.element.storage() != tensor.dtype)
        {
            let (len, found) = (tensor.len(), tensor.dtype);
            return Err(Error::Supplied { name, len, found, declared: declared.to_string() });
        }
        known.insert(id.0 as usize, Arc::new(Elements::defined(tensor.into())));
    }
    Ok(known)
}

fn flatten<'a>(statements: &'a [Statement], all: &mut Vec<&'a Statement>) {
    for statement in statements {
        match &statement.operation {
            Operation::Opaque { regions, .. } => regions.iter().for_each(|region| flatten(region, all)),
            _ => all.push(statement),
        }
    }
}

/// An entry as a program. Its statements are the steps.
struct Entry<'a, E> {
    function: &'a Function,
    settings: &'a Settings,
    statements: Vec<&'a Statement>,
    supplied: HashMap<usize, Arc<Elements>>,
    bytes: u64,
    deliver: &'a mut dyn FnMut(Converted<'_>) -> Result<(), E>,
}

impl<E: From<Error>> Program for Entry<'_, E> {
    type Value = Elements;
    type Error = E;

    fn values(&self) -> usize {
        self.function.values.len()
    }

    fn steps(&self) -> usize {
        self.statements.len()
    }

    fn operands(&self, step: usize) -> Vec<usize> {
        match &self.statements[step].operation {
            Operation::Convert { operand, .. } | Operation::Pack { operand, .. } => vec![operand.0 as usize],
            _ => Vec::new(),
        }
    }

    fn results(&self, step: usize) -> Vec<usize> {
        let statement = self.statements[step];
        match &statement.operation {
            Operation::Constant { .. } | Operation::Convert { .. } | Operation::Pack { .. } => {
                vec![statement.results[0].0 as usize]
            }
            _ => Vec::new(),
        }
    }

    /// Empty, because `apply` delivers each conversion immediately.
    fn delivered(&self, _step: usize) -> Vec<usize> {
        Vec::new()
    }

    fn does_every_step(&self) -> bool {
        true
    }

    fn load(&mut self, value: usize) -> Result<Given<Elements>, E> {
        Ok(self.supplied.remove(&value))
    }

    fn apply(&mut self, step: usize, operands: &[Given<Elements>]) -> Result<Vec<Given<Elements>>, E> {
        let statement = self.statements[step];
        // A supplied value without a declared type may not fit its use. The value then counts as unknown.
        let operand = |from: &TileType| {
            let fits = |e: &&Arc<Elements>| e.tensor.dtype == from.element.storage() && e.tensor.len() == from.len();
            operands[0].as_ref().filter(fits)
        };
        let made = match &statement.operation {
            Operation::Constant { elements, .. } => Some(Elements::defined(elements.clone())),
            Operation::Convert { conversion, from, to, .. } => {
                let (profile, options) = (self.settings.profile, &self.settings.options);
                let meaning = conversion.meaning(from.element, to.element, profile, options);
                let meaning = meaning.map_err(|violation| {
                    let value = self.function.name_of(statement.results[0]);
                    let (operand, result) = (from.clone(), to.clone());
                    Error::from(statement.wrong(Cause::Illegal { value, operand, result, violation }))
                })?;
                let mut notes = BTreeMap::new();
                let made = operand(from).map(|operand| convert(&meaning, operand, to, &mut notes));
                self.converted(step, conversion.op().name(), to, made.as_ref(), notes)?;
                made
            }
            Operation::Pack { kind, from, to, .. } => {
                let made = operand(from).and_then(|operand| reinterpret(operand, to));
                self.converted(step, kind.name(), to, made.as_ref(), BTreeMap::new())?;
                made
            }
            Operation::Return { .. } | Operation::Opaque { .. } => return Ok(Vec::new()),
        };
        Ok(vec![made.map(Arc::new)])
    }

    fn deliver(&mut self, _step: usize, _value: usize, _given: Given<Elements>) -> Result<(), E> {
        Ok(())
    }

    fn hold(&mut self, step: usize, _value: usize, given: &Elements) -> Result<(), E> {
        self.bytes += given.held_bytes();
        let limit = self.settings.max_bytes;
        if self.bytes <= limit {
            return Ok(());
        }
        Err(Error::Memory { place: self.place(self.statements[step]), limit }.into())
    }

    fn release(&mut self, given: &Elements) {
        self.bytes -= given.held_bytes().min(self.bytes);
    }
}

impl<E: From<Error>> Entry<'_, E> {
    fn place(&self, statement: &Statement) -> String {
        format!("{}: {}", statement.place, self.function.name_of(statement.results[0]))
    }

    fn converted(
        &mut self,
        step: usize,
        op: &'static str,
        tile: &TileType,
        elements: Option<&Elements>,
        notes: BTreeMap<&'static str, u64>,
    ) -> Result<(), E> {
        let statement = self.statements[step];
        if self.settings.options.strict
            && let Some(elements) = elements
            && let Some((index, reason)) = (0..elements.tensor.len()).find_map(|i| Some((i, elements.undefined.of(i)?)))
        {
            let (place, reason) = (self.place(statement), Reason::Clause(reason));
            return Err(Error::Undefined(UndefinedResult { place, index: Some(index), reason }).into());
        }
        let name = self.function.name_of(statement.results[0]);
        let operand = match statement.operation {
            Operation::Convert { operand, .. } | Operation::Pack { operand, .. } => self.function.name_of(operand),
            _ => String::new(),
        };
        let undefined = elements.map(tally).unwrap_or_default();
        (self.deliver)(Converted { name, op, operand, tile, elements, undefined, notes })
    }
}

fn tally(elements: &Elements) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    match &elements.undefined {
        Reasons::All(None) => {}
        Reasons::All(Some(reason)) => drop(counts.insert(*reason, elements.tensor.len())),
        Reasons::Each(numbers) => {
            for &number in numbers.iter().filter(|n| **n != 0) {
                *counts.entry(REASONS[number as usize - 1]).or_insert(0) += 1;
            }
        }
    }
    counts
}

fn convert(meaning: &Meaning, operand: &Elements, to: &TileType, notes: &mut BTreeMap<&'static str, u64>) -> Elements {
    let dtype = to.element.storage();
    let len = operand.tensor.len();
    let mut one = |code: u64, carried: Option<&'static str>, n: u64| {
        let element = meaning.element(code);
        if let (Some(note), None) = (element.note, carried) {
            *notes.entry(note).or_insert(0) += n;
        }
        match element.outcome {
            Outcome::Undefined { code, reason } => (code, carried.or(Some(reason))),
            outcome => (outcome.code().expect("no policy of Tile IR refuses a value"), carried),
        }
    };
    if let (Some(code), Reasons::All(carried)) = (operand.tensor.as_splat(), &operand.undefined) {
        let (code, reason) = one(code, *carried, len);
        let tensor = Tensor::splat(dtype, to.shape.clone(), code);
        return Elements { tensor: tensor.into(), undefined: Reasons::All(reason) };
    }
    let mut numbers = Vec::new();
    let operand_code = operand.tensor.reader();
    let codes = (0..len).map(|i| {
        let (code, reason) = one(operand_code(i), operand.undefined.of(i), 1);
        if let Some(reason) = reason {
            numbers.resize(i as usize, 0);
            let number = REASONS.iter().position(|r| *r == reason).expect("the list has every reason");
            numbers.push(number as u8 + 1);
        }
        code
    });
    let tensor = Tensor::of_codes(dtype, to.shape.clone(), codes);
    let undefined = if numbers.is_empty() {
        Reasons::All(None)
    } else {
        numbers.resize(len as usize, 0);
        Reasons::Each(numbers)
    };
    Elements { tensor: tensor.into(), undefined }
}

/// Reinterprets the bits of the operand. A result's element with bits of an undefined element is undefined.
fn reinterpret(operand: &Elements, to: &TileType) -> Option<Elements> {
    let tensor = pack::evaluate(&operand.tensor, to)?;
    let undefined = match &operand.undefined {
        Reasons::All(reason) => Reasons::All(*reason),
        Reasons::Each(numbers) => {
            let (from, into) = (numbers.len() as u64, tensor.len());
            let sources = |i: u64| i * from / into..=((i + 1) * from - 1) / into;
            let number = |i: u64| sources(i).map(|k| numbers[k as usize]).find(|n| *n != 0).unwrap_or(0);
            Reasons::Each((0..into).map(number).collect())
        }
    };
    Some(Elements { tensor: tensor.into(), undefined })
}
