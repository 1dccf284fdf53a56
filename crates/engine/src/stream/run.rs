//! The loop: events into ticks, ticks into releases, each durable before it is published.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reticent_accounting::{Cost, Currency};
use reticent_laws::Seeded;
use reticent_ledger::{Identity, Ledger, RequestId};
use reticent_mechanisms::Simulated;
use reticent_mechanisms::stream::{
    Checked, Live, Opened, Order, PARTS, Plan, Session, State, StreamError, Tally, Ticked,
};
use serde_json::json;

use super::analysis::{Analysis, Line};
use super::clock::{self, Clock, Watch};
use super::config::{Config, Input};
use super::identity::{Files, Read};
use super::line::{Event, Row};
use super::page::Page;
use super::pending::{Fresh, Pending};
use super::places::places;
use super::publisher::{Publisher, foreign};
use super::source::{Place, Read1, Reader};
use super::statement::{context, declared, statement, words};
use super::store::{Opening, Progress, Store, chain};
use crate::failure::Failure;
use crate::outcome::Refusal;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Noise keyed by this seed and the tick, nothing paid, lines marked: for trials on public data.
    pub simulate: Option<u64>,
    /// Whose spend it is.
    pub analyst: Option<String>,
    /// Set to end after the current line or tick; whatever was released is complete on disk.
    pub stop: Arc<AtomicBool>,
    /// Whether marks far ahead are believed.
    pub catch_up: bool,
    /// Where the time comes from.
    pub watch: Watch,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Ticks released in all, earlier runs included.
    pub ticks: i64,
    /// Ticks released by this run.
    pub new: i64,
    /// Lines of the events that could not be used.
    pub bad: u64,
    /// How many of them could not be written to the file of bad lines either.
    pub unwritten: u64,
    /// The file whose last line has no end: it was left for when it has.
    pub unfinished: Option<String>,
    /// What is in the folder, was never read, and never will be, because what comes behind it in name order was.
    pub passed: Vec<String>,
}

/// A paid session, or a simulation.
enum Engine {
    Live(Box<Live>),
    Simulated(Box<Session>, u64),
}

impl Engine {
    fn session(&self) -> &Session {
        match self {
            Self::Live(live) => live.session(),
            Self::Simulated(session, _) => session,
        }
    }

    fn tick(
        &mut self,
        tick: i64,
        state: &mut State,
        tally: Tally,
        plan: &Checked,
    ) -> Result<Ticked, StreamError> {
        match self {
            Self::Live(live) => live.tick(state, tally, plan),
            Self::Simulated(session, seed) => {
                let mut noise = Seeded::stream(*seed, tick.unsigned_abs());
                session
                    .simulate(state, tally, plan, &mut noise)
                    .map(|Simulated(ticked)| ticked)
            }
        }
    }
}

/// Runs a stream until its events end, its end is reached, or it is told to stop.
///
/// `say` gets remarks for the operator: how it was opened, where reading resumes, where the live page is.
pub fn run(
    config: &Config,
    options: &Options,
    say: &mut dyn FnMut(&str),
) -> Result<Running, Failure> {
    recent(config, options)?;
    places(config)?;
    let session = Session::new(declared(config), context(config))?;
    let scale = session
        .stream()
        .count_noise(session.context(), PARTS)?
        .scale()
        .to_f64();
    let (engine, store) = open(config, options, session, say)?;
    let progress = store.progress()?;
    let state = if progress.ticks == 0 {
        State::default()
    } else {
        State::decode(&progress.groups)?
    };
    let mut publisher = Publisher::open(config, &store)?;
    let page = match config.output.page {
        None => None,
        Some(port) => {
            let page = Page::start(port, &config.name, &config.names)?;
            say(&format!("live page: http://{}", page.address()));
            Some(page)
        }
    };
    let mut analysis = Analysis::new(config, scale);
    store.lines(|tick, body| {
        let line: Line = serde_json::from_str(body).map_err(|_| damaged(config))?;
        if !line.withheld {
            analysis.plan();
            analysis.line(tick, &line.ticked());
        }
        if let Some(page) = &page {
            page.push(body);
        }
        publisher.again(tick, body)
    })?;
    publisher.flush()?;
    let files = Files::new(config, store.files()?);
    Files::resume(&config.source.input, &progress)?;
    let standard = config.source.input == Input::Standard;
    let (mut from, mut clock, mut pending) = (Place::default(), i64::MIN, BTreeMap::new());
    if standard {
        // sent once more, from the first tick that is open
        say(&json!({"resume_from": config.begin(progress.ticks)}).to_string());
    } else {
        (from, clock) = (progress.place.clone(), progress.clock);
        pending = Pending::restore(engine.session(), store.open_ticks()?);
    }
    let bad_lines = OpenOptions::new()
        .append(true)
        .open(&config.output.dead_letters);
    let mut running = Loop {
        config,
        options,
        engine,
        store,
        state,
        analysis,
        publisher,
        page,
        open: pending,
        next: progress.ticks,
        first: progress.ticks,
        head: progress.head,
        clock,
        due: VecDeque::new(),
        noted: progress.ticks,
        suspect: None,
        patience: i64::MIN,
        unread: None,
        backlog: Default::default(),
        saved: from.clone(),
        bad_lines: bad_lines.ok(),
        bad: 0,
        unwritten: 0,
    };
    if standard {
        running.patience = running.now().saturating_add(config.source.grace);
    }
    let source = &config.source;
    let complete = config.ticks.end.is_some() && !source.follow;
    let mut reader = Reader::new(source, from, files, &options.watch).complete(complete);
    running.read(&mut reader)
}

fn damaged(config: &Config) -> Failure {
    Refusal::policy("a stored release cannot be read")
        .in_file(&config.output.state)
        .into()
}

/// Pays, unless it was paid before; makes the state file first, so that a payment without one means that it was lost.
fn open(
    config: &Config,
    options: &Options,
    session: Session,
    say: &mut dyn FnMut(&str),
) -> Result<(Engine, Store), Failure> {
    let path = &config.output.state;
    if let Some(seed) = options.simulate {
        let store = Store::open(path, &config.digest, Opening::Simulated)?;
        say("simulated: nothing is paid, the releases carry no guarantee");
        return Ok((Engine::Simulated(Box::new(session), seed), store));
    }
    let mut ledger = ledger(config)?;
    let request = RequestId::from_bytes(config.digest);
    let paid = ledger.lookup(&request)?.is_some();
    let kind = if paid { Opening::Paid } else { Opening::New };
    let store = Store::open(path, &config.digest, kind)?;
    if !paid && store.progress()?.ticks > 0 {
        return Err(
            Refusal::policy("the state file has ticks that this ledger never paid for")
                .in_file(path)
                .accepting("Restore the ledger that belongs to it.")
                .into(),
        );
    }
    if let Some(path) = config.output.releases.as_ref().filter(|_| !paid)
        && std::fs::metadata(path).is_ok_and(|facts| facts.len() > 0)
    {
        return Err(foreign(path));
    }
    let statement = statement(config);
    let mut stored = statement.clone();
    stored["state"] = store.birth().into();
    let order = Order {
        request,
        analyst: options
            .analyst
            .clone()
            .unwrap_or_else(|| "operator".to_owned()),
        statement: stored.to_string().into_bytes(),
    };
    let (live, opened) = Live::open(session, &mut ledger, &order)?;
    let paid: Option<serde_json::Value> = serde_json::from_slice(&live.payment().payload).ok();
    if paid.is_none_or(|p| p["state"] != stored["state"]) {
        return Err(Refusal::policy("this stream was opened with another state file; a second one could release its ticks with different noise")
            .in_file(path)
            .accepting("Go on with the state that it was opened with, or give the stream another name; it will be paid for again.")
            .into());
    }
    say(match opened {
        Opened::New => "opened and paid for",
        Opened::Again => "opened again; it was paid for before",
    });
    say(&statement.to_string());
    Ok((Engine::Live(Box::new(live)), store))
}

/// Refuses a new stream by the wall clock whose start is so long ago that all its ticks would close at once, empty.
fn recent(config: &Config, options: &Options) -> Result<(), Refusal> {
    let Clock::Wall { per_second } = config.ticks.clock else {
        return Ok(());
    };
    let now = config.tick_of(options.watch.read(per_second)).unwrap_or(0);
    let ago = now.min(config.last().unwrap_or(i64::MAX));
    if config.output.state.exists() || ago <= config.ticks.max_ahead {
        return Ok(());
    }
    Err(Refusal::request(format!("lies {ago} ticks before now by this machine's clock, and all of them would be released at once, empty"))
        .for_key("ticks.start")
        .accepting("Write a start near now, check `time_unit`, or raise `max_ahead`."))
}

fn ledger(config: &Config) -> Result<Ledger, Failure> {
    let path = &config.output.ledger;
    if !path.exists() {
        let identity = Identity {
            dataset: config.name.clone(),
            data_version: "stream".to_owned(),
            relation: config.relation,
            currency: Currency::Pure,
            cap: Cost::pure(config.cap.clone()),
            analysts: BTreeMap::new(),
            fingerprint_key: [0; 32],
            fingerprint: config.digest,
            schema_digest: config.digest,
        };
        return Ok(Ledger::create(path, &identity)?);
    }
    let ledger = Ledger::open(path)?;
    let identity = ledger.identity();
    if identity.relation != config.relation || identity.currency != Currency::Pure {
        return Err(Refusal::policy(
            "the ledger counts in another relation or currency than the stream",
        )
        .in_file(path)
        .accepting("Give the stream a ledger of its own.")
        .into());
    }
    Ok(ledger)
}

/// Ticks that are due by the wall clock, and what is read of files before they are closed.
struct Due {
    /// What the clock showed.
    at: i64,
    /// Where the files ended then.
    end: Place,
}

struct Loop<'a> {
    config: &'a Config,
    options: &'a Options,
    engine: Engine,
    store: Store,
    state: State,
    analysis: Analysis,
    publisher: Publisher,
    page: Option<Page>,
    open: BTreeMap<i64, Pending>,
    next: i64,
    first: i64,
    head: [u8; 32],
    /// The wall clock, the last mark, or the largest time of an event; `i64::MIN` if nothing is known yet.
    clock: i64,
    /// By the wall clock, for files: ends that have to be read up to before ticks close, the earliest first.
    due: VecDeque<Due>,
    /// The first tick that none of them closes.
    noted: i64,
    /// The tick of a mark that was too far ahead to be believed alone.
    suspect: Option<i64>,
    /// Until then standard input may send once more what was lost, and the wall clock closes nothing.
    patience: i64,
    /// The line that was read last, if it was not looked at.
    unread: Option<Place>,
    /// What could not be stored between ticks.
    backlog: (Fresh, Read),
    /// How far events were read, as it is stored.
    saved: Place,
    /// For lines that cannot be used; open from the start.
    bad_lines: Option<File>,
    bad: u64,
    unwritten: u64,
}

impl Loop<'_> {
    fn read(&mut self, reader: &mut Reader) -> Result<Running, Failure> {
        loop {
            self.settle(reader)?;
            if self.stopped() || self.ended() {
                break;
            }
            let limit = self.due.front().map(|d| &d.end);
            let read = reader.read(limit)?;
            // told to stop while waiting: what came last may be half a line, and is read again next time
            if self.stopped() {
                if let Read1::Line(place, _) = read {
                    self.unread = Some(place);
                }
                break;
            }
            self.hear(reader, &read)?;
            match read {
                Read1::Line(place, Ok(Row::Event(event))) => self.take(&place, event),
                Read1::Line(place, Ok(Row::Mark(time))) => self.mark(&place, time)?,
                Read1::Line(place, Err(bad)) => self.reject(&place, bad.why, &bad.line),
                Read1::Wait => self.publisher.flush()?,
                Read1::End if !self.due.is_empty() => self.close_due(reader)?,
                Read1::End if self.config.source.follow => {
                    self.pause(reader)?;
                    self.options.watch.0.wait();
                }
                Read1::End => {
                    if self.config.ticks.end.is_some() {
                        self.close_while(reader, |_| true)?;
                    }
                    break;
                }
            }
        }
        self.pause(reader)?;
        Ok(Running {
            ticks: self.next,
            new: self.next - self.first,
            bad: self.bad,
            unwritten: self.unwritten,
            unfinished: reader.unfinished().map(str::to_owned),
            passed: reader.passed(),
        })
    }

    /// Stores how far events were read, if it is further than what is stored.
    fn pause(&mut self, reader: &mut Reader) -> Result<(), Failure> {
        let place = self.unread.take().unwrap_or_else(|| reader.place());
        // what is judged while a mark is in doubt is judged again once it is not
        let sure = self.suspect.is_none();
        if self.config.source.input != Input::Standard && place != self.saved && sure {
            let progress = Progress {
                ticks: self.next,
                head: self.head,
                groups: self.state.encode(),
                tail: reader.tail(&place),
                clock: self.clock,
                place,
            };
            let (open, read) = self.fresh(reader);
            // a disk that is full for a moment must not tell whether a line came: the next tick stores it
            match self.store.save(&progress, &open, &read) {
                Ok(()) => self.saved = progress.place,
                Err(_) => self.backlog = (open, read),
            }
        }
        self.publisher.flush()
    }

    /// What the open ticks hold, and what was read, that is not stored yet. Standard input is sent once more instead.
    fn fresh(&mut self, reader: &mut Reader) -> (Fresh, Read) {
        let (mut open, mut read) = std::mem::take(&mut self.backlog);
        if self.config.source.input != Input::Standard {
            for (tick, pending) in &mut self.open {
                pending.store(*tick, &mut open);
            }
        }
        let more = reader.files().fresh();
        read.identities.extend(more.identities);
        read.starts.extend(more.starts);
        (open, read)
    }

    fn stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    fn ended(&self) -> bool {
        self.config.last().is_some_and(|last| self.next >= last)
    }

    /// The wall clock, if it is what closes ticks.
    fn now(&self) -> i64 {
        match self.config.ticks.clock {
            Clock::Wall { per_second } => self.options.watch.read(per_second),
            Clock::Marks | Clock::Events => i64::MAX,
        }
    }

    /// Whether the next tick closes when the clock shows this.
    fn is_due(&self, clock: i64) -> bool {
        let last = self.config.ticks.end.unwrap_or(i64::MAX);
        let end = self.config.begin(self.next + 1).min(last);
        // at the end of all numbers no tick is complete
        end < i64::MAX && clock >= end.saturating_add(self.config.ticks.lateness)
    }

    /// Closes what the clock says. Nothing is closed before everything is read that an earlier run had read.
    ///
    /// By the wall clock, for files: first the clock is read, then the present end of the source, and what lies before it
    /// is read before the ticks are closed, so that an event is late or not by its own arrival.
    fn settle(&mut self, reader: &mut Reader) -> Result<(), Failure> {
        if self.config.ticks.clock.is_wall() {
            if self.config.source.input == Input::Standard {
                return Ok(());
            }
            self.clock = self.now();
            // Noted when it is due, also while an earlier end is still being read up to.
            let complete = self.clock.saturating_sub(self.config.ticks.lateness);
            let open = self.config.tick_of(complete).unwrap_or(0);
            if open > self.noted.max(self.next) {
                self.due.push_back(Due {
                    at: self.clock,
                    end: reader.present_end()?,
                });
                self.noted = open;
            }
            return Ok(());
        }
        let clock = self.clock;
        self.close_while(reader, |l| l.is_due(clock))
    }

    /// By the wall clock, for standard input: the clock is the time at which a line had come, so that ticks that were due by
    /// then are closed before it is taken in; in silence, and at the end, it is the time up to which nothing else came.
    fn hear(&mut self, reader: &mut Reader, read: &Read1) -> Result<(), Failure> {
        let Clock::Wall { per_second } = self.config.ticks.clock else {
            return Ok(());
        };
        if self.config.source.input != Input::Standard {
            return Ok(());
        }
        let end = *read == Read1::End;
        self.clock = if end {
            self.now()
        } else {
            clock::units(reader.arrived(), per_second)
        };
        let clock = self.clock;
        if end || clock >= self.patience {
            self.close_while(reader, |l| l.is_due(clock))?;
        }
        Ok(())
    }

    /// Closes the ticks that wait for it.
    fn close_due(&mut self, reader: &mut Reader) -> Result<(), Failure> {
        let Some(due) = self.due.pop_front() else {
            return Ok(());
        };
        self.close_while(reader, |l| l.is_due(due.at))
    }

    fn close_while(
        &mut self,
        reader: &mut Reader,
        more: impl Fn(&Self) -> bool,
    ) -> Result<(), Failure> {
        while !self.ended() && !self.stopped() && more(self) {
            self.close(reader)?;
        }
        Ok(())
    }

    fn take(&mut self, place: &Place, event: Event) {
        let Some(tick) = self.config.tick_of(event.time) else {
            self.reject(place, "before the start", &format!("{event:?}"));
            return;
        };
        let reason = if self.config.ticks.end.is_some_and(|end| event.time >= end) {
            "after the end"
        } else if tick < self.next {
            "late: its tick is closed"
        } else if self.far(tick) {
            "too far ahead of the clock"
        } else {
            ""
        };
        // in a source that is followed, by the events, one after the end is the sign that the end has come
        let by_events = !self.config.ticks.clock.is_public() && self.config.source.follow;
        if reason == "after the end" && by_events && !self.far(tick) {
            self.clock = self.clock.max(event.time);
        }
        if !reason.is_empty() {
            self.reject(place, reason, &format!("{event:?}"));
            return;
        }
        let Some(node) = self.config.states.get(&event.state) else {
            self.reject(place, "not a declared state", &format!("{event:?}"));
            return;
        };
        if !self.config.ticks.clock.is_public() {
            self.clock = self.clock.max(event.time);
        }
        let session = self.engine.session();
        let pending = self.open.entry(tick);
        let pending = pending.or_insert_with(|| Pending::new(session));
        pending.take(event, *node);
    }

    /// Whether a tick is too far ahead of the clock.
    fn far(&self, tick: i64) -> bool {
        let now = self.config.tick_of(self.clock).unwrap_or(0).max(self.next);
        tick - now > self.config.ticks.max_ahead
    }

    /// The clock is the latest mark: one that goes back changes nothing. One far ahead of the last, or of what closes the next tick, is not believed alone.
    /// A second that agrees with it stops the program, unless it was told to catch up: after a long silence marks are right, but a clock in other units
    /// would close ticks without end, and for good.
    fn mark(&mut self, place: &Place, time: i64) -> Result<(), Failure> {
        if time < self.clock {
            self.reject(place, "a mark before the last one", &time.to_string());
            return Ok(());
        }
        let at = self.config.tick_of(time).unwrap_or(0);
        let most = self.config.ticks.max_ahead;
        let late = self.config.ticks.lateness / self.config.ticks.width;
        let closing = self.next.saturating_add(1).saturating_add(late);
        let last = self.config.tick_of(self.clock).unwrap_or(0).max(closing);
        if at.saturating_sub(last) > most {
            let agrees = self
                .suspect
                .is_some_and(|s| (0..=most.max(1)).contains(&(at - s)));
            if !agrees && !self.options.catch_up {
                self.suspect = Some(at);
                self.reject(place, "a mark far ahead of the last one", &time.to_string());
                return Ok(());
            }
            if !self.options.catch_up {
                return Err(Refusal::policy(format!(
                    "two marks say that {} ticks have ended since the last one, more than `max_ahead`; all of them would be released, for good",
                    at - self.next
                ))
                .in_file(&self.config.file)
                .for_key("ticks.max_ahead")
                .accepting("If it is so, run it once with --catch-up. If not, mend the marks (are their times in the units of `width`?) and what was written since.")
                .into());
            }
        }
        self.suspect = None;
        self.clock = time;
        Ok(())
    }

    /// Closes the next tick: noise, store, publish.
    fn close(&mut self, reader: &mut Reader) -> Result<(), Failure> {
        let tick = self.next;
        let pending = self.open.remove(&tick);
        let line = if self.config.withheld(tick) {
            Line {
                withheld: true,
                ..self.analysis.empty(tick)
            }
        } else {
            let session = self.engine.session();
            let tally = pending.map_or_else(|| session.tally(), Pending::into_tally);
            let plan: Plan = self.analysis.plan();
            let plan = session.check(plan)?;
            let ticked = self.engine.tick(tick, &mut self.state, tally, &plan)?;
            self.analysis.line(tick, &ticked)
        };
        let simulated = matches!(self.engine, Engine::Simulated(..));
        let line = Line {
            simulated,
            guarantee: if tick == 0 && !simulated {
                words(self.config)
            } else {
                String::new()
            },
            ..line
        };
        let body = serde_json::to_string(&line).map_err(|_| damaged(self.config))?;
        self.head = chain(&self.head, &body);
        self.next += 1;
        let place = reader.place();
        let progress = Progress {
            ticks: self.next,
            head: self.head,
            groups: self.state.encode(),
            tail: reader.tail(&place),
            clock: self.clock,
            place,
        };
        let (open, read) = self.fresh(reader);
        let tick = self.store.commit(&body, &progress, &open, &read)?;
        self.saved = progress.place;
        if let Some(page) = &self.page {
            page.push(&body);
        }
        self.publisher.publish(tick, &body)
    }

    /// A line that cannot be used, for the curator's eyes. When the file of such lines fails the stream goes on: whether there was
    /// one must not decide about later ticks.
    fn reject(&mut self, place: &Place, why: &str, line: &str) {
        self.bad += 1;
        let record = json!({"file": place.file, "offset": place.offset, "why": why, "line": line});
        let file = self.bad_lines.as_mut();
        let line = format!("{record}\n");
        let written = file.is_some_and(|file| file.write_all(line.as_bytes()).is_ok());
        self.unwritten += u64::from(!written);
    }
}
