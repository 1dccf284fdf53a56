//! `reticent-papers NAME [--quick | --full]`: runs a study and prints its figures.
//!
//! Exit code 0: every requirement is met; 1: one is not, or the study could not run; 2: wrong arguments.

use std::process::ExitCode;

use clap::Parser;
use reticent_papers::study::{Form, STUDIES};

/// Studies of Reticent's releases on public data.
#[derive(Parser)]
#[command(name = "reticent-papers")]
struct Arguments {
    /// Name of a study, `list` for the names, or `all`.
    name: String,
    /// The short form: seconds. What the tests run.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// The form whose figures stand in docs/studies.md (the default).
    #[arg(long)]
    full: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.name == "list" {
        for study in STUDIES {
            println!("{:<24} {}", study.name, study.about);
        }
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<_> = STUDIES
        .iter()
        .filter(|s| arguments.name == "all" || s.name == arguments.name)
        .collect();
    if chosen.is_empty() {
        eprintln!(
            "there is no study \"{}\"; `list` prints the names",
            arguments.name
        );
        return ExitCode::from(2);
    }
    let form = if arguments.quick {
        Form::Quick
    } else {
        Form::Full
    };
    let mut failed = false;
    for study in chosen {
        match (study.run)(form) {
            Ok(findings) => {
                println!("{}\n\n{findings}", study.name);
                failed |= !findings.met();
            }
            Err(e) => {
                eprintln!("{}: {e}", study.name);
                failed = true;
            }
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
