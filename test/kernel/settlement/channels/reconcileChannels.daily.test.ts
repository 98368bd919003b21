// The sponsor's own transactions and the channels they create, over a ledger that is a table of accounts: each
// submission is inspected, and lands when the test decides.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Keypair, StrKey } from "@stellar/stellar-sdk"
import { Cause, Deferred, Duration, Effect, Exit, Fiber, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { Network } from "../../../../kernel/config/Network.ts"
import { decodeEnvelope } from "../../../../kernel/stellar/Envelope.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, type TransactionAnswer } from "../../../../kernel/ledger/LedgerRpc.ts"
import type { LedgerAccount } from "../../../../kernel/stellar/LedgerEntry.ts"
import { Host } from "../../../../kernel/platform/Host.ts"
import { ChannelCount } from "../../../../kernel/settlement/channels/ChannelCount.ts"
import { ChannelActions } from "../../../../kernel/settlement/channels/ChannelActions.ts"
import { ChannelPool } from "../../../../kernel/settlement/channels/ChannelPool.ts"
import { ChannelRows } from "../../../../kernel/settlement/channels/ChannelRows.ts"
import { ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { Leases } from "../../../../kernel/settlement/Leases.ts"
import { startChannels } from "../../../../kernel/settlement/channels/reconcileChannels.ts"
import { SponsorTransactions } from "../../../../kernel/settlement/sponsor/SponsorTransactions.ts"
import { Signer } from "../../../../kernel/signer/Signer.ts"
import { Vault } from "../../../../kernel/signer/Vault.ts"
import { Facts } from "../../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../../kernel/actor/Supervisor.ts"
import * as NodeCrypto from "../../../../runtime/platform/nodeCrypto.ts"
import { databaseKinds, databaseLayer, type DatabaseKind } from "../../../support/databases.ts"
import { limitValues, takeOne } from "../store.ts"
import { eventually } from "../../../support/eventually.ts"
import { layerTest } from "../../../support/layerTest.ts"

const balanceMin = 50_000_000n

const time = { closedAtSeconds: 0, secondsPerLedger: 5, fastestSecondsPerLedger: 5, isFirstWord: false }

/** A ledger that a test advances by hand. */
const makeLedger = () => {
  const accounts = new Map<string, LedgerAccount>()
  const sent: Array<{ readonly hash: string; readonly envelope: string }> = []
  const answers = new Map<string, TransactionAnswer>()
  const state = { latest: 1_000, oldest: 1, surveys: 0 }
  const wakes: Array<Effect.Effect<void>> = []
  const put = (address: string, balanceStroops: bigint, sequence: bigint) =>
    accounts.set(address, {
      address,
      balanceStroops,
      reserveStroops: 10_000_000n,
      sequence
    })
  const rpc = LedgerRpc.of({
    accounts: (addresses: ReadonlyArray<string>) =>
      Effect.sync(() => {
        state.surveys += 1
        const found = addresses.filter((address) => accounts.has(address))
        return {
          latestLedger: state.latest,
          accounts: new Map(found.map((address) => [address, accounts.get(address)!]))
        }
      }),
    header: (sequence: number) => Effect.succeed({ hash: `of ${sequence}`, isFirst: false }),
    send: (envelope: string, hash: string) =>
      Effect.sync(() => {
        sent.push({ hash, envelope })
        return { _tag: "Pending" as const }
      }),
    transaction: (hash: string) =>
      Effect.sync(
        () => answers.get(hash) ?? { _tag: "NotFound" as const, latestLedger: state.latest, oldestLedger: state.oldest }
      )
  } as never)
  const clock = {
    now: Effect.sync(() => ({ ...time, sequence: state.latest })),
    subscribe: (wake: Effect.Effect<void>) => Effect.sync(() => void wakes.push(wake))
  }
  return {
    accounts,
    answers,
    clock,
    put,
    rpc,
    sent,
    state,
    wake: Effect.suspend(() => Effect.all(wakes, { discard: true }))
  }
}

type Ledger = ReturnType<typeof makeLedger>

const layerOf = (kind: DatabaseKind, ledger: Ledger, channelCount: number, secret = Keypair.random().secret()) => {
  const network = layerTest(Network, {
    id: "ledger:testnet",
    passphrase: "Test SDF Network ; September 2015",
    sponsorSecret: Option.some(Redacted.make(secret)),
    channelSecrets: Option.none(),
    channelCount,
    channelCountMax: Math.max(channelCount, 40),
    channelBalanceStroopsMin: balanceMin,
    developmentAutoFund: false,
    friendbotUrl: Option.none()
  })
  const ports = Layer.mergeAll(
    network,
    NodeServices.layer,
    NodeCrypto.layer,
    Layer.succeed(LedgerRpc, ledger.rpc),
    layerTest(LedgerClock, ledger.clock),
    Layer.succeed(Limits, limitValues),
    Layer.succeed(Host, { name: "test", stateFolder: "." }),
    Supervisor.layer
  )
  return ChannelPool.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        ChannelCount.layer,
        ChannelActions.layer,
        ChannelRows.layer,
        Leases.layer,
        SponsorTransactions.layer,
        ChannelStore.layer
      )
    ),
    Layer.provideMerge(Signer.layer.pipe(Layer.provide(Vault.layer))),
    Layer.provideMerge(Facts.layer),
    Layer.provideMerge(Layer.mergeAll(databaseLayer(kind), ports))
  )
}

const operationsOf = Effect.fnUntraced(function* (envelope: string) {
  const decoded = yield* Effect.orDie(decodeEnvelope(envelope))
  return decoded.type === 2 ? decoded.v1.tx.operations.map(({ body }) => body.type) : []
})

const mergedIn = Effect.fnUntraced(function* (envelope: string) {
  const decoded = yield* Effect.orDie(decodeEnvelope(envelope))
  const operations = decoded.type === 2 ? decoded.v1.tx.operations : []
  return operations.flatMap(({ body, sourceAccount }) =>
    body.type === 8 && sourceAccount?.type === 0
      ? [StrKey.encodeEd25519PublicKey(sourceAccount.ed25519 as Uint8Array)]
      : []
  )
})

const journal = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql<{
      hash: string
      state: string
      fee: bigint | null
      ledger: bigint | null
    }>`select hash, state, fee_charged_stroops as fee, ledger from kernel_sponsor_transactions order by recorded_at`
)

for (const kind of databaseKinds) {
  describe(`the sponsor's transactions on ${kind}`, () => {
    const run = <A, E>(test: (ledger: Ledger) => Effect.Effect<A, E, any>) => {
      const ledger = makeLedger()
      return Effect.provide(test(ledger), layerOf(kind, ledger, 1)) as Effect.Effect<A, unknown>
    }

    it.live(
      "sponsor transactions are journaled, then sent one at a time",
      () =>
        run(
          Effect.fnUntraced(function* (ledger) {
            const transactions = yield* SponsorTransactions
            const {
              channels: [account = ""],
              sponsor
            } = yield* Signer
            ledger.put(sponsor, 10n ** 10n, 41n)
            const fund = [{ _tag: "Fund", account, amountStroops: 1n } as const]
            yield* Effect.all(
              [
                transactions.submit("channels", fund, undefined),
                transactions.submit("channels", [...fund, ...fund], undefined)
              ],
              { concurrency: 2 }
            )
            expect(ledger.sent).toHaveLength(1)
            const [open] = yield* journal
            expect(open).toMatchObject({ hash: ledger.sent[0]!.hash, state: "open" })
            // However two replicas meet, the database holds one open transaction of a sponsor.
            const second = Effect.flatMap(
              SqlClient.SqlClient,
              (
                sql
              ) => sql`insert into kernel_sponsor_transactions (hash, network, sponsor, purpose, envelope, ledger_max)
                select ${"00".repeat(32)}, network, sponsor, purpose, envelope, ledger_max
                from kernel_sponsor_transactions`
            )
            expect(String((yield* Effect.flip(second)).reason.cause)).toContain("one_open")
            expect(yield* transactions.settleOpen).toBe(false)
            expect(ledger.sent.map(({ hash }) => hash)).toEqual([open!.hash, open!.hash])
            ledger.answers.set(open!.hash, {
              _tag: "Included",
              latestLedger: 1_002,
              executed: {
                ledger: 1_002,
                closedAtSeconds: 0,
                innerHash: open!.hash,
                outerHash: open!.hash,
                feeChargedStroops: 777n,
                succeeded: false,
                transfers: Option.none()
              }
            })
            expect(yield* transactions.settleOpen).toBe(true)
            expect(yield* journal).toMatchObject([{ state: "failed", fee: 777n, ledger: 1_002n }])
            ledger.put(sponsor, 10n ** 10n, 42n)
            yield* Effect.flatMap(
              SqlClient.SqlClient,
              (sql) => sql`update kernel_sponsor_transactions set recorded_at = recorded_at - interval '2 minutes'`
            )
            // After that transaction, a decision based on an earlier read must change nothing.
            yield* transactions.submit("channels", fund, undefined)
            expect(yield* journal).toHaveLength(1)
            expect(yield* transactions.last).toEqual({ hash: open!.hash, ledger: 1_002 })
            yield* transactions.submit("channels", fund, open!.hash)
            expect(yield* journal).toHaveLength(2)
          })
        ),
      240_000
    )

    it.live(
      "sponsor transactions bid tenfold after each expiry, and pause after a failure",
      () =>
        run(
          Effect.fnUntraced(function* (ledger) {
            const transactions = yield* SponsorTransactions
            const sql = yield* SqlClient.SqlClient
            const {
              channels: [account = ""],
              sponsor
            } = yield* Signer
            ledger.put(sponsor, 10n ** 10n, 41n)
            const submit = Effect.flatMap(transactions.last, ({ hash }) =>
              transactions.submit("channels", [{ _tag: "Fund", account, amountStroops: 1n }], hash)
            )
            const feeOf = Effect.fnUntraced(function* (envelope: string) {
              const decoded = yield* Effect.orDie(decodeEnvelope(envelope))
              return decoded.type === 2 ? Number(decoded.v1.tx.fee) : 0
            })
            for (const fee of [1_000, 10_000, 100_000, 100_000]) {
              yield* submit
              expect(yield* feeOf(ledger.sent.at(-1)!.envelope)).toBe(fee)
              ledger.state.latest += 30
              expect(yield* transactions.settleOpen).toBe(true)
            }
            yield* sql`update kernel_sponsor_transactions set state = 'failed' where hash = ${ledger.sent.at(-1)!.hash}`
            const before = ledger.sent.length
            yield* submit
            expect(ledger.sent).toHaveLength(before)
            yield* sql`update kernel_sponsor_transactions set recorded_at = recorded_at - interval '2 minutes'`
            yield* submit
            expect(yield* feeOf(ledger.sent.at(-1)!.envelope)).toBe(1_000)
          })
        ),
      240_000
    )

    it.live(
      "sponsor transactions expire by the node's history, else by the sponsor's sequence",
      () =>
        run(
          Effect.fnUntraced(function* (ledger) {
            const transactions = yield* SponsorTransactions
            const {
              channels: [account = ""],
              sponsor
            } = yield* Signer
            const submit = Effect.flatMap(transactions.last, ({ hash }) =>
              transactions.submit("channels", [{ _tag: "Fund", account, amountStroops: 1n }], hash)
            )
            ledger.put(sponsor, 10n ** 10n, 41n)
            yield* submit
            ledger.state.latest = 1_029
            expect(yield* transactions.settleOpen).toBe(false)
            ledger.state.latest = 1_030
            expect(yield* transactions.settleOpen).toBe(true)
            yield* submit
            Object.assign(ledger.state, { latest: 2_000, oldest: 1_900 })
            expect(yield* transactions.settleOpen).toBe(true)
            ledger.state.oldest = 1
            yield* submit
            ledger.put(sponsor, 10n ** 10n, 42n)
            Object.assign(ledger.state, { latest: 3_000, oldest: 2_900 })
            expect(yield* transactions.settleOpen).toBe(true)
            expect((yield* journal).map(({ fee, state }) => ({ fee, state }))).toEqual([
              { state: "expired", fee: 0n },
              { state: "expired", fee: 0n },
              { state: "landed", fee: null }
            ])
          })
        ),
      240_000
    )
  })

  describe(`the channels on ${kind}`, () => {
    const run = <A, E>(channelCount: number, test: (ledger: Ledger) => Effect.Effect<A, E, any>) => {
      const ledger = makeLedger()
      return Effect.scoped(Effect.provide(test(ledger), layerOf(kind, ledger, channelCount))) as Effect.Effect<
        A,
        unknown
      >
    }
    /**
     * Lets the last submitted transaction land: created accounts exist, funded ones are full, merged ones are removed.
     */
    const land = Effect.fnUntraced(function* (ledger: Ledger) {
      const { channels, sponsor } = yield* Signer
      const last = ledger.sent.at(-1)!
      const operations = yield* operationsOf(last.envelope)
      const missing = channels.filter((address) => !ledger.accounts.has(address))
      for (const address of missing.slice(0, operations.filter((type) => type === 0).length))
        ledger.put(address, balanceMin, 500n)
      for (const [address, { balanceStroops, sequence }] of ledger.accounts) {
        if (address !== sponsor && balanceStroops < balanceMin / 2n) ledger.put(address, balanceMin, sequence)
      }
      for (const address of yield* mergedIn(last.envelope)) ledger.accounts.delete(address)
      ledger.state.latest += 1
      ledger.answers.set(last.hash, {
        _tag: "Included",
        latestLedger: ledger.state.latest,
        executed: {
          ledger: ledger.state.latest,
          closedAtSeconds: 0,
          innerHash: last.hash,
          outerHash: last.hash,
          feeChargedStroops: 100n,
          succeeded: true,
          transfers: Option.none()
        }
      })
      yield* ledger.wake
    })
    const counts = Effect.flatMap(ChannelPool, ({ counts }) => counts)

    it.live(
      "creates a hundred channels per transaction and reads their sequences [S340]",
      () =>
        run(
          130,
          Effect.fnUntraced(function* (ledger) {
            ledger.put((yield* Signer).sponsor, 10n ** 11n, 41n)
            yield* startChannels()
            yield* eventually(
              Effect.sync(() => ledger.sent.length),
              (sent) => sent > 0
            )
            expect(yield* operationsOf(ledger.sent[0]!.envelope)).toEqual(Array.from({ length: 100 }, () => 0))
            yield* land(ledger)
            yield* eventually(
              Effect.sync(() => new Set(ledger.sent.map(({ hash }) => hash)).size),
              (sent) => sent === 2
            )
            expect(yield* operationsOf(ledger.sent.at(-1)!.envelope)).toEqual(Array.from({ length: 30 }, () => 0))
            expect(yield* counts).toEqual({ ready: 100, free: 100 })
            yield* land(ledger)
            yield* eventually(counts, ({ ready }) => ready === 130)
            expect((yield* journal).map(({ state }) => state)).toEqual(["landed", "landed"])
          })
        ),
      240_000
    )

    it.live(
      "channels cost nothing while the sponsor cannot pay for them",
      () =>
        run(
          3,
          Effect.fnUntraced(function* (ledger) {
            const { channels, sponsor } = yield* Signer
            ledger.put(sponsor, 2n * balanceMin, 41n)
            ledger.put(channels[0]!, balanceMin, 7n)
            yield* startChannels()
            yield* eventually(counts, ({ ready }) => ready === 1)
            yield* ledger.wake
            expect(yield* journal).toEqual([])
            ledger.put(sponsor, 10n ** 10n, 41n)
            yield* eventually(
              Effect.sync(() => ledger.sent.length),
              (sent) => sent === 1
            )
            expect(yield* operationsOf(ledger.sent[0]!.envelope)).toEqual([0, 0])
          })
        ),
      240_000
    )

    it.live(
      "ledgers that close do not cause reads of ready channels",
      () =>
        run(
          2,
          Effect.fnUntraced(function* (ledger) {
            const { channels, sponsor } = yield* Signer
            ledger.put(sponsor, 10n ** 10n, 41n)
            for (const address of channels) ledger.put(address, balanceMin, 7n)
            yield* startChannels()
            yield* eventually(counts, ({ ready }) => ready === 2)
            yield* Effect.sleep("1500 millis")
            const before = ledger.state.surveys
            for (let closed = 0; closed < 5; closed++) {
              ledger.state.latest += 1
              yield* ledger.wake
              yield* Effect.sleep("200 millis")
            }
            expect(ledger.state.surveys).toBe(before)
          })
        ),
      240_000
    )

    it.live(
      "rereads channels with unknown or foreign sequence from an up-to-date node",
      () =>
        run(
          2,
          Effect.fnUntraced(function* (ledger) {
            const sql = yield* SqlClient.SqlClient
            const {
              channels: [first, second],
              sponsor
            } = yield* Signer
            ledger.put(sponsor, 10n ** 10n, 41n)
            for (const address of [first!, second!]) ledger.put(address, balanceMin, 7n)
            yield* startChannels()
            yield* eventually(counts, ({ ready }) => ready === 2)
            yield* sql`update kernel_channels set sequence = null, sequence_ledger = 1005 where address = ${first!}`
            ledger.put(first!, balanceMin, 9n)
            yield* ledger.wake
            expect((yield* counts).ready).toBe(1)
            ledger.state.latest = 1_005
            yield* ledger.wake
            yield* eventually(counts, ({ ready }) => ready === 2)
            const store = yield* ChannelStore
            expect(yield* store.correct(second!, 7n, 12n, 999)).toBe(false)
            expect(yield* store.correct(second!, 6n, 12n, 1_010)).toBe(false)
            const leases = yield* Effect.forEach([1, 2], () => takeOne)
            expect(
              leases
                .flatMap(Option.toArray)
                .map(({ sequence }) => sequence)
                .sort((a, b) => Number(a! - b!))
            ).toEqual([8n, 10n])
            expect(yield* store.correct(second!, 7n, 12n, 1_010)).toBe(false)
            yield* Effect.forEach(leases.flatMap(Option.toArray), store.release)
            expect(yield* store.correct(second!, 7n, 12n, 1_010)).toBe(true)
          })
        ),
      240_000
    )

    it.live(
      "a lease racing a timeout or interruption reaches its waiter or is released",
      () =>
        run(
          1,
          Effect.fnUntraced(function* (ledger) {
            const sql = yield* SqlClient.SqlClient
            const pool = yield* ChannelPool
            const {
              channels: [channel],
              sponsor
            } = yield* Signer
            ledger.put(sponsor, 10n ** 10n, 41n)
            ledger.put(channel!, balanceMin, 7n)
            yield* startChannels()
            yield* eventually(counts, ({ ready }) => ready === 1)
            /** The end of a lease with a statement that the database answers only after `meanwhile`. */
            const leaseDuring = Effect.fnUntraced(function* <A>(
              meanwhile: (waiter: Fiber.Fiber<unknown, unknown>) => Effect.Effect<A>
            ) {
              const place = yield* pool.enter("key:a", Duration.millis(50))
              if (place._tag === "Full") return yield* Effect.die(place)
              const [locked, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
              const lock = sql`lock table kernel_channels in access exclusive mode`.unprepared
              const locking = yield* Effect.forkChild(
                sql.withTransaction(
                  Effect.all([lock, Deferred.succeed(locked, undefined), Deferred.await(over)], { discard: true })
                )
              )
              yield* Deferred.await(locked)
              const waiter = yield* Effect.forkChild(place.lease, { startImmediately: true })
              yield* meanwhile(waiter)
              yield* Deferred.succeed(over, undefined)
              yield* Fiber.join(locking)
              return yield* Fiber.await(waiter)
            })
            const late = yield* yield* leaseDuring(() => Effect.sleep("300 millis"))
            expect(Option.map(late, ({ address }) => address)).toEqual(Option.some(channel))
            expect(yield* counts).toEqual({ ready: 1, free: 0 })
            yield* pool.release(Option.getOrThrow(late))
            const ended = yield* leaseDuring((waiter) =>
              Effect.andThen(
                Effect.sleep("20 millis"),
                Effect.sync(() => waiter.interruptUnsafe())
              )
            )
            expect(Exit.isFailure(ended) && Cause.hasInterruptsOnly(ended.cause)).toBe(true)
            expect(yield* counts).toEqual({ ready: 1, free: 1 })
          })
        ),
      240_000
    )

    it.live(
      "an operator resizes channels; surplus ones are retired and merged once free [S340]",
      () =>
        run(
          3,
          Effect.fnUntraced(function* (ledger) {
            const sql = yield* SqlClient.SqlClient
            const moves = yield* ChannelActions
            const { channels, sponsor } = yield* Signer
            const stateOf = (number: number) =>
              Effect.map(moves.list, (all) => all.find((one) => one.number === number)?.state)
            ledger.put(sponsor, 10n ** 11n, 41n)
            for (const address of channels.slice(0, 3)) ledger.put(address, balanceMin, 7n)
            yield* startChannels()
            yield* eventually(counts, ({ ready }) => ready === 3)

            yield* moves.resize(25)
            yield* ledger.wake
            yield* eventually(
              Effect.sync(() => ledger.sent.length),
              (sent) => sent > 0
            )
            expect(yield* operationsOf(ledger.sent.at(-1)!.envelope)).toEqual(Array.from({ length: 22 }, () => 0))
            yield* land(ledger)
            yield* eventually(counts, ({ ready }) => ready === 25)
            expect((yield* ChannelCount).known()).toBe(25)

            // Number 2 is leased: it stays until the lease has expired, and once it is merged its lease is void.
            yield* sql`update kernel_channels set leased_until = clock_timestamp() + interval '1 hour', fence = 8
          where number = 2`
            const before = ledger.sent.length
            yield* moves.resize(2)
            yield* ledger.wake
            yield* eventually(
              Effect.sync(() => ledger.sent.length),
              (sent) => sent > before
            )
            expect(yield* counts).toEqual({ ready: 2, free: 2 })
            expect(yield* mergedIn(ledger.sent.at(-1)!.envelope)).toEqual(channels.slice(3, 22))
            expect([yield* stateOf(2), yield* stateOf(3), yield* stateOf(22)]).toEqual([
              "retiring",
              "merging",
              "retiring"
            ])
            yield* land(ledger)
            yield* eventually(
              Effect.suspend(() => mergedIn(ledger.sent.at(-1)!.envelope)),
              (merged) => merged.length === 3
            )
            yield* land(ledger)
            yield* eventually(stateOf(24), (state) => state === "retired")
            expect(yield* stateOf(2)).toBe("retiring")
            yield* sql`update kernel_channels set leased_until = clock_timestamp() - interval '1 second'
          where number = 2`
            yield* ledger.wake
            yield* eventually(stateOf(2), (state) => state === "merging")
            expect(yield* sql`select fence::int as fence from kernel_channels where number = 2`).toEqual([{ fence: 9 }])

            // Required again while the merge is open: its outcome decides whether the account is recreated.
            yield* moves.resize(3)
            yield* ledger.wake
            expect(yield* stateOf(2)).toBe("merging")
            yield* land(ledger)
            yield* eventually(
              Effect.suspend(() => operationsOf(ledger.sent.at(-1)!.envelope)),
              (types) => types.join() === "0"
            )
            yield* land(ledger)
            yield* eventually(counts, ({ ready }) => ready === 3)
            expect((yield* journal).every(({ state }) => state === "landed")).toBe(true)
          })
        ),
      240_000
    )

    it.live(
      "channels required again before their merge are leased again",
      () =>
        run(
          2,
          Effect.fnUntraced(function* (ledger) {
            const sql = yield* SqlClient.SqlClient
            const moves = yield* ChannelActions
            const { channels, sponsor } = yield* Signer
            ledger.put(sponsor, 10n ** 11n, 41n)
            for (const address of channels.slice(0, 2)) ledger.put(address, balanceMin, 7n)
            yield* startChannels()
            yield* eventually(counts, ({ ready }) => ready === 2)
            yield* sql`update kernel_channels set leased_until = clock_timestamp() + interval '1 hour' where number = 1`
            yield* moves.resize(1)
            yield* ledger.wake
            yield* eventually(counts, ({ ready }) => ready === 1)
            yield* moves.resize(2)
            yield* ledger.wake
            yield* eventually(counts, ({ ready }) => ready === 2)
            expect(ledger.sent).toEqual([])
          })
        ),
      240_000
    )
  })
}
