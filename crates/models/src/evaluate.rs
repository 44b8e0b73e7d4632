//! Evaluation of a model of any format: its steps in order, with each value kept until its last use.
//!
//! A format defines its steps ([`Program`]); lifetimes and undefined results are handled alike for all.

use std::fmt;
use std::sync::Arc;

use truecast_core::spec::tosa::Requirement;

/// Values in a conversion that its standard leaves open: each has the documented result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenResults {
    /// Name of the conversion in errors.
    pub conversion: String,
    /// Elements converted.
    pub elements: u64,
    /// Elements left open.
    pub undefined: u64,
    /// Clause of the standard.
    pub clause: &'static str,
}

/// A result that a standard does not define, and that ends an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedResult {
    /// The operation.
    pub place: String,
    /// Index of the first element, if the reason is an element.
    pub index: Option<u64>,
    /// Reason.
    pub reason: Reason,
}

/// Why a result is not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A clause leaves this element open (Tile IR, evaluated strictly).
    Clause(&'static str),
    /// A requirement is not met, so that the whole graph has no result (TOSA).
    Requirement(Requirement),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Clause(clause) => f.write_str(clause),
            Reason::Requirement(requirement) => write!(f, "unpredictable: {requirement}"),
        }
    }
}

impl std::error::Error for UndefinedResult {}

impl fmt::Display for UndefinedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UndefinedResult { place, index, reason } = self;
        match (reason, index) {
            (Reason::Clause(_), Some(index)) => write!(f, "{place}: element {index} is undefined: {reason}"),
            (Reason::Requirement(_), Some(index)) => write!(f, "{place}: {reason}, first at element {index}"),
            (_, None) => write!(f, "{place}: {reason}"),
        }
    }
}

/// A model as the evaluator sees it: numbered values, and numbered steps that make some of them from others.
pub(crate) trait Program {
    type Value;
    type Error;

    fn values(&self) -> usize;

    fn steps(&self) -> usize;

    /// Values that a step takes.
    fn operands(&self, step: usize) -> Vec<usize>;

    /// Values that a step produces.
    fn results(&self, step: usize) -> Vec<usize>;

    /// Values delivered before a step; the number of steps means the end.
    fn delivered(&self, step: usize) -> Vec<usize>;

    /// Whether steps with unused results are executed too.
    fn does_every_step(&self) -> bool {
        false
    }

    /// A value that no step produces; `None` if it is unknown.
    fn load(&mut self, value: usize) -> Result<Option<Arc<Self::Value>>, Self::Error>;

    /// Results of a step for its operands; `None` for an unknown result.
    fn apply(&mut self, step: usize, operands: &[Given<Self::Value>]) -> Result<Vec<Given<Self::Value>>, Self::Error>;

    /// Takes a value that is delivered before a step.
    fn deliver(&mut self, step: usize, value: usize, given: Given<Self::Value>) -> Result<(), Self::Error>;

    /// Notes that a step's value is now held; an error if the values take too much memory.
    fn hold(&mut self, _step: usize, _value: usize, _given: &Self::Value) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Notes that a value is no longer held.
    fn release(&mut self, _given: &Self::Value) {}
}

/// A value if it is known.
pub(crate) type Given<V> = Option<Arc<V>>;

/// Evaluates a program. Returns the number of uses of each value.
///
/// # Errors
/// Every error of the program.
pub(crate) fn run<P: Program>(program: &mut P) -> Result<Vec<usize>, P::Error> {
    let uses = uses(program);
    let mut values = Values { held: (0..program.values()).map(|_| None).collect(), uses: uses.clone() };
    for step in 0..=program.steps() {
        for value in program.delivered(step) {
            let given = values.take(program, value)?;
            program.deliver(step, value, given)?;
        }
        if step == program.steps() {
            break;
        }
        let results = program.results(step);
        if !program.does_every_step() && results.iter().all(|&result| uses[result] == 0) {
            continue;
        }
        let operands = program.operands(step).into_iter().map(|operand| values.take(program, operand));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let made = program.apply(step, &operands)?;
        for (result, made) in results.into_iter().zip(made) {
            if let Some(made) = made
                && values.uses[result] > 0
            {
                program.hold(step, result, &made)?;
                values.held[result] = Some(made);
            }
        }
    }
    Ok(uses)
}

/// Number of uses of each value; uses by skipped steps do not count.
fn uses<P: Program>(program: &P) -> Vec<usize> {
    let mut uses = vec![0; program.values()];
    for step in (0..=program.steps()).rev() {
        if step < program.steps()
            && (program.does_every_step() || program.results(step).iter().any(|&result| uses[result] > 0))
        {
            program.operands(step).into_iter().for_each(|operand| uses[operand] += 1);
        }
        program.delivered(step).into_iter().for_each(|value| uses[value] += 1);
    }
    uses
}

/// The live values.
struct Values<V> {
    held: Vec<Given<V>>,
    /// Remaining uses.
    uses: Vec<usize>,
}

impl<V> Values<V> {
    /// Uses a value once; the last use releases it.
    fn take<P: Program<Value = V>>(&mut self, program: &mut P, value: usize) -> Result<Given<V>, P::Error> {
        let given = match self.held[value].take() {
            Some(held) => Some(held),
            None => program.load(value)?,
        };
        self.uses[value] -= 1;
        match (&given, self.uses[value]) {
            (Some(given), 0) => program.release(given),
            (Some(_), _) => self.held[value] = given.clone(),
            (None, _) => {}
        }
        Ok(given)
    }
}
