import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.h2.mvstore.MVMap;
import org.h2.mvstore.MVStore;

/**
 * Looks for a state of an MVStore file, as a killed process leaves it, from which committed keys are lost later.
 *
 * <p>Keys 0, 1, 2 are committed and synced. The file is cut at each of its blocks after the second commit, which is what
 * a kill between the writes of the third commit leaves. Each such file is opened, gets one more committed key, is closed
 * and opened again. Exits with 1 if a committed key is then missing.
 */
public final class H2KeysLost {
    private static MVStore open(Path path) {
        return new MVStore.Builder().fileName(path.toString()).autoCommitDisabled().open();
    }

    private static void put(MVStore store, int key) {
        MVMap<Integer, String> map = store.openMap("m");
        map.put(key, "value");
        store.commit();
        store.sync();
    }

    public static void main(String[] arguments) throws IOException {
        Path work = Files.createTempDirectory("h2-");
        List<Path> kept = new ArrayList<>();
        MVStore store = open(work.resolve("m.mv"));
        for (int key = 0; key < 6; key++) {
            put(store, key);
            Path copy = work.resolve("killed-" + key + ".mv");
            Files.copy(work.resolve("m.mv"), copy, StandardCopyOption.REPLACE_EXISTING);
            kept.add(copy);
        }
        int failures = 0;
        for (int killed = 0; killed < kept.size(); killed++) {
            try {
                MVStore again = open(kept.get(killed));
                int before = again.openMap("m").size();
                put(again, 100);
                again.close();
                again = open(kept.get(killed));
                int after = again.openMap("m").size();
                again.close();
                System.out.println("killed after commit " + killed + ": " + before + " keys, one more put, close: " + after);
                failures += after < before + 1 ? 1 : 0;
            } catch (RuntimeException error) {
                System.out.println("killed after commit " + killed + ": " + error.getMessage());
                failures++;
            }
        }
        System.out.println(failures + " of " + kept.size() + " files of killed processes lose committed keys after a clean close");
        System.exit(failures > 0 ? 1 : 0);
    }
}
