//! Where a stream reads and writes: found out before anything is paid.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use super::config::{Config, Input};
use super::file_failed;
use super::store::private;
use crate::failure::Failure;
use crate::file::same;
use crate::outcome::Refusal;

/// Makes the folders of what will be written, and finds out that it can be, before anything is paid.
pub(super) fn places(config: &Config) -> Result<(), Failure> {
    let out = &config.output;
    let releases = out.releases.iter().map(|p| ("releases", p));
    let files: Vec<(&str, &std::path::PathBuf)> = releases
        .chain([
            ("state", &out.state),
            ("ledger", &out.ledger),
            ("dead_letters", &out.dead_letters),
        ])
        .collect();
    for (_, path) in &files {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(|e| file_failed(path, "cannot be written", e))?;
        }
    }
    let (source, folder) = source(config)?;
    let real: Vec<PathBuf> = files.iter().map(|(_, path)| real_path(path)).collect();
    let beside = |path: &Path, endings: &[&str]| -> Vec<PathBuf> {
        let named = |ending: &&str| {
            let mut name = real_path(path).into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        endings.iter().map(named).collect()
    };
    let log = ["-wal", "-shm", "-journal", ".head", ".head.new", ".owners"];
    let taken = [beside(&out.state, &log), beside(&out.ledger, &log)].concat();
    for ((i, (name, path)), here) in files.iter().enumerate().zip(&real) {
        let refuse = |what: String| Refusal::request(what).for_key(name);
        let others = real.iter().skip(i + 1);
        if let Some(at) = others.clone().position(|p| p == here || same(p, here)) {
            return Err(refuse(format!(
                "`{name}` and `{}` name the same file, {}; give each a file of its own",
                files.get(i + 1 + at).map_or("", |f| f.0),
                path.display()
            ))
            .into());
        }
        if same(path, &config.file) {
            return Err(refuse(format!(
                "`{name}`, {}, is the declaration of the stream",
                path.display()
            ))
            .accepting("Give it a file of its own.")
            .into());
        }
        if taken.contains(here) {
            let what = "is a file that the state or the ledger keeps beside itself";
            return Err(refuse(format!("`{name}`, {}, {what}", path.display()))
                .accepting("Give it another name.")
                .into());
        }
        let read = match &source {
            Some(source) if folder => here.parent() == Some(source) || leads_to(source, here),
            Some(source) => source == here || same(source, here),
            None => false,
        };
        if read {
            return Err(refuse(format!(
                "`{name}`, {}, would be read as events: it is {}",
                path.display(),
                if folder {
                    "in the folder that is read, or linked to from there"
                } else {
                    "the source"
                }
            ))
            .accepting("Write it outside of what is read.")
            .into());
        }
        if fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
            return Err(refuse(format!("`{name}`, {}, is no file", path.display()))
                .accepting("Name a file; without `releases` lines go to standard output.")
                .into());
        }
        if *name == "dead_letters" {
            private(path)?;
        }
        if *name == "releases" {
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            let opened = options.open(path);
            opened.map_err(|e| file_failed(path, "cannot be written", e))?;
        }
    }
    Ok(())
}

/// The source without links, if it is no standard input, and whether it is a folder.
fn source(config: &Config) -> Result<(Option<PathBuf>, bool), Failure> {
    match &config.source.input {
        Input::Standard => Ok((None, false)),
        Input::Path(path) => {
            let failed = |e| file_failed(path, "events cannot be read", e);
            let facts = fs::metadata(path).map_err(failed)?;
            let folder = facts.is_dir();
            if !folder && !facts.is_file() {
                return Err(Refusal::request(format!(
                    "{} is neither a file nor a folder",
                    path.display()
                ))
                .for_key("source.path")
                .accepting("Write path = \"-\" and lead it to standard input.")
                .into());
            }
            Ok((Some(fs::canonicalize(path).map_err(failed)?), folder))
        }
    }
}

/// Whether something in a folder is a file, or leads to it, also if it is not there yet.
fn leads_to(folder: &Path, file: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.any(|path| same(&path, file) || (path.is_symlink() && real_path(&path) == file))
}

/// The path without links, of a file that may not be there yet in a folder that is.
fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // also links to what is not there yet
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")));
    let inside = folder.ok().zip(path.file_name()).map(|(f, n)| f.join(n));
    fs::canonicalize(&path).ok().or(inside).unwrap_or(path)
}

/// Links that are followed to the end of a path.
const MOST_LINKS: usize = 40;
