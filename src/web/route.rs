//! A route as all calls share it: its path, and what each of its methods does. The table of routes
//! itself is in `routes`; here is only how it is asked.

use axum::http::Method;

use crate::auth::Act;

/// A route of the service.
#[derive(Debug)]
pub(crate) struct Route {
    /// The pattern of its paths, as the router and the description write it.
    pub(crate) path: &'static str,
    /// Its methods.
    pub(crate) operations: &'static [Operation],
}

/// A method of a route.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The method; HEAD is answered as GET is.
    pub(crate) method: Method,
    /// What it does, as far as rights go; nothing where it needs no token.
    pub(crate) act: Option<Act>,
    /// How it is answered.
    pub(crate) way: Way,
}

/// How calls of an operation are answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// By the router.
    Routed,
    /// By the fast path: it takes numbers.
    Fast,
    /// By the router, before calls that take long: a short answer for machines that watch.
    Probe,
}

impl Route {
    /// Whether it needs no token.
    pub(crate) fn is_open(&self) -> bool {
        self.operations.iter().all(|operation| operation.act.is_none())
    }

    /// The operation of a method; nothing where the route does not have the method.
    pub(crate) fn operation(&self, method: &Method) -> Option<&Operation> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.operations.iter().find(|operation| operation.method == method)
    }
}

/// All routes of the service, in groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteTable(pub(crate) &'static [&'static [Route]]);

impl RouteTable {
    /// All routes; those that take numbers are first.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static Route> {
        self.0.iter().copied().flatten()
    }

    /// The route with this pattern.
    pub(crate) fn find(self, path: &str) -> Option<&'static Route> {
        self.iter().find(|route| route.path == path)
    }

    /// The route of a call to this pattern.
    pub(crate) fn matched(self, pattern: &str) -> Matched {
        let listed = self.find(pattern).map(Matched::Listed);
        listed.unwrap_or_else(|| Matched::Unlisted(pattern.to_owned()))
    }
}

/// The route of a call.
#[derive(Clone, Debug)]
pub(crate) enum Matched {
    /// One of the table.
    Listed(&'static Route),
    /// A pattern that the table lacks: refused.
    Unlisted(String),
}

impl Matched {
    /// Its pattern.
    pub(crate) fn pattern(&self) -> &str {
        match self {
            Matched::Listed(route) => route.path,
            Matched::Unlisted(pattern) => pattern,
        }
    }

    /// The route, where the table has it.
    pub(crate) fn listed(&self) -> Option<&'static Route> {
        match self {
            Matched::Listed(route) => Some(route),
            Matched::Unlisted(_) => None,
        }
    }
}
