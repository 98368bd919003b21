// Moving the XLM of rotated-out sponsors: only the amount above each reserve, and only while no payment needs them.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Network } from "../../../../kernel/config/Network.ts"
import { LedgerRpc } from "../../../../kernel/ledger/LedgerRpc.ts"
import { SponsorDrain } from "../../../../kernel/settlement/sponsor/SponsorDrain.ts"
import { SponsorTransactions } from "../../../../kernel/settlement/sponsor/SponsorTransactions.ts"
import { Signer } from "../../../../kernel/signer/Signer.ts"
import type { SponsorOperation } from "../../../../kernel/stellar/Envelope.ts"
import { layerTest } from "../../../support/layerTest.ts"

/** Stroops that each account must keep. */
const reserveStroops = 30n

/** A ledger with these balances; a sent transaction lands unless `drops`. */
const makeWorld = (changes: { former?: ReadonlyArray<string>; open?: number; live?: number; drops?: boolean } = {}) => {
  const { drops = false, former = ["old", "older", "gone"], live = 0, open = 0 } = changes
  const balances = new Map(Object.entries({ new: 500n, old: 100n, older: reserveStroops, target: 50n }))
  const sent: Array<readonly [string, ReadonlyArray<SponsorOperation>, string | undefined]> = []
  const land = (operations: ReadonlyArray<SponsorOperation>) => {
    for (const one of operations)
      if (one._tag === "Drain") balances.set(one.account, balances.get(one.account)! - one.amountStroops)
  }
  const layer = SponsorDrain.layer.pipe(
    Layer.provide([
      Layer.succeed(SqlClient.SqlClient, (() => Effect.succeed([{ open, live }])) as never),
      layerTest(Network, { id: "ledger:testnet" }),
      layerTest(Signer, { sponsor: "new", sponsors: ["new", ...former] }),
      layerTest(LedgerRpc, {
        accounts: (addresses) =>
          Effect.sync(() => ({
            latestLedger: 1_000,
            accounts: new Map(
              addresses.flatMap((address) => {
                const balanceStroops = balances.get(address)
                return balanceStroops === undefined
                  ? []
                  : [[address, { address, sequence: 1n, balanceStroops, reserveStroops }] as const]
              })
            )
          }))
      }),
      layerTest(SponsorTransactions, {
        settleOpen: Effect.succeed(true),
        last: Effect.succeed({ hash: "newest" }) as never,
        submit: (purpose, operations, after) =>
          Effect.sync(() => {
            sent.push([purpose, operations, after])
            if (!drops) land(operations)
          })
      })
    ])
  )
  const drain = (to: string) => Effect.flatMap(SponsorDrain, (one) => one.drain(to)).pipe(Effect.provide(layer))
  return { balances, drain, sent }
}

it.effect("moves the XLM above a former sponsor's reserve, and of no other", () => {
  const { balances, drain, sent } = makeWorld()
  return Effect.gen(function* () {
    expect(yield* drain("target")).toEqual([{ account: "old", amountStroops: 70n }])
    expect(sent).toEqual([["drain", [{ _tag: "Drain", to: "target", account: "old", amountStroops: 70n }], "newest"]])
    expect(balances.get("old")).toBe(reserveStroops)
    // Nothing is left: no second transaction.
    expect(yield* drain("target")).toEqual([])
    expect(sent).toHaveLength(1)
  })
})

it.effect("drains as many former sponsors as one transaction can have signatures", () => {
  const former = Array.from({ length: 25 }, (_, at) => `former ${at}`)
  const { balances, drain } = makeWorld({ former })
  for (const address of former) balances.set(address, 100n)
  return Effect.gen(function* () {
    expect((yield* drain("target")).map(({ account }) => account)).toEqual(former.slice(0, 19))
  })
})

it.effect.each([
  ["without a former sponsor", { former: [] }, "target", /hold no former sponsor's seed/],
  ["to a former sponsor", {}, "old", /old is a former sponsor itself/],
  ["to an account that does not exist", {}, "nowhere", /nowhere is no account on the ledger/],
  ["while settlements of one are open", { open: 2 }, "target", /settlements .* are open \(2\)/],
  ["while replicas sign with one", { live: 1 }, "target", /running replicas sign with a former sponsor \(1\)/]
] as const)("refuses to drain %s", ([, changes, to, message]) => {
  const { drain, sent } = makeWorld(changes)
  return Effect.gen(function* () {
    expect((yield* Effect.flip(drain(to))).message).toMatch(message)
    expect(sent).toEqual([])
  })
})

it.effect("reports a transfer that the ledger does not show", () => {
  const { drain } = makeWorld({ drops: true })
  return Effect.gen(function* () {
    expect((yield* Effect.flip(drain("target"))).message).toMatch(/the ledger does not show the transfer/)
  })
})
