//! The files of a source in name order, also of a folder of many, which is not looked through once for each of them.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fs::{self, DirEntry, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::file_failed;
use crate::failure::Failure;
use crate::file::Identity;
use crate::outcome::Refusal;

/// The files of a source with their names in it, in name order.
pub(super) fn files(path: &Path) -> Result<VecDeque<(String, PathBuf)>, Failure> {
    if !path.is_dir() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        return Ok(VecDeque::from([(name.into_owned(), path.to_owned())]));
    }
    let mut found = Vec::new();
    each(path, |entry| {
        if entry.path().is_file() {
            found.push((name(entry)?, entry.path()));
        }
        Ok(())
    })?;
    found.sort();
    Ok(found.into())
}

/// Names of what is in a folder and is no folder, also of what cannot be reached now.
pub(super) fn entries(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if path.is_dir() {
        // one that cannot be listed is an error elsewhere
        let _ = each(path, |entry| {
            if !entry.path().is_dir() {
                found.extend(entry.file_name().into_string());
            }
            Ok(())
        });
    }
    found.sort();
    found
}

/// Looks at what is in a folder and not hidden.
fn each(
    folder: &Path,
    mut look: impl FnMut(&DirEntry) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |e| file_failed(folder, "events cannot be read", e);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            look(&entry)?;
        }
    }
    Ok(())
}

fn name(entry: &DirEntry) -> Result<String, Failure> {
    entry.file_name().into_string().map_err(|_| {
        Refusal::policy(
            "the name of this file is not UTF-8, so that it has no place in their order",
        )
        .in_file(&entry.path())
        .accepting("Rename it.")
        .into()
    })
}

/// A folder that is read file by file.
///
/// A listing stands for the folder as it is for as long as the times of the folder do not change, which they do whenever something
/// is added, removed or renamed. Such times are coarse, so that a listing is trusted only if it was begun when they had stood for
/// [`SETTLED`], and for [`FRESH`] at most (some systems keep no such times). What it names is looked at anew each time: links may
/// come to lead to files.
#[derive(Debug)]
pub(super) struct Folder {
    settled: Duration,
    fresh: Duration,
    /// The folder's times, and since when they are known to be these.
    stood: Option<(Stamp, Instant)>,
    listing: Option<Listing>,
}

/// How long the times of a folder must have stood before a listing is trusted: longer than their grain on any system.
const SETTLED: Duration = Duration::from_secs(3);

/// How long a listing is trusted.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Listing {
    begun: Instant,
    /// What may be a file, in name order, behind the file that was read when it was made.
    names: VecDeque<String>,
}

/// What changes when something is added to a folder, removed or renamed, and cannot be set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(facts: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let identity = Identity::of(facts)?;
            Some(Self {
                device: identity.device,
                inode: identity.inode,
                modified: (facts.mtime(), facts.mtime_nsec()),
                changed: (facts.ctime(), facts.ctime_nsec()),
            })
        }
        #[cfg(not(unix))]
        {
            let _ = (facts, Identity::of);
            None
        }
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self {
            settled: SETTLED,
            fresh: FRESH,
            stood: None,
            listing: None,
        }
    }
}

impl Folder {
    /// The first file of a source behind one of this name.
    pub(super) fn after(
        &mut self,
        path: &Path,
        last: &str,
    ) -> Result<Option<(String, PathBuf)>, Failure> {
        let facts = fs::metadata(path).ok().filter(Metadata::is_dir);
        let Some(facts) = facts else {
            return Ok(files(path)?.into_iter().find(|f| f.0.as_str() > last));
        };
        let now = Instant::now();
        let stamp = Stamp::of(&facts);
        let stood = match (stamp, self.stood) {
            (Some(stamp), Some((was, since))) if stamp == was => now.duration_since(since),
            _ => {
                self.stood = stamp.map(|stamp| (stamp, now));
                self.listing = None;
                Duration::ZERO
            }
        };
        if let Some(listing) = &mut self.listing
            && now.duration_since(listing.begun) < self.fresh
            && let Some(next) = listing.after(path, last)
        {
            return Ok(Some(next));
        }
        if stamp.is_some() && stood >= self.settled {
            let mut listing = Listing::new(path, last, now)?;
            let next = listing.after(path, last);
            self.listing = Some(listing);
            return Ok(next);
        }
        self.listing = None;
        first(path, last)
    }
}

impl Listing {
    fn new(path: &Path, last: &str, begun: Instant) -> Result<Self, Failure> {
        let mut names = Vec::new();
        each(path, |entry| {
            let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !folder && (entry.file_name().to_str().is_some() || entry.path().is_file()) {
                names.push(name(entry)?);
            }
            Ok(())
        })?;
        names.retain(|name| name.as_str() > last);
        names.sort();
        Ok(Self {
            begun,
            names: names.into(),
        })
    }

    fn after(&mut self, path: &Path, last: &str) -> Option<(String, PathBuf)> {
        while self.names.front().is_some_and(|name| name.as_str() <= last) {
            self.names.pop_front();
        }
        let mut files = self.names.iter().map(|name| (name, path.join(name)));
        let (name, file) = files.find(|(_, file)| file.is_file())?;
        Some((name.clone(), file))
    }
}

/// The first file of a folder behind one of this name. Its entries say themselves what is a file, so that few are asked for.
fn first(path: &Path, last: &str) -> Result<Option<(String, PathBuf)>, Failure> {
    let mut first: Option<String> = None;
    each(path, |entry| {
        let behind = entry.file_name().to_str().is_none_or(|name| {
            name.cmp(last) == Ordering::Greater && first.as_deref().is_none_or(|first| name < first)
        });
        let file = || match entry.file_type() {
            Ok(kind) if kind.is_file() => true,
            Ok(kind) if kind.is_dir() => false,
            _ => entry.path().is_file(),
        };
        if behind && file() {
            first = Some(name(entry)?);
        }
        Ok(())
    })?;
    let Some(name) = first else {
        return Ok(None);
    };
    let file = path.join(&name);
    if file.is_file() {
        return Ok(Some((name, file)));
    }
    // gone since, or nothing in the folder can be reached
    Ok(files(path)?.into_iter().find(|f| f.0.as_str() > last))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::thread::sleep;

    use super::*;

    /// A folder whose times need not stand long.
    fn trusting() -> Folder {
        Folder {
            settled: Duration::ZERO,
            fresh: Duration::from_mins(10),
            ..Folder::default()
        }
    }

    /// Longer than the grain of times where tests run.
    fn wait() {
        sleep(Duration::from_millis(50));
    }

    fn next(folder: &mut Folder, path: &Path, last: &str) -> String {
        let fresh = files(path)
            .unwrap()
            .into_iter()
            .find(|f| f.0.as_str() > last);
        let found = folder.after(path, last).unwrap();
        assert_eq!(found, fresh);
        found.map_or_else(String::new, |f| f.0)
    }

    /// Trusted or not, a listing says what the folder holds now: files that come in between, are removed or renamed, links that come
    /// to lead to files, and folders and hidden files, which are none.
    #[test]
    fn listings_follow_the_folder() {
        for mut folder in [trusting(), Folder::default()] {
            let (there, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let path = there.path();
            let put = |name: &str| fs::write(path.join(name), "x").unwrap();
            for name in ["b", "d", "f", "h", ".c"] {
                put(name);
            }
            fs::create_dir(path.join("ba")).unwrap();
            symlink(elsewhere.path(), path.join("bb")).unwrap();
            symlink(elsewhere.path().join("later"), path.join("e")).unwrap();
            wait();
            assert_eq!(next(&mut folder, path, ""), "b");
            assert_eq!(next(&mut folder, path, "b"), "d");
            assert_eq!(next(&mut folder, path, "d"), "f");
            assert_eq!(folder.listing.is_some(), folder.settled.is_zero());
            // the folder itself does not change
            fs::write(elsewhere.path().join("later"), "x").unwrap();
            assert_eq!(next(&mut folder, path, "d"), "e");
            put("da");
            assert_eq!(next(&mut folder, path, "d"), "da");
            wait();
            fs::rename(path.join("da"), path.join("db")).unwrap();
            assert_eq!(next(&mut folder, path, "d"), "db");
            assert_eq!(next(&mut folder, path, "db"), "e");
            wait();
            fs::remove_file(path.join("e")).unwrap();
            assert_eq!(next(&mut folder, path, "db"), "f");
            assert_eq!(next(&mut folder, path, "f"), "h");
            assert_eq!(next(&mut folder, path, "h"), "");
            wait();
            put("i");
            assert_eq!(next(&mut folder, path, "h"), "i");
            // times that are set back
            wait();
            let times = fs::metadata(path).unwrap().modified().unwrap();
            put("hh");
            fs::File::open(path).unwrap().set_modified(times).unwrap();
            assert_eq!(next(&mut folder, path, "h"), "hh");
        }
    }

    /// A listing that has become old, or is used up, is made anew.
    #[test]
    fn listings_grow_old() {
        let there = tempfile::tempdir().unwrap();
        let path = there.path();
        for name in ["b", "z"] {
            fs::write(path.join(name), "x").unwrap();
        }
        let mut folder = trusting();
        let mut after = |fresh, names: &[&str]| {
            folder.after(path, "a").unwrap();
            folder.fresh = fresh;
            folder.listing = Some(Listing {
                begun: Instant::now(),
                names: names.iter().map(|n| (*n).to_owned()).collect(),
            });
            folder.after(path, "a").unwrap().unwrap().0
        };
        let long = Duration::from_mins(10);
        assert_eq!(after(long, &["gone", "z"]), "z");
        assert_eq!(after(Duration::ZERO, &["gone", "z"]), "b");
        assert_eq!(after(long, &["gone"]), "b");
    }

    /// A name that is no text has no place, trusted or not.
    #[test]
    fn names_are_text() {
        use std::os::unix::ffi::OsStrExt;
        for mut folder in [trusting(), Folder::default()] {
            let there = tempfile::tempdir().unwrap();
            fs::write(there.path().join("a"), "x").unwrap();
            let odd = there.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
            if fs::write(odd, "x").is_ok() {
                assert!(folder.after(there.path(), "").is_err());
            }
        }
    }
}
