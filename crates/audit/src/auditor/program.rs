//! Audits of other programs: any command that reads a small table on standard input and prints its output.
//!
//! Protocol. The auditor starts the command, writes a table (the bytes of a file) to its standard input, closes it, and sets the
//! environment variable `RETICENT_RUNS` to a number k. The program prints one output per line: numbers separated by
//! spaces, commas or tabs. It may print up to k lines, each from a fresh and independent run of the mechanism; a program that
//! does not know the variable prints one line and is started again. It must exit with code 0 and takes its randomness
//! from where it likes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reticent_noise::Noise;

use super::{Auditable, Claim, Effort, Output};
use crate::AuditError;

/// An external mechanism with two neighbouring tables.
#[derive(Clone, Debug)]
pub struct Program {
    /// Command and arguments (no shell in between).
    pub command: Vec<String>,
    /// The contents of the tables.
    pub inputs: [Vec<u8>; 2],
    /// What they are called in the report.
    pub names: [String; 2],
    /// What the program promises.
    pub claim: Claim,
    /// Runs.
    pub effort: Effort,
    /// A start that takes longer than this fails.
    pub patience: Duration,
}

impl Program {
    fn failed(&self, cause: impl Into<String>) -> AuditError {
        AuditError::Program {
            program: self.command.join(" "),
            cause: cause.into(),
        }
    }

    /// One start: at least one output, at most `most`.
    fn start(&self, table: usize, most: u64) -> Result<Vec<Output>, AuditError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(self.failed("no command was given"));
        };
        let mut child = Command::new(program)
            .args(arguments)
            .env("RETICENT_RUNS", most.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|e| self.failed(format!("cannot be started: {e}")))?;
        let input = self.inputs[table % 2].clone();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        // a program need not read all of its input before it writes
        let writer = std::thread::spawn(move || {
            if let Some(mut pipe) = stdin {
                // a program that stops reading is not at fault
                let _ = pipe.write_all(&input);
            }
        });
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let result = stdout.map(|mut pipe| pipe.read_to_end(&mut bytes));
            (bytes, result.and_then(Result::err))
        });
        let deadline = Instant::now() + self.patience;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok(None) => {
                    // it is reaped below; whether the signal arrives makes no difference to the verdict
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(self.failed(format!(
                        "did not end within {} seconds (option --patience)",
                        self.patience.as_secs()
                    )));
                }
                Err(e) => return Err(self.failed(format!("cannot be waited for: {e}"))),
            }
        };
        // neither thread can panic
        let _ = writer.join();
        let (bytes, problem) = reader.join().unwrap_or_default();
        if let Some(e) = problem {
            return Err(self.failed(format!("its output cannot be read: {e}")));
        }
        if !status.success() {
            return Err(self.failed(format!("ended with {status}")));
        }
        let text = String::from_utf8_lossy(&bytes);
        let outputs = text
            .lines()
            .filter(|l| !l.trim().is_empty())
            .map(|line| parse(line).ok_or_else(|| self.failed(format!("printed {line:?}; a line of output is numbers separated by spaces, commas or tabs"))))
            .collect::<Result<Vec<_>, _>>()?;
        let n = outputs.len() as u64;
        if n == 0 || n > most {
            return Err(self.failed(format!("printed {n} lines; 1 to {most} were asked for")));
        }
        Ok(outputs)
    }
}

fn parse(line: &str) -> Option<Output> {
    line.split([' ', ',', '\t'])
        .filter(|t| !t.is_empty())
        .map(|t| match t {
            "true" | "True" | "TRUE" => Some(1.0),
            "false" | "False" | "FALSE" => Some(0.0),
            number => number.parse().ok(),
        })
        .collect()
}

impl Auditable for Program {
    fn name(&self) -> &str {
        self.command.first().map_or("program", String::as_str)
    }
    fn about(&self) -> &'static str {
        "an external program"
    }
    fn claim(&self) -> Claim {
        self.claim
    }
    fn tables(&self) -> Vec<String> {
        self.names.to_vec()
    }
    fn run(&self, table: usize, _: &mut dyn Noise) -> Result<Output, AuditError> {
        self.start(table, 1)?
            .pop()
            .ok_or_else(|| self.failed("printed nothing"))
    }
    fn replays(&self) -> bool {
        false
    }
    fn effort(&self) -> Effort {
        self.effort
    }
    fn batch(&self, table: usize, _: u64, _: u64, n: u64) -> Result<Vec<Output>, AuditError> {
        let mut outputs = Vec::new();
        while (outputs.len() as u64) < n {
            let left = n - outputs.len() as u64;
            outputs.extend(self.start(table, left)?);
        }
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbers() {
        assert_eq!(parse("1, 2.5\t-3e4"), Some(vec![1.0, 2.5, -3e4]));
        assert_eq!(parse("True false"), Some(vec![1.0, 0.0]));
        assert_eq!(parse("one"), None);
    }
}
