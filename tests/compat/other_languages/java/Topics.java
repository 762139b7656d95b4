import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** Topics and the cluster, through the admin. */
final class Topics {
    private Topics() {}

    static void create(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            int partitions = exchange.request.path("partitions").asInt();
            NewTopic wish = new NewTopic(exchange.text("topic"), partitions, (short) 1);
            admin.createTopics(List.of(wish.configs(exchange.texts("configs")))).all().get();
        }
    }

    static void list(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            ObjectNode line = Exchange.line();
            ArrayNode topics = line.putArray("topics");
            admin.listTopics().names().get().forEach(topics::add);
            exchange.answer(line);
        }
    }

    static void describe(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            ObjectNode line = Exchange.line();
            ArrayNode partitions = line.putArray("partitions");
            for (TopicPartitionInfo found : described(admin, exchange.text("topic")).partitions()) {
                ObjectNode one = partitions.addObject();
                one.put("partition", found.partition()).put("leader", found.leader().id());
                putIds(one.putArray("replicas"), found.replicas());
                putIds(one.putArray("in_sync"), found.isr());
            }
            exchange.answer(line);
        }
    }

    /** The topic, or the refusal that tells that there is none. */
    static TopicDescription described(Admin admin, String topic)
        throws ExecutionException, InterruptedException {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    static void addPartitions(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            NewPartitions wish = NewPartitions.increaseTo(exchange.request.path("partitions").asInt());
            admin.createPartitions(Map.of(exchange.text("topic"), wish)).all().get();
        }
    }

    static void delete(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            admin.deleteTopics(List.of(exchange.text("topic"))).all().get();
        }
    }

    static void deleteRecords(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            Map<TopicPartition, RecordsToDelete> wishes = new HashMap<>();
            exchange.starts().forEach((partition, start) -> wishes.put(
                new TopicPartition(exchange.text("topic"), partition), RecordsToDelete.beforeOffset(start)));
            admin.deleteRecords(wishes).all().get();
        }
    }

    static void offset(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            int number = exchange.request.path("partition").asInt();
            TopicPartition partition = new TopicPartition(exchange.text("topic"), number);
            OffsetSpec wish = spec(exchange.request.path("timestamp_ms").asLong());
            long found = admin.listOffsets(Map.of(partition, wish)).partitionResult(partition).get().offset();
            exchange.answer(Exchange.line().put("offset", found));
        }
    }

    private static OffsetSpec spec(long timestampMs) {
        if (timestampMs == Exchange.EARLIEST) {
            return OffsetSpec.earliest();
        }
        return timestampMs == Exchange.LATEST ? OffsetSpec.latest() : OffsetSpec.forTimestamp(timestampMs);
    }

    static void describeConfigs(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            ConfigResource topic = resource(exchange);
            ObjectNode line = Exchange.line();
            ObjectNode configs = line.putObject("configs");
            for (ConfigEntry entry : admin.describeConfigs(List.of(topic)).all().get().get(topic).entries()) {
                configs.put(entry.name(), entry.value());
            }
            exchange.answer(line);
        }
    }

    static void alterConfigs(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            Collection<AlterConfigOp> wishes = new ArrayList<>();
            exchange.texts("configs").forEach((name, value) -> wishes.add(
                new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
            admin.incrementalAlterConfigs(Map.of(resource(exchange), wishes)).all().get();
        }
    }

    private static ConfigResource resource(Exchange exchange) {
        return new ConfigResource(ConfigResource.Type.TOPIC, exchange.text("topic"));
    }

    static void describeCluster(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            DescribeClusterResult found = admin.describeCluster();
            ObjectNode line = Exchange.line();
            line.put("cluster_id", found.clusterId().get()).put("controller", found.controller().get().id());
            ArrayNode brokers = line.putArray("brokers");
            for (Node node : found.nodes().get()) {
                brokers.addObject().put("id", node.id()).put("host", node.host()).put("port", node.port());
            }
            exchange.answer(line);
        }
    }

    private static void putIds(ArrayNode ids, List<Node> nodes) {
        nodes.forEach(node -> ids.add(node.id()));
    }
}
