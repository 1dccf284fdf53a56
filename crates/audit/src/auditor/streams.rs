//! The streams in small worlds: three ticks of one series, and two ticks of a tree whose plan follows its outputs.

use reticent_accounting::{Rational, Relation};
use reticent_mechanisms::Context;
use reticent_mechanisms::stream::{
    Forest, Grouper, Mark, PARTS, Plan, Session, Split, Stream, Ticked,
};
use reticent_noise::Noise;

use super::{Auditable, Claim, Effort, Output};
use crate::AuditError;
use crate::stream::{Events, run};

/// A stream with the event tables it is run on: neighbours differ in one event.
pub(super) struct StreamWorld {
    name: &'static str,
    about: &'static str,
    stream: Stream,
    plan: fn(&[Ticked]) -> Plan,
    tables: [Events; 2],
}

/// Everything on the root, until a small count sends half of it to the leaves.
fn follows(before: &[Ticked]) -> Plan {
    let low = before
        .last()
        .and_then(|t| t.counts.first().copied().flatten())
        .is_some_and(|c| c < 2);
    let half = PARTS / 2;
    Plan {
        perturb: if low {
            vec![half; 3]
        } else {
            vec![PARTS, 0, 0]
        },
        group: vec![0; 3],
        close: Vec::new(),
    }
}

/// Three quarters for the count, a quarter for the grouper.
fn grouped(_: &[Ticked]) -> Plan {
    Plan::uniform(1, PARTS / 4 * 3, PARTS / 4)
}

/// Everything for the grouper.
fn marks(_: &[Ticked]) -> Plan {
    Plan::uniform(1, 0, PARTS)
}

/// All of them.
pub(super) fn worlds() -> Result<Vec<StreamWorld>, AuditError> {
    let forest = |parents: Vec<Option<u32>>| {
        Forest::new(parents).map_err(|e| AuditError::Method(format!("a forest: {e}")))
    };
    let declared = |forest, grouper| Stream {
        name: "audit".to_owned(),
        epsilon: Rational::ONE,
        forest,
        grouper,
        common: 0,
    };
    let grouper = Some(Grouper {
        threshold: 2,
        split: Split::Optimal,
    });
    Ok(vec![
        StreamWorld {
            name: "stream_counts",
            about: "shipped; two ticks of a tree, the plan follows the outputs",
            stream: declared(forest(vec![None, Some(0), Some(0)])?, None),
            plan: follows,
            tables: [
                vec![vec![0, 1, 0], vec![0, 1, 0]],
                vec![vec![0, 1, 0], vec![0, 2, 0]],
            ],
        },
        StreamWorld {
            name: "stream_groups",
            about: "shipped; the marks of three ticks",
            stream: declared(forest(vec![None])?, grouper),
            plan: marks,
            tables: [
                vec![vec![2], vec![0], vec![2]],
                vec![vec![2], vec![1], vec![2]],
            ],
        },
        StreamWorld {
            name: "stream_pegasus",
            about: "shipped; counts and marks of three ticks",
            stream: declared(forest(vec![None])?, grouper),
            plan: grouped,
            tables: [
                vec![vec![1], vec![1], vec![1]],
                vec![vec![1], vec![2], vec![1]],
            ],
        },
    ])
}

impl Auditable for StreamWorld {
    fn name(&self) -> &str {
        self.name
    }
    fn about(&self) -> &str {
        self.about
    }
    fn claim(&self) -> Claim {
        Claim::pure(1.0)
    }
    fn tables(&self) -> Vec<String> {
        self.tables
            .iter()
            .map(|t| format!("events {t:?}"))
            .collect()
    }
    fn run(&self, table: usize, noise: &mut dyn Noise) -> Result<Output, AuditError> {
        let failed = |e: &dyn std::fmt::Display| AuditError::Method(format!("{}: {e}", self.name));
        let context = Context::records(Relation::AddRemove);
        let mut session = Session::new(self.stream.clone(), context).map_err(|e| failed(&e))?;
        let ticks =
            run(&mut session, &self.tables[table], self.plan, noise).map_err(|e| failed(&e))?;
        let mut out = Output::new();
        for tick in ticks {
            #[allow(clippy::cast_precision_loss, reason = "small counts")]
            out.extend(tick.counts.iter().map(|c| c.map_or(f64::NAN, |c| c as f64)));
            out.extend(tick.marks.iter().map(|m| match m {
                Mark::Off => 0.0,
                Mark::Opened => 1.0,
                Mark::Joined => 2.0,
                Mark::Alone => 3.0,
            }));
        }
        Ok(out)
    }
    fn effort(&self) -> Effort {
        Effort {
            training: 2_000,
            most: 8_192,
        }
    }
}
