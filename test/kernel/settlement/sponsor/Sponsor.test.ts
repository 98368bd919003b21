// How often the sponsor is polled: maintenance is idle while no payment arrives, and no longer.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { Network } from "../../../../kernel/config/Network.ts"
import { WriteProbe } from "../../../../kernel/health/WriteProbe.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../../../kernel/ledger/LedgerRpc.ts"
import { Sponsor } from "../../../../kernel/settlement/sponsor/Sponsor.ts"
import { Signer } from "../../../../kernel/signer/Signer.ts"
import { Supervisor } from "../../../../kernel/actor/Supervisor.ts"
import { layerTest } from "../../../support/layerTest.ts"

const makeWorld = () => {
  const seen = { reads: 0, isAttended: true, balanceStroops: 1_000_000_000n }
  const sql = () =>
    Effect.sync(() => {
      seen.reads += 1
      return [{ owed: 0n, age: null, open: 0, addresses: ["channel"] }]
    })
  const account = (address: string) =>
    [address, { address, sequence: 1n, balanceStroops: seen.balanceStroops, reserveStroops: 0n }] as const
  const layer = Sponsor.layer.pipe(
    Layer.provide(
      Layer.mergeAll(
        Supervisor.layer,
        WriteProbe.layerWritable,
        Layer.succeed(SqlClient.SqlClient, sql as never),
        layerTest(Limits, { pendingSettlementsMax: 10 }),
        layerTest(Network, {
          id: "ledger:testnet",
          developmentAutoFund: false,
          feeCeilings: () => ({ resourceStroopsMax: 9n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n })
        }),
        layerTest(Signer, {
          sponsor: "sponsor",
          channels: ["channel"],
          formerChannels: [],
          problem: Effect.succeed(undefined),
          assure: Effect.void
        }),
        layerTest(LedgerRpc, {
          accounts: (addresses: ReadonlyArray<string>) =>
            Effect.sync(() => ({ latestLedger: 1_000, accounts: new Map(addresses.map(account)) }))
        }),
        layerTest(LedgerClock, {
          attend: Effect.void,
          caughtUp: Effect.void,
          isAttended: Effect.sync(() => seen.isAttended),
          fees: Effect.succeed({ p50: 100n, p90: 100n, p99: 100n, asked: 100n }),
          subscribe: () => Effect.void
        })
      )
    )
  )
  /** Polls within a number of seconds. */
  const readsIn = Effect.fnUntraced(function* (seconds: number) {
    const before = seen.reads
    for (let second = 0; second < seconds; second++) yield* TestClock.adjust("1 second")
    return seen.reads - before
  })
  return { layer, readsIn, seen }
}

it.effect("polls the sponsor every 5 seconds during payments, every 30 without", () => {
  const { layer, readsIn, seen } = makeWorld()
  return Effect.gen(function* () {
    yield* Sponsor
    yield* readsIn(10)
    expect(yield* readsIn(60)).toBe(12)
    seen.isAttended = false
    yield* readsIn(30)
    expect(yield* readsIn(60)).toBe(2)
  }).pipe(Effect.provide(layer))
})

it.effect("polls a sponsor that cannot pay every 5 seconds, with or without payments", () => {
  const { layer, readsIn, seen } = makeWorld()
  return Effect.gen(function* () {
    const sponsor = yield* Sponsor
    seen.isAttended = false
    seen.balanceStroops = 0n
    yield* readsIn(60)
    const error = yield* Effect.forkChild(sponsor.problem("exact"))
    yield* readsIn(1)
    expect((yield* Fiber.join(error))._tag).toBe("Some")
    yield* readsIn(60)
    expect(yield* readsIn(60)).toBe(12)
  }).pipe(Effect.provide(layer))
})
