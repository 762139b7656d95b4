"""Make a topic, change a setting, look at the cluster and at a group's lag.

python examples/clients/administration.py [HOST:PORT]
"""

import sys

import ottla

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

with ottla.Admin(bootstrap) as admin:
    (made,) = admin.create_topics(ottla.NewTopic("metrics", partition_count=3))
    if made.error is not None:
        print(made.error)
    admin.wait_for_topic("metrics")
    topic = ottla.Resource(ottla.ResourceKind.TOPIC, "metrics")
    admin.alter_configs(topic, {"retention.ms": "3600000"})
    for entry in admin.describe_configs(topic, ["retention.ms"]):
        print(f"{entry.name} = {entry.value}")
    print(f"{len(admin.describe_cluster().brokers)} broker")
    for group in admin.list_groups():
        print(group.id, [f"{row.partition}: {row.lag}" for row in admin.group_lag(group.id)])
