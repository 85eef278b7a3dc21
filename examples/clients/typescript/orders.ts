// Numbers for orders in a store of one's own, whatever breaks in between.
//
//     npm install && npx tsc
//     export NUMERATOR_URL=http://127.0.0.1:8080 NUMERATOR_TOKEN=...
//     node dist/orders.js orders.json add A-1          saves order A-1 and has it numbered
//     node dist/orders.js orders.json add-all A-2 A-3  the same for many, in one call
//     node dist/orders.js orders.json finish           numbers what was interrupted
//     node dist/orders.js orders.json labels L-1 100   a range of 100 numbers
//     node dist/orders.js orders.json invoice I-1      an invoice without a gap, once confirmed
//
// Needs Node 20 and no library.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const URL = process.env["NUMERATOR_URL"] ?? "http://127.0.0.1:8080";
const TOKEN = process.env["NUMERATOR_TOKEN"];
/** Begins each document id: the ids of all callers of a ledger are of one list. */
const SYSTEM = "shop";
/** Longer than the service takes at most (its http.time_limit, 40 s). */
const ANSWER_TIME_LIMIT_MS = 45_000;
/** How long a request is repeated; afterwards `finish` goes on. */
const PATIENCE_MS = 120_000;
const WAIT_MAX_MS = 10_000;
const ROUNDS_MAX = 5;
/** What one call may ask for. */
const DOCUMENTS_MAX = 1_000;
const RESERVATIONS = "/api/v1/document-numbering/reservations";
/** For how long an invoice holds its number before it is confirmed. */
const TTL = "15m";
/** A reservation that is over: another one takes its place. */
const ENDED = [
  "reservation-expired",
  "reservation-cancelled",
  "reservation-lost",
  "reservation-not-found",
];

interface Problem {
  code: string;
  detail: string;
  retryable: boolean;
  number_taken: "no" | "maybe";
  retry_after_ms?: number;
}
interface Numbered { document_number: string; problem?: undefined }
interface RefusedItem { problem: Problem }
interface Batch { items: (Numbered | RefusedItem)[] }
interface Range { first_number: string; last_number: string }
interface NumberRequest { type: string; date: string }
interface ReservationRequest extends NumberRequest { document_id: string; ttl: string }
interface Reserved { reservation_id: string; document_number: string }

/** The request is wrong, and a repeat would not help. */
class Refused extends Error {
  readonly code: string;
  /** An earlier try, whose answer was lost, may have taken a number all the same. */
  readonly maybeTaken: boolean;

  constructor(code: string, detail: string, maybeTaken: boolean) {
    super(`${code}: ${detail}`);
    this.code = code;
    this.maybeTaken = maybeTaken;
  }
}

/** No number for now. The same request, repeated later, finds one that was taken. */
class Unanswered extends Error {}

interface Answer { status: number; waitMs: number; content: unknown }

/** One try. Without an answer, the status is 0. */
async function send(path: string, body: unknown, key?: string): Promise<Answer> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (TOKEN !== undefined) headers["Authorization"] = `Bearer ${TOKEN}`;
  if (key !== undefined) headers["Idempotency-Key"] = key;
  try {
    const answer = await fetch(URL + path, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_TIME_LIMIT_MS),
    });
    const waitMs = 1_000 * (Number(answer.headers.get("Retry-After")) || 0);
    const isJson = /^application\/(problem\+)?json/.test(answer.headers.get("Content-Type") ?? "");
    const content: unknown = isJson ? await answer.json() : undefined;
    return { status: answer.status, waitMs, content };
  } catch {
    return { status: 0, waitMs: 0, content: undefined };
  }
}

function isProblem(content: unknown): content is Problem {
  return typeof content === "object" && content !== null && "number_taken" in content;
}

/** Whether the same request may get a number, or may find one that was taken. */
function isWorthARepeat(problem: Problem): boolean {
  return problem.retryable || problem.number_taken === "maybe";
}

/** Sends one request until it is answered: each time the same document, key and body. */
async function call<T>(path: string, body: unknown, key?: string): Promise<T> {
  const giveUpAt = Date.now() + PATIENCE_MS;
  let maybeTaken = false;
  for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, WAIT_MAX_MS)) {
    const { status, waitMs, content } = await send(path, body, key);
    if (status >= 200 && status < 300 && content !== undefined) return content as T;
    if (isProblem(content)) {
      maybeTaken ||= content.number_taken === "maybe";
      if (!isWorthARepeat(content)) throw new Refused(content.code, content.detail, maybeTaken);
    } else {
      // No answer, or that of a proxy: nobody knows how far the request got.
      if (status >= 400 && status < 500 && status !== 408 && status !== 429) {
        throw new Refused(`http-${status}`, `${URL}${path} is not the service`, maybeTaken);
      }
      maybeTaken = true;
    }
    // Many callers that wait should not come back in the same moment.
    const wait = Math.max(waitMs, pauseMs * (0.5 + Math.random() / 2));
    if (Date.now() + wait > giveUpAt) {
      throw new Unanswered(`${path}: a number was ${maybeTaken ? "maybe" : "not"} taken`);
    }
    await sleep(wait);
  }
}

interface Order { request: NumberRequest; number: string | null }

/** Stands for your database: each change is on disk, whole, before the next line runs. */
class Orders {
  private readonly path: string;
  private readonly orders: Map<string, Order>;

  constructor(path: string) {
    this.path = path;
    const text = existsSync(path) ? readFileSync(path, "utf8") : "{}";
    this.orders = new Map(Object.entries(JSON.parse(text) as Record<string, Order>));
  }

  /** Before anything is asked for: the order, and the request that every try will send. */
  saveDraft(key: string): void {
    if (this.orders.has(key)) return;
    const date = new Date().toISOString().slice(0, 10);
    this.orders.set(key, { request: { type: "SPO", date }, number: null });
    this.commit();
  }

  saveNumber(key: string, number: string): void {
    const order = this.orders.get(key);
    if (order === undefined || (order.number !== null && order.number !== number)) {
      throw new Error(`order ${key} has another number than ${number}`);
    }
    order.number = number;
    this.commit();
    console.log(key, number);
  }

  drafts(): Map<string, NumberRequest> {
    const waiting = [...this.orders].filter(([, order]) => order.number === null);
    return new Map(waiting.map(([key, order]) => [key, order.request]));
  }

  private commit(): void {
    write(this.path, Object.fromEntries(this.orders));
  }
}

/** Replaces a file: on disk, whole, when it returns. */
function write(path: string, content: unknown): void {
  const file = openSync(`${path}.new`, "w");
  writeSync(file, JSON.stringify(content));
  fsyncSync(file);
  closeSync(file);
  renameSync(`${path}.new`, path);
}

interface Invoice {
  request: ReservationRequest;
  reservation: string | null;
  number: string | null;
  issued: boolean;
}

/** The same for invoices, in a file beside that of the orders. */
class Invoices {
  private readonly path: string;
  private readonly invoices: Map<string, Invoice>;

  constructor(path: string) {
    this.path = path;
    const text = existsSync(path) ? readFileSync(path, "utf8") : "{}";
    this.invoices = new Map(Object.entries(JSON.parse(text) as Record<string, Invoice>));
  }

  /** Before anything is asked for: the invoice, and the request that every try will send. */
  saveDraft(key: string): void {
    if (this.invoices.has(key)) return;
    const date = new Date().toISOString().slice(0, 10);
    const request = { type: "INVOICE", date, document_id: `${SYSTEM}/invoice-${key}`, ttl: TTL };
    this.save(key, { request, reservation: null, number: null, issued: false });
  }

  get(key: string): Invoice {
    const invoice = this.invoices.get(key);
    if (invoice === undefined) throw new Error(`there is no invoice ${key}`);
    return invoice;
  }

  save(key: string, invoice: Invoice): void {
    this.invoices.set(key, invoice);
    write(this.path, Object.fromEntries(this.invoices));
  }

  /** Those that are not issued: drafts, and what is pending. */
  open(): string[] {
    return [...this.invoices].filter(([, invoice]) => !invoice.issued).map(([key]) => key);
  }
}

/** The same for every try: made of the order's own key, never drawn anew. */
function documentId(key: string): string {
  return `${SYSTEM}/order-${key}`;
}

async function numberOne(orders: Orders, key: string, request: NumberRequest): Promise<void> {
  const path = `/api/v1/documents/${encodeURIComponent(documentId(key))}/generate-number`;
  const { document_number } = await call<Numbered>(path, request);
  orders.saveNumber(key, document_number);
}

/** Numbers many drafts, some hundred in a call. Those that get none stay drafts. */
async function numberAll(orders: Orders, waiting: Map<string, NumberRequest>): Promise<void> {
  for (let round = 0; round < ROUNDS_MAX && waiting.size > 0; round += 1) {
    const asked = [...waiting].slice(0, DOCUMENTS_MAX);
    // Without an Idempotency-Key: the next round asks for fewer, and each has its document.
    const documents = asked.map(([key, request]) => ({ document_id: documentId(key), ...request }));
    const { items } = await call<Batch>("/api/v1/document-numbering/batches", { documents });
    let waitMs = 0;
    asked.forEach(([key], index) => {
      const item = items[index];
      if (item === undefined) return;
      if (item.problem === undefined) {
        orders.saveNumber(key, item.document_number);
        waiting.delete(key);
      } else if (isWorthARepeat(item.problem)) {
        waitMs = Math.max(waitMs, item.problem.retry_after_ms ?? 1_000);
      } else {
        console.error(`${key}: ${item.problem.code}: ${item.problem.detail}`);
        waiting.delete(key);
      }
    });
    await sleep(waitMs);
  }
}

/** At every start, and now and then: what a crash or a loss has left without a number. */
async function finish(orders: Orders): Promise<void> {
  await numberAll(orders, orders.drafts());
}

/** Whether the number is the invoice's for good; otherwise the reservation has ended. */
async function confirm(reservation: string): Promise<boolean> {
  try {
    await call(`${RESERVATIONS}/${reservation}/confirm`, {});
    return true;
  } catch (refused) {
    if (refused instanceof Refused && ENDED.includes(refused.code)) return false;
    throw refused;
  }
}

/** Reserve, save, confirm, mark: goes on where an earlier run was interrupted. */
async function issue(invoices: Invoices, key: string): Promise<void> {
  for (;;) {
    const invoice = invoices.get(key);
    if (invoice.reservation !== null && (await confirm(invoice.reservation))) {
      invoices.save(key, { ...invoice, issued: true });
      // It is printed or sent from here on, and never before.
      console.log(key, invoice.number);
      return;
    }
    // Saved as pending, in place of a reservation that ended.
    const held = await call<Reserved>(RESERVATIONS, invoice.request);
    const { reservation_id: reservation, document_number: number } = held;
    invoices.save(key, { ...invoice, reservation, number });
  }
}

/** At every start, and now and then: invoices that a crash or a loss has left pending. */
async function sweep(invoices: Invoices): Promise<void> {
  for (const key of invoices.open()) {
    try {
      await issue(invoices, key);
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      console.error(`${key}: ${refused.message}`);
    }
  }
}

/** A range belongs to no document: its key, kept by the caller, tells a repeat. */
async function labels(key: string, count: number): Promise<void> {
  const order = { type: "SPO", date: "2024-01-22", count };
  const path = "/api/v1/document-numbering/batches";
  const taken = await call<Range>(path, order, `labels-${key}`);
  console.log(key, taken.first_number, taken.last_number);
}

const [path = "orders.json", what = "finish", ...keys] = process.argv.slice(2);
if (!["add", "add-all", "finish", "labels", "invoice"].includes(what)) {
  throw new Error(`what is ${what}? add, add-all, finish, labels or invoice`);
}
if (what === "labels") {
  await labels(keys[0] ?? "", Number(keys[1]));
} else if (what === "invoice") {
  const invoices = new Invoices(`${path}.invoices`);
  for (const key of keys) {
    invoices.saveDraft(key);
    if (!invoices.get(key).issued) await issue(invoices, key);
  }
} else {
  const orders = new Orders(path);
  keys.forEach((key) => orders.saveDraft(key));
  const asked = new Map([...orders.drafts()].filter(([key]) => keys.includes(key)));
  if (what === "add") {
    for (const [key, request] of asked) await numberOne(orders, key, request);
  } else if (what === "add-all") {
    await numberAll(orders, asked);
  } else {
    await finish(orders);
    await sweep(new Invoices(`${path}.invoices`));
  }
}
