// A ledger's initial state as a file: accounts by name with their balances, contracts of given wasm, and how far time
// has advanced, all by real transactions in the history. The same file gives the same addresses everywhere. If a part
// cannot be read or applied, the error names its place in the file, and the ledger does not start.
import { Effect, FileSystem, Path, Schema } from "effect"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { addressStrKey, codec, type ScVal, type Transaction } from "./engine/xdr/Xdr.ts"
import { LocalLedger } from "./LocalLedger.ts"
import { type LocalAccount, localAccount } from "./node/accounts.ts"
import { fromBase64, toBase64 } from "./node/text.ts"
import { scValOfJson } from "./rpc/inJson.ts"
import { transactionHash } from "./transaction/Frame.ts"
import { readAccount } from "./transaction/validate.ts"

/** A script that cannot be read, or a step of it that fails. */
export class ScriptRefused extends Schema.TaggedError<ScriptRefused>()("ScriptRefused", { message: Schema.String }) {}

const Name = Schema.String.check(Schema.isPattern(/^[a-z][a-z0-9-]{0,39}$/))
const whole = (most: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: most }))

const Script = Schema.Struct({
  accounts: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        name: Name,
        /** A decimal amount; absent: no trustline. */
        usdc: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[0-9]{1,9}(\.[0-9]{1,7})?$/)))
      })
    )
  ),
  contracts: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        name: Name,
        /** The name of the account that pays and owns. */
        owner: Name,
        /** Relative to the script. */
        wasm: Schema.String,
        /** Of its constructor, as JSON of SEP-51. */
        arguments: Schema.optionalKey(Schema.Array(Schema.Unknown))
      })
    )
  ),
  advance: Schema.optionalKey(
    Schema.Struct({ ledgers: Schema.optionalKey(whole(1_000_000)), seconds: Schema.optionalKey(whole(315_360_000)) })
  )
})

interface ScriptResult {
  readonly accounts: ReadonlyArray<LocalAccount>
  readonly contracts: ReadonlyArray<{ readonly name: string; readonly address: string }>
}

const refuse = (message: string) => new ScriptRefused({ message })

const unitsOf = (text: string): bigint => {
  const [units = "", fraction = ""] = text.split(".")
  return BigInt(units + fraction.padEnd(7, "0"))
}

const bytesOf = (text: string): Uint8Array => fromBase64(text) ?? new Uint8Array(0)

type HostFunction = Parameters<typeof codec.HostFunction.encode>[0]

const INCLUSION_STROOPS = 100

/** Simulates, signs and sends one contract operation, waits for its ledger, and returns its return value. */
const invoke = Effect.fnUntraced(function* (where: string, owner: LocalAccount, hostFunction: HostFunction) {
  const ledger = yield* LocalLedger
  const crypto = yield* Crypto
  const source = readAccount(ledger.ledger.store, owner.id)
  if (source === undefined) return yield* refuse(`${where}: there is no account of its owner`)
  const draft: Transaction = {
    sourceAccount: { type: 0, ed25519: owner.id.ed25519 },
    fee: INCLUSION_STROOPS,
    seqNum: source.seqNum + 1n,
    cond: { type: 0 },
    memo: { type: 0 },
    operations: [{ sourceAccount: null, body: { type: 24, invokeHostFunctionOp: { hostFunction, auth: [] } } }],
    ext: { v: 0 }
  }
  const encoded = (tx: Transaction, signature?: Uint8Array): string => {
    const hint = owner.id.ed25519.slice(28)
    const signatures = signature === undefined ? [] : [{ hint, signature }]
    return toBase64(codec.TransactionEnvelope.encode({ type: 2, v1: { tx, signatures } }))
  }
  const simulated = yield* ledger.call("simulateTransaction", { transaction: encoded(draft) })
  if (simulated.error !== undefined) return yield* refuse(`${where}: ${simulated.error}`)
  const [{ auth, xdr }] = simulated.results as [{ readonly auth: ReadonlyArray<string>; readonly xdr: string }]
  const entries = auth.map((text) => codec.SorobanAuthorizationEntry.decode(bytesOf(text)))
  const tx: Transaction = {
    ...draft,
    fee: Number(simulated.minResourceFee) + INCLUSION_STROOPS,
    operations: [{ sourceAccount: null, body: { type: 24, invokeHostFunctionOp: { hostFunction, auth: entries } } }],
    ext: { v: 1, sorobanData: codec.SorobanTransactionData.decode(bytesOf(simulated.transactionData)) }
  }
  const signature = crypto.ed25519Sign(owner.seed, transactionHash(crypto, ledger.ledger.options.networkId, tx))
  const sent = yield* ledger.call("sendTransaction", { transaction: encoded(tx, signature) })
  yield* ledger.close
  const { status } = yield* ledger.call("getTransaction", { hash: sent.hash })
  if (status !== "SUCCESS") return yield* refuse(`${where}: its transaction ended as ${status}`)
  return codec.ScVal.decode(bytesOf(xdr))
})

const scValOf = (where: string, json: unknown): Effect.Effect<ScVal, ScriptRefused> =>
  Effect.try({ try: () => scValOfJson(json), catch: (error) => refuse(`${where}: ${String(error)}`) })

const deploy = Effect.fnUntraced(function* (
  where: string,
  folder: string,
  owner: LocalAccount,
  contract: NonNullable<typeof Script.Type.contracts>[number]
) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const crypto = yield* Crypto
  const wasm = yield* files
    .readFile(path.resolve(folder, contract.wasm))
    .pipe(Effect.mapError(() => refuse(`${where}.wasm: ${contract.wasm} cannot be read`)))
  yield* invoke(where, owner, { type: 2, wasm })
  const constructorArgs = yield* Effect.forEach(contract.arguments ?? [], (json, i) =>
    scValOf(`${where}.arguments[${i}]`, json)
  )
  const salt = crypto.sha256(new TextEncoder().encode(`tollkeeper local ledger contract: ${contract.name}`))
  const address = yield* invoke(where, owner, {
    type: 3,
    createContractV2: {
      contractIdPreimage: { type: 0, fromAddress: { address: { type: 0, accountId: owner.id }, salt } },
      executable: { type: 0, wasmHash: crypto.sha256(wasm) },
      constructorArgs
    }
  })
  if (address.type !== 18) return yield* refuse(`${where}: it has no address`)
  return { name: contract.name, address: addressStrKey(address.address) }
})

const read = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const text = yield* files.readFileString(file).pipe(Effect.mapError(() => refuse(`${file} cannot be read`)))
  const json = yield* Effect.try({
    try: () => JSON.parse(text) as unknown,
    catch: () => refuse(`${file} is not JSON`)
  })
  return yield* Schema.decodeUnknownEffect(Script, { onExcessProperty: "error" })(json).pipe(
    Effect.mapError((error) => refuse(`${file}: ${error.message.replace(/\s*\n\s*/g, " ")}`))
  )
})

/** Applies the file, in the order of accounts, contracts and time. */
export const runScript = Effect.fnUntraced(function* (file: string) {
  const ledger = yield* LocalLedger
  const crypto = yield* Crypto
  const path = yield* Path.Path
  const script = yield* read(file)
  const accounts: Array<LocalAccount> = []
  for (const [i, { name, usdc }] of (script.accounts ?? []).entries()) {
    const account = localAccount(crypto, name)
    accounts.push(account)
    if (yield* ledger.exists(account.id)) continue
    const funded = yield* ledger.fund(account.address, usdc === undefined ? {} : { usdcUnits: unitsOf(usdc) })
    if (funded === undefined) return yield* refuse(`accounts[${i}]: the friendbot cannot give it what it is to have`)
  }
  const contracts: Array<ScriptResult["contracts"][number]> = []
  for (const [i, contract] of (script.contracts ?? []).entries()) {
    const owner = localAccount(crypto, contract.owner)
    contracts.push(yield* deploy(`contracts[${i}]`, path.dirname(file), owner, contract))
  }
  const { ledgers, seconds } = script.advance ?? {}
  if (ledgers !== undefined) yield* ledger.closeMany(ledgers)
  if (seconds !== undefined) yield* ledger.advanceSeconds(seconds)
  const scripted: ScriptResult = { accounts, contracts }
  return scripted
})
