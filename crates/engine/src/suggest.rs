//! The nearest known word, for messages about unknown ones.

/// The candidate that is most like `word`, if any is like it enough to be a plausible slip.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word longer than any name is not a misspelt name, and comparing it would be slow.
    if word.len() > 200 {
        return None;
    }
    let folded = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|c| c.len() <= 200)
        .map(|c| {
            (
                strsim::normalized_damerau_levenshtein(&folded, &c.to_lowercase()),
                c,
            )
        })
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// "Did you mean `x`?" when something is near, else the list of what is known.
pub fn advice(word: &str, known: &[&str]) -> String {
    let list = || {
        let shown: Vec<String> = known.iter().take(40).map(|k| format!("`{k}`")).collect();
        let more = if known.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        format!("{}{more}", shown.join(", "))
    };
    match (nearest(word, known.iter().copied()), known.is_empty()) {
        (Some(near), _) => format!("Did you mean `{near}`?"),
        (None, true) => "Nothing is known here.".to_owned(),
        (None, false) => format!("Known: {}.", list()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_nonsense_is_not() {
        let known = ["epsilon", "delta", "formula"];
        assert_eq!(nearest("epsilom", known), Some("epsilon"));
        assert_eq!(nearest("Formulae", known), Some("formula"));
        assert_eq!(nearest("zzzz", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(advice("epsilno", &known), "Did you mean `epsilon`?");
        assert_eq!(
            advice("zzzz", &known),
            "Known: `epsilon`, `delta`, `formula`."
        );
    }
}
