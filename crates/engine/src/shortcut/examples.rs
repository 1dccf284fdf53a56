//! One command of every kind that runs on the examples.

use super::words::{flag, shell};

const ADULT: &str = "examples/adult/dataset.toml";
const PUMS: &str = "examples/pums/dataset.toml";
const LOGISTIC: &str = "out/logistic/release.json#logistic";
const LINEAR: &str = "out/linear/release.json#linear";

/// A kind, a data set and flags with their values; those that use a release come after the one that makes it.
#[rustfmt::skip]
const EXAMPLES: [(&str, &str, &[&str]); 21] = [
    ("count", PUMS, &["--epsilon", "0.1", "--where", "age >= 65"]),
    ("sum", PUMS, &["--column", "income", "--epsilon", "0.1"]),
    ("mean", PUMS, &["--of", "log1p(income)", "--epsilon", "0.1"]),
    ("crosstab", ADULT, &["--columns", "sex", "--columns", "age", "--bins", "{ age = [17, 30, 65, 90] }", "--epsilon", "0.2"]),
    ("histogram", ADULT, &["--column", "age", "--bins", "20", "--epsilon", "0.2"]),
    ("quantiles", PUMS, &["--column", "income", "--levels", "0.25", "--levels", "0.5", "--epsilon", "0.5"]),
    ("bounds", PUMS, &["--column", "income", "--coverage", "0.95", "--epsilon", "0.5"]),
    ("top_k", ADULT, &["--column", "occupation", "--k", "3", "--epsilon", "0.2"]),
    ("running_total", PUMS, &["--column", "age", "--epsilon", "0.2"]),
    ("logistic", ADULT, &["--formula", "income ~ age + education_num", "--positive", ">50K", "--epsilon", "1"]),
    ("linear", PUMS, &["--formula", "income ~ age + educ", "--epsilon", "1", "--delta", "1e-7"]),
    ("covariance", PUMS, &["--columns", "age", "--columns", "educ", "--columns", "income", "--epsilon", "0.5", "--delta", "1e-7"]),
    ("regress", PUMS, &["--from", "out/covariance/release.json#covariance", "--formula", "income ~ educ"]),
    ("naive_bayes", ADULT, &["--formula", "income ~ age + education + (hours_per_week > 40)", "--epsilon", "0.5"]),
    ("select", ADULT, &["--features", "(age > 40)", "--features", "(hours_per_week > 40)", "--label", "income", "--keep", "{ top = 1 }", "--epsilon", "0.2"]),
    ("auc", ADULT, &["--model", LOGISTIC, "--epsilon", "0.5"]),
    ("roc", ADULT, &["--model", LOGISTIC, "--epsilon", "0.5", "--decide-at", "0.3", "--decide-at", "0.5"]),
    ("threshold", ADULT, &["--from", "out/roc/release.json#roc"]),
    ("residuals", PUMS, &["--model", LINEAR, "--epsilon", "0.5"]),
    ("binned_residuals", ADULT, &["--model", LOGISTIC, "--epsilon", "0.5"]),
    ("verify", PUMS, &["--formula", "income ~ age + educ", "--term", "educ", "--epsilon", "1"]),
];

/// The arguments of the example of every kind.
pub fn examples() -> Vec<(&'static str, Vec<String>)> {
    let each = EXAMPLES.iter().map(|(kind, dataset, flags)| {
        let mut all = vec![flag(kind), (*dataset).to_owned()];
        all.extend(flags.iter().map(|&f| f.to_owned()));
        (*kind, all)
    });
    each.collect()
}

/// Longest line of an example: a help is printed 100 characters wide, and a command that is wrapped there cannot be copied.
const LINE: usize = 90;

/// The example of a kind as it is typed, on lines that a shell takes as one.
pub fn example(kind: &str) -> Option<String> {
    let (_, arguments) = examples().into_iter().find(|e| e.0 == kind)?;
    let (command, flags) = arguments.split_at_checked(2)?;
    let mut out = format!("reticent {}", command.join(" "));
    let mut length = out.len();
    for flag in flags.chunks(2) {
        let words: Vec<String> = flag.iter().map(|word| shell(word)).collect();
        let words = words.join(" ");
        if length + words.len() > LINE {
            out.push_str(" \\\n     ");
            length = 5;
        }
        out.push(' ');
        out.push_str(&words);
        length += words.len() + 1;
    }
    Some(out)
}
