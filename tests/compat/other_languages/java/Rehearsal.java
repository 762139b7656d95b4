import java.io.File;
import java.io.IOException;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/** Loads every class once, at build time, so that the archive made of them lets later runs start soon. */
final class Rehearsal {
    private Rehearsal() {}

    static void loadClasses(Exchange exchange) throws IOException {
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            try (JarFile jar = new JarFile(path)) {
                jar.stream().map(JarEntry::getName).filter(Rehearsal::isClass).forEach(Rehearsal::load);
            }
        }
    }

    private static boolean isClass(String file) {
        return file.endsWith(".class") && !file.startsWith("META-INF") && !file.endsWith("-info.class");
    }

    private static void load(String file) {
        String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
        try {
            Class.forName(name, false, Rehearsal.class.getClassLoader());
        } catch (ClassNotFoundException | LinkageError unneeded) {
            // it builds on a package that is not here, so nothing here needs it
        }
    }
}
