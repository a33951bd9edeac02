package peer;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON of the protocol: maps, lists, strings, longs, booleans and null. Fractions do not occur. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Map<String, Object> object(Object... namesAndValues) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            made.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return made;
    }

    // ---- reading

    @SuppressWarnings("unchecked")
    static Map<String, Object> parse(String line) {
        Json reader = new Json(line);
        Object value = reader.value();
        reader.skipBlanks();
        if (reader.at < line.length() || !(value instanceof Map)) {
            throw new IllegalArgumentException("a request is one JSON object");
        }
        return (Map<String, Object>) value;
    }

    private void skipBlanks() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private boolean take(char wanted) {
        skipBlanks();
        boolean isThere = at < text.length() && text.charAt(at) == wanted;
        at += isThere ? 1 : 0;
        return isThere;
    }

    private void require(char wanted) {
        if (!take(wanted)) {
            throw new IllegalArgumentException("'" + wanted + "' is missing at " + at);
        }
    }

    private Object value() {
        if (take('{')) {
            Map<String, Object> found = new LinkedHashMap<>();
            if (take('}')) {
                return found;
            }
            do {
                require('"');
                String name = string();
                require(':');
                found.put(name, value());
            } while (take(','));
            require('}');
            return found;
        }
        if (take('[')) {
            List<Object> found = new ArrayList<>();
            if (take(']')) {
                return found;
            }
            do {
                found.add(value());
            } while (take(','));
            require(']');
            return found;
        }
        if (take('"')) {
            return string();
        }
        int start = at;
        while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || text.charAt(at) == '-')) {
            at++;
        }
        String word = text.substring(start, at);
        switch (word) {
            case "true":
                return true;
            case "false":
                return false;
            case "null":
                return null;
            default:
                return Long.parseLong(word);
        }
    }

    private String string() {
        StringBuilder found = new StringBuilder();
        for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
            if (c != '\\') {
                found.append(c);
                continue;
            }
            char escaped = text.charAt(at++);
            int plain = "bfnrt".indexOf(escaped);
            if (escaped == 'u') {
                found.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                at += 4;
            } else {
                found.append(plain < 0 ? escaped : "\b\f\n\r\t".charAt(plain));
            }
        }
        return found.toString();
    }

    // ---- writing

    static String text(Object value) {
        StringBuilder out = new StringBuilder();
        write(out, value);
        return out.toString();
    }

    private static void write(StringBuilder out, Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Map) {
            String before = "{";
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                out.append(before);
                quote(out, String.valueOf(entry.getKey()));
                out.append(':');
                write(out, entry.getValue());
                before = ",";
            }
            out.append(before.equals("{") ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String before = "[";
            for (Object item : (Iterable<?>) value) {
                out.append(before);
                write(out, item);
                before = ",";
            }
            out.append(before.equals("[") ? "[]" : "]");
        } else {
            quote(out, value.toString());
        }
    }

    /** Everything outside printable ASCII is escaped, so that an answer is one line of ASCII. */
    private static void quote(StringBuilder out, String value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
