//! What a release is made by, and running one on rows that are not private.

use reticent_accounting::{AccountingError, Event};
use reticent_noise::Noise;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::desk::{Desk, DeskError, NoiseRecord, fits};
use crate::evaluate::Unit;
use crate::fold::Fold;
use crate::program::RowProgram;
use crate::source::{Job, RowSource, Scanned};

/// A computation over confidential rows that buys everything it learns at a [`Desk`].
///
/// Implementations live in the ordinary half: whatever they do, only paid primitives reach the rows.
pub trait Mechanism: Send + Sync {
    /// The kind of release, as in plans.
    fn kind(&self) -> &'static str;
    /// What the run will buy, leaf by leaf in order. Public inputs only. The door asks once and holds the run to it.
    fn event(&self, context: &Context) -> Result<Event, AccountingError>;
    /// The sums the run starts from; fused with those of other releases into one scan.
    fn first_pass(&self) -> Vec<Fold>;
    /// How many further passes over the rows the run may make.
    fn passes(&self) -> u32 {
        0
    }
    /// Buys and computes. Must be total: after the first touch of the data nothing may fail because of them.
    fn run(&self, desk: &mut Desk<'_>) -> Result<Answer, DeskError>;
}

/// The public result of a mechanism.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The value, in the shape of its kind.
    pub value: serde_json::Value,
    /// The headline error: half-width that holds with probability .95, if the kind has one.
    pub error_95: Option<f64>,
    /// Public remarks: fallbacks taken, values clipped, bounds too wide.
    pub flags: Vec<String>,
}

/// What a run leaves behind besides its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The declared event.
    pub event: Event,
    /// Which noise protected what.
    pub noise: Vec<NoiseRecord>,
    /// Declared purchases that were not made (an honest mechanism makes all of them).
    pub unused: Vec<Event>,
}

/// An answer that carries no guarantee: its noise was seeded, replayed, enumerated or absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated<T>(pub T);

/// Runs a mechanism on a source the caller owns, with any noise. The same code as a release, without door
/// and ledger: for audits, papers, planners and examples on public data.
pub fn simulate(
    source: &dyn RowSource,
    unit: Unit,
    context: &Context,
    program: &RowProgram,
    mechanism: &dyn Mechanism,
    noise: &mut dyn Noise,
) -> Result<Simulated<(Answer, Trace)>, DeskError> {
    let folds = mechanism.first_pass();
    let job = Job {
        program: program.clone(),
        folds: folds.clone(),
    };
    let keep = [mechanism.passes() > 0];
    let scanned = scan(source, unit, &[job], &keep)?.pop().unwrap_or_default();
    let event = mechanism.event(context)?;
    run(
        source, unit, context, program, mechanism, event, noise, folds, scanned,
    )
    .map(Simulated)
}

/// One scan for all jobs that have folds; without any, the rows are not read. `keep`: whose terms further passes will want.
pub(crate) fn scan(
    source: &dyn RowSource,
    unit: Unit,
    jobs: &[Job],
    keep: &[bool],
) -> Result<Vec<Scanned>, DeskError> {
    jobs.iter().try_for_each(|job| fits(&job.folds))?;
    let reads = |job: &&Job| !job.folds.is_empty();
    let (reading, keep): (Vec<Job>, Vec<bool>) = (jobs.iter().zip(keep))
        .filter(|(job, _)| reads(job))
        .map(|(job, keep)| (job.clone(), *keep))
        .unzip();
    let mut scanned = if reading.is_empty() {
        Vec::new()
    } else {
        source.scan_keeping(unit, &reading, &keep)?
    }
    .into_iter();
    let states = |job| {
        reads(&job)
            .then(|| scanned.next())
            .flatten()
            .unwrap_or_default()
    };
    Ok(jobs.iter().map(states).collect())
}

/// The one code path of releases and simulations, from exact folds to answer. `event` is what was priced: a mechanism
/// is not asked a second time, because it could then declare more than it paid for.
#[allow(
    clippy::too_many_arguments,
    reason = "the pieces a door and a simulation hold in different structs"
)]
pub(crate) fn run(
    source: &dyn RowSource,
    unit: Unit,
    context: &Context,
    program: &RowProgram,
    mechanism: &dyn Mechanism,
    event: Event,
    noise: &mut dyn Noise,
    folds: Vec<Fold>,
    scanned: Scanned,
) -> Result<(Answer, Trace), DeskError> {
    let mut desk = Desk::new(
        context,
        source,
        unit,
        program,
        noise,
        &event,
        mechanism.passes(),
    )?;
    desk.open(folds, scanned);
    let answer = mechanism.run(&mut desk)?;
    let (noise, unused) = desk.finish();
    Ok((
        answer,
        Trace {
            event,
            noise,
            unused,
        },
    ))
}
