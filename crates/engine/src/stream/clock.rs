//! What decides when a tick closes: this machine's clock, marks in the source, or (with a weaker claim) the events.
//!
//! Under the first two an event is counted or not by its own time, its own place in the source and a public clock, so
//! that one event changes one tick. Under the third the largest time seen so far closes ticks, so that one event can
//! decide about others; the claim then holds among streams that keep a promise about their order.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::config::Config;
use super::source::Chunk;

/// `[ticks] clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// This machine's clock, in so many units of the time field a second, from 1970 on.
    Wall {
        /// 1, 1000 or 1,000,000.
        per_second: i64,
    },
    /// Rows of the source that say what time it is.
    Marks,
    /// The largest time of an event so far.
    Events,
}

impl Clock {
    /// Its name in a declaration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall { .. } => "wall",
            Self::Marks => "marks",
            Self::Events => "events",
        }
    }

    /// Whether it is this machine's.
    pub fn is_wall(self) -> bool {
        matches!(self, Self::Wall { .. })
    }

    /// Whether it says nothing about the events, so that the number of released ticks is public.
    pub fn is_public(self) -> bool {
        self != Self::Events
    }
}

/// What is to be said to someone who names no clock.
pub const CHOICES: &str = "clock = \"wall\": ticks close by this machine's clock (live events). \
     clock = \"marks\": ticks close by rows in the source that say what time it is, written on a public schedule (a queue with its own time; name them with source.mark). \
     clock = \"events\": ticks close by the times of the events themselves (a file in order); the claim then holds only among streams in order to within lateness.";

/// When ticks close and what the claim assumes about it, in words.
pub fn words(config: &Config) -> String {
    let ticks = &config.ticks;
    let late = ticks.lateness;
    match ticks.clock {
        Clock::Wall { .. } => format!(
            "A tick closes when this machine's clock is {late} past its end and what had come by then is read; an event counts or not by its own time and arrival."
        ),
        Clock::Marks => format!(
            "A tick closes when a mark (a row whose state is \"{}\") at least {late} past its end is read; an event counts or not by its own time and its place among the marks. Assumed: marks are public, written whatever the events are.",
            config.source.mark.as_deref().unwrap_or_default()
        ),
        Clock::Events => {
            let number = if ticks.end.is_some() && !config.source.follow {
                "All ticks are released when the events end."
            } else {
                "The number of ticks released so far is not protected."
            };
            format!(
                "A tick closes when an event at least {late} past its end is read. The loss holds only among streams whose events come in order to within {late} and without gaps of more than {} ticks, that is, if no event comes after one whose time is more than {late} later: one event that breaks this can decide whether any number of others count. {number}",
                ticks.max_ahead
            )
        }
    }
}

/// The time of day, and waiting for it to pass.
pub trait Time: Send + Sync {
    /// Microseconds since 1970.
    fn now(&self) -> i64;
    /// Waits a little for the source to grow.
    fn wait(&self);
    /// What stands in for standard input, if anything does.
    fn input(&self) -> Option<Receiver<Chunk>> {
        None
    }
}

struct Machine;

impl Time for Machine {
    fn now(&self) -> i64 {
        let micros = |d: Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => micros(since),
            Err(before) => -micros(before.duration()),
        }
    }

    fn wait(&self) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Where the time comes from; this machine's clock unless a test brings another.
#[derive(Clone)]
pub struct Watch(pub Arc<dyn Time>);

impl Default for Watch {
    fn default() -> Self {
        Self(Arc::new(Machine))
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

impl Watch {
    /// Now, in units of the time field.
    pub fn read(&self, per_second: i64) -> i64 {
        units(self.0.now(), per_second)
    }
}

/// Microseconds in units of the time field.
pub fn units(micros: i64, per_second: i64) -> i64 {
    let scaled = i128::from(micros) * i128::from(per_second);
    i64::try_from(scaled.div_euclid(1_000_000)).unwrap_or(i64::MAX)
}
