"""Numbers for orders in a database of one's own, whatever breaks in between.

    export NUMERATOR_URL=http://127.0.0.1:8080 NUMERATOR_TOKEN=...
    python3 orders.py orders.db add A-1          saves order A-1 and has it numbered
    python3 orders.py orders.db add-all A-2 A-3  the same for many, in one call
    python3 orders.py orders.db finish           numbers what was interrupted
    python3 orders.py orders.db labels L-1 100   a range of 100 numbers
    python3 orders.py orders.db invoice I-1      an invoice without a gap, once it is confirmed

Needs Python 3.10 and nothing else.
"""

import json
import os
import random
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import date
from http.client import HTTPException

URL = os.environ.get("NUMERATOR_URL", "http://127.0.0.1:8080")
TOKEN = os.environ.get("NUMERATOR_TOKEN")
# Begins each document id: the ids of all callers of a ledger are of one list.
SYSTEM = "shop"
# Longer than the service takes at most (its http.time_limit, 40 s).
ANSWER_TIME_LIMIT_S = 45
# How long a request is repeated; afterwards `finish` goes on.
PATIENCE_S = 120
WAIT_MAX_S = 10
ROUNDS_MAX = 5
# What one call may ask for.
DOCUMENTS_MAX = 1_000
WORDS = ("add", "add-all", "finish", "labels", "invoice")
RESERVATIONS = "/api/v1/document-numbering/reservations"
# For how long an invoice holds its number before it is confirmed.
TTL = "15m"
# A reservation that is over: another one takes its place.
ENDED = (
    "reservation-expired",
    "reservation-cancelled",
    "reservation-lost",
    "reservation-not-found",
)


class Refused(Exception):
    """The request is wrong, and a repeat would not help."""

    def __init__(self, problem, maybe_taken):
        super().__init__(f"{problem['code']}: {problem['detail']}")
        self.problem = problem
        # An earlier try, whose answer was lost, may have taken a number all the same.
        self.maybe_taken = maybe_taken


class Unanswered(Exception):
    """No number for now. The same request, repeated later, finds one that was taken."""


def send(path, body, key=None):
    """One try: status, seconds to wait before another one, and the answer; None if unreadable."""
    headers = {"Content-Type": "application/json"}
    if TOKEN:
        headers["Authorization"] = f"Bearer {TOKEN}"
    if key:
        headers["Idempotency-Key"] = key
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    try:
        answer = urllib.request.urlopen(request, timeout=ANSWER_TIME_LIMIT_S)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        wait = answer.headers.get("Retry-After", "")
        is_json = answer.headers.get_content_subtype() in ("json", "problem+json")
        content = json.load(answer) if is_json else None
        return answer.status, int(wait) if wait.isdigit() else 0, content


def call(path, body, key=None):
    """Sends one request until it is answered: each time the same document, key and body."""
    give_up_at = time.monotonic() + PATIENCE_S
    maybe_taken, pause_s, cause = False, 0.25, "refused for now"
    while True:
        try:
            status, wait_s, answer = send(path, body, key)
        except (OSError, HTTPException, ValueError) as error:
            status, wait_s, answer, cause = 0, 0, None, error
        if answer is not None and 200 <= status < 300:
            return answer
        if answer is None or "number_taken" not in answer:
            # No answer, or that of a proxy: nobody knows how far the request got.
            if 400 <= status < 500 and status not in (408, 429):
                problem = {"code": f"http-{status}", "detail": f"{URL}{path} is not the service"}
                raise Refused(problem, maybe_taken)
            maybe_taken = True
        else:
            maybe_taken = maybe_taken or answer["number_taken"] == "maybe"
            if not is_worth_a_repeat(answer):
                raise Refused(answer, maybe_taken)
        # Many callers that wait should not come back in the same moment.
        wait_s = max(wait_s, random.uniform(pause_s / 2, pause_s))
        if time.monotonic() + wait_s > give_up_at:
            taken = "maybe" if maybe_taken else "not"
            raise Unanswered(f"{URL}{path}: a number was {taken} taken; last: {cause}")
        time.sleep(wait_s)
        pause_s = min(pause_s * 2, WAIT_MAX_S)


def is_worth_a_repeat(problem):
    """Whether the same request may get a number, or may find one that was taken."""
    return problem["retryable"] or problem["number_taken"] == "maybe"


def open_orders(path):
    orders = sqlite3.connect(path)
    orders.execute(
        "create table if not exists orders"
        " (order_key text primary key, request text not null, number text)"
    )
    orders.execute(
        "create table if not exists invoices"
        " (invoice_key text primary key, request text not null,"
        " reservation text, number text, issued integer not null default 0)"
    )
    return orders


def save_draft(orders, key):
    """Before anything is asked for: the order, and the request that every try will send."""
    request = json.dumps({"type": "SPO", "date": date.today().isoformat()})
    with orders:  # one transaction, committed here
        orders.execute("insert or ignore into orders values (?, ?, null)", (key, request))


def save_number(orders, key, number):
    with orders:
        done = orders.execute(
            "update orders set number = ? where order_key = ? and (number is null or number = ?)",
            (number, key, number),
        )
    if done.rowcount != 1:
        raise RuntimeError(f"order {key} has another number than {number}")
    print(key, number, flush=True)


def drafts(orders):
    rows = orders.execute("select order_key, request from orders where number is null")
    return {key: json.loads(request) for key, request in rows}


def document_id(key):
    """The same for every try: made of the order's own key, never drawn anew."""
    return f"{SYSTEM}/order-{key}"


def number_one(orders, key, request):
    quoted = urllib.parse.quote(document_id(key), safe="")
    path = f"/api/v1/documents/{quoted}/generate-number"
    save_number(orders, key, call(path, request)["document_number"])


def number_all(orders, waiting):
    """Numbers many drafts, some hundred in a call. Those that get none stay drafts."""
    for _ in range(ROUNDS_MAX):
        keys = list(waiting)[:DOCUMENTS_MAX]
        if not keys:
            return
        # Without an Idempotency-Key: the next round asks for fewer, and each has its document.
        documents = [{"document_id": document_id(key), **waiting[key]} for key in keys]
        items = call("/api/v1/document-numbering/batches", {"documents": documents})["items"]
        wait_ms = 0
        for key, item in zip(keys, items, strict=True):
            problem = item.get("problem")
            if problem is None:
                save_number(orders, key, item["document_number"])
                del waiting[key]
            elif is_worth_a_repeat(problem):
                wait_ms = max(wait_ms, problem.get("retry_after_ms", 1_000))
            else:
                print(f"{key}: {problem['code']}: {problem['detail']}", file=sys.stderr)
                del waiting[key]
        time.sleep(wait_ms / 1_000)


def finish(orders):
    """At every start, and now and then: what a crash or a loss has left without a number."""
    number_all(orders, drafts(orders))
    sweep(orders)


def save_invoice(orders, key):
    """Before anything is asked for: the invoice, and the request that every try will send."""
    document = f"{SYSTEM}/invoice-{key}"
    today = date.today().isoformat()
    request = {"type": "INVOICE", "date": today, "document_id": document, "ttl": TTL}
    with orders:
        orders.execute(
            "insert or ignore into invoices (invoice_key, request) values (?, ?)",
            (key, json.dumps(request)),
        )


def reserve(orders, key, request, ended=None):
    """Holds a number for the invoice: saved as pending, in place of a reservation that ended."""
    held = call(RESERVATIONS, request)
    with orders:
        orders.execute(
            "update invoices set reservation = ?, number = ?"
            " where invoice_key = ? and reservation is ? and not issued",
            (held["reservation_id"], held["document_number"], key, ended),
        )


def confirm(orders, key, reservation):
    """Whether the number is the invoice's for good; otherwise the reservation has ended."""
    try:
        call(f"{RESERVATIONS}/{reservation}/confirm", {})
    except Refused as refused:
        if refused.problem["code"] in ENDED:
            return False
        raise
    with orders:
        orders.execute(
            "update invoices set issued = 1 where invoice_key = ? and reservation = ?",
            (key, reservation),
        )
    return True


def issue(orders, key):
    """Reserve, save, confirm, mark: goes on where an earlier run was interrupted."""
    columns = "select request, reservation, number, issued from invoices where invoice_key = ?"
    while True:
        request, reservation, number, issued = orders.execute(columns, (key,)).fetchone()
        if issued:
            # It is printed or sent from here on, and never before.
            print(key, number, flush=True)
            return
        if reservation is None or not confirm(orders, key, reservation):
            reserve(orders, key, json.loads(request), reservation)


def sweep(orders):
    """At every start, and now and then: invoices that a crash or a loss has left pending."""
    waiting = orders.execute("select invoice_key from invoices where not issued").fetchall()
    for (key,) in waiting:
        try:
            issue(orders, key)
        except Refused as refused:
            print(f"{key}: {refused}", file=sys.stderr)


def labels(key, count):
    """A range belongs to no document: its key, kept by the caller, tells a repeat."""
    order = {"type": "SPO", "date": "2024-01-22", "count": count}
    taken = call("/api/v1/document-numbering/batches", order, f"labels-{key}")
    print(key, taken["first_number"], taken["last_number"])


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in WORDS:
        sys.exit(__doc__)
    database, what, *keys = sys.argv[1:]
    orders = open_orders(database)
    if what == "labels":
        labels(keys[0], int(keys[1]))
        return
    if what == "invoice":
        for key in keys:
            save_invoice(orders, key)
            issue(orders, key)
        return
    for key in keys:
        save_draft(orders, key)
    if what == "add":
        for key in keys:
            if key in drafts(orders):
                number_one(orders, key, drafts(orders)[key])
    elif what == "add-all":
        asked = drafts(orders)
        number_all(orders, {key: asked[key] for key in keys if key in asked})
    else:
        finish(orders)


if __name__ == "__main__":
    main()
