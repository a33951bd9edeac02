package board;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Adapters of the board for stores in Java: {@code java board.Board STORE MODE DIRECTORY}.
 *
 * <p>Each adapter keeps one log of records in a library. The program speaks the JSON lines protocol of tornpage
 * (docs/test-your-store.md) on standard input and output. Requests are flat JSON objects without escapes. One process
 * opens many stores, one after the other.
 */
public final class Board {
    /** An ordered log of texts in a directory. */
    interface RecordLog extends AutoCloseable {
        /** Return every record of the store, oldest first. */
        List<String> all() throws Exception;

        /** Store record number {@code n}, counted from 0. */
        void push(int n, String record) throws Exception;

        /** Make earlier records durable. */
        void flush() throws Exception;
    }

    private final RecordLog log;
    private final Map<String, List<String>> queues = new HashMap<>();
    private int count;

    private Board(RecordLog log) throws Exception {
        this.log = log;
        for (String record : log.all()) {
            remember(record);
        }
    }

    private static RecordLog open(String store, String mode, Path directory) throws Exception {
        switch (store) {
            case "h2-mvstore":
                return new MVStoreLog(directory);
            case "mapdb":
                return new MapDBLog(directory);
            default:
                throw new IllegalArgumentException("no store " + store);
        }
    }

    /** Add a record to the tables and return its number in its queue. */
    private int remember(String record) {
        int cut = record.lastIndexOf(' ');
        List<String> bodies = queues.computeIfAbsent(record.substring(0, cut), name -> new ArrayList<>());
        bodies.add(record.substring(cut + 1));
        count++;
        return bodies.size() - 1;
    }

    /** Return the value of a field of a flat JSON object, or null. */
    private static String field(String line, String name) {
        int at = line.indexOf("\"" + name + "\"");
        if (at < 0) {
            return null;
        }
        int begin = line.indexOf(':', at) + 1;
        while (line.charAt(begin) == ' ') {
            begin++;
        }
        if (line.charAt(begin) == '"') {
            return line.substring(begin + 1, line.indexOf('"', begin + 1));
        }
        int end = begin;
        while (",}]".indexOf(line.charAt(end)) < 0) {
            end++;
        }
        return line.substring(begin, end).trim();
    }

    private String answer(String store, String line) throws Exception {
        String queue = field(line, "topic") + " " + field(line, "queue");
        switch (field(line, "do")) {
            case "hello":
                return "{\"tornpage\": 1, \"open\": true, \"name\": \"" + store + "\", \"promises\": {\"durable\": \"put\", \"kill\": \"put\","
                        + " \"recovered\": false, \"offsets\": false, \"queues\": true, \"index\": false}}";
            case "put":
                String record = queue + " " + field(line, "body");
                int offset = count;
                log.push(offset, record);
                return "{\"offset\": " + offset + ", \"number\": " + remember(record) + "}";
            case "read":
                List<String> bodies = queues.getOrDefault(queue, List.of());
                int number = Integer.parseInt(field(line, "number"));
                return number < bodies.size() ? "{\"body\": \"" + bodies.get(number) + "\"}" : "{\"body\": null}";
            case "flush":
                log.flush();
                return "{}";
            case "close":
                log.close();
                return "{}";
            default:
                throw new IllegalArgumentException("no such request");
        }
    }

    public static void main(String[] arguments) throws Exception {
        String store = arguments[0];
        Board board = new Board(open(store, arguments[1], Path.of(arguments[2])));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String answer;
            try {
                if ("open".equals(field(line, "do"))) {
                    board = new Board(open(store, arguments[1], Path.of(field(line, "dir"))));
                    answer = board.answer(store, "{\"do\": \"hello\"}");
                } else {
                    answer = board.answer(store, line);
                }
            } catch (Exception error) {
                answer = "{\"error\": \"" + error.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"}";
            }
            System.out.println(answer);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0); // threads of a library do not keep the process
    }
}
