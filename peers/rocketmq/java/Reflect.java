package peer;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Private fields and methods of the store, by name. */
final class Reflect {
    private Reflect() {
    }

    private static Field find(Class<?> type, String name) throws NoSuchFieldException {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Field field : each.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw new NoSuchFieldException(type.getName() + "." + name);
    }

    static Object get(Object owner, String name) throws ReflectiveOperationException {
        return find(owner.getClass(), name).get(owner);
    }

    static void set(Object owner, String name, Object value) throws ReflectiveOperationException {
        find(owner.getClass(), name).set(owner, value);
    }

    /** Call a method with as many parameters as there are arguments. What it throws is thrown here. */
    static Object call(Object owner, String name, Object... arguments) throws Exception {
        for (Class<?> each = owner.getClass(); each != null; each = each.getSuperclass()) {
            for (Method method : each.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                    method.setAccessible(true);
                    try {
                        return method.invoke(owner, arguments);
                    } catch (InvocationTargetException thrown) {
                        throw thrown.getCause() instanceof Exception ? (Exception) thrown.getCause() : thrown;
                    }
                }
            }
        }
        throw new NoSuchMethodException(owner.getClass().getName() + "." + name);
    }
}
