//! `reticent audit` and `reticent attack`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use reticent_audit::AuditError;
use reticent_audit::attacks::reconstruct::Config;
use reticent_audit::attacks::{gptt, histogram, people, show};
use reticent_audit::auditor::program::Program;
use reticent_audit::auditor::{
    Auditable, Claim, Effort, Report, Settings, audit, catalogue, report, shipped,
};
use reticent_engine::accounting::Rational;
use reticent_engine::{Error, Failure, outcome::Refusal};

/// Exit code when a claim is refuted.
const FLAGGED: u8 = 4;

/// What to audit, and how.
#[derive(Args)]
pub(crate) struct Audit {
    /// Name of a mechanism; `all`, `shipped` or `broken`; nothing: the list.
    mechanism: Option<String>,
    /// Runs per table from which the event is learned.
    #[arg(long)]
    training: Option<u64>,
    /// The most runs per table in which it is counted.
    #[arg(long)]
    runs: Option<u64>,
    /// Probability with which a private mechanism may be flagged.
    #[arg(long, default_value_t = 1e-9)]
    false_alarm: f64,
    /// Seed of all runs.
    #[arg(long, default_value_t = 20_261_127)]
    seed: u64,
    /// Go on after the claim is refuted, for a better bound.
    #[arg(long)]
    exhaust: bool,
    /// SVG picture of claim, bound and runs.
    #[arg(long)]
    out: Option<PathBuf>,
    /// A table, for an external program.
    #[arg(long, requires = "second")]
    first: Option<PathBuf>,
    /// A neighbouring table.
    #[arg(long, requires = "first")]
    second: Option<PathBuf>,
    /// What the external program promises.
    #[arg(long, requires = "first")]
    epsilon: Option<f64>,
    /// What the external program promises.
    #[arg(long, default_value_t = 0.0, requires = "first")]
    delta: f64,
    /// Seconds a start of the external program may take.
    #[arg(long, default_value_t = 60, requires = "first")]
    patience: u64,
    /// The external program and its arguments.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Which attack.
#[derive(Subcommand)]
pub(crate) enum Attack {
    /// Exact privacy loss of threshold testing without a cut-off.
    Gptt {
        /// Claimed ε.
        #[arg(long, default_value = "1", allow_negative_numbers = true)]
        epsilon: String,
        /// The largest t (at most 60).
        #[arg(long, default_value_t = 20)]
        copies: u32,
        /// SVG picture.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Rebuild a histogram from yes-or-no answers.
    Reconstruct {
        /// Claimed ε.
        #[arg(long, default_value = "1", allow_negative_numbers = true)]
        epsilon: String,
        /// One count per line; by default capital loss of the Adult example.
        #[arg(long)]
        histogram: Option<PathBuf>,
        /// The Adult records.
        #[arg(long, default_value = "examples/adult/adult.csv.gz")]
        adult: PathBuf,
        /// Spend half of ε on each step, as the thesis states, instead of all of it, as its tables have it.
        #[arg(long)]
        halves: bool,
        /// Seed of the noise.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// SVG picture.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Find the one unknown record from an exact ROC curve.
    Roc {
        #[command(flatten)]
        people: People,
    },
    /// Find the one unknown record from an exact residual plot.
    Residuals {
        #[command(flatten)]
        people: People,
    },
    /// Read the true value off the last bits of floating-point noise.
    Float {
        /// One value.
        #[arg(long, default_value_t = 0.0)]
        value: f64,
        /// The other.
        #[arg(long, default_value_t = 1.0)]
        other: f64,
        /// Scale of the noise.
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        /// Number of outputs.
        #[arg(long, default_value_t = 20_000)]
        outputs: u32,
        /// Seed of the noise.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// SVG picture.
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

/// Records for the attacks on plots.
#[derive(Args)]
pub(crate) struct People {
    /// The Adult records.
    #[arg(long, default_value = "examples/adult/adult.csv.gz")]
    adult: PathBuf,
    /// How many of them are plotted.
    #[arg(long, default_value_t = 400)]
    records: usize,
    /// How many of those are attacked in turn.
    #[arg(long, default_value_t = 100)]
    trials: usize,
    /// SVG picture.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Carries out an audit; the text to print, and how to end.
pub(crate) fn audits(of: &Audit, json: bool) -> Result<(String, ExitCode), Failure> {
    if !(of.false_alarm > 0.0 && of.false_alarm < 0.5) {
        return Err(refused(format!(
            "--false-alarm is {}; it must lie between 0 and 0.5",
            of.false_alarm
        )));
    }
    if let (Some(first), Some(second)) = (&of.first, &of.second) {
        let program = external(of, first, second)?;
        return finish(of, &[run(of, &program)?], json);
    }
    if !of.command.is_empty() {
        return Err(refused(
            "a program needs --first TABLE --second TABLE --epsilon E before the --",
        ));
    }
    let broken = catalogue::broken();
    let worlds = shipped::worlds().map_err(failed)?;
    let ours: Vec<&dyn Auditable> = worlds.iter().map(AsRef::as_ref).collect();
    let theirs: Vec<&dyn Auditable> = broken.iter().map(|b| b as &dyn Auditable).collect();
    let chosen: Vec<&dyn Auditable> = match of.mechanism.as_deref() {
        None => return Ok((list(&ours, &theirs), ExitCode::SUCCESS)),
        Some("all") => ours.into_iter().chain(theirs).collect(),
        Some("shipped") => ours,
        Some("broken") => theirs,
        Some(name) => {
            let all = ours.into_iter().chain(theirs);
            let found: Vec<_> = all.filter(|m| m.name() == name).collect();
            if found.is_empty() {
                return Err(refused(match reticent_audit::registry::row(name) {
                    Some(row) => format!(
                        "{name} has no small world to run in; its tests are {}",
                        row.tests.join(", ")
                    ),
                    None => format!(
                        "there is no mechanism \"{name}\"; `reticent audit` alone prints the list"
                    ),
                }));
            }
            found
        }
    };
    let reports = chosen
        .into_iter()
        .map(|m| run(of, m))
        .collect::<Result<Vec<_>, _>>()?;
    finish(of, &reports, json)
}

fn external(of: &Audit, first: &Path, second: &Path) -> Result<Program, Failure> {
    let Some(epsilon) = of.epsilon.filter(|e| e.is_finite() && *e >= 0.0) else {
        return Err(refused(
            "--epsilon must say what the program promises (a number, 0 or more)",
        ));
    };
    if !(0.0..1.0).contains(&of.delta) {
        return Err(refused("--delta must be at least 0 and less than 1"));
    }
    if of.command.is_empty() {
        return Err(refused(
            "which program? reticent audit --first A --second B --epsilon 1 -- python3 mechanism.py",
        ));
    }
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| Error::File {
            path: path.to_owned(),
            what: "the table cannot be read",
            source,
        })
    };
    Ok(Program {
        command: of.command.clone(),
        inputs: [read(first)?, read(second)?],
        names: [first.display().to_string(), second.display().to_string()],
        claim: Claim {
            epsilon,
            delta: of.delta,
        },
        effort: Effort {
            training: 4_096,
            most: 65_536,
        },
        patience: Duration::from_secs(of.patience.max(1)),
    })
}

fn run(of: &Audit, mechanism: &dyn Auditable) -> Result<Report, Failure> {
    let default = mechanism.effort();
    let settings = Settings {
        seed: of.seed,
        effort: Some(Effort {
            training: of.training.unwrap_or(default.training).min(10_000_000),
            most: of.runs.unwrap_or(default.most).min(1 << 32),
        }),
        false_alarm: of.false_alarm,
        exhaust: of.exhaust,
    };
    audit(mechanism, &settings).map_err(failed)
}

fn list(ours: &[&dyn Auditable], theirs: &[&dyn Auditable]) -> String {
    let mut out = "Shipped mechanisms, in small public worlds:\n".to_owned();
    ours.iter().for_each(|m| out.push_str(&report::listed(*m)));
    out.push_str("\nBroken ones:\n");
    theirs
        .iter()
        .for_each(|m| out.push_str(&report::listed(*m)));
    out.push_str(
        "\nreticent audit NAME | all | shipped | broken; another program: reticent audit --help\n",
    );
    out
}

fn finish(of: &Audit, reports: &[Report], json: bool) -> Result<(String, ExitCode), Failure> {
    let one = if let [one] = reports { Some(one) } else { None };
    if let Some(path) = &of.out {
        let picture = one.map_or_else(|| report::overview(reports), report::picture);
        write(path, &picture)?;
    }
    let text = if json {
        let value = one.map_or_else(
            || serde_json::to_string_pretty(reports),
            serde_json::to_string_pretty,
        );
        value.unwrap_or_default() + "\n"
    } else {
        one.map_or_else(|| report::summary(reports), report::text)
    };
    let flagged = reports.iter().any(Report::flagged);
    Ok((
        text,
        if flagged {
            ExitCode::from(FLAGGED)
        } else {
            ExitCode::SUCCESS
        },
    ))
}

/// Carries out an attack; the text to print.
pub(crate) fn attack(which: &Attack, json: bool) -> Result<String, Failure> {
    let (shown, out) = match which {
        Attack::Gptt {
            epsilon,
            copies,
            out,
        } => {
            let epsilon = positive(epsilon)?;
            let tests = Rational::from((*copies).clamp(1, gptt::MOST_COPIES));
            if &epsilon * tests > Rational::from(200_u8) {
                return Err(refused(
                    "--epsilon times --copies is above 200, too much for the exact loss to be computed; lower one of them",
                ));
            }
            (show::gptt(&epsilon, *copies), out)
        }
        Attack::Reconstruct {
            epsilon,
            histogram,
            adult,
            halves,
            seed,
            out,
        } => {
            let epsilon = positive(epsilon)?;
            let (name, counts) = if let Some(path) = histogram {
                let name = path.display().to_string();
                let text = histogram::text(path).map_err(failed)?;
                let counts = histogram::counts(&text, &name).map_err(failed)?;
                (name, counts)
            } else {
                let text = histogram::text(adult).map_err(failed)?;
                let name = adult.display().to_string();
                let counts = histogram::capital_loss(&text, &name).map_err(failed)?;
                ("Adult, capital loss".to_owned(), counts)
            };
            let config = if *halves {
                Config::stated(&epsilon)
            } else {
                Config::printed(&epsilon)
            };
            let shown = show::reconstruction(&name, &counts, &epsilon, &config, *seed)
                .map_err(|e| refused(format!("--epsilon: {e}")))?;
            (shown, out)
        }
        Attack::Roc { people } => (show::roc(&load(people)?, people.trials), &people.out),
        Attack::Residuals { people } => (
            show::residual_plot(&load(people)?, people.trials),
            &people.out,
        ),
        Attack::Float {
            value,
            other,
            scale,
            outputs,
            seed,
            out,
        } => {
            let fine = value.is_finite() && other.is_finite() && scale.is_finite();
            if !fine || *scale <= 0.0 {
                return Err(refused(
                    "--value and --other must be numbers, --scale a positive one",
                ));
            }
            let outputs = (*outputs).clamp(1, 10_000_000);
            (
                show::float_bits(*value, *other, *scale, outputs, *seed),
                out,
            )
        }
    };
    if let Some(path) = out {
        write(path, &shown.picture)?;
    }
    if json {
        return Ok(serde_json::to_string_pretty(&shown.value).unwrap_or_default() + "\n");
    }
    let hint = match out {
        Some(path) => format!("\npicture: {}\n", path.display()),
        None => "\n(--out FILE.svg draws it)\n".to_owned(),
    };
    Ok(shown.text + &hint)
}

fn load(of: &People) -> Result<Vec<people::Person>, Failure> {
    let text = histogram::text(&of.adult).map_err(failed)?;
    let records = of.records.clamp(2, 5_000);
    people::load(&text, &of.adult.display().to_string(), records).map_err(failed)
}

fn positive(text: &str) -> Result<Rational, Failure> {
    let number = reticent_engine::accounting::parse_rational(text)
        .ok()
        .filter(|r| *r > Rational::ZERO);
    number.ok_or_else(|| {
        refused(format!(
            "--epsilon is {text:?}; it must be a positive number"
        ))
    })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| {
        Error::File {
            path: path.to_owned(),
            what: "the picture cannot be written",
            source,
        }
        .into()
    })
}

fn refused(message: impl Into<String>) -> Failure {
    Refusal::request(message).into()
}

fn failed(error: AuditError) -> Failure {
    match error {
        AuditError::Input { .. } => refused(error.to_string()),
        other => Error::Release(other.to_string()).into(),
    }
}
