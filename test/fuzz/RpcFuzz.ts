// A ledger for hostile requests: over HTTP, with nearly valid JSON-RPC bodies and nearly valid paths. The interface
// must define every answer, no answer may be an internal error, and the ledger keeps closing. Forbidden events are
// recorded as breaches; the slowest answer and the slowest ledger are measured in processor time, without a limit here.
import { Effect, ManagedRuntime } from "effect"
import { Asset, Contract, Keypair, nativeToScVal, Operation, xdr } from "@stellar/stellar-sdk"
import { handle } from "../../plugins/ledger-local/httpApi.ts"
import { LocalLedger } from "../../plugins/ledger-local/LocalLedger.ts"
import { RpcCode } from "../../plugins/ledger-local/rpc/RpcError.ts"
import { account, apply, fund, passphrase, transaction } from "../plugins/ledger-local/support.ts"
import { Dice } from "./Dice.ts"
import { fuzzLayer, processorMillis } from "./FuzzLedger.ts"
import { type LedgerSample, methods, rpcRequest } from "./RpcRequests.ts"

/** Requests between two closes. */
const CLOSE_EVERY = 100

export interface RpcOutcome {
  readonly breaches: ReadonlyArray<string>
  readonly requests: number
  /** Answers with a result, by method. */
  readonly results: ReadonlyMap<string, number>
  /** Answers with an error, by JSON-RPC code; and HTTP statuses of other answers. */
  readonly refusals: ReadonlyMap<number, number>
  readonly slowestAnswerMillis: number
  readonly slowestCloseMillis: number
}

const native = new Contract(Asset.native().contractId(passphrase))

/** A ledger with accounts, payments and calls of a contract, for the requests. */
const beginning = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const [payer, payee] = [yield* fund("payer", 50_000_000n), yield* fund("payee")]
  const pay = Operation.payment({ destination: payee.publicKey(), asset: Asset.native(), amount: "5" })
  const addresses = [payer, payee].map((key) => nativeToScVal(key.publicKey(), { type: "address" }))
  const call = native.call("transfer", addresses[0]!, addresses[1]!, nativeToScVal(7n, { type: "i128" }))
  const draft = yield* transaction(payer, [call])
  const simulation = yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
  const data = xdr.SorobanTransactionData.fromXdr(simulation.transactionData, "base64")
  const auth = (simulation.results[0].auth as ReadonlyArray<string>).map((entry) =>
    xdr.SorobanAuthorizationEntry.fromXdr(entry, "base64")
  )
  const called = Operation.invokeHostFunction({
    func: (call.body.value as xdr.InvokeHostFunctionOp).hostFunction,
    auth
  })
  const hashes: Array<string> = []
  for (const [operation, configure] of [
    [pay, undefined],
    [called, data]
  ] as const) {
    const sent = yield* transaction(payer, [operation], {
      fee: "5000000",
      configure: (builder) => (configure === undefined ? builder : builder.setSorobanData(configure)).setTimeout(0)
    })
    const { status } = yield* apply(sent)
    if (status !== "SUCCESS") return yield* Effect.die(`the beginning failed: ${status}`)
    hashes.push(Buffer.from(sent.hash()).toString("hex"))
  }
  const keys = [payer, payee].map((key) =>
    xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: key.xdrAccountId() })).toXdr("base64")
  )
  const footprint = data.resources.footprint
  const touched = [...footprint.readOnly, ...footprint.readWrite].map((key) => key.toXdr("base64"))
  return { payer, call, called, pay, data, hashes, keys: [...keys, ...touched] }
})

/** Envelopes that would be accepted now: a payment, a call before its simulation, and a simulated call. */
const envelopesOf = Effect.fnUntraced(function* ({ call, called, data, pay, payer }: Effect.Success<typeof beginning>) {
  const sequence = ((yield* account(payer.publicKey()))?.seqNum ?? 0n) + 1n
  const made = [
    yield* transaction(payer, [pay], { sequence }),
    yield* transaction(payer, [call], { sequence, signers: [] }),
    yield* transaction(payer, [called], {
      sequence,
      fee: "5000000",
      configure: (builder) => builder.setSorobanData(data).setTimeout(0)
    })
  ]
  return made.map((one) => one.toEnvelope().toXdr("base64"))
})

const pathParts = {
  paths: [
    "/",
    "/rpc",
    "/ledgers",
    "/friendbot",
    "/advance",
    "/snapshot",
    "/revert",
    "/close",
    "/dump",
    "/x",
    "//",
    "/%00"
  ],
  names: ["limit", "order", "cursor", "addr", "usdc", "ledgers", "seconds", "id"],
  values: [
    "",
    "0",
    "1",
    "2",
    "-1",
    "abc",
    "1e2",
    "0x10",
    " 1",
    "now",
    "asc",
    "desc",
    "1.5",
    "999999999999999999999",
    "%F0%9F"
  ],
  verbs: ["GET", "POST", "DELETE", "PUT", "HEAD"]
}

const otherRequest = (dice: Dice): Request => {
  const { names, paths, values, verbs } = pathParts
  const query = Array.from({ length: dice.below(4) }, () => `${dice.pick(names)}=${dice.pick(values)}`).join("&")
  const addr = dice.onceIn(4) ? `&addr=${Keypair.random().publicKey()}` : ""
  return new Request(`http://localhost${dice.pick(paths)}?${query}${addr}`, { method: dice.pick(verbs) })
}

const bodyOf = (known: LedgerSample, dice: Dice): string => {
  if (dice.onceIn(30)) return JSON.stringify(Array.from({ length: dice.below(60) }, () => rpcRequest(known, dice)))
  const text = JSON.stringify(rpcRequest(known, dice)) ?? ""
  return dice.onceIn(30) ? text.slice(0, dice.below(text.length + 1)) : text
}

/** Codes that an answer may have: not an internal error. */
const codes: ReadonlySet<number> = new Set<number>(Object.values(RpcCode).filter((code) => code !== RpcCode.internal))
/** Statuses that the other paths may have. */
const statuses: ReadonlySet<number> = new Set([200, 201, 204, 400, 404, 405, 409, 413])

/** Sends `requests` requests; one in twelve is not JSON-RPC. The same seed sends the same requests. */
export const fuzzRpc = async (requests: number, seed: number): Promise<RpcOutcome> => {
  const runtime = ManagedRuntime.make(fuzzLayer({ retentionLedgers: 64, retentionTransactions: 1_000 }))
  const run = runtime.runPromise
  const dice = new Dice(seed)
  const breaches: Array<string> = []
  const results = new Map<string, number>([...methods.keys()].map((method) => [method, 0]))
  const refusals = new Map<number, number>()
  let [slowestAnswerMillis, slowestCloseMillis] = [0, 0]
  const count = <K>(counts: Map<K, number>, key: K) => counts.set(key, (counts.get(key) ?? 0) + 1)
  const breach = (what: string, asked: string) => breaches.push(`${what}: ${asked.slice(0, 400)}`)

  const ledger = await run(LocalLedger)
  let asked = ""
  const reported = ledger.ledger.report.bind(ledger.ledger)
  ledger.ledger.report = (during, error) => {
    breach(
      `a defect while ${during}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      asked
    )
    reported(during, error)
  }
  const from = await run(beginning)
  const contracts = [native.contractId()]
  const values = ["transfer", "mint"].map((word) => nativeToScVal(word, { type: "symbol" }).toXdr("base64"))
  const know = async (): Promise<LedgerSample> => ({
    ...from,
    envelopes: await run(envelopesOf(from)),
    contracts,
    values,
    latest: ledger.ledger.latest.sequence
  })

  const verify = (answer: any, isRpc: boolean, method: unknown): void => {
    if (!isRpc) return
    const isWhole = answer?.jsonrpc === "2.0" && "id" in answer && "result" in answer !== "error" in answer
    if (!isWhole) breach(`no JSON-RPC answer, ${JSON.stringify(answer)?.slice(0, 200)}`, asked)
    else if (answer.error === undefined) {
      if (typeof method === "string") count(results, method)
      if (/Context, InternalError/.test(String(answer.result?.error)))
        breach(`a simulation says ${answer.result.error}`, asked)
    } else {
      count(refusals, answer.error.code)
      if (!codes.has(answer.error.code)) breach(`answered with ${JSON.stringify(answer.error)}`, asked)
    }
  }

  const send = async (request: Request, isRpc: boolean, body: string): Promise<void> => {
    asked = `${request.method} ${new URL(request.url).pathname}${new URL(request.url).search} ${body}`
    const started = processorMillis()
    const response = await run(handle(ledger, request))
    const text = await response.text()
    slowestAnswerMillis = Math.max(slowestAnswerMillis, processorMillis() - started)
    if (!statuses.has(response.status)) return void breach(`status ${response.status}`, asked)
    if (response.status !== 200) count(refusals, response.status)
    if (text === "" || response.headers.get("content-type")?.includes("ndjson") === true) return
    try {
      const answer: unknown = JSON.parse(text)
      const sent: any = isRpc ? tryParse(body) : undefined
      if (response.status !== 200) return
      if (!Array.isArray(answer)) verify(answer, isRpc, sent?.method)
      else for (const [i, one] of answer.entries()) verify(one, isRpc, sent?.[i]?.method)
    } catch {
      breach(`an answer that is no JSON, ${text.slice(0, 200)}`, asked)
    }
  }

  let known = await know()
  for (let i = 0; i < requests; i++) {
    if (dice.onceIn(12)) await send(otherRequest(dice), false, "")
    else {
      const body = bodyOf(known, dice)
      await send(new Request(`http://localhost/${dice.onceIn(2) ? "rpc" : ""}`, { method: "POST", body }), true, body)
    }
    if ((i + 1) % CLOSE_EVERY !== 0) continue
    const { sequence } = ledger.ledger.latest
    const started = processorMillis()
    const closed = await run(ledger.close)
    slowestCloseMillis = Math.max(slowestCloseMillis, processorMillis() - started)
    if (closed !== sequence + 1) breach("the ledger did not close", asked)
    if ((await run(ledger.call("getHealth"))).status !== "healthy") breach("the ledger is not healthy", asked)
    known = await know()
  }
  await runtime.dispose()
  return { breaches, requests, results, refusals, slowestAnswerMillis, slowestCloseMillis }
}

const tryParse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
