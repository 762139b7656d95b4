package main

import (
	"errors"

	"github.com/IBM/sarama"

	"ottla/otherlanguages/exchange"
)

func createTopic(call *exchange.Call, admin sarama.ClusterAdmin) error {
	configs := map[string]*string{}
	for name, value := range call.Configs {
		configs[name] = &value
	}
	wish := &sarama.TopicDetail{NumPartitions: call.Partitions, ReplicationFactor: 1, ConfigEntries: configs}
	return admin.CreateTopic(call.Topic, wish, false)
}

func listTopics(call *exchange.Call, admin sarama.ClusterAdmin) error {
	topics, err := admin.ListTopics()
	if err != nil {
		return err
	}
	names := []string{}
	for name := range topics {
		names = append(names, name)
	}
	call.Answer(exchange.Answer{"topics": names})
	return nil
}

func describeTopic(call *exchange.Call, admin sarama.ClusterAdmin) error {
	topics, err := admin.DescribeTopics([]string{call.Topic})
	if err != nil {
		return err
	}
	if topics[0].Err != sarama.ErrNoError {
		return topics[0].Err
	}
	partitions := []exchange.Partition{}
	for _, found := range topics[0].Partitions {
		partitions = append(partitions, exchange.Partition{
			Partition: found.ID, Leader: found.Leader, Replicas: found.Replicas, InSync: found.Isr,
		})
	}
	call.Answer(exchange.Answer{"partitions": partitions})
	return nil
}

func addPartitions(call *exchange.Call, admin sarama.ClusterAdmin) error {
	return admin.CreatePartitions(call.Topic, call.Partitions, nil, false)
}

func deleteTopic(call *exchange.Call, admin sarama.ClusterAdmin) error {
	return admin.DeleteTopic(call.Topic)
}

func deleteRecords(call *exchange.Call, admin sarama.ClusterAdmin) error {
	return admin.DeleteRecords(call.Topic, call.Starts)
}

func offset(call *exchange.Call, admin sarama.ClusterAdmin) error {
	wish := map[string]map[int32]int64{call.Topic: {call.Partition: call.TimestampMs}}
	listed, err := admin.ListOffsets(wish, nil)
	if err != nil {
		return err
	}
	found := listed[call.Topic][call.Partition]
	if !errors.Is(found.Err, sarama.ErrNoError) {
		return found.Err
	}
	call.Answer(exchange.Answer{"offset": found.Offset})
	return nil
}

func listGroups(call *exchange.Call, admin sarama.ClusterAdmin) error {
	groups, err := admin.ListConsumerGroups()
	if err != nil {
		return err
	}
	names := []string{}
	for name := range groups {
		names = append(names, name)
	}
	call.Answer(exchange.Answer{"groups": names})
	return nil
}

func describeGroup(call *exchange.Call, admin sarama.ClusterAdmin) error {
	groups, err := admin.DescribeConsumerGroups([]string{call.Group})
	if err != nil {
		return err
	}
	if groups[0].Err != sarama.ErrNoError {
		return groups[0].Err
	}
	group := exchange.Group{State: groups[0].State, Members: []exchange.Member{}}
	for _, member := range groups[0].Members {
		one := exchange.Member{ClientID: member.ClientId, Partitions: []int32{}}
		assigned, err := member.GetMemberAssignment()
		if err != nil {
			return err
		}
		if assigned != nil {
			one.Partitions = append(one.Partitions, assigned.Topics[call.Topic]...)
		}
		group.Members = append(group.Members, one)
	}
	call.Answer(group)
	return nil
}

func groupOffsets(call *exchange.Call, admin sarama.ClusterAdmin) error {
	listed, err := admin.ListConsumerGroupOffsets(call.Group, nil)
	if err != nil {
		return err
	}
	offsets := map[int32]int64{}
	for partition, found := range listed.Blocks[call.Topic] {
		offsets[partition] = found.Offset
	}
	call.Answer(exchange.Answer{"offsets": offsets})
	return nil
}

func setGroupOffsets(call *exchange.Call, admin sarama.ClusterAdmin) error {
	wishes := map[int32]sarama.OffsetAndMetadata{}
	for partition, start := range call.Starts {
		wishes[partition] = sarama.OffsetAndMetadata{Offset: start, LeaderEpoch: -1}
	}
	done, err := admin.AlterConsumerGroupOffsets(
		call.Group, map[string]map[int32]sarama.OffsetAndMetadata{call.Topic: wishes}, nil)
	if err != nil {
		return err
	}
	for _, problem := range done.Errors[call.Topic] {
		if problem != sarama.ErrNoError {
			return problem
		}
	}
	return nil
}

func deleteGroup(call *exchange.Call, admin sarama.ClusterAdmin) error {
	return admin.DeleteConsumerGroup(call.Group)
}

func describeConfigs(call *exchange.Call, admin sarama.ClusterAdmin) error {
	wish := sarama.ConfigResource{Type: sarama.TopicResource, Name: call.Topic, ConfigNames: call.Names}
	entries, err := admin.DescribeConfig(wish)
	if err != nil {
		return err
	}
	configs := map[string]string{}
	for _, entry := range entries {
		configs[entry.Name] = entry.Value
	}
	call.Answer(exchange.Answer{"configs": configs})
	return nil
}

func alterConfigs(call *exchange.Call, admin sarama.ClusterAdmin) error {
	wishes := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range call.Configs {
		wishes[name] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value,
		}
	}
	return admin.IncrementalAlterConfig(sarama.TopicResource, call.Topic, wishes, false)
}

func describeCluster(call *exchange.Call, admin sarama.ClusterAdmin) error {
	found, controller, err := admin.DescribeCluster()
	if err != nil {
		return err
	}
	brokers := []exchange.Broker{}
	for _, broker := range found {
		one, err := exchange.BrokerAt(broker.ID(), broker.Addr())
		if err != nil {
			return err
		}
		brokers = append(brokers, one)
	}
	call.Answer(exchange.Answer{"controller": controller, "brokers": brokers})
	return nil
}
