use reticent_accounting::{Rational, Relation};
use reticent_laws::Silent;
use reticent_mechanisms::primitives::Payment;
use reticent_mechanisms::program::RowProgram;
use reticent_mechanisms::source::RowSource;
use reticent_mechanisms::{Context, Simulated, Unit, simulate};
use reticent_statistics::simple::{AxisCut, AxisSpec, histogram};
use reticent_statistics::{Facts, Prepared, naive_bayes};
use tempfile::TempDir;

use super::rows::numbers;
use super::*;
use crate::bayes::{self, Named};
use crate::books;
use crate::dataset::Dataset;
use crate::kinds::NaiveBayesSpec;
use crate::scan::cells;
use reticent_mechanisms::rows::Column;
use reticent_mechanisms::rows::cell::FIELD_CAP;
use reticent_mechanisms::rows::cell::Meaning;

/// Labels and texts: known words, none, repeated and too many ones, bytes that are no UTF-8, quotes, an enormous cell whose
/// only known word lies behind what is read, blanks at the ends (a sample of words depends on them).
fn hostile() -> Vec<u8> {
    let mut out = b"\xef\xbb\xbfunused,text,y,hour\n".to_vec();
    let enormous = [&vec![b'x'; FIELD_CAP + 7][..], b" free"].concat();
    let texts: Vec<&[u8]> = vec![
        b"free lunch",
        b"",
        b"nothing that is known",
        b"\"FREE, free; Free\"",
        b"\"win \"\"free\"\" lunch money now\"",
        b"\xff\xfefree\xc3\x28",
        b"\"  free win lunch money now   \"",
        b"\"free win lunch money now\"",
        &enormous,
        b"the the the win",
        b"\"two\nlines win\"",
    ];
    for (i, text) in texts.iter().cycle().take(44).enumerate() {
        let label: &[u8] = if (i / 11 + i) % 2 == 0 { b"no" } else { b"yes" };
        out.extend_from_slice(&[b"?,", *text, b",", label].concat());
        out.extend_from_slice(format!(",{}\n", i % 24).as_bytes());
    }
    out
}

fn dataset(dir: &TempDir, keys: &str) -> Dataset {
    let text = format!(
        "version = 1\nid = \"t\"\ndata_version = \"1\"\nsource = {{ path = \"t.csv\" }}\nneighbours = \"add_remove\"\n\
         [budget]\nepsilon = 1\n[ledger]\npath = \"t.ledger\"\n[columns.y]\ntype = \"text\"\nlevels = [\"no\", \"yes\"]\n\
         [columns.text]\ntype = \"tokens\"\n{keys}\n[columns.hour]\ntype = \"integer\"\nlower = 0\nupper = 20\nmissing = \"drop\"\n"
    );
    Dataset::parse(&text, &dir.path().join("dataset.toml")).unwrap()
}

fn silently(source: &dyn RowSource, prepared: Prepared) -> Value {
    let program = RowProgram {
        terms: prepared.terms,
        ..RowProgram::default()
    };
    let context = Context::records(Relation::AddRemove);
    let mechanism = prepared.mechanism.as_ref();
    let Simulated((answer, _)) = simulate(
        source,
        Unit::Row,
        &context,
        &program,
        mechanism,
        &mut Silent,
    )
    .unwrap();
    answer.value
}

/// A release of naive Bayes on the text, and what it was made from.
fn released(dir: &TempDir, keys: &str) -> (Dataset, Value, String) {
    std::fs::write(dir.path().join("t.csv"), hostile()).unwrap();
    let dataset = dataset(dir, keys);
    let source = books::files(&dataset).unwrap();
    let spec = NaiveBayesSpec {
        formula: "y ~ text + hour".to_owned(),
        positive: None,
        levels: Vec::new(),
        smoothing: Some(1.0),
        keep: None,
        features: None,
    };
    let spec = bayes::spec(Named::of(&dataset), &spec, None).unwrap();
    let context = Context::records(Relation::AddRemove);
    let facts = Facts {
        schema: &dataset.schema,
        filter: None,
        context: &context,
        rows: None,
        positive_rate: None,
    };
    let config = naive_bayes::Config {
        smoothing: Some(1.0),
        ..naive_bayes::Config::new(Payment::Pure {
            epsilon: Rational::from(1u8),
        })
    };
    let value = silently(
        &source,
        naive_bayes::prepare(&facts, &spec, config).unwrap(),
    );
    let file = dir.path().join("release.json");
    let document = json!({"releases": [{"id": "m", "value": value}]});
    std::fs::write(&file, document.to_string()).unwrap();
    (dataset, value, format!("{}#m", file.display()))
}

const RULES: [&str; 3] = [
    "most = 2\nwords = [\"free\", \"win\", \"lunch\", \"money\", \"now\"]",
    "most = 3\nwords = [\"free\", \"win\", \"lunch\", \"now\", \"lines\"]\nstop = [\"money\"]\nchoice = \"sampled\"\nsalt = \"s\"",
    "most = 2\nhashed = 16\nstop = \"english\"\nsalt = \"2\"",
];

/// The scores of `predict` are those that the door computes for a ROC curve, to the last bit: between every score and the next
/// larger number there is one cell, which counts all the records that have it.
#[test]
fn scores_of_texts_are_those_of_the_engine() {
    for keys in RULES {
        let dir = TempDir::new().unwrap();
        let (dataset, value, model) = released(&dir, keys);
        let data = dir.path().join("t.csv");
        let fit = Model::read(&value).unwrap();
        let columns: Schema = serde_json::from_value(value["columns"].clone()).unwrap();
        let predictor = fit.linear_predictor(&fit.design(&columns).unwrap());
        let texts = tokens::released(&value).unwrap();
        let mut scores = Vec::new();
        Rows::open(&data, (&columns, texts), &predictor, &MissingValues::new())
            .unwrap()
            .each(&columns, |cells| {
                scores.push(evaluate(&predictor, cells.unwrap()));
            })
            .unwrap();
        assert_eq!(scores.len(), 44);
        let lines = predict(&model, &data, None).unwrap();
        for (line, x) in lines.lines().skip(1).zip(&scores) {
            let p: f64 = line.split(',').next().unwrap().parse().unwrap();
            assert!((p - 1.0 / (1.0 + (-x).exp())).abs() < 1e-15);
        }
        let mut sorted = scores.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        assert!(sorted.len() > 4, "{sorted:?}");
        let ends = sorted.iter().flat_map(|x| [*x, x.next_up()]);
        let edges: Vec<f64> = std::iter::once(-1e9).chain(ends).chain([1e9]).collect();
        let context = Context::records(Relation::AddRemove);
        let facts = Facts {
            schema: &dataset.schema,
            filter: None,
            context: &context,
            rows: None,
            positive_rate: None,
        };
        let axis = AxisSpec {
            name: "score".to_owned(),
            expr: fit.linear_predictor(&fit.design(&dataset.schema).unwrap()),
            cut: AxisCut::Edges(edges),
        };
        let table = histogram(&facts, axis, &Rational::from(1u8)).unwrap();
        let source = books::files(&dataset).unwrap();
        let counts = silently(&source, table)["counts"].clone();
        for (i, x) in sorted.iter().enumerate() {
            let here = scores.iter().filter(|s| s.total_cmp(x).is_eq()).count();
            assert_eq!(counts[2 * i + 1], here, "{x} of {counts}");
            assert_eq!(counts[2 * i], 0, "{counts}");
        }
    }
}

/// A row alone is predicted as among the others, and what no text can hold against it never fails.
#[test]
fn texts_are_predicted_one_by_one() {
    for keys in RULES {
        let dir = TempDir::new().unwrap();
        let (.., model) = released(&dir, keys);
        let predict = |bytes: &[u8]| {
            let file = dir.path().join("new.csv");
            std::fs::write(&file, bytes).unwrap();
            let out = super::predict(&model, &file, None).unwrap();
            out.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let odd: [&[u8]; 6] = [
            b"3,free win",
            b"3,",
            b"3",
            b"3,\xff\xff\xfe win",
            b"3,\"unknown\nwords\"",
            b"99,\"lunch, lunch\"",
        ];
        let header = b"hour,text\n";
        let all = predict(&[&header[..], &odd.join(&b'\n')].concat());
        assert_eq!(all.len(), 7);
        assert!(
            all[1..].iter().all(|l| l.contains(',') && l != ","),
            "{all:?}"
        );
        for (i, row) in odd.iter().enumerate() {
            assert_eq!(predict(&[&header[..], row].concat())[1], all[i + 1]);
        }
        // a number that is missing leaves the row without a prediction
        assert_eq!(predict(b"hour,text\n,free\n")[1], ",");
    }
}

/// Booleans in any spelling, missing numbers in any notation, numbers that are not whole: as the fit reads them.
#[test]
fn cells_are_read_as_the_fit_reads_them() {
    let column = |kind, missing| Column {
        name: "c".to_owned(),
        kind,
        missing,
    };
    let read = |column: &Column, stated: &[&str], cells: &[&str]| {
        let stated: Vec<String> = stated.iter().map(|s| (*s).to_owned()).collect();
        let meaning = Meaning::new(&column.kind, &stated);
        let cells = cells.iter().map(|c| Some(c.as_bytes()));
        numbers(column, cells::texts(&meaning, cells))
    };
    let levels = ["false", "true"].map(str::to_owned).to_vec();
    let flag = column(
        Kind::Levels {
            levels,
            other: None,
        },
        Missing::Drop,
    );
    let cells = ["True", " FALSE", "1", "0", "true", "yes", ""];
    let want = [
        Some(1.0),
        Some(0.0),
        Some(1.0),
        Some(0.0),
        Some(1.0),
        None,
        None,
    ];
    assert_eq!(read(&flag, &[""], &cells), want);
    let whole = column(Kind::Integer { lower: 0, upper: 9 }, Missing::Impute(4.0));
    let cells = ["-9", "-9.0", "-8", "3.5", "7", "1e3", "NA"];
    let want = [4.0, 4.0, 0.0, 4.0, 7.0, 9.0, 4.0].map(Some);
    assert_eq!(read(&whole, &["", "-9"], &cells), want);
    let real = column(
        Kind::Real {
            lower: 0.0,
            upper: 2.0,
        },
        Missing::Drop,
    );
    let cells = ["999", "999.0", "9.99e2", "1.5", "inf", "x"];
    let want = [None, None, None, Some(1.5), Some(2.0), None];
    assert_eq!(read(&real, &["", "999"], &cells), want);
}

/// In a file of one column nothing tells an empty cell from no row, so blank lines are refused; behind the last row
/// they are none. Line ends of every kind, and cells of several lines.
#[test]
fn blank_lines_shift_no_rows() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("new.csv");
    let empty = Schema {
        columns: Vec::new(),
    };
    let rows = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let none = (&empty, Vec::new());
        let rows = Rows::open(&file, none, &Expr::Constant(0.0), &MissingValues::new());
        let mut seen = 0;
        let each = rows.unwrap().each(&empty, |_| seen += 1);
        each.map(|()| seen).map_err(|e| e.to_string())
    };
    for end in ["\n", "\r\n"] {
        let whole = |text: &str| rows(&text.replace('\n', end));
        for text in [
            "x\n1\n2\n3\n",
            "x\n1\n2\n3",
            "x\n1\n2\n3\n\n\n",
            "x\n1\n\"\"\n\"a\n\nb\"\n",
        ] {
            assert_eq!(whole(text), Ok(3), "{text:?} {end:?}");
        }
        for text in ["x\n1\n\n3\n", "x\n1\n\n3", "x\n\"1\"\n\n\n3\n"] {
            let message = whole(text).unwrap_err();
            assert!(message.contains("blank line"), "{message}");
        }
        assert!(whole("x\n\n1\n").unwrap_err().contains("line 2"));
        // with more columns a blank line can be no row
        assert_eq!(whole("x,y\n1,2\n\n3,4\n"), Ok(2));
    }
}

#[test]
fn what_is_missing_is_named() {
    let dir = TempDir::new().unwrap();
    let (_, mut value, model) = released(&dir, RULES[0]);
    let file = dir.path().join("new.csv");
    let refused = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        predict(&model, &file, None).unwrap_err().to_string()
    };
    let message = refused(b"hour,texts\n3,free\n");
    for part in [
        "new.csv",
        "line 1",
        "there is no column text",
        "Did you mean `texts`?",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let message = refused(b"hour,text,text\n3,free,free\n");
    assert!(message.contains("text is there twice"), "{message}");
    // a model that does not say how texts are split
    for key in ["stop", "choice", "slots", "words"] {
        let whole = value.clone();
        value["texts"][0].as_object_mut().unwrap().remove(key);
        let old = dir.path().join("old.json");
        let document = json!({"releases": [{"id": "m", "value": value}]});
        std::fs::write(&old, document.to_string()).unwrap();
        let message = predict(&format!("{}#m", old.display()), &file, None)
            .unwrap_err()
            .to_string();
        assert!(message.contains("old.json"), "{message}");
        assert!(message.contains("how the text text is split"), "{message}");
        value = whole;
    }
}
