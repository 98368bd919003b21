// `npm run bench -- ledger`: the cost of the embedded ledger. Enforcing simulations of a signed payment through its
// HTTP handler; closing ledgers full of contract payments, each by its own account; and the start of `tollkeeper
// ledger`, small and with a hundred thousand accounts. Rates are per second of processor time of the whole process,
// including helper threads, which a busy machine hardly blurs. The status is 0 only if every bar holds.
import { Address, authorizeEntry, Contract, Keypair, nativeToScVal, xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { handle } from "../../plugins/ledger-local/httpApi.ts"
import { LocalLedger } from "../../plugins/ledger-local/LocalLedger.ts"
import { codec } from "../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { USDC_CONTRACT } from "../../plugins/ledger-local/node/accounts.ts"
import { readSnapshot, withCheck } from "../../plugins/ledger-local/node/journalText.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import { keypair, ledgerLayer, passphrase, transaction } from "../plugins/ledger-local/support.ts"
import { rpcCall } from "../../runtime/redteam/rpcCall.ts"
import { atLeast, atMost, type Bar, barLine } from "./rig/bars.ts"
import { memoryOf, processorMillis, type Service, startService, until } from "./rig/processes.ts"
import { programArgs, root } from "./rig/program.ts"

const megabyte = 1_000_000

const bars = {
  simulationsPerSecond: 3_000,
  closesPerSecond: 1_200,
  startMillis: 1_000,
  startMegabytes: 120,
  largeMegabytes: 300,
  largeStartMillis: 2_000
} as const

const ROUNDS = 5
const SIMULATIONS_A_ROUND = 2_000
const PAYMENTS = 1_000
const ACCOUNTS = 100_000

const ownMillis = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1_000
}

/** Items per second of processor time. */
const rateOf = Effect.fnUntraced(function* (count: number, work: Effect.Effect<unknown>) {
  const from = ownMillis()
  yield* work
  return (count * 1_000) / (ownMillis() - from)
})

const usdc = new Contract(USDC_CONTRACT)

const transferOf = (from: string, to: string) =>
  usdc.call("transfer", new Address(from).toScVal(), new Address(to).toScVal(), nativeToScVal(10n, { type: "i128" }))

/** The body of a request that simulates a payment with a signed authorization. */
const simulation = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const [payer, payee, sponsor] = ["payer", "payee", "sponsor"].map(keypair) as [Keypair, Keypair, Keypair]
  for (const key of [payer, payee]) yield* ledger.fund(key.publicKey(), { usdcUnits: 1_000_0000000n })
  yield* ledger.fund(sponsor.publicKey())
  const operation = transferOf(payer.publicKey(), payee.publicKey())
  const draft = yield* transaction(sponsor, [operation], { signers: [] })
  const recorded = yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
  const entry = xdr.SorobanAuthorizationEntry.fromXdr(recorded.results[0].auth[0], "base64")
  const signed = yield* Effect.promise(() => authorizeEntry(entry, payer, 100_000, passphrase))
  const envelope = codec.TransactionEnvelope.decode(Buffer.from(draft.toEnvelope().toXdr("base64"), "base64"))
  if (envelope.type !== 2) return yield* Effect.die(new Error("an unexpected envelope"))
  const [{ body, sourceAccount }] = envelope.v1.tx.operations as unknown as [(typeof envelope.v1.tx.operations)[number]]
  if (body.type !== 24) return yield* Effect.die(new Error("an unexpected operation"))
  const invokeHostFunctionOp = { ...body.invokeHostFunctionOp, auth: [signed.toXdrObject()] }
  const tx = { ...envelope.v1.tx, operations: [{ sourceAccount, body: { type: 24 as const, invokeHostFunctionOp } }] }
  const bytes = codec.TransactionEnvelope.encode({ type: 2, v1: { tx, signatures: [] } })
  const params = { transaction: Buffer.from(bytes).toString("base64") }
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "simulateTransaction", params })
})

const simulations = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const body = yield* simulation
  const ask = Effect.gen(function* () {
    const request = new Request("http://127.0.0.1:8000/", { method: "POST", body })
    const response = yield* handle(ledger, request)
    return yield* Effect.promise(() => response.text())
  })
  const answer = JSON.parse(yield* ask)
  if (answer.result?.minResourceFee === undefined) return yield* Effect.die(new Error(JSON.stringify(answer)))
  let best = 0
  for (let round = 0; round < ROUNDS; round++) {
    const all = Effect.forEach(Array.from({ length: SIMULATIONS_A_ROUND }), () => ask, { discard: true })
    best = Math.max(best, yield* rateOf(SIMULATIONS_A_ROUND, all))
  }
  return best
})

/** Contract payments, each by a different account, in as many ledgers as they need. */
const closes = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const payee = keypair("payee")
  yield* ledger.fund(payee.publicKey(), { usdcUnits: 0n })
  const hashes: Array<string> = []
  for (let i = 0; i < PAYMENTS; i++) {
    const payer = keypair(`payer ${i}`)
    yield* ledger.fund(payer.publicKey(), { usdcUnits: 1_0000000n })
    const operation = transferOf(payer.publicKey(), payee.publicKey())
    const draft = yield* transaction(payer, [operation], { signers: [] })
    const { minResourceFee, results, transactionData } = yield* ledger.call("simulateTransaction", {
      transaction: draft.toEnvelope().toXdr("base64")
    })
    const value = operation.body.value as xdr.InvokeHostFunctionOp
    const auth = results[0].auth.map((text: string) => xdr.SorobanAuthorizationEntry.fromXdr(text, "base64"))
    const authorized = new xdr.Operation({
      sourceAccount: null,
      body: xdr.OperationBody.invokeHostFunction(
        new xdr.InvokeHostFunctionOp({ hostFunction: value.hostFunction, auth })
      )
    })
    const signed = yield* transaction(payer, [authorized], {
      fee: (BigInt(minResourceFee) + 100n).toString(),
      configure: (builder) => builder.setSorobanData(transactionData).setTimeout(0)
    })
    const sent = yield* ledger.call("sendTransaction", { transaction: signed.toEnvelope().toXdr("base64") })
    hashes.push(sent.hash)
  }
  const closeAll = Effect.gen(function* () {
    while (ledger.ledger.queue.size > 0) yield* ledger.close
  })
  const rate = yield* rateOf(PAYMENTS, closeAll)
  for (const hash of hashes)
    if (ledger.ledger.history.transaction(hash)?.succeeded !== true)
      return yield* Effect.die(new Error("a payment did not succeed"))
  return rate
})

interface Started {
  readonly readyMillis: number
  readonly resident: number
}

const reported = (log: string): string => {
  try {
    return readFileSync(log, "utf8")
  } catch {
    return ""
  }
}

/** Processor time until the ledger prints its address, and its memory after its first answer. */
const start = async (folder: string, name: string, words: ReadonlyArray<string>): Promise<Started> => {
  const log = join(folder, `${name}.log`)
  const bootstrap = [join(root, "runtime", "run.mjs"), "runtime/cli.mjs", "ledger", "--port", "0", ...words]
  const args = name === "entry" ? [...programArgs, "ledger", "--port", "0", ...words] : bootstrap
  const service: Service = startService(process.execPath, args, { cwd: root, log })
  try {
    await until("it listens", () => Promise.resolve(/\n {2}USDC/.test(reported(log))), service)
    const children = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, "utf8").trim()
    if (children !== "") throw new Error("something stays beside the ledger")
    const { pid } = service
    const readyMillis = processorMillis(pid)
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(reported(log))![0]
    await rpcCall(url)("getLatestLedger")
    return { readyMillis, resident: memoryOf(pid).resident / megabyte }
  } finally {
    await service.stop()
  }
}

/** Adds accounts to the snapshot of a stored ledger. */
const fill = Effect.fnUntraced(function* (state: string) {
  const crypto = yield* Crypto
  const file = join(state, "snapshot.json")
  const snapshot = readSnapshot(crypto, readFileSync(file, "utf8"))!
  const entries = [...snapshot.entries]
  const account = codec.LedgerEntry.decode(
    Buffer.from(
      entries.find((entry) => codec.LedgerEntry.decode(Buffer.from(entry, "base64")).data.type === 0)!,
      "base64"
    )
  )
  if (account.data.type !== 0) throw new Error("no account to begin with")
  for (let i = 0; i < ACCOUNTS; i++) {
    const ed25519 = new Uint8Array(32)
    new DataView(ed25519.buffer).setUint32(0, i + 1)
    const data = { type: 0 as const, account: { ...account.data.account, accountId: { type: 0 as const, ed25519 } } }
    entries.push(Buffer.from(codec.LedgerEntry.encode({ ...account, data })).toString("base64"))
  }
  writeFileSync(file, withCheck(crypto, { ...snapshot, entries }))
}, Effect.provide(NodeCrypto.layer))

const inMemory = <A>(work: Effect.Effect<A, any, any>): Promise<A> =>
  Effect.runPromise(work.pipe(Effect.provide(ledgerLayer())) as Effect.Effect<A>)

/** Prints the figures; returns whether they reach their bars. */
export const bench = async (): Promise<boolean> => {
  const all: Array<Bar> = []
  const say = (...some: ReadonlyArray<Bar>): void => {
    all.push(...some)
    console.log(some.map(barLine).join(", "))
  }
  say(atLeast("simulations per CPU second through the RPC", await inMemory(simulations), bars.simulationsPerSecond))
  say(atLeast("contract payments closed per CPU second", await inMemory(closes), bars.closesPerSecond))
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-bench-ledger-"))
  try {
    // The first start fills the cache of compiled modules.
    await start(folder, "first", [])
    const small = await start(folder, "command", [])
    say(
      atMost("start, CPU ms", small.readyMillis, bars.startMillis),
      atMost("at rest, MB", small.resident, bars.startMegabytes)
    )
    const entry = await start(folder, "entry", [])
    console.log(`by the entry itself: ${Math.round(entry.readyMillis)} CPU ms, ${Math.round(entry.resident)} MB`)
    const state = join(folder, "state")
    await start(folder, "filled", ["--state", state, "--close", "manual"])
    await Effect.runPromise(fill(state))
    const large = await start(folder, "large", ["--state", state, "--close", "manual"])
    say(
      atMost(`start with ${ACCOUNTS} accounts, CPU ms`, large.readyMillis, bars.largeStartMillis),
      atMost("its memory, MB", large.resident, bars.largeMegabytes)
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const missed = all.filter(({ holds }) => !holds).length
  console.log(missed === 0 ? "every bar holds" : `${missed} bars missed`)
  return missed === 0
}
