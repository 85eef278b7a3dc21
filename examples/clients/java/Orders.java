import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;

/**
 * Numbers for orders in a store of one's own, whatever breaks in between.
 *
 * <pre>
 * export NUMERATOR_URL=http://127.0.0.1:8080 NUMERATOR_TOKEN=...
 * java Orders.java orders.tsv add A-1          saves order A-1 and has it numbered
 * java Orders.java orders.tsv add-all A-2 A-3  the same for many, in one call
 * java Orders.java orders.tsv finish           numbers what was interrupted
 * java Orders.java orders.tsv labels L-1 100   a range of 100 numbers
 * java Orders.java orders.tsv invoice I-1      an invoice without a gap, once it is confirmed
 * </pre>
 *
 * Needs Java 17 and no library; {@link Json} stands for the one that you use.
 */
public final class Orders {
    static final String URL = env("NUMERATOR_URL", "http://127.0.0.1:8080");
    static final String TOKEN = env("NUMERATOR_TOKEN", "");
    /** Begins each document id: the ids of all callers of a ledger are of one list. */
    static final String SYSTEM = "shop";
    /** Longer than the service takes at most (its http.time_limit, 40 s). */
    static final Duration ANSWER_TIME_LIMIT = Duration.ofSeconds(45);
    /** How long a request is repeated; afterwards {@code finish} goes on. */
    static final Duration PATIENCE = Duration.ofSeconds(120);
    static final long WAIT_MAX_MS = 10_000;
    static final int ROUNDS_MAX = 5;
    /** What one call may ask for. */
    static final int DOCUMENTS_MAX = 1_000;
    static final List<String> WORDS = List.of("add", "add-all", "finish", "labels", "invoice");
    static final String RESERVATIONS = "/api/v1/document-numbering/reservations";
    /** For how long an invoice holds its number before it is confirmed. */
    static final String TTL = "15m";
    /** A reservation that is over: another one takes its place. */
    static final List<String> ENDED = List.of("reservation-expired", "reservation-cancelled",
            "reservation-lost", "reservation-not-found");
    static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** The request is wrong, and a repeat would not help. */
    @SuppressWarnings("serial")
    static final class Refused extends Exception {
        final String code;
        /** An earlier try, whose answer was lost, may have taken a number all the same. */
        final boolean maybeTaken;

        Refused(String code, String detail, boolean maybeTaken) {
            super(code + ": " + detail);
            this.code = code;
            this.maybeTaken = maybeTaken;
        }
    }

    /** No number for now. The same request, repeated later, finds one that was taken. */
    @SuppressWarnings("serial")
    static final class Unanswered extends Exception {
        Unanswered(String message) {
            super(message);
        }
    }

    /** What one try came to. Without an answer, the status is 0. */
    record Answer(int status, long waitMs, Map<String, Object> content) {}

    static Answer send(String path, String body, String key) throws InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(URL + path))
                .timeout(ANSWER_TIME_LIMIT)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body));
        if (!TOKEN.isEmpty()) request.header("Authorization", "Bearer " + TOKEN);
        if (key != null) request.header("Idempotency-Key", key);
        try {
            var answer = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
            var wait = answer.headers().firstValue("Retry-After").orElse("");
            var waitMs = wait.matches("\\d{1,6}") ? 1_000 * Long.parseLong(wait) : 0;
            var type = answer.headers().firstValue("Content-Type").orElse("");
            var isJson = type.matches("application/(problem\\+)?json.*");
            return new Answer(answer.statusCode(), waitMs, isJson ? Json.object(answer.body()) : null);
        } catch (IOException | IllegalArgumentException lost) {
            return new Answer(0, 0, null);
        }
    }

    /** Sends one request until it is answered: each time the same document, key and body. */
    static Map<String, Object> call(String path, String body, String key)
            throws InterruptedException, Refused, Unanswered {
        var giveUpAt = System.nanoTime() + PATIENCE.toNanos();
        var maybeTaken = false;
        for (long pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, WAIT_MAX_MS)) {
            var answer = send(path, body, key);
            int status = answer.status();
            var problem = answer.content();
            if (problem != null && status >= 200 && status < 300) return problem;
            if (problem == null || !problem.containsKey("number_taken")) {
                // No answer, or that of a proxy: nobody knows how far the request got.
                if (status >= 400 && status < 500 && status != 408 && status != 429) {
                    throw new Refused("http-" + status, URL + path + " is not the service", maybeTaken);
                }
                maybeTaken = true;
            } else {
                maybeTaken |= problem.get("number_taken").equals("maybe");
                if (!isWorthARepeat(problem)) {
                    var detail = problem.get("detail").toString();
                    throw new Refused(problem.get("code").toString(), detail, maybeTaken);
                }
            }
            // Many callers that wait should not come back in the same moment.
            var jitteredMs = ThreadLocalRandom.current().nextLong(pauseMs / 2, pauseMs + 1);
            var waitMs = Math.max(answer.waitMs(), jitteredMs);
            if (System.nanoTime() + waitMs * 1_000_000 > giveUpAt) {
                var taken = maybeTaken ? "maybe" : "not";
                throw new Unanswered(path + ": a number was " + taken + " taken");
            }
            Thread.sleep(waitMs);
        }
    }

    /** Whether the same request may get a number, or may find one that was taken. */
    static boolean isWorthARepeat(Map<String, Object> problem) {
        return problem.get("retryable").equals(true) || problem.get("number_taken").equals("maybe");
    }

    /** Stands for your database: each change is on disk, whole, before the next line runs. */
    static final class Store {
        /** The request of each order, and its number, which is empty in a draft. */
        record Order(String request, String number) {}

        private final Path path;
        private final Map<String, Order> orders = new LinkedHashMap<>();

        Store(Path path) throws IOException {
            this.path = path;
            if (!Files.exists(path)) return;
            for (var line : Files.readAllLines(path)) {
                var parts = line.split("\t", 3);
                orders.put(parts[0], new Order(parts[1], parts[2]));
            }
        }

        /** Before anything is asked for: the order, and the request that every try will send. */
        void saveDraft(String key) throws IOException {
            var request = "\"type\":\"SPO\",\"date\":\"" + LocalDate.now() + "\"";
            if (orders.putIfAbsent(key, new Order(request, "")) == null) commit();
        }

        void saveNumber(String key, String number) throws IOException {
            var order = orders.get(key);
            if (!order.number().isEmpty() && !order.number().equals(number)) {
                throw new IllegalStateException(key + " has another number than " + number);
            }
            orders.put(key, new Order(order.request(), number));
            commit();
            System.out.println(key + " " + number);
        }

        Map<String, String> drafts() {
            var waiting = new LinkedHashMap<String, String>();
            orders.forEach((key, order) -> {
                if (order.number().isEmpty()) waiting.put(key, order.request());
            });
            return waiting;
        }

        private void commit() throws IOException {
            var lines = new ArrayList<String>();
            orders.forEach((key, order) ->
                    lines.add(key + "\t" + order.request() + "\t" + order.number()));
            write(path, lines);
        }
    }

    /** Replaces a file: on disk, whole, when it returns. */
    static void write(Path path, List<String> lines) throws IOException {
        var file = path.resolveSibling(path.getFileName() + ".new");
        Files.write(file, lines, StandardOpenOption.CREATE, StandardOpenOption.WRITE,
                StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.SYNC);
        Files.move(file, path, StandardCopyOption.ATOMIC_MOVE);
    }

    /** The same for invoices, in a file beside that of the orders. */
    static final class Invoices {
        /** Without a reservation a draft; with one pending, until it is issued. */
        record Invoice(String request, String reservation, String number, boolean issued) {}

        private final Path path;
        private final Map<String, Invoice> invoices = new LinkedHashMap<>();

        Invoices(Path path) throws IOException {
            this.path = path;
            if (!Files.exists(path)) return;
            for (var line : Files.readAllLines(path)) {
                var parts = line.split("\t", 5);
                var issued = Boolean.parseBoolean(parts[4]);
                invoices.put(parts[0], new Invoice(parts[1], parts[2], parts[3], issued));
            }
        }

        /** Before anything is asked for: the invoice, and the request that every try will send. */
        void saveDraft(String key) throws IOException {
            if (invoices.containsKey(key)) return;
            var request = "{\"type\":\"INVOICE\",\"date\":\"" + LocalDate.now() + "\",\"document_id\":"
                    + Json.text(SYSTEM + "/invoice-" + key) + ",\"ttl\":\"" + TTL + "\"}";
            save(key, new Invoice(request, "", "", false));
        }

        Invoice get(String key) {
            return invoices.get(key);
        }

        void save(String key, Invoice invoice) throws IOException {
            invoices.put(key, invoice);
            var lines = new ArrayList<String>();
            invoices.forEach((name, one) -> lines.add(String.join("\t", name, one.request(),
                    one.reservation(), one.number(), Boolean.toString(one.issued()))));
            write(path, lines);
        }

        /** Those that are not issued: drafts, and what is pending. */
        List<String> open() {
            return invoices.keySet().stream().filter(key -> !get(key).issued()).toList();
        }
    }

    /** The same for every try: made of the order's own key, never drawn anew. */
    static String documentId(String key) {
        return SYSTEM + "/order-" + key;
    }

    static void numberOne(Store orders, String key, String request) throws Exception {
        var id = URLEncoder.encode(documentId(key), StandardCharsets.UTF_8).replace("+", "%20");
        var numbered = call("/api/v1/documents/" + id + "/generate-number", "{" + request + "}", null);
        orders.saveNumber(key, numbered.get("document_number").toString());
    }

    /** Numbers many drafts, some hundred in a call. Those that get none stay drafts. */
    @SuppressWarnings("unchecked")
    static void numberAll(Store orders, Map<String, String> waiting) throws Exception {
        for (int round = 0; round < ROUNDS_MAX && !waiting.isEmpty(); round++) {
            var keys = waiting.keySet().stream().limit(DOCUMENTS_MAX).toList();
            // Without an Idempotency-Key: the next round asks for fewer, and each has its document.
            var documents = keys.stream()
                    .map(key -> "{\"document_id\":" + Json.text(documentId(key)) + "," + waiting.get(key) + "}")
                    .collect(Collectors.joining(","));
            var body = "{\"documents\":[" + documents + "]}";
            var batch = call("/api/v1/document-numbering/batches", body, null);
            var items = (List<Map<String, Object>>) batch.get("items");
            long waitMs = 0;
            for (int i = 0; i < keys.size(); i++) {
                var problem = (Map<String, Object>) items.get(i).get("problem");
                if (problem == null) {
                    orders.saveNumber(keys.get(i), items.get(i).get("document_number").toString());
                    waiting.remove(keys.get(i));
                } else if (isWorthARepeat(problem)) {
                    var retryAfterMs = problem.getOrDefault("retry_after_ms", 1_000.0);
                    waitMs = Math.max(waitMs, ((Double) retryAfterMs).longValue());
                } else {
                    System.err.println(keys.get(i) + ": " + problem.get("detail"));
                    waiting.remove(keys.get(i));
                }
            }
            Thread.sleep(waitMs);
        }
    }

    /** At every start, and now and then: what a crash or a loss has left without a number. */
    static void finish(Store orders) throws Exception {
        numberAll(orders, orders.drafts());
    }

    /** Whether the number is the invoice's for good; otherwise the reservation has ended. */
    static boolean confirm(String reservation) throws InterruptedException, Refused, Unanswered {
        try {
            call(RESERVATIONS + "/" + reservation + "/confirm", "{}", null);
            return true;
        } catch (Refused refused) {
            if (ENDED.contains(refused.code)) return false;
            throw refused;
        }
    }

    /** Reserve, save, confirm, mark: goes on where an earlier run was interrupted. */
    static void issue(Invoices invoices, String key) throws Exception {
        while (true) {
            var invoice = invoices.get(key);
            var request = invoice.request();
            var reservation = invoice.reservation();
            var number = invoice.number();
            if (!reservation.isEmpty() && confirm(reservation)) {
                invoices.save(key, new Invoices.Invoice(request, reservation, number, true));
                // It is printed or sent from here on, and never before.
                System.out.println(key + " " + number);
                return;
            }
            // Saved as pending, in place of a reservation that ended.
            var held = call(RESERVATIONS, request, null);
            reservation = held.get("reservation_id").toString();
            number = held.get("document_number").toString();
            invoices.save(key, new Invoices.Invoice(request, reservation, number, false));
        }
    }

    /** At every start, and now and then: invoices that a crash or a loss has left pending. */
    static void sweep(Invoices invoices) throws Exception {
        for (var key : invoices.open()) {
            try {
                issue(invoices, key);
            } catch (Refused refused) {
                System.err.println(key + ": " + refused.getMessage());
            }
        }
    }

    /** A range belongs to no document: its key, kept by the caller, tells a repeat. */
    static void labels(String key, int count) throws Exception {
        var body = "{\"type\":\"SPO\",\"date\":\"2024-01-22\",\"count\":" + count + "}";
        var taken = call("/api/v1/document-numbering/batches", body, "labels-" + key);
        System.out.println(key + " " + taken.get("first_number") + " " + taken.get("last_number"));
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 2 || !WORDS.contains(arguments[1])) {
            throw new IllegalArgumentException("a file, then one of " + WORDS);
        }
        var what = arguments[1];
        var keys = List.of(arguments).subList(2, arguments.length);
        if (what.equals("labels")) {
            labels(keys.get(0), Integer.parseInt(keys.get(1)));
            return;
        }
        var invoices = new Invoices(Path.of(arguments[0] + ".invoices"));
        if (what.equals("invoice")) {
            for (var key : keys) {
                invoices.saveDraft(key);
                if (!invoices.get(key).issued()) issue(invoices, key);
            }
            return;
        }
        var orders = new Store(Path.of(arguments[0]));
        for (var key : keys) orders.saveDraft(key);
        var asked = orders.drafts();
        asked.keySet().retainAll(keys);
        switch (what) {
            case "add" -> {
                for (var draft : asked.entrySet()) numberOne(orders, draft.getKey(), draft.getValue());
            }
            case "add-all" -> numberAll(orders, asked);
            default -> {
                finish(orders);
                sweep(invoices);
            }
        }
    }

    static String env(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    /** As much JSON as is needed here. What is none is an IllegalArgumentException. */
    static final class Json {
        private final String text;
        private int at;

        private Json(String text) {
            this.text = text;
        }

        @SuppressWarnings("unchecked")
        static Map<String, Object> object(String text) {
            var json = new Json(text);
            if (json.value() instanceof Map<?, ?> object) return (Map<String, Object>) object;
            throw new IllegalArgumentException("no object");
        }

        static String text(String value) {
            var quoted = new StringBuilder("\"");
            for (char c : value.toCharArray()) {
                quoted.append(c < 32 || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : c);
            }
            return quoted.append('"').toString();
        }

        private Object value() {
            switch (peek()) {
                case '{' -> {
                    var object = new LinkedHashMap<String, Object>();
                    for (at++; peek() != '}'; skip(',')) {
                        var name = string();
                        expect(':');
                        object.put(name, value());
                    }
                    at++;
                    return object;
                }
                case '[' -> {
                    var list = new ArrayList<>();
                    for (at++; peek() != ']'; skip(',')) list.add(value());
                    at++;
                    return list;
                }
                case '"' -> {
                    return string();
                }
                default -> {
                    int from = at;
                    while (at < text.length() && ",]} \n\r\t".indexOf(text.charAt(at)) < 0) at++;
                    var word = text.substring(from, at);
                    if (word.equals("null")) return null;
                    var isTruth = word.equals("true") || word.equals("false");
                    return isTruth ? (Object) word.equals("true") : Double.valueOf(word);
                }
            }
        }

        private String string() {
            expect('"');
            var string = new StringBuilder();
            while (next() != '"') {
                char c = text.charAt(at - 1);
                if (c != '\\') {
                    string.append(c);
                    continue;
                }
                switch (next()) {
                    case 'u' -> {
                        string.append((char) Integer.parseInt(text, at, at + 4, 16));
                        at += 4;
                    }
                    case 'n' -> string.append('\n');
                    case 't' -> string.append('\t');
                    case 'r' -> string.append('\r');
                    case 'b' -> string.append('\b');
                    case 'f' -> string.append('\f');
                    default -> string.append(text.charAt(at - 1));
                }
            }
            return string.toString();
        }

        private char next() {
            if (at >= text.length()) throw new IllegalArgumentException("cut off");
            return text.charAt(at++);
        }

        private char peek() {
            while (at < text.length() && Character.isWhitespace(text.charAt(at))) at++;
            if (at >= text.length()) throw new IllegalArgumentException("cut off");
            return text.charAt(at);
        }

        private void expect(char wanted) {
            peek();
            if (next() != wanted) throw new IllegalArgumentException("no " + wanted);
        }

        private void skip(char wanted) {
            if (peek() == wanted) at++;
        }
    }
}
