//! A command for every kind of release: its keys as flags, a plan of one release made of them.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use reticent_engine::plan::Plan;
use reticent_engine::shortcut::{Key, keys, kinds, plan};
use reticent_engine::{Failure, session};

/// What messages call the plan, which is in no file; paths of it are relative to where the command runs.
const NAME: &str = "the command line";

fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

fn flag(key: &Key) -> Arg {
    let value = if key.words.is_empty() {
        "VALUE".to_owned()
    } else {
        key.words.join("|")
    };
    let more = if key.list {
        " May be given several times."
    } else {
        ""
    };
    Arg::new(key.name.clone())
        .long(dashed(&key.name))
        .value_name(value)
        .allow_hyphen_values(true)
        .action(if key.list {
            ArgAction::Append
        } else {
            ArgAction::Set
        })
        .help(format!("{}{more}", key.help))
}

/// The commands.
pub(crate) fn commands() -> Vec<Command> {
    let path = value_parser!(PathBuf);
    let one = |(kind, about): &(String, String)| {
        Command::new(dashed(kind))
            .about(format!("One release: {about}"))
            .display_order(100)
            .arg_required_else_help(true)
            .arg(Arg::new("of dataset").value_name("DATASET").required(true).value_parser(path.clone()).help("The declaration, dataset.toml."))
            .args(keys(kind).iter().map(flag))
            .next_help_heading("Running")
            .arg(Arg::new("on condition").long("where").value_name("CONDITION").help("Condition that rows must meet."))
            .arg(Arg::new("to folder").long("out").value_name("FOLDER").value_parser(path.clone()).help("Folder for release.json and report.html; out/ID by default."))
            .arg(Arg::new("by analyst").long("analyst").value_name("NAME").help("Whose spends these are (a name for the books; the command line does not check it)."))
            .arg(Arg::new("dry run").long("dry-run").action(ArgAction::SetTrue).help("Only say what it would cost."))
            .arg(Arg::new("show plan").long("show-plan").action(ArgAction::SetTrue).help("Print the plan that this stands for, and do nothing else."))
    };
    kinds().iter().map(one).collect()
}

/// What was asked for.
pub(crate) enum Asked {
    /// The text of the plan.
    Show(String),
    /// What it costs.
    Price(Plan),
    /// To run it.
    Run(Plan, session::Options),
}

/// Reads the flags of a command of [`commands`]; `None` if it is none of them.
pub(crate) fn asked(name: &str, flags: &ArgMatches) -> Option<Result<Asked, Failure>> {
    let (kind, _) = kinds().into_iter().find(|(kind, _)| dashed(kind) == name)?;
    let dataset = flags.get_one::<PathBuf>("of dataset")?;
    let given: Vec<(String, Vec<String>)> = keys(&kind)
        .into_iter()
        .filter_map(|key| {
            let values = flags.get_many::<String>(&key.name)?;
            Some((key.name, values.cloned().collect()))
        })
        .collect();
    let text = |id: &str| flags.get_one::<String>(id).cloned();
    let whole = plan(&kind, dataset, text("on condition").as_deref(), &given);
    if flags.get_flag("show plan") {
        return Some(Ok(Asked::Show(whole)));
    }
    let plan = match Plan::parse(&whole, Path::new(NAME)) {
        Ok(plan) => plan,
        Err(refusal) => return Some(Err(refusal.into())),
    };
    if flags.get_flag("dry run") {
        return Some(Ok(Asked::Price(plan)));
    }
    let id = text("id").unwrap_or(kind);
    let out = flags.get_one::<PathBuf>("to folder").cloned();
    let options = session::Options {
        analyst: text("by analyst"),
        out: Some(out.unwrap_or_else(|| Path::new("out").join(id))),
    };
    Some(Ok(Asked::Run(plan, options)))
}
