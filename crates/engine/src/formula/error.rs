//! What is wrong with a formula, where, and what would be accepted.

use std::fmt;

/// An error in a formula or expression, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct FormulaError {
    /// The text.
    pub text: String,
    /// First character concerned, counted from 0.
    pub start: usize,
    /// One past the last character concerned.
    pub end: usize,
    /// What is wrong.
    pub message: String,
    /// What would be accepted.
    pub fix: Option<String>,
}

impl FormulaError {
    /// An error at the given characters.
    pub(crate) fn at(text: &str, start: usize, end: usize, message: impl Into<String>) -> Self {
        Self {
            text: text.to_owned(),
            start,
            end: end.max(start),
            message: message.into(),
            fix: None,
        }
    }

    /// Adds what would be accepted.
    #[must_use]
    pub(crate) fn accepting(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Characters shown on either side of the place.
const CONTEXT: usize = 50;

/// The message, the text (cut to the neighbourhood of the place) with a mark under it, the fix.
impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.text.chars().count();
        let start = self.start.min(length);
        let from = start.saturating_sub(CONTEXT);
        let to = length.min(
            self.end
                .max(start)
                .min(start.saturating_add(CONTEXT))
                .saturating_add(CONTEXT),
        );
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = self
            .text
            .chars()
            .skip(from)
            .take(to.saturating_sub(from))
            .map(clean)
            .collect();
        let before = if from > 0 { "… " } else { "" };
        let after = if to < length { " …" } else { "" };
        let indent = before.chars().count() + (start - from);
        let marks = self.end.min(to).saturating_sub(start).max(1);
        write!(
            f,
            "{}\n  {before}{shown}{after}\n  {}{}",
            self.message,
            " ".repeat(indent),
            "^".repeat(marks)
        )?;
        if let Some(fix) = &self.fix {
            write!(f, "\n{fix}")?;
        }
        Ok(())
    }
}
