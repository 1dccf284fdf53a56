//! The operations: create, open, reserve, publish, look up, raise, verify.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use reticent_accounting::{Cost, Currency, Price};

use crate::book::{Answer, Book, Request, Status, Totals};
use crate::entry::{self, NO_HEAD, Spend, next_head, read_body, write_body};
use crate::error::{Kind, LedgerError, Whose};
use crate::owner::Owner;
use crate::sidecar;
use crate::store::{Session, Store, damaged, file, io_fault};
use crate::{Entry, EntryKind, Identity, RequestId};

/// One process's handle on a ledger.
///
/// # Claim
/// At every moment, and after a crash at any moment: the spends on disk include everything whose
/// value was handed out; their total under the data set's relation is at most the cap in force
/// when each was accepted; no request id ever has two values.
/// # Composition
/// Each operation is one write transaction: it takes the write lock, checks the head file, reads
/// the entries it has not seen, decides, writes, commits, then records the new head. Two processes
/// therefore decide one after the other.
/// # Checked by
/// `crash::survives_kills_under_two_clients`, `pay::two_clients_cannot_overspend_together`,
/// `disk::a_full_disk_is_refused_before_anything_leaves`, `tamper::edited_rows_are_refused`
pub struct Ledger {
    store: Store,
    book: RefCell<Book>,
    identity: Identity,
    owner: Option<Owner>,
    /// Payments handed out and perhaps still held: dropping one lets it be claimed again.
    issued: HashMap<RequestId, Weak<()>>,
}

/// One release someone wants to pay for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The request's name.
    pub request: RequestId,
    /// Its price under both relations, in the data set's currency.
    pub price: Price,
    /// Partition hash and part, if the rows read are one part of a declared split.
    pub partition: Option<(String, String)>,
    /// The kind of release, for people.
    pub label: String,
}

/// What a reservation gives.
#[derive(Debug)]
pub enum Slot {
    /// The request was answered before: here is that value, at no cost.
    Stored(Stored),
    /// The request is paid: draw once and [`Ledger::publish`].
    Paid(Paid),
}

/// The right to publish one value for one paid request.
///
/// It cannot be copied, and dropping it refunds nothing: the payment stays, and the next
/// reservation of the same request uses it at no further cost.
#[derive(Debug)]
pub struct Paid {
    request: RequestId,
    sequence: u64,
    owner: String,
    held: Arc<()>,
}

impl Paid {
    /// The request that is paid.
    pub fn request(&self) -> &RequestId {
        &self.request
    }

    /// The entry that records the payment.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// A value on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The value as it was published.
    pub payload: Vec<u8>,
    /// The entry that records it.
    pub sequence: u64,
    /// The chain's head after that entry.
    pub head: [u8; 32],
}

/// The place in the chain that a `release.json` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgainstRelease {
    /// Its `ledger.sequence`.
    pub sequence: u64,
    /// Its `ledger.head`.
    pub head: [u8; 32],
}

/// What a verification found; it is only given if everything holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Entries whose hashes were recomputed.
    pub entries: u64,
    /// Stored values whose digests were recomputed.
    pub values: u64,
    /// Whether the release that was given lies on this chain; `None` if none was given.
    pub against: Option<AgainstRelease>,
    /// The totals, recomputed from the entries.
    pub status: Status,
}

impl Ledger {
    /// Makes a new ledger. An existing file, or the head file of a ledger that is gone, is an
    /// error: nothing is overwritten.
    pub fn create(path: impl AsRef<Path>, identity: &Identity) -> Result<Self, LedgerError> {
        let path = path.as_ref();
        for cap in std::iter::once(&identity.cap).chain(identity.analysts.values()) {
            check_budget(cap, identity.currency)?;
        }
        if path.exists() {
            return Err(file(Kind::Exists, path, ""));
        }
        if sidecar::read(path)?.is_some() {
            let what = "its head file is there but the ledger is gone";
            return Err(file(Kind::RolledBack, path, what));
        }
        let body = body_of(path, &EntryKind::Created(Box::new(identity.clone())))?;
        let head = next_head(&NO_HEAD, 0, &body);
        Store::create(path, &body, &head)?;
        let mut ledger = Self::open(path)?;
        ledger.seal()?;
        Ok(ledger)
    }

    /// Opens a ledger and checks it: format, every link of the chain, and the head file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        let store = Store::open(path.as_ref())?;
        let book = read_book(&store)?;
        Ok(Self {
            identity: book.identity.clone(),
            store,
            book: RefCell::new(book),
            owner: None,
            issued: HashMap::new(),
        })
    }

    /// What was registered, with the cap as last seen.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Pays for a batch: all of it or nothing, in one commit.
    ///
    /// Per request: a value stored earlier is given at no cost. A payment whose owner is gone (or
    /// that this handle made and dropped) is taken over at no cost: its value never left. A payment
    /// whose owner lives is [`LedgerError::InProgress`]. Anything else is a new spend, and the new
    /// total must fit under the cap of the data set and of the analyst.
    pub fn reserve(&mut self, analyst: &str, wanted: &[Wanted]) -> Result<Vec<Slot>, LedgerError> {
        self.check_process()?;
        let write = self.store.write()?;
        let book = self.book.get_mut();
        catch_up(&write, book)?;
        let owner = match &mut self.owner {
            Some(owner) => owner,
            none => none.insert(Owner::acquire(write.path).map_err(|e| io_fault(write.path, e))?),
        };
        let mut draft = Draft::new(book, analyst);
        let mut slots = Vec::new();
        let mut seen = HashSet::new();
        for want in wanted {
            let known = book.requests.get(&want.request);
            if let Some(answer) = known.and_then(|k| k.release) {
                slots.push(Slot::Stored(load(&write, &want.request, &answer)?));
                continue;
            }
            if !seen.insert(want.request) {
                return Err(LedgerError::Duplicate {
                    request: want.request,
                    label: want.label.clone(),
                });
            }
            let sequence = if let Some(known) = known {
                check_takeover(&write, known, want, owner, &self.issued)?;
                known.sequence
            } else {
                draft.spend(&write, book, want)?
            };
            write.set_owner(&want.request, owner.id())?;
            slots.push(Slot::Paid(Paid {
                request: want.request,
                sequence,
                owner: owner.id().to_owned(),
                held: Arc::new(()),
            }));
        }
        if seen.is_empty() {
            return Ok(slots);
        }
        draft.check_caps(book)?;
        write.commit()?;
        self.seal()?;
        for slot in &slots {
            if let Slot::Paid(paid) = slot {
                self.issued.insert(paid.request, Arc::downgrade(&paid.held));
            }
        }
        Ok(slots)
    }

    /// Whether [`Ledger::reserve`] would now be refused for its cost; nothing is written. For refusing before
    /// anything else is looked at; what counts is the reservation itself.
    pub fn check(&mut self, analyst: &str, wanted: &[Wanted]) -> Result<(), LedgerError> {
        self.check_process()?;
        let write = self.store.write()?;
        let book = self.book.get_mut();
        catch_up(&write, book)?;
        let mut draft = Draft::new(book, analyst);
        let mut seen = HashSet::new();
        for want in wanted {
            if !book.requests.contains_key(&want.request) && seen.insert(want.request) {
                draft.spend(&write, book, want)?;
            }
        }
        draft.check_caps(book)
    }

    /// Stores the value of a paid request; only then may it be handed out.
    ///
    /// On an error nothing may be handed out. Reserving the request again gives the stored value if
    /// the commit did happen, and the same payment for a new draw if it did not.
    pub fn publish(&mut self, slot: Paid, payload: &[u8]) -> Result<Stored, LedgerError> {
        self.check_process()?;
        let Paid { request, owner, .. } = slot;
        if self.owner.as_ref().is_none_or(|mine| mine.id() != owner) {
            return Err(LedgerError::StalePayment { request });
        }
        let write = self.store.write()?;
        let book = self.book.get_mut();
        catch_up(&write, book)?;
        let unanswered = book
            .requests
            .get(&request)
            .is_some_and(|r| r.release.is_none());
        let holder = write.owner(&request)?;
        if !unanswered || holder.as_deref() != Some(owner.as_str()) {
            return Err(LedgerError::StalePayment { request });
        }
        let kind = EntryKind::Release {
            request,
            digest: entry::digest(payload),
        };
        let (sequence, head) = append(&write, (book.sequence, book.head), &kind)?;
        write.store_payload(&request, payload)?;
        write.clear_owner(&request)?;
        write.commit()?;
        self.issued.remove(&request);
        self.seal()?;
        Ok(Stored {
            payload: payload.to_vec(),
            sequence,
            head,
        })
    }

    /// The stored value of a request, if it was answered.
    pub fn lookup(&self, id: &RequestId) -> Result<Option<Stored>, LedgerError> {
        self.refresh()?;
        let answer = self.book.borrow().requests.get(id).and_then(|r| r.release);
        answer
            .map(|answer| load(&self.store.read()?, id, &answer))
            .transpose()
    }

    /// Totals, caps and what is left.
    pub fn status(&self) -> Result<Status, LedgerError> {
        self.refresh()?;
        Ok(self.book.borrow().status())
    }

    /// Every entry, oldest first; the chain is checked on the way.
    pub fn entries(&self) -> Result<Vec<Entry>, LedgerError> {
        let mut entries = Vec::new();
        walk(&self.store.read()?, |entry| entries.push(entry))?;
        Ok(entries)
    }

    /// Raises the cap of the data set; recorded in the chain, only ever upward.
    pub fn raise(&mut self, new_cap: &Cost, who: &str) -> Result<Status, LedgerError> {
        check_budget(new_cap, self.identity.currency)?;
        let write = self.store.write()?;
        let book = self.book.get_mut();
        catch_up(&write, book)?;
        if !book.identity.cap.within(new_cap) {
            return Err(LedgerError::CapLowered {
                old: Box::new(book.identity.cap.clone()),
                new: Box::new(new_cap.clone()),
                currency: book.identity.currency,
            });
        }
        let kind = EntryKind::Raise {
            cap: new_cap.clone(),
            who: who.to_owned(),
        };
        append(&write, (book.sequence, book.head), &kind)?;
        write.commit()?;
        self.seal()?;
        self.status()
    }

    /// Reads everything again: the file's own structure, every hash of the chain, every stored
    /// value's digest, every total, the head file, and whether a release lies on this chain.
    pub fn verify(&mut self, against: Option<&AgainstRelease>) -> Result<Report, LedgerError> {
        self.store.integrity()?;
        let write = self.store.write()?;
        let book = walk(&write, drop)?;
        check_head_file(&write, &book, sidecar::read(write.path)?)?;
        let seen = self.book.get_mut();
        check_contains(&write, seen.sequence, &seen.head, "what this process saw")?;
        let values = check_values(&write, &book)?;
        if let Some(release) = against {
            check_contains(&write, release.sequence, &release.head, "the release")?;
        }
        drop(write);
        let status = book.status();
        *seen = book;
        Ok(Report {
            entries: status.entries,
            values,
            against: against.copied(),
            status,
        })
    }

    /// Takes in the entries of other processes.
    fn refresh(&self) -> Result<(), LedgerError> {
        let path = self.store.path();
        // The head file first: it never runs ahead of entries read later.
        let recorded = sidecar::read(path)?;
        let read = self.store.read()?;
        let mut book = self.book.borrow_mut();
        follow(&read, &mut book)?;
        check_head_file(&read, &book, recorded)
    }

    /// Records the newest head, under the write lock so that heads are recorded in order.
    fn seal(&mut self) -> Result<(), LedgerError> {
        let write = self.store.write()?;
        let book = self.book.get_mut();
        catch_up(&write, book)?;
        sidecar::write(write.path, book.sequence, &book.head)?;
        self.identity = book.identity.clone();
        Ok(())
    }

    /// SQLite handles and payments do not survive a fork.
    fn check_process(&self) -> Result<(), LedgerError> {
        if self.owner.as_ref().is_none_or(Owner::is_mine) {
            return Ok(());
        }
        let what = "it was opened before this process was forked; open it again";
        Err(file(Kind::Io, self.store.path(), what))
    }
}

/// A batch being paid: its entries are in the transaction, its totals are on trial.
struct Draft {
    analyst: String,
    tip: (u64, [u8; 32]),
    all: Totals,
    mine: Totals,
}

impl Draft {
    fn new(book: &Book, analyst: &str) -> Self {
        Self {
            analyst: analyst.to_owned(),
            tip: (book.sequence, book.head),
            all: book.all.clone(),
            mine: book
                .by_analyst
                .get(analyst)
                .cloned()
                .unwrap_or_else(Totals::new),
        }
    }

    fn spend(&mut self, db: &Session<'_>, book: &Book, want: &Wanted) -> Result<u64, LedgerError> {
        let relation = book.identity.relation;
        if want.price.under(relation).is_none() {
            return Err(LedgerError::Unbounded {
                label: want.label.clone(),
                relation,
            });
        }
        if !want.price.is_valid() {
            return Err(LedgerError::ImpossiblePrice {
                label: want.label.clone(),
            });
        }
        self.all.add(&want.price, want.partition.as_ref());
        self.mine.add(&want.price, want.partition.as_ref());
        let kind = EntryKind::Spend(Box::new(Spend {
            request: want.request,
            analyst: self.analyst.clone(),
            label: want.label.clone(),
            price: want.price.clone(),
            partition: want.partition.clone(),
        }));
        self.tip = append(db, self.tip, &kind)?;
        Ok(self.tip.0)
    }

    fn check_caps(&self, book: &Book) -> Result<(), LedgerError> {
        let identity = &book.identity;
        check_cap(
            identity,
            Whose::Dataset,
            &identity.cap,
            &book.all,
            &self.all,
        )?;
        let Some(cap) = identity.analyst_cap(&self.analyst) else {
            return Ok(());
        };
        let before = book
            .by_analyst
            .get(&self.analyst)
            .cloned()
            .unwrap_or_else(Totals::new);
        check_cap(
            identity,
            Whose::Analyst(self.analyst.clone()),
            cap,
            &before,
            &self.mine,
        )
    }
}

fn check_cap(
    identity: &Identity,
    whose: Whose,
    cap: &Cost,
    before: &Totals,
    after: &Totals,
) -> Result<(), LedgerError> {
    let relation = identity.relation;
    let (before, after) = (before.total(), after.total());
    if after == before {
        return Ok(());
    }
    // A part of a split can make the total unbounded although no single price is.
    let (Some(before), Some(after)) = (before.under(relation), after.under(relation)) else {
        return Err(LedgerError::Unbounded {
            label: "this batch".to_owned(),
            relation,
        });
    };
    if after.within(cap) {
        return Ok(());
    }
    Err(LedgerError::Refused {
        asked: Box::new(after.minus(before)),
        left: Box::new(cap.minus(before)),
        cap: Box::new(cap.clone()),
        currency: identity.currency,
        relation,
        whose,
    })
}

/// Whether an unanswered payment may serve a new draw.
fn check_takeover(
    db: &Session<'_>,
    known: &Request,
    want: &Wanted,
    me: &Owner,
    issued: &HashMap<RequestId, Weak<()>>,
) -> Result<(), LedgerError> {
    let request = want.request;
    let label = want.label.clone();
    if known.spend.price != want.price || known.spend.partition != want.partition {
        return Err(LedgerError::PriceChanged { request, label });
    }
    let alive = match db.owner(&request)? {
        None => false,
        Some(owner) if owner == me.id() => issued
            .get(&request)
            .is_some_and(|held| held.strong_count() > 0),
        Some(owner) => Owner::is_alive(db.path, &owner).map_err(|e| io_fault(db.path, e))?,
    };
    if alive {
        Err(LedgerError::InProgress { request, label })
    } else {
        Ok(())
    }
}

fn check_budget(cap: &Cost, currency: Currency) -> Result<(), LedgerError> {
    if cap.is_budget(currency) {
        return Ok(());
    }
    Err(LedgerError::NotABudget {
        what: cap.describe(currency),
        currency,
    })
}

/// The text of an entry made now; it must read back as the same entry, or the ledger could not be
/// opened again.
fn body_of(path: &Path, kind: &EntryKind) -> Result<String, LedgerError> {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |t| t.as_secs());
    let body = write_body(kind, time).map_err(|e| file(Kind::Io, path, e.to_string()))?;
    match read_body(&body) {
        Ok((_, read)) if read == *kind => Ok(body),
        _ => Err(LedgerError::Unrecordable),
    }
}

/// Writes an entry after `tip`; gives the new tip.
fn append(
    db: &Session<'_>,
    tip: (u64, [u8; 32]),
    kind: &EntryKind,
) -> Result<(u64, [u8; 32]), LedgerError> {
    let sequence = tip
        .0
        .checked_add(1)
        .ok_or_else(|| damaged(db.path, "it has too many entries"))?;
    let body = body_of(db.path, kind)?;
    let head = next_head(&tip.1, sequence, &body);
    db.append(sequence, &body, &head)?;
    Ok((sequence, head))
}

fn load(db: &Session<'_>, request: &RequestId, answer: &Answer) -> Result<Stored, LedgerError> {
    let payload = db
        .payload(request)?
        .filter(|payload| entry::digest(payload) == answer.digest)
        .ok_or_else(|| {
            let what = format!("the stored value of request {request} is missing or was changed");
            damaged(db.path, what)
        })?;
    Ok(Stored {
        payload,
        sequence: answer.sequence,
        head: answer.head,
    })
}

fn read_book(store: &Store) -> Result<Book, LedgerError> {
    // The head file first: it never runs ahead of entries read later.
    let recorded = sidecar::read(store.path())?;
    let read = store.read()?;
    let book = walk(&read, drop)?;
    check_head_file(&read, &book, recorded)?;
    Ok(book)
}

/// The book from entry 0 on, every link checked.
fn walk(db: &Session<'_>, mut each: impl FnMut(Entry)) -> Result<Book, LedgerError> {
    let first = db
        .row(0)?
        .ok_or_else(|| damaged(db.path, "entry 0 is missing"))?;
    let (mut book, entry) =
        Book::open(&first.body, &first.head).map_err(|what| damaged(db.path, what))?;
    each(entry);
    extend(db, &mut book, each)?;
    Ok(book)
}

fn extend(
    db: &Session<'_>,
    book: &mut Book,
    mut each: impl FnMut(Entry),
) -> Result<(), LedgerError> {
    db.rows_after(book.sequence, |row| {
        book.follow(row.sequence, &row.body, &row.head)
            .map(&mut each)
    })
}

/// Takes in new entries; what was seen before must still be there.
fn follow(db: &Session<'_>, book: &mut Book) -> Result<(), LedgerError> {
    check_contains(db, book.sequence, &book.head, "what this process saw")?;
    extend(db, book, drop)
}

/// [`follow`] inside a write transaction, with the head file.
fn catch_up(db: &Session<'_>, book: &mut Book) -> Result<(), LedgerError> {
    follow(db, book)?;
    let recorded = sidecar::read(db.path)?;
    if recorded.is_none() && book.sequence == 0 {
        // Registration was cut before it wrote the file; later entries need it.
        return sidecar::write(db.path, 0, &book.head);
    }
    check_head_file(db, book, recorded)
}

fn check_head_file(
    db: &Session<'_>,
    book: &Book,
    recorded: Option<(u64, [u8; 32])>,
) -> Result<(), LedgerError> {
    match recorded {
        Some((sequence, head)) => check_contains(db, sequence, &head, "its head file"),
        // Registration may have been cut between the ledger and its head file.
        None if book.sequence == 0 => Ok(()),
        None => Err(damaged(
            db.path,
            "its head file (same name with .head) is missing",
        )),
    }
}

fn check_contains(
    db: &Session<'_>,
    sequence: u64,
    head: &[u8; 32],
    whose: &str,
) -> Result<(), LedgerError> {
    let what = match db.row(sequence)? {
        Some(row) if row.head == *head => return Ok(()),
        Some(_) => format!("entry {sequence} is not the one {whose} names"),
        None => format!("{whose} names entry {sequence}, which is not there"),
    };
    Err(file(Kind::RolledBack, db.path, what))
}

/// Every answered request has its value, and there is no other value.
fn check_values(db: &Session<'_>, book: &Book) -> Result<u64, LedgerError> {
    let mut values = 0_u64;
    db.payloads(|request, payload| {
        values = values.saturating_add(1);
        let answer = book.requests.get(&request).and_then(|r| r.release);
        if answer.is_some_and(|a| a.digest == entry::digest(payload)) {
            Ok(())
        } else {
            Err(format!(
                "the stored value of request {request} was changed or never released"
            ))
        }
    })?;
    let answered = book
        .requests
        .values()
        .filter(|r| r.release.is_some())
        .count();
    if u64::try_from(answered) == Ok(values) {
        Ok(values)
    } else {
        let what = format!("{answered} requests were answered but {values} values are stored");
        Err(damaged(db.path, what))
    }
}

#[cfg(test)]
mod tests {
    use reticent_accounting::{Rational, Relation};

    use super::*;

    fn ledger(folder: &Path) -> Ledger {
        let identity = Identity {
            dataset: "survey".to_owned(),
            data_version: "1".to_owned(),
            relation: Relation::AddRemove,
            currency: Currency::Pure,
            cap: Cost::pure(Rational::from(1000)),
            analysts: std::collections::BTreeMap::new(),
            fingerprint_key: [1; 32],
            fingerprint: [2; 32],
            schema_digest: [3; 32],
        };
        Ledger::create(folder.join("full.ledger"), &identity).unwrap()
    }

    fn wanted(n: u8) -> Wanted {
        let cost = Some(Cost::pure(Rational::ONE));
        Wanted {
            request: RequestId::from_bytes([n; 32]),
            price: Price {
                add_remove: cost.clone(),
                replace_one: cost,
            },
            partition: None,
            label: "count".to_owned(),
        }
    }

    /// SQLite refuses to grow the file: the reservation fails before anything is handed out, what
    /// was paid stays paid, and the ledger works again once there is space.
    #[test]
    fn a_full_file_is_refused_and_recovers() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = ledger(folder.path());
        let pages: i64 = ledger
            .store
            .connection()
            .pragma_query_value(None, "page_count", |r| r.get(0))
            .unwrap();
        let limit = |ledger: &Ledger, pages: i64| {
            ledger
                .store
                .connection()
                .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
                .unwrap();
        };
        limit(&ledger, pages + 2);
        let (mut paid, mut failures) = (0_u64, 0);
        for n in 0..40 {
            match ledger.reserve("ann", &[wanted(n)]) {
                Ok(slots) => {
                    paid += 1;
                    let Some(Slot::Paid(slot)) = slots.into_iter().next() else {
                        panic!("not paid")
                    };
                    if let Err(error) = ledger.publish(slot, &[n; 9000]) {
                        assert_eq!(error.kind(), Kind::DiskFull, "{error}");
                        failures += 1;
                    }
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::DiskFull, "{error}");
                    failures += 1;
                }
            }
        }
        assert!(failures > 0 && paid > 0);
        let spent = ledger.status().unwrap().spent.add_remove.unwrap();
        assert_eq!(spent, Cost::pure(Rational::from(paid)));
        limit(&ledger, 1 << 30);
        let slots = ledger.reserve("ann", &[wanted(200)]).unwrap();
        assert!(matches!(slots[0], Slot::Paid(_)));
        ledger.verify(None).unwrap();
    }

    /// A payment handed out by this handle and dropped serves again; one still held does not.
    #[test]
    fn a_dropped_payment_serves_again_at_no_cost() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = ledger(folder.path());
        let held = ledger.reserve("ann", &[wanted(1)]).unwrap();
        assert_eq!(
            ledger.reserve("ann", &[wanted(1)]).unwrap_err().kind(),
            Kind::InProgress
        );
        drop(held);
        let again = ledger.reserve("ann", &[wanted(1)]).unwrap();
        assert!(matches!(again[0], Slot::Paid(_)));
        assert_eq!(
            ledger.status().unwrap().spent.add_remove.unwrap(),
            Cost::pure(Rational::ONE)
        );
    }
}
