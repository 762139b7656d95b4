import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownServerException;
import org.apache.kafka.common.protocol.Errors;

/** Apache Kafka's own client behind the program protocol. */
public final class Main {
    private interface Command {
        void run(Exchange exchange) throws Exception;
    }

    private static final Map<String, Command> COMMANDS = Map.ofEntries(
        Map.entry("create_topic", Topics::create),
        Map.entry("list_topics", Topics::list),
        Map.entry("describe_topic", Topics::describe),
        Map.entry("add_partitions", Topics::addPartitions),
        Map.entry("delete_topic", Topics::delete),
        Map.entry("delete_records", Topics::deleteRecords),
        Map.entry("offset", Topics::offset),
        Map.entry("describe_configs", Topics::describeConfigs),
        Map.entry("alter_configs", Topics::alterConfigs),
        Map.entry("describe_cluster", Topics::describeCluster),
        Map.entry("list_groups", Groups::list),
        Map.entry("describe_group", Groups::describe),
        Map.entry("group_offsets", Groups::offsets),
        Map.entry("set_group_offsets", Groups::setOffsets),
        Map.entry("delete_group", Groups::delete),
        Map.entry("member", Groups::member),
        Map.entry("produce", Records::produce),
        Map.entry("consume", Records::consume),
        Map.entry("transaction", Transactions::transact),
        Map.entry("transform", Transactions::transform),
        Map.entry("be_replaced", Transactions::beReplaced),
        Map.entry("load_classes", Rehearsal::loadClasses));

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2 || !COMMANDS.containsKey(arguments[0])) {
            System.err.println("usage: Main COMMAND BOOTSTRAP, not " + String.join(" ", arguments));
            System.exit(2);
        }
        Exchange exchange = new Exchange(arguments[1]);
        try {
            COMMANDS.get(arguments[0]).run(exchange);
        } catch (Exception problem) {
            Throwable cause = unwrapped(problem);
            exchange.answer(
                Exchange.line().put("error", nameOf(cause)).put("message", String.valueOf(cause.getMessage())));
            System.exit(1);
        }
        System.exit(0); // without waiting for what a client still does in threads of its own
    }

    /** What went wrong under what a future wraps around it, or a wait that it kept from ending. */
    private static Throwable unwrapped(Throwable problem) {
        boolean isWrapped = problem instanceof ExecutionException || problem instanceof TimeoutException;
        return isWrapped && problem.getCause() != null ? unwrapped(problem.getCause()) : problem;
    }

    private static String nameOf(Throwable problem) {
        if (problem instanceof OffsetOutOfRangeException) { // the consumer's own, unknown to Errors
            return Errors.OFFSET_OUT_OF_RANGE.name();
        }
        Errors known = Errors.forException(problem);
        boolean isNamed = known != Errors.UNKNOWN_SERVER_ERROR || problem instanceof UnknownServerException;
        return isNamed ? known.name() : "unnamed";
    }
}
