import java.util.Arrays;

/**
 * An old client of Apache Kafka: `Main BOOTSTRAP TOPIC CODECS CHAPTER...` goes through the chapters and writes the
 * name of each when it is done. A chapter is a class of its own, in a folder named by the first client with its calls.
 */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        Broker broker = new Broker(arguments[0], arguments[1], arguments[2].split(","));
        for (String name : Arrays.asList(arguments).subList(3, arguments.length)) {
            Chapter chapter = (Chapter) Class.forName(name).getDeclaredConstructor().newInstance();
            chapter.check(broker);
            System.out.println(name);
        }
        System.exit(0); // without waiting for what a client still does in threads of its own
    }
}
