import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/** Members of groups, and groups through the admin. */
final class Groups {
    private Groups() {}

    /** Commits what comes before it is written, until stdin ends. */
    static void member(Exchange exchange) {
        try (Consumer<byte[], byte[]> consumer = Settings.consumer(exchange, membership(exchange))) {
            exchange.whenInputEnds(consumer::wakeup);
            consumer.subscribe(List.of(exchange.text("topic")));
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Records.POLL);
                if (!records.isEmpty()) {
                    consumer.commitSync();
                }
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    exchange.answer(Records.received(record));
                }
            }
        } catch (WakeupException left) {
            // the test has told it to leave
        }
    }

    private static Map<String, Object> membership(Exchange exchange) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("group.id", exchange.text("group"));
        settings.put("auto.offset.reset", "earliest");
        if (exchange.text("balancer").equals("broker")) {
            settings.put("group.protocol", "consumer");
            return settings;
        }
        settings.put("group.protocol", "classic");
        settings.put("heartbeat.interval.ms", "300"); // so that members soon hear of each other
        settings.put(
            "partition.assignment.strategy",
            exchange.text("balancer").equals("cooperative-sticky")
                ? CooperativeStickyAssignor.class.getName()
                : RangeAssignor.class.getName());
        return settings;
    }

    static void list(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            ObjectNode line = Exchange.line();
            ArrayNode groups = line.putArray("groups");
            for (GroupListing found : admin.listGroups(ListGroupsOptions.forConsumerGroups()).all().get()) {
                groups.add(found.groupId());
            }
            exchange.answer(line);
        }
    }

    static void describe(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            String group = exchange.text("group");
            ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            ObjectNode line = Exchange.line().put("state", found.groupState().toString());
            ArrayNode members = line.putArray("members");
            for (MemberDescription member : found.members()) {
                ObjectNode one = members.addObject().put("client_id", member.clientId());
                ArrayNode partitions = one.putArray("partitions");
                member.assignment().topicPartitions().forEach(owned -> partitions.add(owned.partition()));
            }
            exchange.answer(line);
        }
    }

    static void offsets(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            ObjectNode line = Exchange.line();
            ObjectNode offsets = line.putObject("offsets");
            admin.listConsumerGroupOffsets(exchange.text("group"))
                .partitionsToOffsetAndMetadata()
                .get()
                .forEach((owned, offset) -> offsets.put(String.valueOf(owned.partition()), offset.offset()));
            exchange.answer(line);
        }
    }

    static void setOffsets(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            Map<TopicPartition, OffsetAndMetadata> wishes = new HashMap<>();
            exchange.starts().forEach((partition, start) -> wishes.put(
                new TopicPartition(exchange.text("topic"), partition), new OffsetAndMetadata(start)));
            admin.alterConsumerGroupOffsets(exchange.text("group"), wishes).all().get();
        }
    }

    static void delete(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            admin.deleteConsumerGroups(List.of(exchange.text("group"))).all().get();
        }
    }
}
