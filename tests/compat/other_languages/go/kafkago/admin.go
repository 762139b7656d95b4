package main

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"

	"ottla/otherlanguages/exchange"
)

func createTopic(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	wish := kafka.TopicConfig{Topic: call.Topic, NumPartitions: int(call.Partitions), ReplicationFactor: 1}
	for name, value := range call.Configs {
		wish.ConfigEntries = append(wish.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	made, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{wish}})
	if err != nil {
		return err
	}
	return made.Errors[call.Topic]
}

func listTopics(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return err
	}
	names := []string{}
	for _, topic := range found.Topics {
		names = append(names, topic.Name)
	}
	call.Answer(exchange.Answer{"topics": names})
	return nil
}

func ids(brokers []kafka.Broker) []int32 {
	found := []int32{}
	for _, broker := range brokers {
		found = append(found, int32(broker.ID))
	}
	return found
}

func describeTopic(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{call.Topic}})
	if err != nil {
		return err
	}
	partitions := []exchange.Partition{}
	for _, partition := range found.Topics[0].Partitions {
		partitions = append(partitions, exchange.Partition{
			Partition: int32(partition.ID), Leader: int32(partition.Leader.ID),
			Replicas: ids(partition.Replicas), InSync: ids(partition.Isr),
		})
	}
	call.Answer(exchange.Answer{"partitions": partitions})
	return found.Topics[0].Error
}

func addPartitions(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	wish := kafka.TopicPartitionsConfig{Name: call.Topic, Count: call.Partitions}
	made, err := client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{wish},
	})
	if err != nil {
		return err
	}
	return made.Errors[call.Topic]
}

func deleteTopic(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	gone, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{call.Topic}})
	if err != nil {
		return err
	}
	return gone.Errors[call.Topic]
}

func offset(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	partition := int(call.Partition)
	wish := kafka.TimeOffsetOf(partition, time.UnixMilli(call.TimestampMs))
	switch call.TimestampMs {
	case exchange.Earliest:
		wish = kafka.FirstOffsetOf(partition)
	case exchange.Latest:
		wish = kafka.LastOffsetOf(partition)
	}
	listed, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{call.Topic: {wish}},
	})
	if err != nil {
		return err
	}
	found := listed.Topics[call.Topic][0]
	answer := int64(-1)
	switch call.TimestampMs {
	case exchange.Earliest:
		answer = found.FirstOffset
	case exchange.Latest:
		answer = found.LastOffset
	default:
		for at := range found.Offsets {
			answer = at
		}
	}
	call.Answer(exchange.Answer{"offset": answer})
	return found.Error
}

func listGroups(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	found, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return err
	}
	names := []string{}
	for _, group := range found.Groups {
		names = append(names, group.GroupID)
	}
	call.Answer(exchange.Answer{"groups": names})
	return found.Error
}

func describeGroup(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	found, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{call.Group}})
	if err != nil {
		return err
	}
	group := exchange.Group{State: found.Groups[0].GroupState, Members: []exchange.Member{}}
	for _, member := range found.Groups[0].Members {
		one := exchange.Member{ClientID: member.ClientID, Partitions: []int32{}}
		for _, topic := range member.MemberAssignments.Topics {
			for _, partition := range topic.Partitions {
				one.Partitions = append(one.Partitions, int32(partition))
			}
		}
		group.Members = append(group.Members, one)
	}
	call.Answer(group)
	return found.Groups[0].Error
}

func groupOffsets(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	found, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: call.Group})
	if err != nil {
		return err
	}
	offsets := map[int]int64{}
	for _, partition := range found.Topics[call.Topic] {
		offsets[partition.Partition] = partition.CommittedOffset
	}
	call.Answer(exchange.Answer{"offsets": offsets})
	return found.Error
}

func setGroupOffsets(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	wishes := []kafka.OffsetCommit{}
	for partition, start := range call.Starts {
		wishes = append(wishes, kafka.OffsetCommit{Partition: int(partition), Offset: start})
	}
	done, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID: call.Group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{call.Topic: wishes},
	})
	if err != nil {
		return err
	}
	for _, partition := range done.Topics[call.Topic] {
		if partition.Error != nil {
			return partition.Error
		}
	}
	return nil
}

func deleteGroup(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	gone, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{call.Group}})
	if err != nil {
		return err
	}
	return gone.Errors[call.Group]
}

func describeConfigs(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	wish := kafka.DescribeConfigRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: call.Topic, ConfigNames: call.Names,
	}
	found, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{wish},
	})
	if err != nil {
		return err
	}
	configs := map[string]string{}
	for _, entry := range found.Resources[0].ConfigEntries {
		configs[entry.ConfigName] = entry.ConfigValue
	}
	call.Answer(exchange.Answer{"configs": configs})
	return found.Resources[0].Error
}

func alterConfigs(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	wish := kafka.IncrementalAlterConfigsRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: call.Topic,
	}
	for name, value := range call.Configs {
		wish.Configs = append(wish.Configs, kafka.IncrementalAlterConfigsRequestConfig{
			Name: name, Value: value, ConfigOperation: kafka.ConfigOperationSet,
		})
	}
	altered, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{wish},
	})
	if err != nil {
		return err
	}
	return altered.Resources[0].Error
}

func describeCluster(call *exchange.Call, ctx context.Context, client *kafka.Client) error {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return err
	}
	brokers := []exchange.Broker{}
	for _, broker := range found.Brokers {
		brokers = append(brokers, exchange.Broker{
			ID: int32(broker.ID), Host: broker.Host, Port: int32(broker.Port),
		})
	}
	call.Answer(exchange.Answer{
		"cluster_id": found.ClusterID, "controller": found.Controller.ID, "brokers": brokers,
	})
	return nil
}
