//! `/problems`: the meaning of each problem, for people who follow its `type`; no token needed. The
//! words are the rows of `problem/slug.rs`.

use std::fmt::Write as _;

use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::problem::{Problem, Slug};

/// Every problem, one a line: its page, its status and its title.
#[utoipa::path(
    get, path = "", tag = "problems",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn list_problems() -> Response {
    let mut text = String::new();
    for slug in Slug::ALL {
        let (page, status, title) = (slug.page(), slug.status().as_u16(), slug.title());
        let _ = writeln!(text, "{page}  {status}  {title}");
    }
    page(text)
}

/// What a problem means, whether a retry is useful, whether a number may have been taken, and what
/// to do.
#[utoipa::path(
    get, path = "", tag = "problems",
    params(("code" = String, Path, description = "The `code` of a problem")),
    responses(
        (status = 200, body = String, content_type = "text/plain"),
    )
)]
pub(crate) async fn show_problem(Path(code): Path<String>) -> Result<Response, Problem> {
    let slug = Slug::ALL.iter().find(|slug| slug.name() == code);
    let slug = slug.ok_or_else(|| {
        Problem::new(Slug::RouteNotFound, "no problem has that code; /problems lists them")
    })?;
    let (name, title) = (slug.name(), slug.title());
    let (status, meaning) = (slug.status().as_u16(), slug.meaning());
    Ok(page(format!(
        "{title} ({name})\n\n\
         Status: {status}\n\
         Meaning and remedy: {meaning}.\n\
         Retry useful: {}.\n\
         Number taken: {}.\n",
        of_retry(slug.retryable()),
        of_number(slug.number_taken()),
    )))
}

fn page(text: String) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

/// A row's word on retries, as a sentence.
fn of_retry(word: &str) -> &'static str {
    match word {
        "yes" => "yes, the same request, after Retry-After",
        "no" => "no, change what the problem names first",
        _ => "as `retryable` of the problem says; where it is true, after Retry-After",
    }
}

/// A row's word on numbers, as a sentence.
fn of_number(word: &str) -> &'static str {
    match word {
        "no" => "no",
        "maybe" => "maybe: repeat the same request, which finds the number",
        _ => {
            "as `number_taken` of the problem says; after maybe, repeat the same request, which \
             finds the number"
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn text(response: Response) -> String {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    }

    #[tokio::test]
    async fn every_problem_has_a_page_with_all_that_its_row_says() {
        let list = text(list_problems().await).await;
        assert_eq!(list.lines().count(), Slug::ALL.len());
        for slug in Slug::ALL {
            let code = slug.page().strip_prefix("/problems/").expect("a page of problems");
            assert_eq!(code, slug.name());
            let page = text(show_problem(Path(code.into())).await.expect("a page")).await;
            let status = slug.status().as_u16().to_string();
            for said in [slug.name(), slug.title(), slug.meaning(), &status, "Retry", "Number"] {
                assert!(page.contains(said), "{code}: {said} is missing:\n{page}");
            }
            assert!(list.contains(&format!("{}  {status}  {}", slug.page(), slug.title())));
        }
    }

    #[tokio::test]
    async fn what_is_no_problem_has_no_page() {
        let refused = show_problem(Path("none".into())).await.expect_err("no page");
        assert_eq!(refused.slug(), Slug::RouteNotFound);
    }
}
