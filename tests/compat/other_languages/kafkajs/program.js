// kafkajs behind the program protocol: `node program.js COMMAND BOOTSTRAP`, the request as a line of
// JSON on stdin, answers as lines of JSON on stdout. The end of stdin tells a member to leave.
'use strict'

const { randomUUID } = require('node:crypto')
const readline = require('node:readline')
const { AssignerProtocol, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }
const EARLIEST = -2
const LATEST = -1

const fromBase64 = text => (text === null ? null : Buffer.from(text, 'base64'))
const toBase64 = bytes => (bytes === null || bytes === undefined ? null : bytes.toString('base64'))
const answer = line => process.stdout.write(JSON.stringify(line) + '\n')

function headersOf(pairs) {
  const headers = {}
  for (const { key, value } of pairs) {
    ;(headers[key] ??= []).push(fromBase64(value))
  }
  return headers
}

function pairsOf(headers) {
  return Object.entries(headers ?? {}).flatMap(([key, values]) =>
    [values].flat().map(value => ({ key, value: toBase64(value) }))
  )
}

function messageOf(record) {
  return {
    partition: record.partition,
    key: fromBase64(record.key),
    value: fromBase64(record.value),
    headers: headersOf(record.headers),
    timestamp: record.timestamp_ms === null ? undefined : String(record.timestamp_ms),
  }
}

function recordOf(partition, message) {
  return {
    partition,
    offset: Number(message.offset),
    key: toBase64(message.key),
    value: toBase64(message.value),
    headers: pairsOf(message.headers),
    timestamp_ms: Number(message.timestamp),
  }
}

/** Offsets by partition as the list that kafkajs wants. */
function entriesOf(offsets) {
  return Object.entries(offsets).map(([partition, offset]) => ({
    partition: Number(partition),
    offset: String(offset),
  }))
}

async function withAdmin(kafka, use) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await use(admin)
  } finally {
    await admin.disconnect()
  }
}

async function withProducer(kafka, options, use) {
  const producer = kafka.producer({ allowAutoTopicCreation: false, ...options })
  await producer.connect()
  try {
    return await use(producer)
  } finally {
    await producer.disconnect()
  }
}

/** Hands every message to `take` until it returns true or `left` is resolved, then leaves. */
async function consuming(consumer, request, take, left) {
  await consumer.connect()
  await consumer.subscribe({ topics: [request.source ?? request.topic], fromBeginning: true })
  try {
    await new Promise((resolve, reject) => {
      let isOver = false
      consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
      left?.then(resolve)
      consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          if (isOver) return
          isOver = await take(partition, message)
          if (isOver) resolve()
        },
      })
      for (const entry of entriesOf(request.starts ?? {})) {
        consumer.seek({ topic: request.topic, ...entry })
      }
    })
  } finally {
    await consumer.disconnect()
  }
}

function consumerOf(kafka, request, options = {}) {
  return kafka.consumer({
    groupId: request.group ?? `reader-${randomUUID()}`,
    allowAutoTopicCreation: false,
    heartbeatInterval: 300,
    maxWaitTimeInMs: request.wait_ms_max ?? 200,
    readUncommitted: !request.committed_only,
    retry: { retries: 3 },
    ...options,
  })
}

const commands = {
  create_topic: (kafka, { topic, partitions, configs }) =>
    withAdmin(kafka, async admin => {
      const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
      const wish = { topic, numPartitions: partitions, replicationFactor: 1, configEntries }
      const isNew = await admin.createTopics({ topics: [wish], waitForLeaders: true })
      if (!isNew) throw Object.assign(new Error('kafkajs says no'), { type: 'TOPIC_ALREADY_EXISTS' })
    }),

  list_topics: kafka =>
    withAdmin(kafka, async admin => answer({ topics: await admin.listTopics() })),

  describe_topic: (kafka, { topic }) =>
    withAdmin(kafka, async admin => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      answer({
        partitions: topics[0].partitions.map(found => ({
          partition: found.partitionId,
          leader: found.leader,
          replicas: found.replicas,
          in_sync: found.isr,
        })),
      })
    }),

  add_partitions: (kafka, { topic, partitions }) =>
    withAdmin(kafka, admin =>
      admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] })
    ),

  delete_topic: (kafka, { topic }) =>
    withAdmin(kafka, admin => admin.deleteTopics({ topics: [topic] })),

  delete_records: (kafka, { topic, starts }) =>
    withAdmin(kafka, async admin => {
      await admin.fetchTopicOffsets(topic) // without it, kafkajs does not know the leaders yet
      await admin.deleteTopicRecords({ topic, partitions: entriesOf(starts) })
    }),

  produce: (kafka, { topic, records, codec, idempotent }) =>
    withProducer(kafka, { idempotent }, async producer => {
      const messages = records.map(messageOf)
      const sent = await producer.send({ topic, messages, compression: CODECS[codec] })
      const next = Object.fromEntries(sent.map(one => [one.partition, Number(one.baseOffset)]))
      answer({ offsets: records.map(record => next[record.partition]++) })
    }),

  consume: async (kafka, request) => {
    let count = 0
    const options = { maxBytesPerPartition: request.fetch_bytes_max }
    await consuming(consumerOf(kafka, request, options), request, async (partition, message) => {
      answer(recordOf(partition, message))
      return ++count === request.count
    })
  },

  member: async (kafka, request, left) => {
    const consumer = consumerOf(kafka, request)
    const { topic } = request
    await consuming(
      consumer,
      request,
      async (partition, message) => {
        const offset = String(Number(message.offset) + 1)
        await consumer.commitOffsets([{ topic, partition, offset }])
        answer(recordOf(partition, message))
      },
      left
    )
  },

  transaction: (kafka, { transactional_id, topic, records, commit }) =>
    withProducer(kafka, { transactionalId: transactional_id, maxInFlightRequests: 1, idempotent: true }, async producer => {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: records.map(messageOf) })
      await (commit ? transaction.commit() : transaction.abort())
    }),

  be_replaced: (kafka, { transactional_id, topic, records }) => {
    const options = { transactionalId: transactional_id, maxInFlightRequests: 1, idempotent: true }
    const [first, second] = records.map(messageOf)
    return withProducer(kafka, options, older =>
      withProducer(kafka, options, async newer => {
        const replaced = await older.transaction()
        await replaced.send({ topic, messages: [first] })
        const transaction = await newer.transaction()
        try {
          await replaced.send({ topic, messages: [second] })
        } finally {
          await transaction.abort()
        }
      })
    )
  },

  transform: (kafka, request) =>
    withProducer(kafka, { transactionalId: request.transactional_id, maxInFlightRequests: 1, idempotent: true }, async producer => {
      const { source, topic, group, count, commit } = request
      const transaction = await producer.transaction()
      const next = {}
      let seen = 0
      await consuming(consumerOf(kafka, request), request, async (partition, message) => {
        const { key, value } = message
        await transaction.send({ topic, messages: [{ key, value, partition: 0 }] })
        next[partition] = Number(message.offset) + 1
        if (++seen < count) return false
        const topics = [{ topic: source, partitions: entriesOf(next) }]
        await transaction.sendOffsets({ consumerGroupId: group, topics })
        await (commit ? transaction.commit() : transaction.abort())
        return true
      })
    }),

  offset: (kafka, { topic, partition, timestamp_ms }) =>
    withAdmin(kafka, async admin => {
      const isByTime = timestamp_ms !== EARLIEST && timestamp_ms !== LATEST
      const found = isByTime
        ? await admin.fetchTopicOffsetsByTimestamp(topic, timestamp_ms)
        : await admin.fetchTopicOffsets(topic)
      const own = found.find(one => one.partition === partition)
      const field = isByTime ? 'offset' : timestamp_ms === EARLIEST ? 'low' : 'high'
      answer({ offset: Number(own[field]) })
    }),

  list_groups: kafka =>
    withAdmin(kafka, async admin => {
      const { groups } = await admin.listGroups()
      answer({ groups: groups.map(group => group.groupId) })
    }),

  describe_group: (kafka, { group, topic }) =>
    withAdmin(kafka, async admin => {
      const { groups } = await admin.describeGroups([group])
      answer({
        state: groups[0].state,
        members: groups[0].members.map(member => ({
          client_id: member.clientId,
          partitions:
            member.memberAssignment.length === 0
              ? []
              : AssignerProtocol.MemberAssignment.decode(member.memberAssignment).assignment[topic] ?? [],
        })),
      })
    }),

  group_offsets: (kafka, { group, topic }) =>
    withAdmin(kafka, async admin => {
      const found = await admin.fetchOffsets({ groupId: group, topics: [topic] })
      const known = found[0].partitions.filter(one => Number(one.offset) >= 0)
      answer({ offsets: Object.fromEntries(known.map(one => [one.partition, Number(one.offset)])) })
    }),

  set_group_offsets: (kafka, { group, topic, starts }) =>
    withAdmin(kafka, admin =>
      admin.setOffsets({ groupId: group, topic, partitions: entriesOf(starts) })
    ),

  delete_group: (kafka, { group }) => withAdmin(kafka, admin => admin.deleteGroups([group])),

  describe_configs: (kafka, { topic, names }) =>
    withAdmin(kafka, async admin => {
      const wanted = { type: ConfigResourceTypes.TOPIC, name: topic, configNames: names }
      const { resources } = await admin.describeConfigs({ resources: [wanted], includeSynonyms: false })
      const entries = resources[0].configEntries
      answer({ configs: Object.fromEntries(entries.map(one => [one.configName, one.configValue])) })
    }),

  alter_configs: (kafka, { topic, configs }) =>
    withAdmin(kafka, admin => {
      const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
      const wish = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries }
      return admin.alterConfigs({ validateOnly: false, resources: [wish] })
    }),

  describe_cluster: kafka =>
    withAdmin(kafka, async admin => {
      const found = await admin.describeCluster()
      answer({
        cluster_id: found.clusterId,
        controller: found.controller,
        brokers: found.brokers.map(({ nodeId, host, port }) => ({ id: nodeId, host, port })),
      })
    }),
}

/** The name by which kafkajs knows what went wrong, found where it wraps one error in another. */
function nameOf(error) {
  for (let inner = error; inner; inner = inner.cause ?? inner.originalError) {
    const partial = inner.errors?.[0] ?? inner.groups?.[0]?.error
    if (partial) return nameOf(partial)
    if (inner.type) return inner.type
  }
  return error.name
}

async function main() {
  const [command, bootstrap] = process.argv.slice(2)
  const input = readline.createInterface({ input: process.stdin })
  const left = new Promise(resolve => input.once('close', resolve))
  const request = JSON.parse(await new Promise(resolve => input.once('line', resolve)))
  const kafka = new Kafka({
    clientId: request.client_id,
    brokers: [bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { retries: 2, initialRetryTime: 50 },
  })
  try {
    await commands[command](kafka, request, left)
  } catch (error) {
    answer({ error: nameOf(error), message: error.message })
    process.exitCode = 1
  }
  input.close()
}

main()
