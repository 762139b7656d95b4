import java.util.Collection;
import java.util.Collections;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;

/** Lists, describes and deletes the group whose members have left. */
final class Groups implements Chapter {
    @Override
    public void check(Broker broker) throws Exception {
        String group = broker.group();
        Collection<String> groups = Collections.singleton(group);
        try (AdminClient admin = AdminClient.create(broker.settings())) {
            Broker.expect("listed", true, isListed(admin, group));
            ConsumerGroupDescription found = admin.describeConsumerGroups(groups).all().get().get(group);
            Broker.expect("state", "Empty", found.state().toString());
            long offset = admin.listConsumerGroupOffsets(group)
                .partitionsToOffsetAndMetadata()
                .get()
                .get(broker.partition)
                .offset();
            Broker.expect("offset", broker.committed(), offset);
            admin.deleteConsumerGroups(groups).all().get();
            Broker.expect("listed after its deletion", false, isListed(admin, group));
        }
    }

    private static boolean isListed(AdminClient admin, String group) throws Exception {
        for (ConsumerGroupListing listed : admin.listConsumerGroups().all().get()) {
            if (listed.groupId().equals(group)) {
                return true;
            }
        }
        return false;
    }
}
