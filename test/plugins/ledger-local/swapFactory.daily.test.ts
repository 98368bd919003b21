// A factory that deploys pools, and a pool that swaps two tokens within a limit. We did not write the ledger for these
// contracts; the test drives them like any client, with the SDK's `contract.Client` and the interface that it reads
// from the ledger.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Asset, contract, hash, type Keypair, Operation, rpc, scValToNative } from "@stellar/stellar-sdk"
import { Listeners } from "../../../kernel/platform/Listeners.ts"
import { BODY_BYTES_MAX, handle } from "../../../plugins/ledger-local/httpApi.ts"
import { LocalLedger } from "../../../plugins/ledger-local/LocalLedger.ts"
import { layer as nodeListeners } from "../../../runtime/platform/nodeListeners.ts"
import { buildContract } from "../../contract/build.ts"
import { interfaceSections, text } from "../../contract/sections.ts"
import { contractAddressOf, execute } from "../../support/deployContract.ts"
import { fund, ledgerLayer, passphrase, usdcAsset } from "./support.ts"

const type = { bool: { type: 1 }, i128: { type: 11 }, address: { type: 19 }, hash: { type: 1006, bytesN: { n: 32 } } }
type Types = Readonly<Record<string, keyof typeof type>>

const fn = (name: string, inputs: Types, ...outputs: ReadonlyArray<keyof typeof type>) => ({
  kind: 0,
  functionV0: {
    doc: text(""),
    name: text(name),
    inputs: Object.entries(inputs).map(([input, of]) => ({ doc: text(""), name: text(input), type: type[of] })),
    outputs: outputs.map((of) => type[of])
  }
})

const swapErrors = {
  kind: 4,
  udtErrorEnumV0: {
    doc: text(""),
    lib: text(""),
    name: text("SwapError"),
    cases: [
      { doc: text("less than was asked for"), name: text("TooLittle"), value: 1 },
      { doc: text("nothing to swap"), name: text("Empty"), value: 2 }
    ]
  }
}

const module = (file: string, entries: ReadonlyArray<object>) =>
  Effect.promise(() =>
    buildContract(readFileSync(new URL(`../../contract/${file}`, import.meta.url), "utf8"), interfaceSections(entries))
  )

const factoryModule = module("factory.as", [
  fn("create", { wasm_hash: "hash", a: "address", b: "address" }, "address"),
  fn("pool", { a: "address", b: "address" }, "address")
])
const poolModule = module("pool.as", [
  fn("__constructor", { a: "address", b: "address" }),
  fn("deposit", { from: "address", a: "i128", b: "i128" }),
  fn("swap", { from: "address", sells_a: "bool", amount: "i128", least: "i128" }, "i128"),
  swapErrors
])

type Call<Args, Result> = (
  args: Args,
  options?: contract.MethodOptions
) => Promise<contract.AssembledTransaction<Result>>
interface Factory {
  readonly create: Call<{ wasm_hash: Uint8Array; a: string; b: string }, string>
  readonly pool: Call<{ a: string; b: string }, string>
}
interface Pool {
  readonly deposit: Call<{ from: string; a: bigint; b: bigint }, void>
  readonly swap: Call<{ from: string; sells_a: boolean; amount: bigint; least: bigint }, bigint>
}

/** A ledger behind a socket, which closes after each received transaction. */
const setup = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const listeners = yield* Listeners
  const answer = Effect.fnUntraced(function* (request: Request) {
    const { method } = JSON.parse(yield* Effect.promise(() => request.clone().text()))
    const answered = yield* handle(ledger, request)
    if (method === "sendTransaction") yield* ledger.close
    return answered
  })
  const { port } = yield* listeners.open({ host: "127.0.0.1", port: 0, bodyBytesMax: BODY_BYTES_MAX }, answer)
  const url = `http://127.0.0.1:${port}`
  const server = new rpc.Server(url, { allowHttp: true })
  const client = <Methods>(contractId: string, by: Keypair) =>
    Effect.promise(() =>
      contract.Client.from<Methods>({
        ...contract.basicNodeSigner(by, passphrase),
        contractId,
        rpcUrl: url,
        allowHttp: true,
        networkPassphrase: passphrase,
        publicKey: by.publicKey()
      })
    )
  const units = (of: string, asset: Asset) =>
    Effect.promise(async () => {
      const { balanceEntry } = await server.getAssetBalance(of, asset, passphrase)
      return BigInt(balanceEntry?.amount ?? 0)
    })
  return { client, server, units }
})

const sent = <A>(assembled: contract.AssembledTransaction<A>) => Effect.promise(() => assembled.signAndSend())
const [a, b] = [Asset.native(), usdcAsset].map((asset) => asset.contractId(passphrase)) as [string, string]

/** A factory with the pool of XLM and USDC, which holds a million units of XLM and two million of USDC. */
const world = Effect.gen(function* () {
  const { client, server, units } = yield* setup
  const [owner, trader, payer] = [yield* fund("owner", 90_000_000n), yield* fund("trader", 0n), yield* fund("payer")]
  const [factoryWasm, poolWasm] = [yield* factoryModule, yield* poolModule]
  const salt = new Uint8Array(32)
  yield* Effect.promise(async () => {
    for (const wasm of [factoryWasm, poolWasm])
      await execute(server, owner, Operation.uploadContractWasm({ wasm: Buffer.from(wasm) }))
  })
  const deployed = yield* Effect.promise(() =>
    contract.Client.deploy<Factory>(null, {
      ...contract.basicNodeSigner(owner, passphrase),
      wasmHash: hash(factoryWasm),
      salt,
      rpcUrl: server.serverURL.toString(),
      allowHttp: true,
      networkPassphrase: passphrase,
      publicKey: owner.publicKey()
    })
  )
  yield* sent(deployed)
  const factory = yield* client<Factory>(contractAddressOf(owner, salt), owner)
  const create = Effect.promise(() => factory.create({ wasm_hash: hash(poolWasm), a, b }))
  const made = yield* sent(yield* create)
  const pool = made.result
  yield* sent(
    yield* Effect.promise(async () =>
      (await client<Pool>(pool, owner).pipe(Effect.runPromise)).deposit({
        from: owner.publicKey(),
        a: 1_000_000n,
        b: 2_000_000n
      })
    )
  )
  return { client, create, factory, made, owner, payer, pool, server, trader, units }
})

const layer = Layer.mergeAll(ledgerLayer(), nodeListeners)
/** The result of a swap by the pool's rule. */
const outOf = (reserveIn: bigint, reserveOut: bigint, paid: bigint) =>
  (reserveOut * paid * 997n) / (reserveIn * 1_000n + paid * 997n)

describe("a swap factory", () => {
  it.live("a swap factory deploys a pair's pool once, at a predictable address, with an event", () =>
    Effect.gen(function* () {
      const { create, factory, made, pool } = yield* world
      expect((yield* Effect.promise(() => factory.pool({ a, b }))).result).toBe(pool)
      const [event] = (made.getTransactionResponse as rpc.Api.GetSuccessfulTransactionResponse).events
        .contractEventsXdr[0]!
      expect(event!.body.v0.topics.map(scValToNative)).toEqual(["created", a, b])
      expect(scValToNative(event!.body.v0.data)).toBe(pool)
      const again = yield* Effect.exit(Effect.tryPromise(async () => (await Effect.runPromise(create)).result))
      expect(String(again)).toMatch(/Error\(Storage, ExistingValue\)/)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("swaps through its pool for a trader with own or sponsored fees", () =>
    Effect.gen(function* () {
      const { client, payer, pool, trader, units } = yield* world
      const own = yield* client<Pool>(pool, trader)
      const first = outOf(1_000_000n, 2_000_000n, 10_000n)
      const swap = { from: trader.publicKey(), sells_a: true, amount: 10_000n, least: first }
      const done = yield* sent(yield* Effect.promise(() => own.swap(swap)))
      expect(done.result).toBe(first)
      expect(yield* units(trader.publicKey(), usdcAsset)).toBe(first)
      expect([yield* units(pool, Asset.native()), yield* units(pool, usdcAsset)]).toEqual([
        1_010_000n,
        2_000_000n - first
      ])
      // Back again, in another account's transaction that holds the trader's signed authorization.
      const sponsored = yield* client<Pool>(pool, payer)
      const second = outOf(2_000_000n - first, 1_010_000n, first)
      const back = yield* Effect.promise(() =>
        sponsored.swap({ from: trader.publicKey(), sells_a: false, amount: first, least: second })
      )
      expect(back.needsNonInvokerSigningBy()).toEqual([trader.publicKey()])
      const { signAuthEntry } = contract.basicNodeSigner(trader, passphrase)
      yield* Effect.promise(() => back.signAuthEntries({ address: trader.publicKey(), signAuthEntry }))
      expect((yield* sent(back)).result).toBe(second)
      expect(yield* units(trader.publicKey(), usdcAsset)).toBe(0n)
      expect(yield* units(pool, Asset.native())).toBe(1_010_000n - second)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("a swap below the trader's limit fails in simulation and on ledger", () =>
    Effect.gen(function* () {
      const { client, owner, pool, trader, units } = yield* world
      const pools = [yield* client<Pool>(pool, trader), yield* client<Pool>(pool, owner)]
      const given = outOf(1_000_000n, 2_000_000n, 10_000n)
      const swap = (by: Keypair, least: bigint, amount = 10_000n) =>
        Effect.promise(() => pools[by === trader ? 0 : 1]!.swap({ from: by.publicKey(), sells_a: true, amount, least }))
      for (const [amount, least, words] of [
        [10_000n, given + 1n, /Error\(Contract, #1\)/],
        [0n, 0n, /Error\(Contract, #2\)/]
      ] as const) {
        const refused = yield* swap(trader, least, amount)
        expect(rpc.Api.isSimulationError(refused.simulation!) && refused.simulation.error).toMatch(words)
      }
      // Valid when simulated, but no longer when it reaches the ledger.
      const late = yield* swap(trader, given)
      yield* sent(yield* swap(owner, 0n))
      const reserves = [yield* units(pool, Asset.native()), yield* units(pool, usdcAsset)]
      const failed = yield* sent(late)
      expect(failed.getTransactionResponse!.status).toBe("FAILED")
      expect([yield* units(pool, Asset.native()), yield* units(pool, usdcAsset)]).toEqual(reserves)
      expect(yield* units(trader.publicKey(), usdcAsset)).toBe(0n)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )
})
