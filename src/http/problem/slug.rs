//! Every kind of problem, once: its word, its status, what it means and what to do.
//!
//! What `/problems/…` shows and what `docs/api.md` lists are these rows; a test compares them. A
//! slug is API: once released it keeps its meaning.

use axum::http::StatusCode;

/// Declares the slugs: variant, slug, status, whether a retry is useful, whether a number may have
/// been taken, title, meaning and remedy.
macro_rules! slugs {
    ($($variant:ident $name:literal $status:ident $retryable:literal $taken:literal
       $title:literal $meaning:literal,)*) => {
        /// The kind of a problem: a stable word that programs may act on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Slug { $(#[doc = $title] $variant,)* }

        impl Slug {
            /// Every slug.
            pub const ALL: &[Slug] = &[$(Slug::$variant,)*];

            /// The slug as it is sent.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Slug::$variant => $name,)* }
            }

            /// The page of the problem on the service itself: a reference relative to the request.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self { $(Slug::$variant => concat!("/problems/", $name),)* }
            }

            /// What it means, for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Slug::$variant => $title,)* }
            }

            /// The HTTP status that goes with it.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self { $(Slug::$variant => StatusCode::$status,)* }
            }

            /// Whether the same request may succeed later: `yes`, `no`, or `yes or no`, where each
            /// problem says so itself.
            pub(in crate::http) const fn retryable(self) -> &'static str {
                match self { $(Slug::$variant => $retryable,)* }
            }

            /// Whether a number may have been taken: `no`, `maybe`, or `no or maybe`.
            pub(in crate::http) const fn number_taken(self) -> &'static str {
                match self { $(Slug::$variant => $taken,)* }
            }

            /// What it means in full, and what to do.
            pub(in crate::http) const fn meaning(self) -> &'static str {
                match self { $(Slug::$variant => $meaning,)* }
            }
        }
    };
}

slugs! {
    MalformedJson "malformed-json" BAD_REQUEST "no" "no"
        "The body is not JSON"
        "the body is not JSON; `detail` shows line and column",
    InvalidHost "invalid-host" BAD_REQUEST "no" "no"
        "The request does not name exactly one host"
        "the request has no header `Host`, or several: send exactly one",
    Unauthenticated "unauthenticated" UNAUTHORIZED "yes or no" "no"
        "A valid bearer token is required"
        "no bearer token, or one that is not known (`numerator token create` makes one), or a JWT \
         that lets nobody in: `detail` says why. Retryable while the keys of its issuer cannot be \
         read",
    HostNotAllowed "host-not-allowed" FORBIDDEN "no" "no"
        "The service is not asked under that name"
        "the service is asked under a name that is none of its own (Hosts): ask it as \
         `localhost`, or list the name in `http.hosts`",
    CrossSite "cross-site" FORBIDDEN "no" "no"
        "A page of another site may change nothing"
        "a browser says that a page of another site asks for a change (Hosts): let the program \
         behind the page ask",
    NotPermitted "not-permitted" FORBIDDEN "no" "no"
        "No role of the caller allows it"
        "the caller is known, and none of its roles allows the call; `detail` names those that do: \
         `roles` of the token",
    TooManyRequests "too-many-requests" TOO_MANY_REQUESTS "yes" "no"
        "More was asked for than one may ask for in a minute"
        "the person or the address takes more, or the token asks more often, than it may in a \
         minute: wait as long as the header `Retry-After` says; `RateLimit` says with each answer \
         what is left",
    OwnChange "own-change" FORBIDDEN "no" "no"
        "Who asked for a change may not approve it"
        "the caller asked for this change itself: somebody else has to approve it; rejecting it \
         withdraws it",
    RouteNotFound "route-not-found" NOT_FOUND "no" "no"
        "There is no such route"
        "no such path",
    TableNotFound "table-not-found" NOT_FOUND "no" "no"
        "There is no such table"
        "no table of reference data has that name; `GET …/reference` lists them",
    ConfigNotFound "config-not-found" NOT_FOUND "no" "no"
        "There is no such numbering configuration"
        "no configuration has that id, or not that version",
    TokenNotFound "token-not-found" NOT_FOUND "no" "no"
        "There is no such token"
        "no token of the ledger has that name; those of the settings are changed there",
    ChangeNotFound "change-not-found" NOT_FOUND "no" "no"
        "There is no such change request"
        "no change request has that id",
    NumberNotFound "number-not-found" NOT_FOUND "no" "no"
        "The journal has no such number"
        "no journal row begins with the number, it is no revision, and no range is known to \
         hold it; in the look-up by path, no series can read it either; or nothing carries the \
         unified serial",
    DocumentNotNumbered "document-not-numbered" NOT_FOUND "yes" "no"
        "The journal has no number of the document"
        "the journal has no (such) number of the document; one issued a moment ago appears once \
         its record is committed",
    StepNotFound "step-not-found" NOT_FOUND "no" "no"
        "Nobody has begun the step"
        "nobody has begun the step of that system serial",
    MethodNotAllowed "method-not-allowed" METHOD_NOT_ALLOWED "no" "no"
        "The route has no such method"
        "the header `Allow` lists the methods",
    BodyTimeout "body-timeout" REQUEST_TIMEOUT "no" "no"
        "The body did not arrive in time"
        "the body did not arrive within `http.time_limit`",
    SequenceExhausted "sequence-exhausted" CONFLICT "no" "no"
        "The serial has no value left"
        "the serial that `field` names has too few values left up to its last one; apply the \
         series with more digits or a higher `max`",
    CounterBelowStart "counter-below-start" CONFLICT "no" "no"
        "The counter has not reached the first value of its serial"
        "the counter of the serial that `field` names stands below the `start` of the series, and \
         gives nothing until it is moved there, which `detail` tells how (`numerator \
         move-counter`, or `POST …/reset-counter`), or until the series is applied with a lower \
         `start`",
    VersionConflict "version-conflict" CONFLICT "yes or no" "no or maybe"
        "Somebody else changed the same"
        "other transactions of the ledger changed the same rows each time it was tried: retry. \
         With `field` `If-Match` (not retryable): somebody changed the configuration since you \
         read it; read it again",
    TokenNameTaken "token-name-taken" CONFLICT "no" "no"
        "Another token has that name"
        "a token of the ledger has that name, or had it and is revoked: a name is one caller's for \
         ever. Use another, or give that one a new secret",
    TokenRevoked "token-revoked" CONFLICT "no" "no"
        "The token is revoked"
        "the token is revoked and stays so; create one of another name",
    ChangeAnswered "change-answered" CONFLICT "no" "no"
        "The change request cannot be answered any more"
        "the change request is approved or rejected already, or its time is over \
         (`approval.time_limit`): ask anew, where it is still of use",
    BelowLeastAllowed "below-least-allowed" CONFLICT "no" "no"
        "What is issued could come again"
        "the next value, or the last date, lies below the least one allowed, which `detail` \
         names: what was issued could come again. It rises with each number that is taken",
    CodeTaken "code-taken" CONFLICT "no" "no"
        "Another numbering configuration has the code"
        "a configuration, active or not, has that code; change it, or use another code",
    SeriesInUse "series-in-use" CONFLICT "no" "no"
        "The series has issued numbers"
        "the series has issued numbers, and the change could issue one of them again; `detail` \
         says what to do instead",
    DocumentAlreadyNumbered "document-already-numbered" CONFLICT "no" "no"
        "The document has a number already"
        "the document has a number, and this request does not get it again: its request was \
         another one (`document_number` shows the number: send that request unchanged, or use the \
         number), or it is somebody else's, which is not shown; only for a second number of the \
         same document, send `\"again\": true`",
    DocumentArchived "document-archived" CONFLICT "no" "no"
        "The document's number is in the archive"
        "the document has a number, and its record moved to an archive file, which `detail` names: \
         `numerator find --archive` reads it; only for a second number of the same document, send \
         `\"again\": true`",
    RevisionsExhausted "revisions-exhausted" CONFLICT "no" "no"
        "The number has as many revisions as it may have"
        "the number has 100 revisions, as many as a number may have",
    InterfaceSerialRepeated "interface-serial-repeated" CONFLICT "no" "no"
        "The interface serial was seen before"
        "the interface serial was accepted before, within the window; do not serve the call",
    StateUnknown "state-unknown" CONFLICT "no" "no"
        "The step is in progress, or nobody knows"
        "an attempt of the step is in progress, or its runner is gone; `standing` shows which \
         and since when",
    AlreadyProcessed "already-processed" CONFLICT "no" "no"
        "The step has succeeded already"
        "the step has succeeded; do not run it again",
    AttemptNotCurrent "attempt-not-current" CONFLICT "no" "no"
        "The attempt is not in progress"
        "the attempt has ended, is not the step's current one, or was begun by another caller",
    BodyTooLarge "body-too-large" PAYLOAD_TOO_LARGE "no" "no"
        "The body is too large"
        "send less in one request",
    UnsupportedMediaType "unsupported-media-type" UNSUPPORTED_MEDIA_TYPE "no" "no"
        "The body must be application/json"
        "send `Content-Type: application/json`, in UTF-8 and without `Content-Encoding`",
    PreconditionRequired "precondition-required" PRECONDITION_REQUIRED "no" "no"
        "The change must name the version that it builds on"
        "send the header `If-Match` with the `ETag` of the configuration that you have read",
    InvalidField "invalid-field" UNPROCESSABLE_ENTITY "no" "no"
        "A field is missing, unknown or wrong"
        "a field, header or query parameter is missing, unknown or wrong",
    UnknownType "unknown-type" UNPROCESSABLE_ENTITY "no" "no"
        "Unknown document type"
        "no series mentions the document type; `detail` lists types that are served, the nearest \
         first",
    TypeNotConfigured "type-not-configured" UNPROCESSABLE_ENTITY "no" "no"
        "The document type has no numbering configured"
        "the type exists, but no series numbers it (for this project, originator or sub type); \
         `detail` lists those for which it is numbered, or types that are",
    SeriesAmbiguous "series-ambiguous" UNPROCESSABLE_ENTITY "no" "no"
        "Two series serve the request equally well"
        "two series serve the request equally well; change `serves` of one and apply it",
    TemplateAmbiguous "template-ambiguous" UNPROCESSABLE_ENTITY "no" "no"
        "Two counters can render the same number"
        "a series to be saved is not proved to give two numbers different texts, and `detail` \
         shows a text with its two readings, or two requests (the proof); or it accepts that, \
         and not every series of the pair is `gapless`; or another counter, or a revision, \
         rendered the number of this request, in a series that was saved nevertheless",
    UnknownVariable "unknown-variable" UNPROCESSABLE_ENTITY "no" "no"
        "The series declares no such variable"
        "the series declares no such variable, or has no phases",
    MissingVariable "missing-variable" UNPROCESSABLE_ENTITY "no" "no"
        "The series needs a value"
        "the series needs the value; `recipients[kind=TO]` where no recipient is of that kind",
    ValueTooLong "value-too-long" UNPROCESSABLE_ENTITY "no" "no"
        "A value is too long"
        "a value is longer than its variable allows, or the number longer than 128 characters; \
         `detail` says how long it may be",
    ValueTooShort "value-too-short" UNPROCESSABLE_ENTITY "no" "no"
        "A value is too short"
        "a value is shorter than the width of its variable; `detail` says how long it is to be",
    UnknownValue "unknown-value" UNPROCESSABLE_ENTITY "no" "no"
        "The series takes no such value"
        "the variable declares its `values`, and this is none of them; `detail` names the nearest, \
         or the first few where none is near",
    WrongAlphabet "wrong-alphabet" UNPROCESSABLE_ENTITY "no" "no"
        "A value holds a character that is not allowed"
        "a value holds a character that is not allowed, or looks like another value; `detail` \
         says which",
    InvalidDate "invalid-date" UNPROCESSABLE_ENTITY "no" "no"
        "The date is not one"
        "the date is not one (`2024-01-22`, or with time and offset `2024-01-22T09:30:00+08:00`; \
         years A.D.), or is further from the present than the series takes",
    TimeRequired "time-required" UNPROCESSABLE_ENTITY "no" "no"
        "The template needs a time of day"
        "the template shows a time of day, or a counter begins anew within a day; send a \
         date-time",
    PeriodClosed "period-closed" UNPROCESSABLE_ENTITY "no" "no"
        "The date lies in a closed period"
        "the series is closed for documents of that date; `detail` names the first open day",
    DateBeforeLast "date-before-last" UNPROCESSABLE_ENTITY "no" "no"
        "The date lies before that of the last number"
        "the series keeps chronology, and a later date has a number already; `detail` names it",
    UnknownReference "unknown-reference" UNPROCESSABLE_ENTITY "no" "no"
        "The reference data have no such code or id"
        "the table that the series refers to has no such code or id; correct it, or have it \
         imported",
    InactiveReference "inactive-reference" UNPROCESSABLE_ENTITY "no" "no"
        "A code or id is inactive"
        "the code or id is inactive; use another",
    NotAMember "not-a-member" UNPROCESSABLE_ENTITY "no" "no"
        "The originator is no member of the project"
        "the originator is no member of the project, or of any active one; `detail` lists its \
         projects",
    ProjectAmbiguous "project-ambiguous" UNPROCESSABLE_ENTITY "no" "no"
        "The originator is a member of several projects"
        "the originator is a member of several projects, which `detail` lists; send `project`",
    IdempotencyKeyReused "idempotency-key-reused" UNPROCESSABLE_ENTITY "no" "no"
        "The idempotency key was used for another payload"
        "the key was used for another payload; use a new key for another request",
    Internal "internal" INTERNAL_SERVER_ERROR "no" "no or maybe"
        "The service met a bug"
        "a bug; the log has the cause under the request id. It is safe to repeat the same \
         request",
    UnknownTransferCoding "unknown-transfer-coding" NOT_IMPLEMENTED "no" "no"
        "The body is in a coding that nobody here knows"
        "the header `Transfer-Encoding` names another coding than `chunked`, or names it twice: \
         send the body in chunks alone, or with its length",
    DatabaseConnection "database-connection" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The ledger does not answer"
        "the ledger does not answer; while that is known, the refusal comes at once, and the \
         service notices by itself when it is back",
    ExternalRefused "external-refused" BAD_GATEWAY "no" "no"
        "The source of the series refuses the request"
        "the system that gives this series its values says no; `detail` has its status, its own \
         log the reason",
    ExternalInvalid "external-invalid" BAD_GATEWAY "no" "no"
        "What the source gives is no value of the series"
        "the system that gives this series its values gave none, or one that the series does not \
         take; `detail` says why",
    ExternalNumberTaken "external-number-taken" BAD_GATEWAY "no" "no"
        "The source gave a value twice"
        "the system that gives this series its values gave one whose number another document has; \
         once it gives another one, the same request gets its number",
    ExternalUnavailable "external-unavailable" SERVICE_UNAVAILABLE "yes" "no"
        "The source of the series does not answer"
        "the system that gives this series its values does not answer, has as many calls as it may \
         have, or is not in the settings of this process; `detail` says which",
    LockTimeout "lock-timeout" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The request waited too long"
        "the request waited longer than its time limit, or than the caller said (`Prefer: \
         wait`), or for a lock of the ledger that somebody else holds",
    SeriesChanged "series-changed" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The series has just changed"
        "the series was changed or removed a moment ago, and this process has not heard of it yet; \
         send the same request again",
    CeilingReached "ceiling-reached" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The counter's ceiling is used up and cannot be raised now"
        "the counter's ceiling is used up while the ledger cannot raise it",
    OutboxFull "outbox-full" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "Too many records wait for the journal"
        "the journal is too far behind",
    QueueFull "queue-full" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "Too many requests wait"
        "too many requests wait, or the bodies that are sent, or the answers that are made or not \
         read, take as much memory as they may, those of the caller or of all: slow down; `detail` \
         says which",
    ChecksFull "checks-full" SERVICE_UNAVAILABLE "yes" "no"
        "Too much is being checked"
        "too many series are checked, numbers read back or look-ups made at once, of the caller or \
         of all; or the check of a series took longer than 20 s, and nothing is saved",
    RedisUnavailable "redis-unavailable" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "Redis does not answer"
        "the partition's Redis does not answer, or this process has none",
    PartitionHeld "partition-held" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The partition waits for an operator"
        "the ledger shows an older state than Redis: bring the newer ledger back, or release \
         the partitions (`numerator reconcile --ledger-restored`, runbook)",
    ClockBehind "clock-behind" SERVICE_UNAVAILABLE "yes" "no"
        "The clock is behind the last id"
        "the clock of this process is behind the last `{SNOWFLAKE}` id drawn under its node \
         number, or outside the years of ids; set it, or ask another process",
    NumberNotJournaled "number-not-journaled" SERVICE_UNAVAILABLE "yes" "maybe"
        "The number that was taken is not in the journal"
        "Redis remembers a number of this document or key, and the journal does not have it: a \
         moment after an outbox was lost, or because the ledger refused its record; `numerator \
         verify` shows which",
    NodeNumbersHeld "node-numbers-held" SERVICE_UNAVAILABLE "yes" "no"
        "Every node number for ids is held"
        "1024 processes hold the node numbers of `{SNOWFLAKE}`",
    NotReady "not-ready" SERVICE_UNAVAILABLE "yes" "no"
        "No new document would get its number"
        "`/readyz` only: a new document of no series would get its number now; `reasons` says why, \
         and `works` what works all the same",
    Stopping "stopping" SERVICE_UNAVAILABLE "yes" "no or maybe"
        "The process is stopping"
        "this process is stopping; ask another one",
}
