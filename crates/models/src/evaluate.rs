//! Evaluates a model of any format. The steps run in order, and each value is kept until the last step that uses it. A
//! format defines its steps as a [`Program`].

use std::fmt;
use std::sync::Arc;

use truecast_core::spec::tosa::Requirement;

/// Number of results of a conversion that its standard does not define. truecast documents its own choice for each of
/// these open results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenResults {
    /// Name of the conversion in errors.
    pub conversion: String,
    /// Number of converted elements.
    pub elements: u64,
    /// Number of elements whose result is open.
    pub undefined: u64,
    /// Clause of the standard that leaves the results open.
    pub clause: &'static str,
}

/// A result that a standard does not define. The evaluation ends with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedResult {
    /// Place of the operation.
    pub place: String,
    /// Index of the first undefined element; `None` if the reason is not an element.
    pub index: Option<u64>,
    /// Reason why the result is not defined.
    pub reason: Reason,
}

/// Reason why a result is not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A clause leaves this element open (Tile IR, evaluated strictly).
    Clause(&'static str),
    /// A requirement is not met, so the whole graph has no result (TOSA).
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

/// A model for the evaluator: numbered values, and numbered steps that compute values.
pub(crate) trait Program {
    type Value;
    type Error;

    fn values(&self) -> usize;

    fn steps(&self) -> usize;

    fn operands(&self, step: usize) -> Vec<usize>;

    fn results(&self, step: usize) -> Vec<usize>;

    /// Values delivered before this step. For values delivered at the end, `step` is the number of steps.
    fn delivered(&self, step: usize) -> Vec<usize>;

    /// Whether steps with unused results run too.
    fn does_every_step(&self) -> bool {
        false
    }

    /// Loads a value that no step produces; `None` if unknown.
    fn load(&mut self, value: usize) -> Result<Option<Arc<Self::Value>>, Self::Error>;

    /// Computes the results of a step; `None` for an unknown result.
    fn apply(&mut self, step: usize, operands: &[Given<Self::Value>]) -> Result<Vec<Given<Self::Value>>, Self::Error>;

    fn deliver(&mut self, step: usize, value: usize, given: Given<Self::Value>) -> Result<(), Self::Error>;

    /// Called when a value begins to be held; fails if all held values take too much memory.
    fn hold(&mut self, _step: usize, _value: usize, _given: &Self::Value) -> Result<(), Self::Error> {
        Ok(())
    }

    fn release(&mut self, _given: &Self::Value) {}
}

pub(crate) type Given<V> = Option<Arc<V>>;

/// Evaluates a program. Returns the number of uses of each value.
///
/// # Errors
/// All errors of the program's methods.
pub(crate) fn run_program<P: Program>(program: &mut P) -> Result<Vec<usize>, P::Error> {
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

struct Values<V> {
    held: Vec<Given<V>>,
    uses: Vec<usize>,
}

impl<V> Values<V> {
    /// Takes a value for one use; the last use releases the value.
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
