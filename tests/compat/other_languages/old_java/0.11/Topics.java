import java.util.Collections;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;

/** Creates, describes, alters and deletes topics, and sees the cluster. */
final class Topics implements Chapter {
    @Override
    public void check(Broker broker) throws Exception {
        String topic = broker.topic + "-made";
        try (AdminClient admin = AdminClient.create(broker.settings())) {
            NewTopic wish = new NewTopic(topic, 3, (short) 1);
            wish.configs(Collections.singletonMap("retention.ms", "777000"));
            admin.createTopics(Collections.singleton(wish)).all().get();
            Broker.await("creation", () -> admin.listTopics().names().get().contains(topic));
            Broker.expect("partitions", 3, partitions(admin, topic));
            Broker.expect("config", "777000", retention(admin, topic));
            alter(admin, topic, "888000");
            Broker.await("alteration", () -> retention(admin, topic).equals("888000"));
            Broker.expect("brokers", 1, admin.describeCluster().nodes().get().size());
            admin.deleteTopics(Collections.singleton(topic)).all().get();
            Broker.await("deletion", () -> !admin.listTopics().names().get().contains(topic));
        }
    }

    @SuppressWarnings("deprecation") // newer clients describe by id too
    static int partitions(AdminClient admin, String topic) throws Exception {
        return admin.describeTopics(Collections.singleton(topic)).all().get().get(topic).partitions().size();
    }

    private static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private static String retention(AdminClient admin, String topic) throws Exception {
        ConfigResource resource = resource(topic);
        Config found = admin.describeConfigs(Collections.singleton(resource)).all().get().get(resource);
        return found.get("retention.ms").value();
    }

    @SuppressWarnings("deprecation") // newer clients alter one by one
    private static void alter(AdminClient admin, String topic, String retention) throws Exception {
        Config wish = new Config(Collections.singleton(new ConfigEntry("retention.ms", retention)));
        admin.alterConfigs(Collections.singletonMap(resource(topic), wish)).all().get();
    }
}
