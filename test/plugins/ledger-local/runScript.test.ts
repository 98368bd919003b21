// A file with a ledger's initial state: its content exists afterwards, and an invalid file is refused with the place of
// the error.
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { Contract, Keypair, scValToNative, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../plugins/ledger-local/LocalLedger.ts"
import { runScript } from "../../../plugins/ledger-local/runScript.ts"
import { contract, VOID_BODY } from "./engine/wasm/assemble.ts"
import { account, ledgerLayer, transaction } from "./support.ts"

const layer = Layer.mergeAll(ledgerLayer(), NodeFileSystem.layer, NodePath.layer)

/** Runs a script with a contract file that has one function, without arguments and results. */
const run = Effect.fnUntraced(function* (script: unknown) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  yield* files.writeFile(`${folder}/empty.wasm`, contract({ body: VOID_BODY }))
  const text = typeof script === "string" ? script : JSON.stringify(script)
  yield* files.writeFileString(`${folder}/script.json`, text)
  return yield* runScript(`${folder}/script.json`)
})

const refused = (script: unknown) => Effect.map(Effect.flip(run(script)), ({ message }) => message)

describe("a script", () => {
  it.live("a script creates accounts and contracts, and advances time", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const before = ledger.ledger.latest.closeTime
      const scripted = yield* run({
        accounts: [{ name: "alice", usdc: "12.5" }, { name: "bob" }],
        contracts: [{ name: "empty", owner: "alice", wasm: "empty.wasm" }],
        advance: { ledgers: 10, seconds: 3_600 }
      })
      const [alice, bob] = scripted.accounts
      expect((yield* account(alice!.address))!.numSubEntries).toBe(1)
      expect((yield* account(bob!.address))!.balance).toBe(100_000_000_000n)
      expect(Number(ledger.ledger.latest.closeTime - before)).toBeGreaterThanOrEqual(3_600)
      const { transactions } = yield* ledger.call("getTransactions", { startLedger: 1_000 })
      expect(transactions.every(({ status }: { readonly status: string }) => status === "SUCCESS")).toBe(true)
      const call = new Contract(scripted.contracts[0]!.address).call("run")
      const draft = yield* transaction(Keypair.fromSecret(bob!.secret), [call])
      const answer = yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
      expect(answer.error).toBeUndefined()
      expect(scValToNative(xdr.ScVal.fromXdr(answer.results[0].xdr, "base64"))).toBeNull()
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("a script gives the same addresses on every run", () =>
    Effect.gen(function* () {
      const script = { accounts: [{ name: "alice" }], contracts: [{ name: "one", owner: "alice", wasm: "empty.wasm" }] }
      const fresh = run(script).pipe(Effect.scoped, Effect.provide(Layer.fresh(layer)))
      const [first, second] = [yield* fresh, yield* fresh]
      expect(second.contracts).toEqual(first.contracts)
      expect(second.accounts.map(({ address }) => address)).toEqual(first.accounts.map(({ address }) => address))
    })
  )

  it.live("refuses an invalid script with its position", () =>
    Effect.gen(function* () {
      expect(yield* refused("{")).toContain("is not JSON")
      expect(yield* refused({ account: [] })).toContain(`["account"]`)
      expect(yield* refused({ accounts: [{ name: "Alice" }] })).toContain(`["accounts"][0]["name"]`)
      expect(yield* refused({ accounts: [{ name: "a", usdc: "1e3" }] })).toContain(`["usdc"]`)
      expect(yield* refused({ advance: { ledgers: 0 } })).toContain(`["advance"]["ledgers"]`)
      const unowned = { name: "x", owner: "absent", wasm: "empty.wasm" }
      expect(yield* refused({ contracts: [unowned] })).toBe("contracts[0]: there is no account of its owner")
      const accounts = [{ name: "absent" }]
      expect(yield* refused({ accounts, contracts: [{ ...unowned, wasm: "none.wasm" }] })).toBe(
        "contracts[0].wasm: none.wasm cannot be read"
      )
      expect(yield* refused({ accounts, contracts: [{ ...unowned, wasm: "script.json" }] })).toMatch(
        /^contracts\[0\]: /
      )
      const ledger = yield* LocalLedger
      const broke = LocalLedger.of({ ...ledger, fund: () => Effect.succeed(undefined) })
      const rich = { accounts: [{ name: "alice" }, { name: "rich", usdc: "1" }] }
      yield* run({ accounts: [{ name: "alice" }] })
      expect(yield* refused(rich).pipe(Effect.provideService(LocalLedger, broke))).toMatch(
        /^accounts\[1\]: the friendbot /
      )
      expect(yield* refused({ accounts, contracts: [{ ...unowned, arguments: [{ nonsense: 1 }] }] })).toMatch(
        /^contracts\[0\]\.arguments\[0\]: /
      )
    }).pipe(Effect.scoped, Effect.provide(layer))
  )
})
