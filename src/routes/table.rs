//! How the table of routes is read: one row becomes a route of the router with its description,
//! what the middleware asks of it and, where it has one, its way on the fast path.

use utoipa::openapi::path::Paths;
use utoipa_axum::router::UtoipaMethodRouter;

use crate::web::App;

/// Reads groups of routes. A row is a method, what it does ([`Act`](crate::auth::Act), or `Open`
/// where no token is needed), the bounds of its body (`none`, `single` or `batch`), how it is
/// answered ([`Way`](crate::web::route::Way), with what the fast path takes) and its handler.
///
/// The handler's attribute describes the operation: it names the method again and leaves the path
/// empty.
macro_rules! table {
    ($(
        $(#[$about:meta])*
        $group:ident, $add:ident {
            $($path:literal:
                $($method:ident $act:ident $body:ident $way:ident $(($taking:ident))?
                    => $($handler:ident)::+;)+
            )+
        }
    )+) => {
        $(
            $(#[$about])*
            const $group: &[Route] = &[$(Route {
                path: $path,
                operations: &[$(Operation {
                    method: Method::$method,
                    act: table!(@act $act),
                    way: Way::$way,
                }),+],
            }),+];

            /// Adds the routes of the group, with their descriptions.
            fn $add(router: OpenApiRouter<App>, limits: &BodyLimits) -> OpenApiRouter<App> {
                router$($(.routes(table::at($path, limits.$body(routes!($($handler)::+)))))+)+
            }
        )+

        /// What the fast path takes, and the patterns of its paths.
        const FAST: &[(Taking, &str)] = &[$($($($((Taking::$taking, $path),)?)+)+)+];
    };
    (@act Open) => { None };
    (@act $act:ident) => { Some(Act::$act) };
}

/// The route of a handler, at a path.
pub(super) fn at(
    path: &str,
    (schemas, described, handler): UtoipaMethodRouter<App>,
) -> UtoipaMethodRouter<App> {
    let mut paths = Paths::new();
    for (own, item) in described.paths {
        assert!(own.is_empty(), "{own}: the table of routes alone names paths");
        paths.paths.insert(path.to_owned(), item);
    }
    (schemas, paths, handler)
}
