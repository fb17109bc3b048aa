//! Lists of the pages that users fetch, in a file (CSV or Parquet) next to the scenario: one row per object.
//!
//! Columns, in any order: `user` and `page`, numbered from 0, `request_bytes`, `response_bytes` and, optionally,
//! `think_s` (or `think_ns`) on the row of a page's first object, and `server_delay_s` (or `server_delay_ns`). The rows
//! of a user are consecutive, and so are those of a page.

use std::sync::Arc;

use aqmlab_traffic::PageList;
use aqmlab_units::Span;
use schemars::JsonSchema;
use serde::Serialize;

use super::files::{Content, Files, content};
use super::row::{Cell, MOST, MOST_BYTES, Names, SERVER_DELAY, THINK, When, whole};

const WANTED: &str = "write a header with the columns `user`, `page`, `request_bytes`, `response_bytes` and, optionally, \
                      `think_s` and `server_delay_s`, and one row per object";
const USER: &str = "user";
const PAGE: &str = "page";
const REQUEST: &str = "request_bytes";
const RESPONSE: &str = "response_bytes";
const NAMES: Names = Names {
    all: &[USER, PAGE, THINK[0], THINK[1], REQUEST, RESPONSE, SERVER_DELAY[0], SERVER_DELAY[1]],
    wanted: WANTED,
};

/// The pages of users as a file lists them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct UserVectors {
    /// The file as the scenario names it.
    pub file: String,
    /// SHA-256 of its contents, in hexadecimal: different contents make a different plan.
    pub digest: String,
    /// The pages of all users.
    #[serde(skip)]
    pub(crate) list: Arc<PageList>,
}

/// The positions of the values in a row.
struct Columns {
    user: usize,
    page: usize,
    think: Option<When>,
    request: usize,
    response: usize,
    server_delay: Option<When>,
}

/// A row as parsed.
struct Object {
    user: u64,
    page: u64,
    think: Option<Span>,
    request: u64,
    response: u64,
    server_delay: Span,
}

/// The pages read so far.
#[derive(Default)]
struct Reader {
    list: PageList,
    /// Number of pages of the last user.
    pages: u64,
}

impl UserVectors {
    /// Reads `file`.
    ///
    /// # Errors
    /// Returns a sentence without a full stop that names the file and the row.
    pub(super) fn read(files: &dyn Files, file: &str) -> Result<Self, String> {
        let Content { digest, bytes } = content(files, "list of users", file, WANTED)?;
        let mut reader = Reader::default();
        bytes.rows("list of users", file, WANTED, Columns::of, |columns, cells| {
            columns.row(cells).and_then(|object| reader.take(&object))
        })?;
        if reader.list.objects() == 0 {
            return Err(format!("the list of users `{file}` has no rows; write at least one object"));
        }
        Ok(UserVectors { file: file.to_string(), digest, list: Arc::new(reader.list) })
    }
}

impl Columns {
    fn of(names: &[&str]) -> Result<Self, String> {
        let names = NAMES.check(names)?;
        Ok(Columns {
            user: names.need(USER)?,
            page: names.need(PAGE)?,
            think: names.may_be_when(THINK)?,
            request: names.need(REQUEST)?,
            response: names.need(RESPONSE)?,
            server_delay: names.may_be_when(SERVER_DELAY)?,
        })
    }

    fn row(&self, cells: &[Cell<'_>]) -> Result<Object, String> {
        let time = |column: &Option<When>| match column {
            Some(column) => column.read_if_there(cells),
            None => Ok(None),
        };
        Ok(Object {
            user: whole(USER, &cells[self.user], 0, MOST)?,
            page: whole(PAGE, &cells[self.page], 0, MOST)?,
            think: time(&self.think)?,
            request: whole(REQUEST, &cells[self.request], 1, MOST_BYTES)?,
            response: whole(RESPONSE, &cells[self.response], 1, MOST_BYTES)?,
            server_delay: time(&self.server_delay)?.unwrap_or(Span::ZERO),
        })
    }
}

impl Reader {
    fn take(&mut self, object: &Object) -> Result<(), String> {
        let users = self.list.users() as u64;
        if object.user == users {
            self.list.add_user();
            self.pages = 0;
        } else if object.user + 1 != users {
            let next = match users {
                0 => "0 comes first".to_string(),
                users => format!("{} goes on or {users} comes next", users - 1),
            };
            return Err(format!(
                "`user` is {} where {next}; number users from 0 upwards, and keep the rows of each together",
                object.user
            ));
        }
        if object.page == self.pages {
            self.list.add_page(object.think.unwrap_or(Span::ZERO));
            self.pages += 1;
        } else if object.page + 1 != self.pages {
            let next = match self.pages {
                0 => "0 comes first".to_string(),
                pages => format!("{} goes on or {pages} comes next", pages - 1),
            };
            return Err(format!(
                "`page` is {} where {next}; number the pages of each user from 0 upwards, and keep the rows of each together",
                object.page
            ));
        } else if object.think.is_some() {
            return Err(format!(
                "a user thinks before a page, not within it; leave `{}` empty on rows after the page's first",
                THINK[0]
            ));
        }
        self.list.add_object(object.request, object.server_delay, object.response);
        Ok(())
    }
}
