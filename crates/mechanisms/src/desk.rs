//! The desk: where a mechanism buys noisy answers about statistics it never sees.
//!
//! A mechanism declares its event, its folds and a cap on further passes. The door then hands it a desk
//! that holds the folds' exact results and a meter loaded with the declared event. Every primitive of
//! [`crate::primitives`] is charged on the meter, in the declared order and at the declared price,
//! *before* it draws noise; what comes back is a value with noise on it. So a mistake in a mechanism
//! outside this crate can give a useless answer but not an unpaid one.

use std::collections::VecDeque;

use reticent_accounting::Event;
use reticent_laws::Law;
use reticent_noise::{Lattice, Noise};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::evaluate::Unit;
use crate::fold::{Fold, State};
use crate::program::{Interval, ProgramError, RowProgram};
use crate::source::{Held, Job, RowSource, Scanned, SourceError};

/// Why a desk did not serve. Decided from public inputs, except for failures of the machine.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// The purchase is not the one declared next.
    #[error("a mechanism asked for {asked} where it had declared {declared}")]
    Undeclared {
        /// What was asked for.
        asked: String,
        /// What stands next in the declared event.
        declared: String,
    },
    /// The mechanism has used its declared number of passes.
    #[error("a mechanism asked for more passes over the data than it had declared")]
    Passes,
    /// A primitive does not fit the fold it is applied to.
    #[error("{0}")]
    Misuse(String),
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The program does not fit the schema.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A calibration is impossible.
    #[error(transparent)]
    Accounting(#[from] reticent_accounting::AccountingError),
    /// A noise scale is impossible.
    #[error(transparent)]
    Noise(#[from] reticent_noise::NoiseError),
}

/// A primitive does not fit what it is applied to.
pub(crate) fn misuse(text: impl Into<String>) -> DeskError {
    DeskError::Misuse(text.into())
}

/// Entries of one mechanism's folds: a gigabyte.
pub(crate) const MOST_ENTRIES: usize = 1 << 26;

/// Refuses folds too large for memory, from their public shape.
pub(crate) fn fits(folds: &[Fold]) -> Result<(), DeskError> {
    let entries = folds.iter().map(Fold::len).fold(0, usize::saturating_add);
    if entries <= MOST_ENTRIES {
        return Ok(());
    }
    Err(misuse(format!(
        "{entries} cells are too many; at most {MOST_ENTRIES} fit"
    )))
}

/// One line of a receipt: which noise protected what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseRecord {
    /// The step of the mechanism.
    pub name: String,
    /// The distribution.
    pub distribution: String,
    /// Its scale, in the units of the released statistic's grid.
    pub scale: f64,
    /// Half-width that holds the noise with probability .95, where the step has one.
    pub error_95: Option<f64>,
}

/// The exact results of folds, by the order in which they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldId(pub usize);

/// See the module text.
pub struct Desk<'a> {
    pub(crate) context: &'a Context,
    pub(crate) bounds: Vec<Interval>,
    pub(crate) noise: &'a mut dyn Noise,
    source: &'a dyn RowSource,
    unit: Unit,
    program: &'a RowProgram,
    states: Vec<(Fold, State)>,
    kept: Option<Held>,
    meter: VecDeque<Event>,
    passes: u32,
    receipt: Vec<NoiseRecord>,
}

impl<'a> Desk<'a> {
    pub(crate) fn new(
        context: &'a Context,
        source: &'a dyn RowSource,
        unit: Unit,
        program: &'a RowProgram,
        noise: &'a mut dyn Noise,
        event: &Event,
        passes: u32,
    ) -> Result<Self, DeskError> {
        if unit.max_rows() > context.rows_per_unit {
            return Err(misuse(format!(
                "a unit contributes up to {} rows, but the price is for {}",
                unit.max_rows(),
                context.rows_per_unit
            )));
        }
        let bounds = program.bounds(source.schema())?;
        let meter = event.leaves().into_iter().cloned().collect();
        Ok(Self {
            context,
            bounds,
            noise,
            source,
            unit,
            program,
            states: Vec::new(),
            kept: None,
            meter,
            passes,
            receipt: Vec::new(),
        })
    }

    /// What the first pass gave.
    pub(crate) fn open(&mut self, folds: Vec<Fold>, scanned: Scanned) {
        self.load(folds, scanned.states);
        self.kept = scanned.kept;
    }

    fn load(&mut self, folds: Vec<Fold>, states: Vec<State>) {
        self.states.extend(folds.into_iter().zip(states));
    }

    pub(crate) fn finish(self) -> (Vec<NoiseRecord>, Vec<Event>) {
        (self.receipt, self.meter.into())
    }

    /// The public facts.
    pub fn context(&self) -> &Context {
        self.context
    }

    /// The public bounds of a term of the program.
    pub fn bounds(&self, term: usize) -> Result<Interval, DeskError> {
        self.bounds
            .get(term)
            .copied()
            .ok_or(DeskError::Program(ProgramError::Term(term)))
    }

    /// One more pass over the rows, with folds that may depend on what was bought before.
    pub fn scan(&mut self, folds: Vec<Fold>) -> Result<Vec<FoldId>, DeskError> {
        fits(&folds)?;
        self.pass()?;
        let states = if let Some(held) = &mut self.kept {
            held.scan(&folds, &self.bounds)
        } else {
            let job = Job {
                program: self.program.clone(),
                folds: folds.clone(),
            };
            let mut scanned = self.source.scan(self.unit, &[job])?;
            scanned.pop().unwrap_or_default()
        };
        let first = self.states.len();
        self.load(folds, states);
        Ok((first..self.states.len()).map(FoldId).collect())
    }

    /// Takes the terms into memory for a primitive that passes over them often.
    pub(crate) fn hold(&mut self) -> Result<Held, DeskError> {
        self.pass()?;
        match self.kept.take() {
            Some(held) => Ok(held),
            None => Ok(self.source.hold(self.unit, self.program)?),
        }
    }

    fn pass(&mut self) -> Result<(), DeskError> {
        self.passes = self.passes.checked_sub(1).ok_or(DeskError::Passes)?;
        Ok(())
    }

    pub(crate) fn state(&self, id: FoldId) -> Result<(Fold, State), DeskError> {
        self.states
            .get(id.0)
            .cloned()
            .ok_or_else(|| misuse(format!("there is no fold {}", id.0)))
    }

    /// Pays for a purchase: its leaves must be the next declared ones, exactly.
    pub(crate) fn charge(&mut self, event: &Event) -> Result<(), DeskError> {
        for leaf in event.leaves() {
            match self.meter.pop_front() {
                Some(declared) if declared == *leaf => {}
                other => {
                    return Err(DeskError::Undeclared {
                        asked: format!("{leaf:?}"),
                        declared: other
                            .map_or_else(|| "nothing more".to_owned(), |e| format!("{e:?}")),
                    });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn record(&mut self, name: &str, lattice: &Lattice, step: f64) {
        self.receipt.push(NoiseRecord {
            name: name.to_owned(),
            distribution: lattice.name().to_owned(),
            scale: lattice.scale().to_f64() * step,
            error_95: Some(lattice.quantile_95() * step),
        });
    }

    pub(crate) fn record_as(&mut self, name: &str, distribution: &str, scale: f64) {
        self.receipt.push(NoiseRecord {
            name: name.to_owned(),
            distribution: distribution.to_owned(),
            scale,
            error_95: None,
        });
    }
}
