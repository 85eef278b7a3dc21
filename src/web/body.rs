//! Reads the input of a caller: bounded bodies, JSON, queries. Every refusal is a problem that
//! names the place or the field.

mod forms;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::pin;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use numbering::{Misfit, Notation, read_written};
use percent_encoding::percent_decode_str;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::budget::{FREE_BYTES_MAX, HeldBytes};
use super::holdings::Holdings;
use super::problem::{Problem, Slug};
use crate::web::middleware::Caller;
pub(crate) use forms::BODY_FORMS;

/// Largest body of a request that is not a batch, in bytes.
pub const BODY_BYTES_MAX: usize = 64 << 10;

/// Largest body of a batch, or of a table of reference data, in bytes.
pub const BATCH_BODY_BYTES_MAX: usize = 1 << 20;

/// How much room a large body takes per step, in bytes.
const BODY_STEP_BYTES: usize = 65_536;

/// Bounds of a request body; an extension of the routes that read one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyBounds {
    /// Largest size.
    pub(crate) max_bytes: usize,
    /// How long it may take to arrive.
    pub(crate) time_limit: Duration,
}

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let bounds = *request
            .extensions()
            .get::<BodyBounds>()
            .ok_or_else(|| Problem::internal(&"a route that reads a body has no bounds"))?;
        let (parts, body) = request.into_parts();
        let caller = parts.extensions.get::<Caller>();
        let caller = caller.ok_or_else(|| Problem::internal(&"a body is nobody's"))?;
        Json::read(&parts.headers, body, bounds, &caller.holdings).await
    }
}

impl<T: DeserializeOwned> Json<T> {
    /// The body of a request with these headers; its room is kept in `holdings`.
    pub(crate) async fn read<B: HttpBody<Data = Bytes>>(
        headers: &HeaderMap,
        body: B,
        bounds: BodyBounds,
        holdings: &Holdings,
    ) -> Result<Self, Problem> {
        check_kind(headers)?;
        // Only the body is awaited here: a time-out leaves nothing half done.
        let read = read(headers, body, bounds.max_bytes, holdings);
        let bytes = tokio::time::timeout(bounds.time_limit, read)
            .await
            .map_err(|_| Problem::new(Slug::BodyTimeout, "send the body faster"))??;
        parse("body", &bytes).map(Json)
    }
}

/// Refuses a body whose type is not JSON, nor a format made of JSON; and JSON in another form than
/// its plain bytes in UTF-8, which would be misread or not read at all.
fn check_kind(headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |detail: &str| Err(Problem::new(Slug::UnsupportedMediaType, detail));
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = kind.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if !is_json {
        return refused("send the body as JSON, with the header Content-Type: application/json");
    }
    let is_foreign = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("charset")
            && !["utf-8", "utf8", "us-ascii"].iter().any(|known| value.eq_ignore_ascii_case(known))
    };
    if parts.any(is_foreign) {
        return refused("send the body in UTF-8; JSON needs no charset in Content-Type");
    }
    let is_plain = |value: &HeaderValue| {
        let codings = value.to_str().unwrap_or("?").split(',');
        codings.map(str::trim).all(|coding| coding.eq_ignore_ascii_case("identity"))
    };
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return refused("send the body as it is, without Content-Encoding");
    }
    Ok(())
}

/// How deep lists and objects are nested in a JSON text.
pub(crate) fn depth_of(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Reads a body of at most so many bytes: refused immediately if a larger one is announced, else as
/// soon as it grows too large, or finds no room.
async fn read<B: HttpBody<Data = Bytes>>(
    headers: &HeaderMap,
    body: B,
    max_bytes: usize,
    holdings: &Holdings,
) -> Result<Vec<u8>, Problem> {
    let too_large = || {
        Problem::new(Slug::BodyTooLarge, format!("send at most {max_bytes} bytes in one request"))
    };
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > max_bytes) {
        return Err(too_large());
    }
    let mut body = pin!(body);
    let (mut bytes, mut room) = (Vec::new(), holdings.of_body());
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = frame
            .map_err(|_| Problem::new(Slug::MalformedJson, "the body broke off; send it whole"))?;
        // Trailers are of no interest.
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > max_bytes {
                return Err(too_large());
            }
            make_room(&mut bytes, data.len(), &mut room)?;
            bytes.extend_from_slice(&data);
        }
    }
    holdings.keep(room);
    Ok(bytes)
}

/// Makes room for so many more bytes of a body. Announced bytes take none, only arrived ones.
fn make_room(bytes: &mut Vec<u8>, more: usize, room: &mut HeldBytes) -> Result<(), Problem> {
    let needed = bytes.len() + more;
    if needed <= bytes.capacity() {
        return Ok(());
    }
    let capacity = if needed <= BODY_STEP_BYTES {
        needed.next_power_of_two()
    } else {
        needed.next_multiple_of(BODY_STEP_BYTES)
    };
    if capacity > FREE_BYTES_MAX && !room.grow_to(capacity) {
        let detail = "bodies that arrive, or are handled, hold as much memory as those of one \
                      caller, or of all, may; send fewer at once";
        return Err(Problem::new(Slug::QueueFull, detail).retry_soon().leaving_the_body());
    }
    bytes.reserve_exact(capacity - bytes.len());
    Ok(())
}

/// Reads the JSON of a body, or of a part of one. Syntax errors name line and column, wrong values
/// the field; a value that is not an object is reported by its `place`.
pub(crate) fn parse<T: DeserializeOwned>(place: &str, bytes: &[u8]) -> Result<T, Problem> {
    match serde_json::from_slice(bytes) {
        Ok(Object(read)) => Ok(read),
        Err(error) if !error.is_data() => Err(Problem::new(Slug::MalformedJson, error.to_string())),
        Err(error) => match serde_json::from_slice(bytes) {
            Ok(value) => Err(wrong_value::<T>(place, &value, &error)),
            Err(syntax) => Err(Problem::new(Slug::MalformedJson, syntax.to_string())),
        },
    }
}

/// A JSON object and nothing else: without this type, a struct would also be read from an array,
/// its fields by their order.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// The problem of a body, or of its part at `place`, that is JSON but not as the route requires.
fn wrong_value<T: DeserializeOwned>(
    place: &str,
    value: &Value,
    error: &serde_json::Error,
) -> Problem {
    if !value.is_object() {
        return Problem::field(place, "must be a JSON object, fields with their names in braces");
    }
    // The JSON library words it for programs; only it detects duplicate fields.
    let said = match read_written::<T>(value) {
        Err(misfit) => misfit.say(BODY_FORMS, Notation::Json),
        Ok(_) => error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
    };
    of_said(said)
}

/// The problem of a message that may name its field.
fn of_said(said: String) -> Problem {
    match named_field(&said) {
        Some(field) => Problem::field(field, said),
        None => Problem::new(Slug::InvalidField, said),
    }
}

/// The field that an error message names itself.
fn named_field(reason: &str) -> Option<String> {
    let named = ["unknown field ", "duplicate field ", ""]
        .into_iter()
        .find_map(|kind| reason.strip_prefix(kind)?.strip_prefix('`'))?;
    named.split('`').next().map(Into::into)
}

/// The query of a URL.
#[derive(Debug)]
pub(crate) struct QueryOf<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(query)) => Ok(QueryOf(query)),
            Err(refusal) => {
                let query = parts.uri.query().unwrap_or_default();
                let misfit = misfit_of::<T>(query).map(|it| it.say(BODY_FORMS, Notation::Query));
                let said = misfit.unwrap_or_else(|| {
                    let source = std::error::Error::source(&refusal).map(ToString::to_string);
                    source.unwrap_or_else(|| refusal.to_string())
                });
                Err(of_said(said))
            }
        }
    }
}

/// The part of a query that cannot be read; `None` if the cause is a duplicate field.
fn misfit_of<T: DeserializeOwned>(query: &str) -> Option<Misfit> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut value: Map<String, Value> =
        pairs.map(|(name, text)| (decoded(name), decoded(text).into())).collect();
    loop {
        let misfit = read_written::<T>(&Value::Object(value.clone())).err()?;
        // Everything in a query is text; a value that is not text is read once more.
        let Some(Value::String(text)) = value.get(&misfit.path()) else { return Some(misfit) };
        match text.parse::<Value>() {
            Ok(read) if read.is_number() || read.is_boolean() => {
                value.insert(misfit.path(), read);
            }
            _ => return Some(misfit),
        }
    }
}

/// Refuses control characters: the ledger cannot store them, and must not be queried for them.
pub(crate) fn must_be_storable(texts: &[(&'static str, &Option<String>)]) -> Result<(), Problem> {
    let is_wrong = |text: &String| text.chars().any(char::is_control);
    match texts.iter().find(|(_, text)| text.as_ref().is_some_and(is_wrong)) {
        Some((field, _)) => Err(Problem::field(*field, "must not hold control characters")),
        None => Ok(()),
    }
}

/// The id in a path.
pub(crate) fn read_id(config_id: Result<Path<i64>, PathRejection>) -> Result<i64, Problem> {
    let refused = |_| Problem::field("configId", "must be a whole number");
    config_id.map(|Path(id)| id).map_err(refused)
}

#[cfg(test)]
mod tests;
