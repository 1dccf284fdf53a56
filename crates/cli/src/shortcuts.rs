//! A command for every kind of release: its keys as flags, a plan of one release made of them.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use reticent_engine::outcome::Refusal;
use reticent_engine::plan::Plan;
use reticent_engine::shortcut::{Key, NAME, example, flag, keys, kinds, plan, refused};
use reticent_engine::{Failure, session};
use serde_json::Value;

fn argument(key: &Key) -> Arg {
    let more = match (key.list, key.only_list) {
        (false, _) => "",
        (true, true) => " May be given several times.",
        (true, false) => " A list is given by several of these.",
    };
    let arg = Arg::new(key.name.clone())
        .long(flag(&key.name))
        .value_name(key.value.clone())
        .help(format!("{}{more}", key.help));
    if key.truth {
        return arg
            .num_args(0..=1)
            .default_missing_value("true")
            .value_parser(["true", "false"])
            .hide_possible_values(true);
    }
    arg.allow_hyphen_values(true).action(if key.list {
        ArgAction::Append
    } else {
        ArgAction::Set
    })
}

/// The commands.
pub(crate) fn commands() -> Vec<Command> {
    let path = value_parser!(PathBuf);
    let one = |(kind, about): &(String, String)| {
        let shown = example(kind).map_or_else(String::new, |e| format!("Example:\n  {e}"));
        Command::new(flag(kind))
            .about(format!("One release: {about}"))
            .display_order(100)
            .arg_required_else_help(true)
            .arg(Arg::new("of dataset").value_name("DATASET").required(true).value_parser(path.clone()).help("The declaration, dataset.toml."))
            .args(keys(kind).iter().map(argument))
            .next_help_heading("Running")
            .arg(Arg::new("on condition").long("where").value_name("CONDITION").allow_hyphen_values(true).help("Condition that rows must meet."))
            .arg(Arg::new("to folder").long("out").value_name("FOLDER").value_parser(path.clone()).help("Folder for release.json and report.html; out/ID by default."))
            .arg(Arg::new("by analyst").long("analyst").value_name("NAME").help("Whose spends these are (a name for the books; the command line does not check it)."))
            .arg(Arg::new("dry run").long("dry-run").action(ArgAction::SetTrue).help("Only say what it would cost."))
            .arg(Arg::new("show plan").long("show-plan").action(ArgAction::SetTrue).help("Print the plan that this stands for, and do nothing else. Its paths are relative to where the command runs."))
            .after_help(shown)
    };
    kinds().iter().map(one).collect()
}

/// What was asked for, of which kind.
pub(crate) struct Asked {
    /// The kind of release.
    pub(crate) kind: String,
    /// What is to be done.
    pub(crate) task: Task,
}

/// What is to be done with a plan of one release.
pub(crate) enum Task {
    /// Show its text.
    Show(String),
    /// Say what it costs.
    Price(Plan),
    /// Run it.
    Run(Plan, session::Options),
}

/// A refusal of the plan as one of the flags.
pub(crate) fn of_flags(kind: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Refusal(refusal) => refused(kind, refusal).into(),
        error @ Failure::Error(_) => error,
    }
}

/// Reads the flags of a command of [`commands`]; `None` if it is none of them.
pub(crate) fn asked(name: &str, flags: &ArgMatches) -> Option<Result<Asked, Failure>> {
    let (kind, _) = kinds().into_iter().find(|(kind, _)| flag(kind) == name)?;
    let dataset = flags.get_one::<PathBuf>("of dataset")?;
    let given: Vec<(String, Vec<String>)> = keys(&kind)
        .into_iter()
        .filter_map(|key| {
            let values = flags.get_many::<String>(&key.name)?;
            Some((key.name, values.cloned().collect()))
        })
        .collect();
    let text = |id: &str| flags.get_one::<String>(id).cloned();
    if dataset.to_str().is_none() {
        let refusal = Refusal::request("not a path in UTF-8, in which plans are written")
            .for_key("DATASET")
            .with_value(dataset.to_string_lossy())
            .accepting("Rename the folder, or run from inside it.");
        return Some(Err(refusal.into()));
    }
    let whole = plan(&kind, dataset, text("on condition").as_deref(), &given);
    if flags.get_flag("show plan") {
        let place =
            "# Paths are relative to the folder in which the command ran: keep this file there.\n";
        let task = Task::Show(format!("{place}{whole}"));
        return Some(Ok(Asked { kind, task }));
    }
    let analyst = text("by analyst");
    let named = analyst
        .as_deref()
        .map_or(Ok(()), |name| session::plain_name(name, "--analyst"));
    let plan = match named.and_then(|()| Plan::parse(&whole, Path::new(NAME))) {
        Ok(plan) => plan,
        Err(refusal) => return Some(Err(of_flags(&kind, refusal.into()))),
    };
    let task = if flags.get_flag("dry run") {
        Task::Price(plan)
    } else {
        let id = text("id").unwrap_or_else(|| kind.clone());
        let out = flags.get_one::<PathBuf>("to folder").cloned();
        let options = session::Options {
            analyst,
            out: Some(out.unwrap_or_else(|| Path::new("out").join(id))),
        };
        Task::Run(plan, options)
    };
    Some(Ok(Asked { kind, task }))
}

/// The requests whose results a folder holds.
pub(crate) fn held(folder: Option<&Path>) -> Vec<String> {
    let text = folder.and_then(|f| std::fs::read_to_string(f.join("release.json")).ok());
    let document: Value = text
        .and_then(|t| serde_json::from_str(&t).ok())
        .unwrap_or_default();
    let releases = document.get("releases").and_then(Value::as_array);
    let requests = releases
        .into_iter()
        .flatten()
        .filter_map(|r| r.get("request")?.as_str());
    requests.map(str::to_owned).collect()
}

/// A remark if results that a folder held are gone from it: what names them by that folder now means others.
pub(crate) fn replaced(before: &[String], folder: Option<&Path>) -> Option<String> {
    let now = held(folder);
    let gone = before.iter().any(|request| !now.contains(request));
    gone.then(|| {
        let folder = folder.unwrap_or_else(|| Path::new("out")).display();
        format!("{folder} held the results of another request, which these replace. Keep them apart with --out or --id; the other request is free if it is made again.")
    })
}
