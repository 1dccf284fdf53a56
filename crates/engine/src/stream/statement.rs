//! What a stream guarantees, in numbers and in words: public before it is opened, and stored with its payment.

use reticent_accounting::{Rational, Relation, format_rational};
use reticent_mechanisms::Context;
use reticent_mechanisms::stream::{Forest, Grouper, PARTS, Stream};
use serde_json::json;

use super::clock;
use super::config::{Config, Method};

/// The stream as the trusted half knows it.
pub fn declared(config: &Config) -> Stream {
    let grouper = match &config.method {
        Method::Pegasus {
            threshold, split, ..
        } => Some(Grouper {
            threshold: *threshold,
            split: *split,
        }),
        _ => None,
    };
    let forest: &Forest = &config.forest;
    let common = if forest.single_root() && forest.height() > 1 {
        PARTS / forest.height()
    } else {
        0
    };
    Stream {
        name: config.name.clone(),
        epsilon: config.epsilon.clone(),
        forest: config.forest.clone(),
        grouper,
        common,
    }
}

/// The public facts.
pub fn context(config: &Config) -> Context {
    Context {
        rows_per_unit: config.per_unit,
        ..Context::records(config.relation)
    }
}

/// What is public about the guarantee, in numbers and in words.
pub fn statement(config: &Config) -> serde_json::Value {
    let (stream, context) = (declared(config), context(config));
    let other = match config.relation {
        Relation::AddRemove => &config.epsilon + &config.epsilon,
        Relation::ReplaceOne => config.epsilon.clone(),
    };
    let alone = alone(config);
    let per_day = config
        .day
        .as_ref()
        .map(|cap| format_rational(&(&alone * Rational::from(cap.ticks))));
    json!({
        "stream": config.name,
        "series": config.names.len(),
        "epsilon": format_rational(&config.epsilon),
        "neighbours": config.relation.to_string(),
        "clock": config.ticks.clock.name(),
        "loss": {
            "added_or_removed": format_rational(&alone),
            "another_state_in_the_same_tick": format_rational(&stream.swap_loss(&context)),
            "any_other_replacement": format_rational(&other),
            "w_event_of_12_ticks": format_rational(&(&alone * Rational::from(12_u8))),
            "user_level": user_level(config),
            "most_per_person_and_day": per_day,
        },
        "words": words(config),
    })
}

/// What is protected, and when that holds.
pub(super) fn words(config: &Config) -> String {
    let unit = match &config.source.unit {
        Some(field) => format!(
            "the events of one {field} within one tick, at most {} of them",
            config.per_unit
        ),
        None => "one event".to_owned(),
    };
    let whole = user_level(config).map_or_else(
        || "grows without bound, since the stream has no end".to_owned(),
        |loss| format!("is at most {loss} by the end of the stream"),
    );
    format!(
        "Protected is {unit}. If somebody's events of any w ticks in a row are added or removed (w-event privacy) the loss is w times that of one tick: {} at 12 ticks. If all events of \
         somebody are (user-level privacy) it is as many times that as there are ticks with one of them, and {whole}. {}",
        format_rational(&(alone(config) * Rational::from(12_u8))),
        clock::words(config)
    )
}

/// The loss of somebody with events in all ticks that are released; none if there is no last one.
fn user_level(config: &Config) -> Option<String> {
    let released = (0..config.last()?).filter(|t| !config.withheld(*t));
    let ticks = match config.day {
        // every tick
        None => config.last()?,
        // longer streams are counted by their ticks, which is no less
        Some(_) if config.last()? > MOST_COUNTED => config.last()?,
        Some(_) => i64::try_from(released.count()).unwrap_or(i64::MAX),
    };
    Some(format_rational(&(alone(config) * Rational::from(ticks))))
}

/// Ticks of which it is looked up one by one how many a daily cap lets through.
const MOST_COUNTED: i64 = 1 << 20;

/// The loss when a unit's events of a tick are added or removed.
fn alone(config: &Config) -> Rational {
    match config.relation {
        Relation::AddRemove => config.epsilon.clone(),
        Relation::ReplaceOne => &config.epsilon / Rational::from(2_u8),
    }
}
