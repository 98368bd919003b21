// Runs one history on both repositories and reports their first difference. A table's value replaces the database's own
// clock, so that both sides have the same time.
import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Duration, Effect, Layer, Option, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Budget } from "../../kernel/budget/Budget.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { Server } from "../../kernel/config/Server.ts"
import { Settings } from "../../kernel/config/Settings.ts"
import { Database, isUniqueViolation } from "../../kernel/database/Database.ts"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import * as Migrations from "../../kernel/database/Migrations.ts"
import { Facts } from "../../kernel/facts/Facts.ts"
import { Host } from "../../kernel/platform/Host.ts"
import { type ChannelLease, ChannelStore } from "../../kernel/settlement/channels/ChannelStore.ts"
import { aloneTimes, Leases } from "../../kernel/settlement/Leases.ts"
import { Settlements } from "../../kernel/settlement/store/Settlements.ts"
import * as SqlSettlements from "../../kernel/settlement/store/SqlSettlements.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { Supervisor } from "../../kernel/actor/Supervisor.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { NodeServices } from "@effect/platform-node"
import { type DatabaseKind, sourceLayer } from "../support/databases.ts"
import { migrationsFolder } from "../support/migratedDumps.ts"
import { channels, historyOf, slots, type Step } from "./history.ts"
import { TwinStore } from "./TwinStore.ts"
import { layerTest } from "../support/layerTest.ts"

const startMillis = Date.UTC(2026, 0, 1, 12)
const limits = {
  settleTimeout: Duration.seconds(25),
  settlePoll: Duration.millis(500),
  recoveryPeriod: Duration.seconds(15),
  rpcTimeout: Duration.seconds(5),
  channelLease: Duration.seconds(5),
  channelWait: undefined,
  pendingSettlementsMax: 4,
  sponsoredPerPrincipalPerDayStroopsMax: 300_000n,
  sponsoredPerDayStroopsMax: 600_000n,
  expiryToleranceLedgers: 4,
  verifyPerSecond: 0,
  settlePerSecond: 0
}

/** The clock of statements, from a table; tables created afterwards also use it as their default. */
const ownTime = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create schema timed`
  yield* sql`create table timed.moment (at timestamptz not null)`
  yield* sql`insert into timed.moment values (to_timestamp(${startMillis / 1_000}::float8))`
  yield* sql`create function timed.clock_timestamp() returns timestamptz
      language sql volatile as 'select at from timed.moment'`
  yield* sql`do $$ begin
      execute format('alter database %I set search_path = timed, pg_catalog, public', current_database()); end $$`
  yield* sql`set search_path = timed, pg_catalog, public`
})

const source = (kind: DatabaseKind) =>
  Layer.effect(
    DatabaseSource,
    Effect.gen(function* () {
      const opened = yield* Context.get(yield* Layer.build(sourceLayer(kind)), DatabaseSource).open
      const client =
        opened.kind === "server"
          ? PgClient.layer({ url: opened.url, maxConnections: 1 })
          : PgClient.layer({
              stream: opened.connect,
              maxConnections: 1,
              username: "postgres",
              database: "postgres"
            } as never)
      yield* Effect.scoped(Effect.provide(ownTime, client))
      return { open: Effect.succeed(opened) }
    })
  )

/** The SQL repository over a database that gets its time from a table. */
export const sqlLayer = (kind: DatabaseKind) =>
  Layer.mergeAll(SqlSettlements.layer, ChannelStore.layer).pipe(
    Layer.provideMerge(Budget.layer),
    Layer.provideMerge(Facts.layer),
    Layer.provideMerge(Supervisor.layer),
    Layer.provide(Layer.effectDiscard(Migrations.run("kernel"))),
    Layer.provideMerge(Database.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        NodeServices.layer,
        NodeCrypto.layer,
        migrationsFolder,
        source(kind),
        Layer.succeed(Limits, limits),
        layerTest(Network, { id: "ledger:testnet" }),
        layerTest(Signer, { sponsor: "sponsor", channels, formerChannels: [] }),
        layerTest(Server, { instance: "twin" }),
        Layer.succeed(Host, { name: "twin", stateFolder: "" }),
        Settings.layerTest({}, () => Option.none())
      )
    )
  )

/** Both sides' answers as comparable text: sorted keys, no undefined members, dates as milliseconds. */
const textOf = (value: unknown): string => JSON.stringify(plain(value))

const byAddress = (leases: ReadonlyArray<ChannelLease>) => leases.toSorted((a, b) => (a.address < b.address ? -1 : 1))

const plain = (value: unknown): unknown => {
  if (typeof value === "bigint") return `${value}n`
  if (value instanceof Date) return value.getTime()
  if (Option.isOption(value)) return plain(Option.getOrNull(value))
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, plain(inner)])
  )
}

const sorted = <A extends { readonly id: string }>(rows: ReadonlyArray<A>): ReadonlyArray<A> =>
  rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))

/** Runs the history of a seed; returns the first difference, or undefined. */
export const firstDifference = Effect.fn("firstDifference")(function* (
  seed: number
): Effect.fn.Return<string | undefined, unknown, any> {
  const sql = yield* SqlClient.SqlClient
  const settlements = yield* Settlements
  const pool = yield* ChannelStore
  const budget = yield* Budget
  const leaseTimes = (yield* Database).kind === "embedded" ? aloneTimes : 1
  let now = startMillis
  const twin = new TwinStore(
    {
      leaseMillis: 5_000,
      pendingMax: limits.pendingSettlementsMax,
      perPrincipalStroops: limits.sponsoredPerPrincipalPerDayStroopsMax,
      inAllStroops: limits.sponsoredPerDayStroopsMax
    },
    () => now
  )
  yield* sql`truncate kernel_channels, kernel_settlements, kernel_attempts, kernel_leases,
      kernel_sponsor_budget, kernel_sponsor_budget_total, kernel_facts, kernel_processes cascade`
  yield* sql`update timed.moment set at = to_timestamp(${now / 1_000}::float8)`
  for (const [number, address] of channels.entries()) {
    now += 1
    yield* sql`update timed.moment set at = to_timestamp(${now / 1_000}::float8)`
    yield* sql`insert into kernel_channels (address, network, sponsor, number, state, sequence) values
      (${address}, 'ledger:testnet', 'sponsor', ${number}, ${number === 2 ? "wanted" : "ready"},
          ${number === 2 ? null : 100})`
    twin.addChannel(address, number === 2 ? undefined : 100n)
  }
  const leases = yield* Effect.forEach([0, 1], () => Layer.build(Layer.fresh(keptLeases)))
  const held: Array<ChannelLease | undefined> = Array.from({ length: slots }, () => undefined)

  const play = Effect.fnUntraced(function* (step: Step) {
    switch (step.op) {
      case "wait":
        now += step.millis
        yield* sql`update timed.moment set at = to_timestamp(${now / 1_000}::float8)`
        return ["", ""]
      case "take": {
        const [theirs, ours] = [yield* pool.take(step.count), twin.take(step.count)].map(byAddress)
        for (const [at, lease] of ours!.entries()) held[(step.slot + at) % slots] = lease
        return [theirs, ours]
      }
      case "release": {
        const lease = held[step.slot]
        if (lease === undefined) return ["", ""]
        yield* pool.release(lease)
        twin.release(lease)
        return ["", ""]
      }
      case "record": {
        const lease = held[step.slot] ?? { address: channels[0], fence: 99n, sequence: 5n }
        const settlement = { ...step.settlement, channel: lease }
        const theirs = yield* settlements.record(settlement).pipe(
          Effect.catchIf(
            (error) => isUniqueViolation(error, "kernel_settlements_pkey", "kernel_settlements_inner_hash"),
            () => Effect.undefined
          )
        )
        return [theirs, twin.record(settlement)]
      }
      case "addAttempt": {
        const attempt = {
          kind: "payment",
          innerHash: "i",
          outerHash: step.outerHash,
          envelope: "AAAA",
          inclusionStroops: 300n,
          recordedLedger: 1_001
        } as const
        return [
          yield* settlements.addAttempt(step.id, attempt, step.attemptsKnown),
          twin.addAttempt(step.id, attempt, step.attemptsKnown)
        ]
      }
      case "rebuild": {
        const lease = held[step.slot] ?? { address: channels[0], fence: 99n, sequence: 5n }
        const attempt = {
          kind: "payment",
          innerHash: step.innerHash,
          outerHash: `bumped ${step.innerHash}`,
          envelope: "AAAA",
          inclusionStroops: 300n,
          recordedLedger: 1_001
        } as const
        return [
          yield* settlements.rebuild(step.id, lease, attempt, step.attemptsKnown),
          twin.rebuild(step.id, lease, attempt, step.attemptsKnown)
        ]
      }
      case "distrust":
        yield* pool.distrust((distrusted += 1))
        twin.distrust()
        return ["", ""]
      case "noteSent":
        yield* settlements.noteSent(step.id, step.number, step)
        twin.noteSent(step.id, step.number, step)
        return ["", ""]
      case "resolve":
        return [
          yield* settlements.resolve(step.id, step.outcome, step.attemptsKnown),
          twin.resolve(step.id, step.outcome, step.attemptsKnown)
        ]
      case "free":
        return [
          yield* settlements.freeChannel(step.id, step.ledger, step.attemptsKnown),
          twin.freeChannel(step.id, step.ledger, step.attemptsKnown)
        ]
      case "claim":
        return [
          yield* settlements.claimDelivery(step, step.principal, step.key),
          twin.claimDelivery(step, step.principal, step.key)
        ]
      case "endDelivery":
        yield* settlements.endDeliveries([step])
        twin.endDeliveries([step])
        return ["", ""]
      case "processEnds":
        yield* sql`delete from kernel_processes where id = ${step.process}`
        twin.processes.delete(step.process)
        return ["", ""]
      case "processBegins":
        yield* sql`insert into kernel_processes (id) values (${step.process}) on conflict do nothing`
        twin.processes.add(step.process)
        return ["", ""]
      case "find": {
        const query = {
          network: "ledger:testnet",
          scheme: "simulated",
          authorizationKey: Option.some(step.key),
          principal: step.principal,
          payer: Option.some(step.payer),
          payTo: step.payTo,
          identifier: Option.some(step.identifier)
        } as const
        return [sorted(yield* settlements.find(query)), sorted(twin.find(query))]
      }
      case "open":
        return [sorted(yield* settlements.open(100)), sorted(twin.open(100))]
      case "learn":
        yield* pool.learn(step.channel, step.sequence, step.asOfLedger)
        twin.learn(step.channel, step.sequence, step.asOfLedger)
        return ["", ""]
      case "correct": {
        const { asOfLedger, channel, known, sequence } = step
        return [
          yield* pool.correct(channel, known, sequence, asOfLedger),
          twin.correct(channel, known, sequence, asOfLedger)
        ]
      }
      case "adopt":
        return [yield* settlements.adopt(step.settlement), twin.adopt(step.settlement)]
      case "counts":
        return [yield* pool.counts, twin.counts()]
      case "byIds":
        return [sorted(yield* settlements.byIds([...new Set(step.ids)])), sorted(twin.byIds([...new Set(step.ids)]))]
      case "endsOf":
        return [sorted(yield* settlements.endsOf([...new Set(step.ids)])), sorted(twin.endsOf([...new Set(step.ids)]))]
      case "hold": {
        const theirs = yield* Context.get(leases[step.holder]!, Leases).hold(step.name, Duration.millis(step.millis))
        return [theirs, twin.hold(step.name, String(step.holder), step.millis * leaseTimes)]
      }
      case "fits": {
        const principal = { id: step.principal, keyed: step.principal.startsWith("key") }
        return [yield* budget.fits(principal, step.stroops), twin.fits(principal, step.stroops)]
      }
    }
  })

  const clock = yield* Clock.clockWith(Effect.succeed)
  const timed: Clock.Clock = Object.assign(Object.create(clock), {
    currentTimeMillis: Effect.sync(() => now),
    currentTimeMillisUnsafe: () => now,
    monotonicTimeNanos: Effect.sync(() => BigInt(now) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => BigInt(now) * 1_000_000n
  })
  for (const [index, step] of historyOf(seed).entries()) {
    // Each step has its own instant, so that time identifies the earlier use.
    now += 1
    yield* sql`update timed.moment set at = to_timestamp(${now / 1_000}::float8)`
    const [theirs, ours] = yield* play(step).pipe(Effect.provideService(Clock.Clock, timed))
    if (textOf(theirs) !== textOf(ours))
      return `seed ${seed}, step ${index} ${textOf(step)}: SQL ${textOf(theirs)}, twin ${textOf(ours)}`
  }
  return yield* tablesDiffer(sql, twin, seed)
})

/** Ledgers that distrusted numbers; a store keeps the last one. */
let distrusted = 0

/** Leases without their finalizer, which would delete rows that the history still reads. */
const keptLeases = Leases.layer

const tablesDiffer = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, twin: TwinStore, seed: number) {
  const channelsOfSql = yield* sql<
    Record<string, unknown>
  >`select address, sequence, fence, settlement::text as settlement, sequence_ledger, reread
          from kernel_channels order by address`
  const channelsOfTwin = [...twin.channels.values()]
    .map(({ address, fence, reread, sequence, sequenceLedger, settlement }) => ({
      address,
      sequence: sequence ?? null,
      fence,
      settlement: settlement ?? null,
      sequence_ledger: BigInt(sequenceLedger),
      reread
    }))
    .sort((a, b) => (a.address < b.address ? -1 : 1))
  const budgetsOfSql = yield* sql<
    Record<string, unknown>
  >`select day::text || ' ' || principal as key, reserved_stroops as reserved, committed_stroops as committed
    from kernel_sponsor_budget where reserved_stroops > 0 or committed_stroops > 0 order by 1`
  const budgetsOfTwin = [...twin.budgets]
    .map(([key, { committed, reserved }]) => ({ key, reserved, committed }))
    .filter(({ committed, reserved }) => reserved > 0n || committed > 0n)
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  const totalsOfSql = yield* sql<Record<string, unknown>>`select coalesce(sum(reserved_stroops), 0)::int8 as reserved,
          coalesce(sum(committed_stroops), 0)::int8 as committed from kernel_sponsor_budget_total`
  const totalsOfTwin = [
    budgetsOfTwin.reduce(
      (sum, { committed, reserved }) => ({ reserved: sum.reserved + reserved, committed: sum.committed + committed }),
      { reserved: 0n, committed: 0n }
    )
  ]
  const factsOfSql = yield* sql<Record<string, unknown>>`select type, subject from kernel_facts order by id`
  const factsOfTwin = twin.facts.map(({ subject, type }) => ({ type, subject }))
  for (const [name, theirs, ours] of [
    ["channels", channelsOfSql, channelsOfTwin],
    ["budgets", budgetsOfSql, budgetsOfTwin],
    ["totals", totalsOfSql, totalsOfTwin],
    ["facts", factsOfSql, factsOfTwin]
  ] as const) {
    if (textOf(theirs) !== textOf(ours))
      return `seed ${seed}, ${name} at the end: SQL ${textOf(theirs)}, twin ${textOf(ours)}`
  }
  return undefined
})

export type Played = Effect.Effect<string | undefined, unknown, Scope.Scope>
