//! Pricing and running a plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reticent_accounting::{Cost, Currency, Price, Relation, Size, parallel, sequential};
use reticent_laws::Silent;
use reticent_mechanisms::fold::Fold;
use reticent_mechanisms::program::{Expr, Part, RowProgram};
use reticent_mechanisms::rows::Kind;
use reticent_mechanisms::source::Memory;
use reticent_mechanisms::{
    Context, DeskError, Mechanism, Private, Release, Slot, Task, row_set_size, simulate,
};
use serde_json::{Value, json};

use crate::books;
use crate::dataset::{MissingPolicy, OtherPolicy};
use crate::failure::{Error, Failure};
use crate::methods;
use crate::model::Examined;
use crate::outcome::Refusal;
use crate::plan::Plan;
use crate::resolve::{Entry, Input, Resolved};

/// How a plan is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whose spends these are; the operating-system user by default (not authenticated).
    pub analyst: Option<String>,
    /// Where the files are written; `out/<plan>` beside the plan by default.
    pub out: Option<PathBuf>,
}

/// One line of a price table.
#[derive(Clone, Debug)]
pub struct PriceLine {
    /// The release.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// The part it reads.
    pub part: String,
    /// Its price under both relations.
    pub price: Price,
    /// What to expect of it, in one sentence, if a public number of rows is known.
    pub accuracy: Option<String>,
}

/// What a plan costs.
#[derive(Clone, Debug)]
pub struct PriceTable {
    /// The currency of the prices.
    pub currency: Currency,
    /// The data set's relation.
    pub relation: Relation,
    /// One line per release, in order of payment.
    pub lines: Vec<PriceLine>,
    /// The whole plan, with credit for disjoint parts.
    pub total: Price,
    /// What the ledger has left, if there is a ledger.
    pub remaining: Option<Cost>,
    /// The public number of rows used for the accuracy column.
    pub rows: Option<u64>,
}

/// What a run made.
#[derive(Debug)]
pub struct Ran {
    /// Content of `release.json`.
    pub release: Value,
    /// The folder with `release.json` and `report.html`.
    pub out: PathBuf,
    /// Spent before and after, under the data set's relation.
    pub spent: (Cost, Cost),
    /// The cap.
    pub cap: Cost,
    /// The cap that `dataset.toml` declares; the ledger's counts.
    pub declared: Cost,
    /// The currency of these costs.
    pub currency: Currency,
    /// How many releases came from the store, at no cost.
    pub stored: usize,
}

/// The price of a plan. Never opens the data; reads the ledger only to say what is left.
pub fn price(plan: Plan, rows: Option<u64>) -> Result<PriceTable, Failure> {
    let resolved = Resolved::of(plan)?;
    let rows = rows.or(resolved.public_rows());
    validate(&resolved, rows)?;
    let remaining = if resolved.dataset.ledger.exists() {
        Some(books::ledger(&resolved.dataset)?.status()?.remaining)
    } else {
        None
    };
    let lines = resolved
        .entries
        .iter()
        .map(|entry| {
            Ok(PriceLine {
                id: entry.id.clone(),
                kind: entry
                    .spec
                    .as_ref()
                    .map_or("count", |s| s.kind.name())
                    .to_owned(),
                part: entry.rows(),
                price: resolved.price(entry),
                accuracy: methods::accuracy(
                    &resolved,
                    entry,
                    &frame_context(&resolved, entry),
                    rows.map(to_f64),
                ),
            })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let (currency, relation) = (resolved.dataset.currency, resolved.dataset.neighbours);
    Ok(PriceTable {
        currency,
        relation,
        total: resolved.total(),
        lines,
        remaining,
        rows,
    })
}

/// Builds every mechanism once with placeholder models, so that everything that can be refused is refused
/// before anything is paid.
pub(crate) fn validate(resolved: &Resolved, rows: Option<u64>) -> Result<(), Failure> {
    for (at, entry) in resolved.entries.iter().enumerate() {
        if let Some(twin) = resolved
            .entries
            .iter()
            .take(at)
            .find(|e| e.request == entry.request)
        {
            return Err(place(resolved, entry, Refusal::request(format!("asks for the same thing as release {}", twin.id))
                .accepting("Remove it, or write repeat = 1 for a second, independent draw (which is paid)."))
            .into());
        }
        let models = entry
            .models()
            .map(|m| placeholder(resolved, m))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| place(resolved, entry, e))?;
        let (program, mechanism) = build(resolved, entry, rows.map(to_f64), &models)?;
        let context = context(resolved, &program);
        let refuse = |what: String| place(resolved, entry, Refusal::request(what));
        program
            .bounds(&resolved.dataset.schema)
            .map_err(|e| refuse(e.to_string()))?;
        let price = mechanism
            .event(&context)
            .and_then(|e| e.price(context.currency))
            .map_err(|e| refuse(e.to_string()))?;
        if !entry.models().any(|m| matches!(m, Input::Entry(_))) {
            possible(resolved, &program, mechanism.as_ref(), &context)
                .map_err(|e| refuse(e.to_string()))?;
        }
        let paid = resolved.price(entry);
        for relation in [Relation::AddRemove, Relation::ReplaceOne] {
            if let (Some(asked), Some(paid)) = (price.under(relation), paid.under(relation))
                && !asked.within(paid)
            {
                return Err(refuse(format!(
                    "would cost {} under {relation}, more than the {} asked for",
                    asked.describe(context.currency),
                    paid.describe(context.currency)
                ))
                .into());
            }
        }
    }
    Ok(())
}

/// Whether a mechanism can run at all: on no records and without noise, which shows what depends on public facts alone, such as a
/// scale of noise that is out of reach. Large tables and several passes are left out: they would take as long as the run itself.
fn possible(
    resolved: &Resolved,
    program: &RowProgram,
    mechanism: &dyn Mechanism,
    context: &Context,
) -> Result<(), DeskError> {
    let folds = mechanism.first_pass();
    let entries = folds.iter().map(Fold::len).fold(0, usize::saturating_add);
    if mechanism.passes() > 0 || entries > SMALL || mechanism.kind() == "top_k" {
        return Ok(());
    }
    let nobody = Memory::new(Arc::clone(&resolved.dataset.schema), Vec::new());
    let unit = resolved.unit();
    simulate(&nobody, unit, context, program, mechanism, &mut Silent).map(drop)
}

/// Cells of a table that are nothing to look at twice.
const SMALL: usize = 4096;

fn placeholder(resolved: &Resolved, input: &Input) -> Result<Examined, Refusal> {
    match input {
        Input::File(model) => Ok(model.clone()),
        Input::Entry(at) => methods::blank(resolved, &resolved.entries[*at]),
    }
}

fn place(resolved: &Resolved, entry: &Entry, refusal: Refusal) -> Refusal {
    let mut refusal = refusal;
    if refusal.file.is_none() {
        refusal = refusal.in_file(&resolved.plan.file);
    }
    if let (None, Some(spec)) = (refusal.line, &entry.spec) {
        refusal = refusal.at_line(spec.line);
    }
    if refusal.key.is_none() {
        refusal = refusal.for_key(match &entry.spec {
            Some(_) => format!("release {}", entry.id),
            None => "size".to_owned(),
        });
    }
    if entry.spec.is_none() {
        refusal.message = format!(
            "the number of records is not declared, and counting them with 2 % of this plan's budget is not possible: {}",
            refusal.message
        );
        refusal = refusal.accepting(
            "Declare size_hint in the data set, or ask for a budget between 1e-10 and 1e15.",
        );
    }
    refusal
}

fn frame(resolved: &Resolved, entry: &Entry) -> RowProgram {
    RowProgram {
        terms: Vec::new(),
        filter: resolved.filter.clone(),
        part: entry.part.clone(),
    }
}

pub(crate) fn frame_context(resolved: &Resolved, entry: &Entry) -> Context {
    context(resolved, &frame(resolved, entry))
}

/// The public facts of a row set, as the door will compute them.
fn context(resolved: &Resolved, program: &RowProgram) -> Context {
    let d = &resolved.dataset;
    Context {
        relation: d.neighbours,
        currency: d.currency,
        size: row_set_size(&d.schema, resolved.unit(), d.neighbours, d.rows, program),
        rows_per_unit: resolved.unit().max_rows(),
    }
}

fn build(
    resolved: &Resolved,
    entry: &Entry,
    rows: Option<f64>,
    models: &[Examined],
) -> Result<(RowProgram, Box<dyn reticent_mechanisms::Mechanism>), Failure> {
    let frame = frame(resolved, entry);
    let mut context = context(resolved, &frame);
    let rows = rows.map(|n| (n * entry.fraction).max(1.0));
    let prepare = |context: &Context| {
        methods::prepare(resolved, entry, context, rows, models)
            .map_err(|e| place(resolved, entry, e))
    };
    let mut prepared = prepare(&context)?;
    if drops(resolved, &prepared.terms) {
        // The declared count is that of the file, not of the records that are left.
        context.size = Size::Private;
        prepared = prepare(&context)?;
    }
    Ok((
        RowProgram {
            terms: prepared.terms,
            ..frame
        },
        prepared.mechanism,
    ))
}

/// Whether a record may drop out for what it holds in a column of these terms. Rejected cells do not occur after
/// registration.
fn drops(resolved: &Resolved, terms: &[Expr]) -> bool {
    let program = RowProgram {
        terms: terms.to_vec(),
        ..RowProgram::default()
    };
    program.columns().into_iter().any(|c| {
        let dataset = &resolved.dataset;
        dataset.policies.get(c).is_none_or(|p| {
            let levels = dataset
                .schema
                .columns
                .get(c)
                .is_some_and(|c| matches!(c.kind, Kind::Levels { .. }));
            p.missing == MissingPolicy::Drop || (levels && p.other == OtherPolicy::Drop)
        })
    })
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a public row count, for planning only"
)]
pub(crate) fn to_f64(n: u64) -> f64 {
    n as f64
}

/// Runs a plan: prices it, refuses or pays the whole of it, then makes the releases and writes
/// `release.json` and `report.html`. `progress` is told what is being done.
pub fn run(plan: Plan, options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Ran, Failure> {
    let resolved = Resolved::of(plan)?;
    validate(&resolved, resolved.public_rows())?;
    let analyst = options
        .analyst
        .clone()
        .unwrap_or_else(operating_system_user);
    plain_name(&analyst, "--analyst")?;
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| default_out(&resolved.plan.file));
    writable(&out)?;
    spares(&resolved, &out)?;
    progress("opening the ledger");
    let mut ledger = books::ledger(&resolved.dataset)?;
    let before = ledger.status()?;
    let wanted = resolved.wanted();
    let mut known = Vec::new();
    for w in &wanted {
        known.push(ledger.lookup(&w.request)?);
    }
    let stored = known.iter().filter(|k| k.is_some()).count();
    let (releases, after) = if stored == known.len() {
        let releases = wanted
            .iter()
            .zip(&known)
            .filter_map(|(w, k)| k.as_ref().map(|k| Release::read(&w.request, k)))
            .collect::<Result<Vec<_>, _>>()?;
        (releases, before.clone())
    } else {
        let (relation, currency) = (resolved.dataset.neighbours, resolved.dataset.currency);
        let entries: Vec<_> = wanted.iter().map(|w| w.entry(relation, currency)).collect();
        ledger.check(&analyst, &entries)?;
        let files = books::files(&resolved.dataset)?;
        progress("checking that the data are the registered ones");
        books::check_fingerprint(&resolved.dataset, &ledger, &files)?;
        let mut door = Private::new(
            Box::new(files),
            resolved.unit(),
            resolved.dataset.rows,
            ledger,
        )?;
        progress("paying");
        let slots = door.reserve(&analyst, &wanted)?;
        let releases = fulfil(&resolved, &mut door, slots, progress)?;
        let after = door.status()?;
        (releases, after)
    };
    let release = crate::release::document(&resolved, &releases, after.sequence, &after.head);
    let relation = resolved.dataset.neighbours;
    let spent =
        |s: &reticent_ledger::Status| s.spent.under(relation).cloned().unwrap_or_else(Cost::zero);
    let spent = (spent(&before), spent(&after));
    progress("writing the report");
    let stored_flags: Vec<bool> = known.iter().map(Option::is_some).collect();
    let running = running(&resolved, &before, &stored_flags);
    let spending = crate::release::Spending {
        stored: &stored_flags,
        running: &running,
        spent: &spent,
        cap: &after.cap,
    };
    let page = crate::release::report(&resolved, &release, &spending);
    write(&out, "release.json", &crate::release::text(&release))?;
    write(&out, "report.html", &page)?;
    Ok(Ran {
        release,
        out,
        spent,
        cap: after.cap,
        declared: resolved.dataset.cap.clone(),
        currency: after.currency,
        stored,
    })
}

/// The ledger's total after each entry, from the totals before the run: as the ledger itself composes them.
fn running(resolved: &Resolved, before: &reticent_ledger::Status, stored: &[bool]) -> Vec<Cost> {
    let relation = resolved.dataset.neighbours;
    let mut splits: BTreeMap<String, BTreeMap<String, Price>> = BTreeMap::new();
    let mut partitioned = Vec::new();
    for p in &before.partitions {
        partitioned.push(p.total.clone());
        splits.insert(p.partition.clone(), p.parts.clone());
    }
    // What was spent on all rows is the rest of the total.
    let partitioned = sequential(&partitioned);
    let rest = |r: Relation| Some(before.spent.under(r)?.minus(partitioned.under(r)?));
    let mut plain = Price {
        add_remove: rest(Relation::AddRemove),
        replace_one: rest(Relation::ReplaceOne),
    };
    let mut totals = Vec::new();
    for (entry, stored) in resolved.entries.iter().zip(stored) {
        if !stored {
            let price = resolved.price(entry);
            let slot = match entry.part.as_ref().map(Part::names) {
                None => &mut plain,
                Some((split, part)) => splits
                    .entry(split)
                    .or_default()
                    .entry(part)
                    .or_insert_with(Price::zero),
            };
            *slot = sequential(&[slot.clone(), price]);
        }
        let mut all = vec![plain.clone()];
        all.extend(splits.values().map(|parts| {
            let parts: Vec<Price> = parts.values().cloned().collect();
            parallel(&parts)
        }));
        totals.push(
            sequential(&all)
                .under(relation)
                .cloned()
                .unwrap_or_else(Cost::zero),
        );
    }
    totals
}

/// Makes the paid releases wave by wave; one fused scan per wave.
fn fulfil(
    resolved: &Resolved,
    door: &mut Private,
    slots: Vec<Slot>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Release>, Failure> {
    let mut done: Vec<Option<Release>> = Vec::new();
    let mut open = Vec::new();
    for slot in slots {
        match slot {
            Slot::Stored(release) => {
                done.push(Some(release));
                open.push(None);
            }
            Slot::Paid(ticket) => {
                done.push(None);
                open.push(Some(ticket));
            }
        }
    }
    let waves = resolved.entries.iter().map(|e| e.wave).max().unwrap_or(0);
    for wave in 0..=waves {
        let rows = resolved
            .public_rows()
            .map(to_f64)
            .or_else(|| released_size(resolved, &done));
        let mut tasks = Vec::new();
        let mut places = Vec::new();
        for (at, entry) in resolved
            .entries
            .iter()
            .enumerate()
            .filter(|(_, e)| e.wave == wave)
        {
            let Some(ticket) = open[at].take() else {
                continue;
            };
            let (program, mechanism) = paid_for(resolved, entry, rows, &done);
            tasks.push(Task {
                ticket,
                program,
                mechanism,
            });
            places.push(at);
        }
        if tasks.is_empty() {
            continue;
        }
        let names: Vec<&str> = places
            .iter()
            .map(|&at| resolved.entries[at].id.as_str())
            .collect();
        progress(&format!("reading the data for {}", names.join(", ")));
        for (at, release) in places.into_iter().zip(door.fulfil(tasks)?) {
            done[at] = Some(release);
        }
    }
    Ok(done.into_iter().flatten().collect())
}

/// The mechanism of a paid release: planned with what has been released by now; if that is not possible, as it was checked before payment; and
/// if that is not possible either, one that says so. Decided by released values.
fn paid_for(
    resolved: &Resolved,
    entry: &Entry,
    rows: Option<f64>,
    done: &[Option<Release>],
) -> (RowProgram, Box<dyn reticent_mechanisms::Mechanism>) {
    let models: Result<Vec<Examined>, String> = entry
        .models()
        .map(|input| match input {
            Input::File(model) => Ok(model.clone()),
            Input::Entry(of) => {
                let value = done[*of].as_ref().map_or(&Value::Null, |r| &r.body.value);
                let id = &resolved.entries[*of].id;
                match crate::not_made::reason(value) {
                    Some(_) => Err(format!("release {id} was not made")),
                    None => Examined::read(value).map_err(|e| format!("release {id}: {e}")),
                }
            }
        })
        .collect();
    let checked = resolved.public_rows().map(to_f64);
    let built = models.and_then(|models| {
        build(resolved, entry, rows, &models)
            .or_else(|_| build(resolved, entry, checked, &models))
            .map_err(|e| e.to_string())
    });
    built.unwrap_or_else(|why| {
        let kind = entry.spec.as_ref().map_or("count", |s| s.kind.name());
        crate::not_made::not_made(kind, frame(resolved, entry), &why)
    })
}

/// The released number of rows, at least 1.
fn released_size(resolved: &Resolved, done: &[Option<Release>]) -> Option<f64> {
    let at = resolved.entries.iter().position(|e| e.spec.is_none())?;
    let count = done.get(at)?.as_ref()?.body.value.get("count")?.as_f64()?;
    Some(count.max(1.0))
}

/// Refuses a name that does not stay readable: it stands in the ledger for good and is printed from there.
pub fn plain_name(name: &str, key: &str) -> Result<(), Refusal> {
    // Besides control characters: those that reorder or hide the text around them.
    let odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if name.trim().is_empty() || name.chars().count() > 200 || name.chars().any(odd) {
        return Err(Refusal::request("not a name that can stand in a ledger")
            .for_key(key)
            .accepting("Give 1 to 200 printable characters."));
    }
    Ok(())
}

/// The operating-system user: a name for the books, not a login.
fn operating_system_user() -> String {
    ["USER", "LOGNAME", "USERNAME"]
        .into_iter()
        .find_map(|key| std::env::var(key).ok().filter(|v| !v.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn default_out(plan: &Path) -> PathBuf {
    let stem = plan
        .file_stem()
        .map_or_else(|| "plan".into(), std::ffi::OsStr::to_os_string);
    plan.parent()
        .unwrap_or(Path::new(""))
        .join("out")
        .join(stem)
}

/// Creates the output folder and checks that it can be written to, before anything is paid.
fn writable(out: &Path) -> Result<(), Failure> {
    let fail = |what| {
        move |source| Error::File {
            path: out.to_owned(),
            what,
            source,
        }
    };
    std::fs::create_dir_all(out).map_err(fail("the output folder cannot be made"))?;
    // A name of our own: another run may write to the same folder.
    let probe = out.join(format!(".reticent-probe-{}", std::process::id()));
    std::fs::write(&probe, b"").map_err(fail("the output folder cannot be written to"))?;
    std::fs::remove_file(&probe).map_err(fail("the output folder cannot be written to"))?;
    Ok(())
}

/// Refuses to write over what the run reads.
fn spares(resolved: &Resolved, out: &Path) -> Result<(), Refusal> {
    let dataset = &resolved.dataset;
    // what cannot be named is not written over
    let mut read = match dataset.source_place() {
        Ok((pattern, base)) => crate::register::expand(pattern, &base).unwrap_or_default(),
        Err(_) => Vec::new(),
    };
    read.extend([
        dataset.file.clone(),
        resolved.plan.file.clone(),
        dataset.ledger.clone(),
    ]);
    for path in ["release.json", "report.html"].map(|name| out.join(name)) {
        if read.iter().any(|r| crate::file::same(r, &path)) {
            return Err(
                Refusal::request("the result would be written over what the run reads")
                    .in_file(&path)
                    .accepting("Name another folder with --out."),
            );
        }
    }
    Ok(())
}

/// Writes a file completely or not at all.
fn write(out: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = out.join(name);
    let partial = out.join(format!(".{name}.{}.partial", std::process::id()));
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, &path))
        .map_err(|source| Error::File { path, what: "the file cannot be written (the releases are safe in the ledger; run again to write them at no cost)", source }.into())
}

impl PriceTable {
    /// For machines.
    pub fn to_json(&self) -> Value {
        json!({
            "relation": self.relation.to_string(),
            "releases": self.lines.iter().map(|l| json!({
                "id": l.id, "kind": l.kind, "part": l.part, "price": l.price.to_json(self.currency), "accuracy": l.accuracy,
            })).collect::<Vec<_>>(),
            "total": self.total.to_json(self.currency),
            "remaining": self.remaining.as_ref().map(|c| c.to_json(self.currency)),
            "rows": self.rows,
        })
    }
}
