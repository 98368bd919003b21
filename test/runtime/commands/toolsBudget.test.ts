// Operator actions while a tool server uses the same state folder: reading and deciding, on the same table.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Path } from "effect"
import { fileStore } from "../../../plugins/mcp-tools-pay/budget/tableStore.ts"
import { administration as loading } from "../../../plugins/mcp-tools-pay/plugin.ts"
import { groundAt } from "../../../runtime/commands/CommandTarget.ts"
import * as Locks from "../../../runtime/platform/folderLock.ts"

const held = {
  id: "pay_1",
  day: "2026-01-01",
  agent: "key:agent",
  session: "one",
  invocation: "call",
  network: "ledger:testnet",
  asset: "USDC",
  payTo: "SELLER",
  amount: 2_000n,
  state: "reserved",
  createdAtMillis: 0,
  authorization: undefined,
  transaction: undefined
} as const

const ceilings = { perDay: 10_000n, perSession: 10_000n, perRecipient: 0n, paymentsPerMinute: 0 }

it.effect("lists and decides holds beside a running tool server [S104]", () =>
  Effect.gen(function* () {
    const administration = yield* loading
    const state = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "tollkeeper-holds-" })
    const ground = groundAt({ profile: "tools", state, set: [] })
    const authorization = { payer: "PAYER", nonce: 1n, expirationLedger: 100 }
    const folder = (yield* Path.Path).join(state, "tools")
    yield* Effect.scoped(
      Effect.gen(function* () {
        const store = yield* fileStore(folder)
        yield* store.reserve(held as never, ceilings as never, 0)
        yield* store.move(held.id, { state: "signed", authorization })
        const listed = yield* Effect.provide(administration.listHolds, ground)
        expect(listed.map(({ id, state }) => [id, state])).toEqual([["pay_1", "signed"]])
        expect(yield* Effect.provide(administration.resolveHold(held.id, "released"), ground)).toBe(true)
        expect(yield* store.open).toEqual([])
      })
    )
    expect(yield* Effect.provide(administration.listHolds, ground)).toEqual([])
  }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Locks.layer]))
)
