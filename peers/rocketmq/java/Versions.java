package peer;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageArrivingListener;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * The parts of the store whose types or signatures differ between 4.3.2 and 5.4.0.
 *
 * <p>The constructors of the store and of its statistics have other parameters, some setters are spelled "Maped", and
 * queues have another type in 5.x.
 */
final class Versions {
    private static final Object LISTENER = Proxy.newProxyInstance(Versions.class.getClassLoader(),
            new Class<?>[] {MessageArrivingListener.class}, (proxy, method, arguments) -> null);
    private static Object statistics;

    private Versions() {
    }

    /** Return a store that is neither loaded nor started. */
    static DefaultMessageStore store(MessageStoreConfig config) throws Exception {
        if (statistics == null) {
            statistics = made(BrokerStatsManager.class, "peer", false);
        }
        ConcurrentMap<String, Object> topics = new ConcurrentHashMap<>();
        return (DefaultMessageStore) made(DefaultMessageStore.class, config, statistics, LISTENER, new BrokerConfig(),
                topics);
    }

    /** Call the first public constructor whose parameters all find an argument of their type. */
    private static Object made(Class<?> type, Object... arguments) throws Exception {
        for (Constructor<?> constructor : type.getConstructors()) {
            Class<?>[] parameters = constructor.getParameterTypes();
            Object[] chosen = new Object[parameters.length];
            Set<Integer> used = new HashSet<>();
            for (int i = 0; i < parameters.length; i++) {
                for (int j = 0; j < arguments.length && chosen[i] == null; j++) {
                    boolean fits = parameters[i].isInstance(arguments[j])
                            || parameters[i] == boolean.class && arguments[j] instanceof Boolean;
                    if (fits && used.add(j)) {
                        chosen[i] = arguments[j];
                    }
                }
            }
            if (used.size() == parameters.length) {
                try {
                    return constructor.newInstance(chosen);
                } catch (InvocationTargetException thrown) {
                    throw thrown.getCause() instanceof Exception ? (Exception) thrown.getCause() : thrown;
                }
            }
        }
        throw new NoSuchMethodException("no known constructor of " + type);
    }

    /** Set one setting under its name of 4.9.3. Up to 4.6.1 "Mapped" is spelled "Maped". */
    static void configure(MessageStoreConfig config, String name, Object value) throws Exception {
        String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        for (String spelled : new String[] {setter, setter.replace("Mapped", "Maped")}) {
            for (Method method : MessageStoreConfig.class.getMethods()) {
                if (!method.getName().equals(spelled) || method.getParameterCount() != 1) {
                    continue;
                }
                Class<?> type = method.getParameterTypes()[0];
                if (type == FlushDiskType.class) {
                    method.invoke(config, FlushDiskType.valueOf((String) value));
                    return;
                }
                if (value instanceof Long && type == int.class) {
                    method.invoke(config, ((Long) value).intValue());
                    return;
                }
                if (type == long.class || type == boolean.class || type == String.class) {
                    method.invoke(config, value);
                    return;
                }
            }
        }
        if (!Boolean.FALSE.equals(value)) { // a version without a switch has it off
            throw new NoSuchMethodException("MessageStoreConfig." + setter);
        }
    }

    /** Whether this version has a setting. */
    static boolean hasSetting(String name) {
        String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        for (Method method : MessageStoreConfig.class.getMethods()) {
            if (method.getName().equals(setter) || method.getName().equals(setter.replace("Mapped", "Maped"))) {
                return true;
            }
        }
        return false;
    }

    /** Return the places in the queue of the messages that a pull found; null if this version does not state them. */
    static List<?> places(GetMessageResult pulled) throws Exception {
        try {
            return (List<?>) Reflect.call(pulled, "getMessageQueueOffset");
        } catch (NoSuchMethodException none) {
            return null;
        }
    }

    /** Return the queues of a store by topic and id. */
    @SuppressWarnings("unchecked")
    static Map<String, Map<Integer, Object>> queues(DefaultMessageStore store) throws Exception {
        return (Map<String, Map<Integer, Object>>) Reflect.call(store, "getConsumeQueueTable");
    }
}
