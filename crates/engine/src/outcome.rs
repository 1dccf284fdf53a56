//! The public "no": what a request or a policy refuses, in words a person can act on.
//!
//! A [`Refusal`] is computed from public inputs only (the plan, the schema, the budget), so it may be
//! shown to anyone. It names the place (file, line, key, value), what is wrong, and what would be
//! accepted. Nothing is spent when one is returned.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Which kind of "no" it is; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The request as written cannot be carried out: syntax, unknown names, impossible values.
    Request,
    /// A valid request that the rules of the data set do not allow: budget, cap, unregistered.
    Policy,
}

impl Rule {
    /// The process exit code of this kind of refusal.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Request => 2,
            Self::Policy => 3,
        }
    }
}

/// A public "no" with its place, its reason and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Refusal {
    /// Kind of refusal.
    pub rule: Rule,
    /// What is wrong.
    pub message: String,
    /// The file in which it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The key, with the names of the tables that contain it, such as `columns.age.lower`; or the flag of a command, such as `--level`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Box<str>>,
    /// The value as written, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<str>>,
    /// What would be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Refusal {
    /// A refusal of the request as written (exit code 2).
    pub fn request(message: impl Into<String>) -> Self {
        Self::new(Rule::Request, message)
    }

    /// A refusal by the rules of the data set (exit code 3).
    pub fn policy(message: impl Into<String>) -> Self {
        Self::new(Rule::Policy, message)
    }

    fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            message: message.into(),
            file: None,
            line: None,
            key: None,
            value: None,
            fix: None,
        }
    }

    /// Adds the file.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Adds the line.
    #[must_use]
    pub fn at_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }

    /// Adds the key.
    #[must_use]
    pub fn for_key(mut self, key: impl AsRef<str>) -> Self {
        self.key = Some(key.as_ref().into());
        self
    }

    /// Adds the value, shortened to a readable length.
    #[must_use]
    pub fn with_value(mut self, value: impl AsRef<str>) -> Self {
        self.value = Some(shorten(value.as_ref(), 80).into());
        self
    }

    /// Adds what would be accepted.
    #[must_use]
    pub fn accepting(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// One readable paragraph: `plan.toml, line 8: release.epsilon = 0: … Write …`.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}, line {line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        match (&self.key, &self.value) {
            (Some(flag), Some(value)) if flag.starts_with("--") => write!(f, "{flag} {value}: ")?,
            (Some(key), Some(value)) => write!(f, "{key} = {value}: ")?,
            (Some(key), None) => write!(f, "{key}: ")?,
            (None, Some(value)) => write!(f, "{value}: ")?,
            (None, None) => {}
        }
        f.write_str(self.message.trim_end())?;
        if let Some(fix) = &self.fix {
            // A message that ends in a marked line of text needs a fresh line, not a full stop.
            if self.message.contains('\n') {
                write!(f, "\n{fix}")?;
            } else {
                if !self.message.ends_with(['.', '!', '?']) {
                    f.write_str(".")?;
                }
                write!(f, " {fix}")?;
            }
        }
        Ok(())
    }
}

/// At most `most` characters of a text, on one line, with an ellipsis when something was cut.
pub fn shorten(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count >= most {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_readable_paragraph() {
        let refusal = Refusal::request("must be greater than 0")
            .in_file(Path::new("plan.toml"))
            .at_line(8)
            .for_key("release.epsilon")
            .with_value("0")
            .accepting("Write for example epsilon = \"0.5\".");
        assert_eq!(
            refusal.to_string(),
            "plan.toml, line 8: release.epsilon = 0: must be greater than 0. Write for example epsilon = \"0.5\"."
        );
        assert_eq!(refusal.rule.exit_code(), 2);
        assert_eq!(Refusal::policy("no").rule.exit_code(), 3);
    }

    #[test]
    fn json_round_trips_and_omits_what_is_absent() {
        let refusal = Refusal::policy("over the cap").for_key("budget");
        let json = serde_json::to_value(&refusal).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"rule": "policy", "message": "over the cap", "key": "budget"})
        );
        assert_eq!(serde_json::from_value::<Refusal>(json).unwrap(), refusal);
    }

    #[test]
    fn long_and_odd_values_are_shortened_to_one_line() {
        let value = "a\nb".repeat(1000);
        let shown = Refusal::request("x").with_value(value).value.unwrap();
        assert_eq!(shown.chars().count(), 81);
        assert!(!shown.contains('\n'));
    }
}
