//! Entries folded into totals: what was spent, by whom, where, and which requests were answered.
//!
//! The fold is the only place that knows what an entry means. It runs over the whole chain when a
//! ledger is opened and over new entries before every operation, so a total is never stored and
//! cannot disagree with the entries.

use std::collections::{BTreeMap, HashMap};

use reticent_accounting::{Cost, Currency, Price, Relation, parallel, sequential};

use crate::entry::{NO_HEAD, Spend, next_head, read_body};
use crate::{Entry, EntryKind, Identity, RequestId};

/// The state of a ledger after some entries.
#[derive(Clone)]
pub(crate) struct Book {
    pub(crate) identity: Identity,
    pub(crate) sequence: u64,
    pub(crate) head: [u8; 32],
    pub(crate) all: Totals,
    pub(crate) by_analyst: BTreeMap<String, Totals>,
    pub(crate) requests: HashMap<RequestId, Request>,
}

/// A paid request; it is answered once `release` is known.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) sequence: u64,
    pub(crate) spend: Spend,
    pub(crate) release: Option<Answer>,
}

/// Where and as what a request was answered.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) sequence: u64,
    pub(crate) head: [u8; 32],
    pub(crate) digest: [u8; 32],
}

/// Sums of prices, kept apart by partition and part.
///
/// # Claim
/// `total()` bounds the loss of everything added: unpartitioned spends in sequence, and for each
/// partition the parallel composition of its parts, each part being the sequence of its spends.
/// # Composition
/// Sequential over all rows; `reticent_accounting::parallel` within one partition, whose parts are
/// fixed by the record's content alone (`partition` is a hash of the split's definition). Two
/// partitions never share credit: they are added.
/// # Checked by
/// `book::tests::{partitions_pay_their_worst_part, two_partitions_add}`
#[derive(Clone)]
pub(crate) struct Totals {
    whole: Price,
    partitions: BTreeMap<String, BTreeMap<String, Price>>,
}

impl Totals {
    pub(crate) fn new() -> Self {
        Self {
            whole: Price::zero(),
            partitions: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, price: &Price, partition: Option<&(String, String)>) {
        let slot = match partition {
            None => &mut self.whole,
            Some((partition, part)) => self
                .partitions
                .entry(partition.clone())
                .or_default()
                .entry(part.clone())
                .or_insert_with(Price::zero),
        };
        *slot = sequential(&[slot.clone(), price.clone()]);
    }

    pub(crate) fn total(&self) -> Price {
        let mut prices = vec![self.whole.clone()];
        prices.extend(self.partitions.values().map(parallel_of));
        sequential(&prices)
    }
}

fn parallel_of(parts: &BTreeMap<String, Price>) -> Price {
    parallel(&parts.values().cloned().collect::<Vec<_>>())
}

impl Book {
    /// The book of a ledger whose entry 0 is this row.
    pub(crate) fn open(body: &str, head: &[u8; 32]) -> Result<(Self, Entry), String> {
        if next_head(&NO_HEAD, 0, body) != *head {
            return Err("entry 0 does not match its hash".to_owned());
        }
        let (time, kind) = read_body(body).map_err(|e| format!("entry 0 cannot be read: {e}"))?;
        let EntryKind::Created(identity) = &kind else {
            return Err("entry 0 is not a registration".to_owned());
        };
        let book = Self {
            identity: (**identity).clone(),
            sequence: 0,
            head: *head,
            all: Totals::new(),
            by_analyst: BTreeMap::new(),
            requests: HashMap::new(),
        };
        Ok((
            book,
            Entry {
                sequence: 0,
                time,
                kind,
                head: *head,
            },
        ))
    }

    /// Checks the next row against the chain and takes it in.
    pub(crate) fn follow(
        &mut self,
        sequence: u64,
        body: &str,
        head: &[u8; 32],
    ) -> Result<Entry, String> {
        if self.sequence.checked_add(1) != Some(sequence) {
            return Err(format!("entry {sequence} follows entry {}", self.sequence));
        }
        if next_head(&self.head, sequence, body) != *head {
            return Err(format!("entry {sequence} does not match its hash"));
        }
        let (time, kind) =
            read_body(body).map_err(|e| format!("entry {sequence} cannot be read: {e}"))?;
        self.apply(sequence, &kind, head)
            .map_err(|what| format!("entry {sequence}: {what}"))?;
        self.sequence = sequence;
        self.head = *head;
        Ok(Entry {
            sequence,
            time,
            kind,
            head: *head,
        })
    }

    fn apply(
        &mut self,
        sequence: u64,
        kind: &EntryKind,
        head: &[u8; 32],
    ) -> Result<(), &'static str> {
        match kind {
            EntryKind::Created(_) => return Err("a second registration"),
            EntryKind::Spend(spend) => {
                if !spend.price.is_valid() {
                    return Err("a negative price");
                }
                let request = Request {
                    sequence,
                    spend: (**spend).clone(),
                    release: None,
                };
                if self.requests.insert(spend.request, request).is_some() {
                    return Err("a request paid twice");
                }
                self.charge(spend);
            }
            EntryKind::Release { request, digest } => {
                let paid = self
                    .requests
                    .get_mut(request)
                    .ok_or("a release that was never paid")?;
                let answer = Answer {
                    sequence,
                    head: *head,
                    digest: *digest,
                };
                if paid.release.replace(answer).is_some() {
                    return Err("a second value for one request");
                }
            }
            EntryKind::Raise { cap, .. } => {
                if !self.identity.cap.within(cap) {
                    return Err("a cap that went down");
                }
                self.identity.cap = cap.clone();
            }
        }
        Ok(())
    }

    /// Adds a spend to the totals; also used to try one before it is written.
    pub(crate) fn charge(&mut self, spend: &Spend) {
        let partition = spend.partition.as_ref();
        self.all.add(&spend.price, partition);
        self.by_analyst
            .entry(spend.analyst.clone())
            .or_insert_with(Totals::new)
            .add(&spend.price, partition);
    }

    pub(crate) fn status(&self) -> Status {
        let identity = &self.identity;
        let spent = self.all.total();
        let left = |cap: &Cost, spent: &Price| {
            spent
                .under(identity.relation)
                .map_or_else(Cost::zero, |s| cap.minus(s))
        };
        let analysts = identity
            .analysts
            .keys()
            .filter(|name| *name != "default")
            .map(|name| (name.clone(), Totals::new()))
            .chain(
                self.by_analyst
                    .iter()
                    .map(|(name, totals)| (name.clone(), totals.clone())),
            )
            .map(|(name, totals)| {
                let spent = totals.total();
                let cap = identity.analyst_cap(&name).cloned();
                let remaining = cap.as_ref().map(|cap| left(cap, &spent));
                (
                    name,
                    AnalystStatus {
                        spent,
                        cap,
                        remaining,
                    },
                )
            })
            .collect();
        Status {
            relation: identity.relation,
            currency: identity.currency,
            cap: identity.cap.clone(),
            remaining: left(&identity.cap, &spent),
            spent,
            analysts,
            partitions: self
                .all
                .partitions
                .iter()
                .map(|(partition, parts)| PartitionStatus {
                    partition: partition.clone(),
                    parts: parts.clone(),
                    total: parallel_of(parts),
                })
                .collect(),
            unpublished: self
                .requests
                .values()
                .filter(|r| r.release.is_none())
                .count(),
            sequence: self.sequence,
            entries: self.sequence.saturating_add(1),
            head: self.head,
        }
    }
}

/// What a ledger holds, in totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The neighbour relation of the data set.
    pub relation: Relation,
    /// The currency of every amount.
    pub currency: Currency,
    /// The present cap.
    pub cap: Cost,
    /// The total under both relations.
    pub spent: Price,
    /// What is left under the data set's relation.
    pub remaining: Cost,
    /// By analyst: everyone with a cap of their own or a spend.
    pub analysts: BTreeMap<String, AnalystStatus>,
    /// By partition and part.
    pub partitions: Vec<PartitionStatus>,
    /// Payments whose value was never stored.
    pub unpublished: usize,
    /// The sequence number of the last entry.
    pub sequence: u64,
    /// How many entries there are.
    pub entries: u64,
    /// The chain's head.
    pub head: [u8; 32],
}

/// One analyst's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnalystStatus {
    /// Spent, under both relations.
    pub spent: Price,
    /// The analyst's cap, if any.
    pub cap: Option<Cost>,
    /// What is left of it under the data set's relation.
    pub remaining: Option<Cost>,
}

/// One declared split of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionStatus {
    /// The hash of its definition.
    pub partition: String,
    /// What was spent on each part.
    pub parts: BTreeMap<String, Price>,
    /// The parallel composition of the parts.
    pub total: Price,
}

#[cfg(test)]
mod tests {
    use reticent_accounting::{Rational, parse_rational};

    use super::*;

    fn price(add_remove: &str, replace_one: &str) -> Price {
        let cost = |text: &str| Some(Cost::pure(parse_rational(text).unwrap()));
        Price {
            add_remove: cost(add_remove),
            replace_one: cost(replace_one),
        }
    }

    fn part(partition: &str, part: &str) -> (String, String) {
        (partition.to_owned(), part.to_owned())
    }

    /// By hand: train .3+.1, test .25; add/remove max = .4; replace-one max(.8, .5, .4+.25) = .8,
    /// plus .1 | .2 over all rows.
    #[test]
    fn partitions_pay_their_worst_part() {
        let mut totals = Totals::new();
        totals.add(&price("0.3", "0.6"), Some(&part("p", "train")));
        totals.add(&price("0.1", "0.2"), Some(&part("p", "train")));
        totals.add(&price("0.25", "0.5"), Some(&part("p", "test")));
        totals.add(&price("0.1", "0.2"), None);
        assert_eq!(totals.total(), price("0.5", "1"));
        // Replace-one across the parts dominates when single parts have sharp replace-one costs.
        let mut sharp = Totals::new();
        sharp.add(&price("0.4", "0.4"), Some(&part("p", "train")));
        sharp.add(&price("0.6", "0.6"), Some(&part("p", "test")));
        assert_eq!(sharp.total(), price("0.6", "1"));
    }

    #[test]
    fn two_partitions_add() {
        let mut totals = Totals::new();
        totals.add(&price("0.3", "0.6"), Some(&part("p", "train")));
        totals.add(&price("0.3", "0.6"), Some(&part("q", "train")));
        assert_eq!(totals.total(), price("0.6", "1.2"));
    }

    /// An exact count inside a part makes the whole replace-one total unbounded.
    #[test]
    fn unbounded_parts_stay_unbounded() {
        let mut totals = Totals::new();
        let exact = Price {
            add_remove: None,
            replace_one: Some(Cost::pure(Rational::ZERO)),
        };
        totals.add(&exact, None);
        assert_eq!(totals.total().replace_one, Some(Cost::zero()));
        totals.add(&exact, Some(&part("p", "train")));
        assert_eq!(
            totals.total(),
            Price {
                add_remove: None,
                replace_one: None
            }
        );
    }
}
