//! The user of the service, and what that user may do with a file: asked of the kernel for the
//! caller, else judged by owner, group and mode. Access lists beyond these are not read.

use std::fs::{Metadata, metadata, read_to_string};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::fs::{Access, access};
use rustix::process::{getegid, geteuid, getgroups};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) id: u32,
    groups: Vec<u32>,
    /// Whether it is this process's.
    is_me: bool,
}

/// An action on a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Read,
    /// To read and to write; in a folder, to make files.
    Write,
    /// To go through a folder.
    Pass,
}

impl Deed {
    /// Its bits in a mode.
    fn bits(self, is_folder: bool) -> u32 {
        match self {
            Deed::Read => 0o4 | u32::from(is_folder),
            Deed::Write => 0o6 | u32::from(is_folder),
            Deed::Pass => 0o1,
        }
    }
}

impl User {
    /// The named user, else the owner of `place` if root calls, else the calling user.
    ///
    /// # Errors
    /// A name that no user has.
    pub(super) fn of_service(named: Option<&str>, place: &Path) -> anyhow::Result<Self> {
        let me = geteuid();
        if let Some(named) = named {
            return Self::named(named);
        }
        let owner = metadata(place).ok().map(|found| found.uid()).filter(|owner| *owner != 0);
        match owner.filter(|_| me.is_root()) {
            Some(owner) => Ok(Self::of_id(owner)),
            None => Ok(Self::me()),
        }
    }

    fn me() -> Self {
        let mut groups = vec![getegid().as_raw()];
        groups.extend(getgroups().unwrap_or_default().iter().map(|group| group.as_raw()));
        User { id: geteuid().as_raw(), groups, is_me: true }
    }

    fn named(name: &str) -> anyhow::Result<Self> {
        if let Ok(id) = name.parse() {
            return Ok(Self::of_id(id));
        }
        let found = entries("/etc/passwd").find(|entry| entry[0] == name);
        let id = found.and_then(|entry| entry.get(2)?.parse().ok());
        Ok(Self::of_id(id.with_context(|| format!("--user: no user is called {name}"))?))
    }

    fn of_id(id: u32) -> Self {
        if id == geteuid().as_raw() {
            return Self::me();
        }
        let field = |entry: &Vec<String>, place: usize| entry.get(place)?.parse::<u32>().ok();
        let own = entries("/etc/passwd").find(|entry| field(entry, 2) == Some(id));
        let mut groups: Vec<u32> = own.iter().filter_map(|entry| field(entry, 3)).collect();
        if let Some(name) = own.as_ref().map(|entry| &entry[0]) {
            let is_in = |entry: &Vec<String>| {
                entry.get(3).is_some_and(|members| members.split(',').any(|it| it == name))
            };
            groups.extend(entries("/etc/group").filter(is_in).filter_map(|entry| field(&entry, 2)));
        }
        User { id, groups, is_me: false }
    }

    /// Whether a file is readable by root alone, and root checks for this user: the service manager
    /// may read it, and hand it over.
    pub(super) fn may_be_handed(&self, path: &Path) -> bool {
        let is_roots = |found: Metadata| found.uid() == 0 && found.mode() & 0o177 == 0;
        geteuid().is_root() && !self.is_me && metadata(path).is_ok_and(is_roots)
    }

    /// How people and `chown` know it.
    pub(super) fn name(&self) -> String {
        let id = self.id.to_string();
        let found = entries("/etc/passwd").find(|entry| entry.get(2) == Some(&id));
        found.map_or(id, |mut entry| entry.swap_remove(0))
    }

    /// Whether the user may do something with the file or folder at a path.
    ///
    /// # Errors
    /// Why not: in words, with the file or folder that forbids it.
    pub(super) fn may(&self, deed: Deed, path: &Path) -> Result<(), String> {
        // The folders first: the content of an inaccessible one cannot be seen.
        let above: Vec<&Path> =
            path.ancestors().skip(1).filter(|it| *it != Path::new("")).collect();
        for folder in above.into_iter().rev() {
            self.may_here(Deed::Pass, folder)?;
        }
        self.may_here(deed, path)
    }

    fn may_here(&self, deed: Deed, path: &Path) -> Result<(), String> {
        let shown = path.display();
        let found = metadata(path).map_err(|error| format!("{shown}: {error}"))?;
        let bits = deed.bits(found.is_dir());
        let is_allowed = if self.is_me {
            let wanted = [(0o4, Access::READ_OK), (0o2, Access::WRITE_OK), (0o1, Access::EXEC_OK)];
            let wanted = wanted.into_iter().filter(|(bit, _)| bits & bit != 0);
            let wanted = wanted.fold(Access::empty(), |all, (_, one)| all | one);
            access(path, wanted).map_err(|error| format!("{shown}: {error}"))?;
            true
        } else {
            self.id == 0 || self.bits_of(&found) & bits == bits
        };
        if is_allowed {
            return Ok(());
        }
        let mode = found.mode() & 0o777;
        let owner = User::of_id(found.uid()).name();
        Err(format!("{shown}: mode {mode:04o}, of {owner}: closed to {}", self.name()))
    }

    /// The bits of a mode that apply to this user.
    fn bits_of(&self, found: &Metadata) -> u32 {
        let mode = found.mode();
        if found.uid() == self.id {
            (mode >> 6) & 0o7
        } else if self.groups.contains(&found.gid()) {
            (mode >> 3) & 0o7
        } else {
            mode & 0o7
        }
    }
}

/// The lines of `/etc/passwd` or `/etc/group`, at their colons.
fn entries(file: &str) -> impl Iterator<Item = Vec<String>> {
    let text = read_to_string(file).unwrap_or_default();
    let lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split(':').map(str::to_owned).collect()).collect();
    lines.into_iter()
}

/// The nearest existing thing: the one at a path, or the folder in which it would be made.
pub(super) fn nearest(path: &Path) -> PathBuf {
    let mut there =
        path.ancestors().map(|it| if it == Path::new("") { Path::new(".") } else { it });
    there.find(|it| it.exists()).unwrap_or(Path::new("/")).to_path_buf()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn another_user_may_what_owner_group_and_mode_leave_to_it() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("key");
        std::fs::write(&file, "").expect("written");
        let found = metadata(&file).expect("file");
        let stranger = User { id: found.uid() + 1, groups: vec![], is_me: false };
        let colleague = User { groups: vec![found.gid()], ..stranger.clone() };
        let owner = User { id: found.uid(), is_me: false, ..stranger.clone() };
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode");
        };
        for (mode, deed, expected) in [
            (0o600, Deed::Read, [true, false, false]),
            (0o640, Deed::Read, [true, true, false]),
            (0o644, Deed::Write, [true, false, false]),
            (0o666, Deed::Write, [true, true, true]),
        ] {
            set(&file, mode);
            let users = [&owner, &colleague, &stranger];
            let may = users.map(|user| user.may_here(deed, &file).is_ok());
            assert_eq!(may, expected, "{mode:o} {deed:?}");
        }
        set(folder.path(), 0o700);
        let why = stranger.may_here(Deed::Pass, folder.path()).expect_err("shut");
        assert!(why.contains("mode 0700, of ") && why.contains("closed to"), "{why}");
        assert!(stranger.may(Deed::Read, &file).is_err(), "what is behind it is not there");
        assert!(User::named("nobody-of-this-name").is_err());
        assert_eq!(nearest(&file.join("below")), file);
    }
}
