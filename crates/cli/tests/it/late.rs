//! What is known only after payment (the released number of rows, models of the same plan) never makes a run fail; what a model states is enough to
//! use it.

use std::fmt::Write as _;

use serde_json::Value;

use crate::table::Folder;

/// A data set of which no number of rows is declared.
fn folder(width: &str, rows: u32) -> Folder {
    let folder = Folder::new();
    folder.write(
        "dataset.toml",
        format!(
            "version = 1\nid = \"late\"\ndata_version = \"1\"\nsource = {{ path = \"late.csv\", format = \"csv\" }}\n\
             neighbours = \"add_remove\"\nunit = \"row\"\n[budget]\nepsilon = \"100\"\n[ledger]\npath = \"late.ledger\"\nauto_register = true\n\
             [columns.x]\ntype = \"real\"\nlower = 0\nupper = 1\n[columns.w]\ntype = \"real\"\nlower = 0\nupper = {width}\n\
             [columns.y]\ntype = \"integer\"\nlower = 0\nupper = 1\n"
        ),
    );
    let mut text = String::from("x,w,y\n");
    for i in 0..rows {
        let share = f64::from(i) / f64::from(rows.max(1));
        let w = share * width.parse::<f64>().unwrap();
        writeln!(text, "{},{w:e},{}", 1.0 - share, u8::from(share > 0.5)).unwrap();
    }
    folder.write("late.csv", text);
    folder
}

fn released(folder: &Folder, releases: &str) -> Vec<Value> {
    folder.write(
        "plan.toml",
        format!("version = 1\ndataset = \"dataset.toml\"\n{releases}"),
    );
    folder.reticent(&["price", "plan.toml"]).code(0);
    // Twice: the second run is answered from the ledger.
    let all = [0, 1].map(|_| {
        let out = folder.reticent(&["run", "plan.toml", "--json"]).code(0).out;
        let document: Value = serde_json::from_str(&out).unwrap();
        document["releases"].as_array().unwrap().clone()
    });
    assert_eq!(all[0], all[1]);
    let page = std::fs::read_to_string(folder.path("out/plan/report.html")).unwrap();
    assert!(page.contains("</html>"));
    all[0].clone()
}

#[test]
fn a_small_released_number_of_rows_does_not_refuse() {
    let verify = "[[release]]\nid = \"v\"\nkind = \"verify\"\nformula = \"y ~ x + w\"\nterm = \"x\"\nepsilon = 1\n";
    let logistic =
        "[[release]]\nid = \"m\"\nkind = \"logistic\"\nformula = \"y ~ x\"\nepsilon = \"1e-8\"\n";
    for rows in [1, 5, 200] {
        let found = released(&folder("1", rows), verify);
        assert_eq!(found[0]["id"], "_n");
        // at its level the test may say yes by chance: what counts is that there is an answer
        assert!(found[1]["value"]["answer"].is_string(), "{}", found[1]);
        let output = format!("{logistic}mechanism = \"output\"\n");
        let found = released(&folder("1", rows), &output);
        assert!(found[1]["value"]["terms"].is_array(), "{}", found[1]);
    }
}

/// A slope per unit of w is beyond the largest number: the model is released with what is finite, and what would read it is not made.
#[test]
fn what_cannot_be_read_is_not_made() {
    let found = released(
        &folder("1e-307", 300),
        "[[release]]\nid = \"m\"\nkind = \"logistic\"\nformula = \"y ~ w\"\nepsilon = \"50\"\n\
         [[release]]\nid = \"n\"\nkind = \"count\"\nepsilon = 1\n\
         [[release]]\nid = \"r\"\nkind = \"roc\"\nmodel = \"m\"\nepsilon = \"1\"\n\
         [[release]]\nid = \"t\"\nkind = \"threshold\"\nfrom = \"r\"\n",
    );
    let of = |id: &str| found.iter().find(|r| r["id"] == id).unwrap();
    assert!(of("n")["value"]["count"].is_number());
    let why = of("r")["value"]["not_made"].as_str().unwrap();
    assert!(why.contains("no finite estimate"), "{why}");
    assert_eq!(of("r")["flags"], serde_json::json!(["not_made"]));
    assert_eq!(of("t")["value"]["not_made"], "release r was not made");
}

/// A threshold is read off one curve.
#[test]
fn a_plot_of_several_curves_has_no_threshold() {
    let folder = folder("1", 50);
    let model = |id: &str, x: &str| {
        format!(
            "[[release]]\nid = \"{id}\"\nkind = \"logistic\"\nformula = \"y ~ {x}\"\nepsilon = 1\n"
        )
    };
    folder.write(
        "plan.toml",
        format!(
            "version = 1\ndataset = \"dataset.toml\"\n{}{}[[release]]\nid = \"r\"\nkind = \"roc\"\nmodels = [\"a\", \"b\"]\nepsilon = 1\n\
             [[release]]\nid = \"t\"\nkind = \"threshold\"\nfrom = \"r\"\n",
            model("a", "x"),
            model("b", "w")
        ),
    );
    for command in ["price", "run"] {
        folder
            .reticent(&[command, "plan.toml"])
            .code(2)
            .says(&["several curves", "line"]);
    }
}

/// Several first runs of public data: one creates the ledger, the others use it.
#[test]
fn first_runs_at_once_share_a_ledger() {
    let folder = folder("1", 2000);
    folder.write(
        "plan.toml",
        "version = 1\ndataset = \"dataset.toml\"\n[[release]]\nid = \"n\"\nkind = \"count\"\nepsilon = 1\n",
    );
    std::thread::scope(|scope| {
        for run in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                let outcome = folder.reticent(&["run", "plan.toml", "--out", &format!("o{run}")]);
                // 3: the same request is being served by another run.
                assert!(matches!(outcome.code, 0 | 3), "{}", outcome.err);
            });
        }
    });
    folder.reticent(&["run", "plan.toml"]).code(0);
}

/// `predict` reads a cell as the fit did: texts that mean a missing value are stated in the model.
#[test]
fn declared_missing_values_are_missing_to_predictions() {
    let folder = folder("1", 400);
    let declared = std::fs::read_to_string(folder.path("dataset.toml")).unwrap();
    folder.write(
        "dataset.toml",
        declared.replace(
            "[columns.x]\ntype = \"real\"\nlower = 0\nupper = 1\n",
            "[columns.x]\ntype = \"real\"\nlower = 0\nupper = 1\nmissing_values = [\"\", \"0.25\"]\nmissing = \"impute\"\nimpute = 0.75\n",
        ),
    );
    let found = released(
        &folder,
        "[[release]]\nid = \"m\"\nkind = \"linear\"\nformula = \"w ~ x\"\nepsilon = \"50\"\n",
    );
    let model = found.iter().find(|r| r["id"] == "m").unwrap();
    assert_eq!(
        model["value"]["missing_values"]["x"],
        serde_json::json!(["", "0.25"])
    );
    folder.write("new.csv", "x,other\n0.25,\n0.75,\n,\n0.26,\n");
    let said = folder
        .reticent(&["predict", "out/plan/release.json#m", "new.csv"])
        .code(0)
        .out;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    assert!(
        lines[1] == lines[2] && lines[2] == lines[3] && lines[4] != lines[1],
        "{said}"
    );
}
