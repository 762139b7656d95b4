package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"

	"ottla/otherlanguages/exchange"
)

func createTopic(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	configs := map[string]*string{}
	for name, value := range call.Configs {
		configs[name] = &value
	}
	made, err := admin.CreateTopic(ctx, call.Partitions, 1, configs, call.Topic)
	if err != nil {
		return err
	}
	return made.Err
}

func listTopics(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	call.Answer(exchange.Answer{"topics": topics.Names()})
	return nil
}

func describeTopic(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	topics, err := admin.ListTopics(ctx, call.Topic)
	if err != nil {
		return err
	}
	if err := topics[call.Topic].Err; err != nil {
		return err
	}
	partitions := []exchange.Partition{}
	for _, found := range topics[call.Topic].Partitions.Sorted() {
		partitions = append(partitions, exchange.Partition{
			Partition: found.Partition, Leader: found.Leader, Replicas: found.Replicas, InSync: found.ISR,
		})
	}
	call.Answer(exchange.Answer{"partitions": partitions})
	return nil
}

func addPartitions(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	made, err := admin.UpdatePartitions(ctx, int(call.Partitions), call.Topic)
	if err != nil {
		return err
	}
	return made.Error()
}

func deleteTopic(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	gone, err := admin.DeleteTopic(ctx, call.Topic)
	if err != nil {
		return err
	}
	return gone.Err
}

func offsetsOf(call *exchange.Call) kadm.Offsets {
	offsets := kadm.Offsets{}
	for partition, start := range call.Starts {
		offsets.AddOffset(call.Topic, partition, start, -1)
	}
	return offsets
}

func deleteRecords(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	gone, err := admin.DeleteRecords(ctx, offsetsOf(call))
	if err != nil {
		return err
	}
	return gone.Error()
}

func offset(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	var listed kadm.ListedOffsets
	var err error
	switch call.TimestampMs {
	case exchange.Earliest:
		listed, err = admin.ListStartOffsets(ctx, call.Topic)
	case exchange.Latest:
		listed, err = admin.ListEndOffsets(ctx, call.Topic)
	default:
		listed, err = admin.ListOffsetsAfterMilli(ctx, call.TimestampMs, call.Topic)
	}
	if err != nil {
		return err
	}
	found, _ := listed.Lookup(call.Topic, call.Partition)
	call.Answer(exchange.Answer{"offset": found.Offset})
	return found.Err
}

func listGroups(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	groups, err := admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	call.Answer(exchange.Answer{"groups": groups.Groups()})
	return nil
}

func describeGroup(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	if call.Balancer == "broker" {
		return describeConsumerGroup(call, ctx, admin)
	}
	groups, err := admin.DescribeGroups(ctx, call.Group)
	if err != nil {
		return err
	}
	found := groups[call.Group]
	group := exchange.Group{State: found.State, Members: []exchange.Member{}}
	for _, member := range found.Members {
		one := exchange.Member{ClientID: member.ClientID, Partitions: []int32{}}
		if assigned, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				one.Partitions = append(one.Partitions, topic.Partitions...)
			}
		}
		group.Members = append(group.Members, one)
	}
	call.Answer(group)
	return found.Err
}

func describeConsumerGroup(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	groups, err := admin.DescribeConsumerGroups(ctx, call.Group)
	if err != nil {
		return err
	}
	found := groups[call.Group]
	group := exchange.Group{State: found.State, Members: []exchange.Member{}}
	for _, member := range found.Members {
		one := exchange.Member{ClientID: member.ClientID, Partitions: []int32{}}
		for partition := range member.Assignment[call.Topic] {
			one.Partitions = append(one.Partitions, partition)
		}
		group.Members = append(group.Members, one)
	}
	call.Answer(group)
	return found.Err
}

func groupOffsets(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	fetched, err := admin.FetchOffsets(ctx, call.Group)
	if err != nil {
		return err
	}
	offsets := map[int32]int64{}
	for partition, found := range fetched[call.Topic] {
		offsets[partition] = found.At
	}
	call.Answer(exchange.Answer{"offsets": offsets})
	return fetched.Error()
}

func setGroupOffsets(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	return admin.CommitAllOffsets(ctx, call.Group, offsetsOf(call))
}

func deleteGroup(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	gone, err := admin.DeleteGroup(ctx, call.Group)
	if err != nil {
		return err
	}
	return gone.Err
}

func describeConfigs(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	described, err := admin.DescribeTopicConfigs(ctx, call.Topic)
	if err != nil {
		return err
	}
	found, err := described.On(call.Topic, nil)
	if err != nil {
		return err
	}
	configs := map[string]string{}
	for _, config := range found.Configs {
		configs[config.Key] = config.MaybeValue()
	}
	call.Answer(exchange.Answer{"configs": configs})
	return found.Err
}

func alterConfigs(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	var wishes []kadm.AlterConfig
	for name, value := range call.Configs {
		wishes = append(wishes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	altered, err := admin.AlterTopicConfigs(ctx, wishes, call.Topic)
	if err != nil {
		return err
	}
	for _, one := range altered {
		if one.Err != nil {
			return one.Err
		}
	}
	return nil
}

func describeCluster(call *exchange.Call, ctx context.Context, admin *kadm.Client) error {
	found, err := admin.BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	brokers := []exchange.Broker{}
	for _, broker := range found.Brokers {
		brokers = append(brokers, exchange.Broker{ID: broker.NodeID, Host: broker.Host, Port: broker.Port})
	}
	call.Answer(exchange.Answer{
		"cluster_id": found.Cluster, "controller": found.Controller, "brokers": brokers,
	})
	return nil
}
