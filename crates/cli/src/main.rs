//! The `reticent` command: private models and diagnostics from confidential tables.

mod arguments;
mod audit;
mod ledger;
mod shortcuts;
mod show;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arguments::{Arguments, Command, Neighbours, PlanAccuracy};
use clap::{CommandFactory, FromArgMatches};
use indicatif::{ProgressBar, ProgressStyle};
use reticent_engine::{
    Error, Failure, accuracy, books, dataset::Dataset, init, mock, outcome::Refusal, plan::Plan,
    predict, schema_json, session, smartnoise, stream,
};
use shortcuts::{Asked, Task};

fn main() -> ExitCode {
    let known = Arguments::command().subcommands(shortcuts::commands());
    let matches = match known.try_get_matches() {
        Ok(matches) => matches,
        Err(usage) => return misused(&usage),
    };
    let json = matches.get_flag("json");
    let asked = matches
        .subcommand()
        .and_then(|(n, m)| shortcuts::asked(n, m));
    let done = match asked {
        Some(asked) => asked
            .and_then(|asked| shortcut(asked, json))
            .map(|()| ExitCode::SUCCESS),
        None => match Arguments::from_arg_matches(&matches) {
            Ok(arguments) => carry_out(arguments),
            Err(usage) => return misused(&usage),
        },
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            report(&failure, json);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Help and version as clap prints them; a wrong command line as a refusal, for machines too.
fn misused(usage: &clap::Error) -> ExitCode {
    let machine = std::env::args_os().skip(1).any(|a| a == "--json");
    if !machine || !usage.use_stderr() {
        usage.exit();
    }
    let said = usage.to_string();
    let message = said.trim().strip_prefix("error: ").unwrap_or(said.trim());
    let failure = Failure::from(Refusal::request(message));
    report(&failure, true);
    ExitCode::from(failure.exit_code())
}

fn carry_out(arguments: Arguments) -> Result<ExitCode, Failure> {
    let json = arguments.json;
    if let Command::Audit(of) = &arguments.command {
        let (text, code) = audit::audits(of, json)?;
        print(&text)?;
        return Ok(code);
    }
    command(arguments.command, json).map(|()| ExitCode::SUCCESS)
}

#[allow(clippy::too_many_lines, reason = "one arm per command")]
fn command(command: Command, json: bool) -> Result<(), Failure> {
    match command {
        Command::Audit(_) => Ok(()), // above: the only one that ends with a code of its own
        Command::Attack { which } => print(&audit::attack(&which, json)?),
        Command::Init { data, table } => {
            if !data.extension().is_some_and(|e| e == "yaml" || e == "yml") {
                return print(&init::skeleton(&data)?);
            }
            let draft = smartnoise::import(&data, table.as_deref())?;
            for remark in draft.missing.iter().chain(&draft.notes) {
                note(remark);
            }
            print(&draft.toml)
        }
        Command::Register { dataset } => {
            let dataset = Dataset::load(&dataset)?;
            let working = Working::start("reading every row");
            let (registration, _) = books::register(&dataset)?;
            working.done();
            print(&show::registration(&dataset, &registration, json))
        }
        Command::Mock {
            dataset,
            rows,
            seed,
        } => {
            let dataset = Dataset::load(&dataset)?;
            let out = std::io::BufWriter::new(std::io::stdout().lock());
            written(mock::write(&dataset, rows, seed, out))
        }
        Command::Schema { of } => print(schema_json::schema(of.name()).unwrap_or_default()),
        Command::PlanAccuracy(asked) => print(&plan_accuracy(*asked, json)?),
        Command::Price { plan, rows } => price(Plan::load(&plan)?, rows, json),
        Command::Run {
            plan,
            dry_run: true,
            ..
        } => price(Plan::load(&plan)?, None, json),
        Command::Run {
            plan,
            out,
            analyst,
            dry_run: false,
        } => run(Plan::load(&plan)?, &session::Options { analyst, out }, json),
        Command::Predict {
            model,
            data,
            out,
            threshold,
        } => {
            let text = predict::predict(&model, &data, threshold.as_deref())?;
            match out {
                None => print(&text),
                Some(path) => predict::write(&text, &path, &model, &data),
            }
        }
        Command::Stream {
            config,
            simulate,
            analyst,
            dry_run,
            catch_up,
        } => {
            let config = stream::Config::load(&config)?;
            if dry_run {
                return print(&format!("{:#}\n", stream::statement(&config)));
            }
            let path_of_bad_lines = config.output.dead_letters.clone();
            let stop = Arc::new(AtomicBool::new(false));
            for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
                signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|source| {
                    Error::File {
                        path: "signals".into(),
                        what: "cannot be handled",
                        source,
                    }
                })?;
            }
            let options = stream::Options {
                stop,
                simulate,
                analyst,
                catch_up,
                ..stream::Options::default()
            };
            let ran = stream::run(&config, &options, &mut note)?;
            note(&format!(
                "{} ticks released, {} by this run; {} bad lines",
                ran.ticks, ran.new, ran.bad
            ));
            if ran.unwritten > 0 {
                note(&format!(
                    "{} of the bad lines could not be written to {}",
                    ran.unwritten,
                    path_of_bad_lines.display()
                ));
            }
            if let Some(file) = &ran.unfinished {
                note(&format!(
                    "the last line of {file} has no line end: it is read when it has one, or when a later file is there"
                ));
            }
            if !ran.passed.is_empty() {
                note(&format!(
                    "never read, because files behind them in name order were: {}",
                    few(&ran.passed)
                ));
            }
            Ok(())
        }
        Command::Ledger { action } => print(&ledger::carry_out(action, json)?),
    }
}

/// The first of some names, and how many more there are.
fn few(names: &[String]) -> String {
    let more = names.len().saturating_sub(3);
    let first = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 {
        return first;
    }
    format!("{first} and {more} more")
}

fn plan_accuracy(asked: PlanAccuracy, json: bool) -> Result<String, Failure> {
    if let Some(plan) = &asked.plan {
        let table = accuracy::plan(plan, asked.rows)?;
        return Ok(show::accuracy(&table, json));
    }
    let relation = asked.relation;
    let line = accuracy::single(&accuracy::Asked {
        kind: asked.kind.unwrap_or_default(),
        budget: asked.epsilon.or(asked.rho),
        error: asked.error,
        cells: asked.cells,
        levels: asked.levels,
        #[allow(clippy::cast_precision_loss, reason = "a number of rows, for planning")]
        rows: asked.rows.map(|n| n as f64),
        width: asked.width,
        coverage: asked.coverage,
        sides: asked.sides,
        answers: asked.answers,
        queries: asked.queries,
        k: asked.k,
        most: asked.most,
        coefficients: asked.coefficients,
        steps: asked.steps,
        positive_rate: asked.positive_rate,
        method: asked.method,
        replace_one: relation == Neighbours::ReplaceOne,
        rows_per_unit: asked.rows_per_unit,
    })?;
    Ok(show::accuracy_line(&line, json))
}

fn run(plan: Plan, options: &session::Options, json: bool) -> Result<(), Failure> {
    let mut working = Working::start("reading the plan");
    let ran = session::run(plan, options, &mut |step| working.say(step))?;
    working.done();
    print(&show::ran(&ran, json))
}

fn shortcut(asked: Asked, json: bool) -> Result<(), Failure> {
    let done = match asked.task {
        Task::Show(text) => print(&text),
        Task::Price(plan) => price(plan, None, json),
        Task::Run(plan, options) => {
            let folder = options.out.as_deref();
            let held = shortcuts::held(folder);
            run(plan, &options, json).map(|()| {
                if let Some(remark) = shortcuts::replaced(&held, folder) {
                    note(&remark);
                }
            })
        }
    };
    done.map_err(|failure| shortcuts::of_flags(&asked.kind, failure))
}

fn price(plan: Plan, rows: Option<u64>, json: bool) -> Result<(), Failure> {
    let table = session::price(plan, rows)?;
    print(&show::price(&table, json))
}

/// Writes to standard output; a reader that has gone away is not an error.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::File {
            path: "standard output".into(),
            what: "cannot be written",
            source: e,
        }
        .into()),
        _ => Ok(()),
    }
}

/// A remark beside the output.
fn note(remark: &str) {
    // Nothing useful can be done if standard error is closed.
    let _ = writeln!(std::io::stderr(), "note: {remark}");
}

fn report(failure: &Failure, json: bool) {
    let text = match failure {
        _ if json => show::failure_json(failure),
        Failure::Refusal(refusal) => format!("{}: {refusal}", refused(refusal)),
        Failure::Error(error) => format!("error: {error}"),
    };
    // Nothing useful can be done if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn refused(refusal: &Refusal) -> &'static str {
    match refusal.rule.exit_code() {
        3 => "refused by the rules of the data set",
        _ => "refused",
    }
}

/// A spinner on a terminal; silent elsewhere.
struct Working(Option<ProgressBar>);

impl Working {
    fn start(step: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(step.to_owned());
        bar.enable_steady_tick(std::time::Duration::from_millis(120));
        Self(Some(bar))
    }

    fn say(&mut self, step: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(step.to_owned());
        }
    }

    fn done(self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
