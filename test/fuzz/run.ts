// `npm run fuzz -- [--cases N] [--seed S]`: mutated bytes for every reader of strangers' input, and one case in twenty
// as a request over HTTP to a whole facilitator and a tool server. No crash, no status 5xx, at most 250 ms of processor
// time for a case, bounded memory, and always the payment's shape.
//
// `npm run fuzz -- wasm [--modules N] [--seed S] [--instructions N]`: random and mutated contract modules against a
// ledger. Prints how many ran, the slowest answer and the slowest ledger; the exit status is 1 after any breach. Repeat
// a batch with `--modules 16 --seed S` and the seed in its breach. A simulation may use a tenth of the network's
// instructions unless `--instructions` sets another limit: this detects most endless modules sooner.
//
// `npm run fuzz -- rpc [--requests N] [--seed S]`: random and mutated requests over HTTP, most of them nearly valid.
import process from "node:process"
import { parseArgs } from "node:util"
import { testnet } from "../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { Dice } from "./Dice.ts"
import { FuzzLedger } from "./FuzzLedger.ts"
import { fuzzRpc } from "./RpcFuzz.ts"
import { fuzzHttp } from "./httpTargets.ts"
import { fuzzWire } from "./WireFuzz.ts"
import { wasmModule } from "./WasmModule.ts"

const BATCH = 16
/** Batches on one ledger, before a new one begins with an empty state. */
const BATCHES_PER_LEDGER = 100

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    cases: { type: "string", default: "200000" },
    modules: { type: "string", default: "100000" },
    seed: { type: "string", default: "1" },
    requests: { type: "string", default: "30000" },
    instructions: { type: "string", default: "40000000" }
  }
})

const rpc = async (): Promise<number> => {
  const { breaches, refusals, requests, results, slowestAnswerMillis, slowestCloseMillis } = await fuzzRpc(
    Number(values.requests),
    Number(values.seed)
  )
  for (const breach of breaches.slice(0, 20)) console.log(breach)
  console.log(`results: ${[...results].map(([method, count]) => `${method} ${count}`).join(", ")}`)
  console.log(`refusals: ${[...refusals].map(([code, count]) => `${code} ${count}`).join(", ")}`)
  console.log(
    `${requests} requests, ${breaches.length} breaches; on the processor: slowest answer ` +
      `${slowestAnswerMillis.toFixed(0)} ms, slowest ledger ${slowestCloseMillis.toFixed(0)} ms`
  )
  return breaches.length === 0 ? 0 : 1
}

const wasm = async (): Promise<number> => {
  const batches = Math.ceil(Number(values.modules) / BATCH)
  const total = { modules: 0, uploaded: 0, ran: 0, answer: 0, close: 0 }
  const breaches: Array<string> = []
  const limits = { ...testnet.limits, txInstructionsMax: Number(values.instructions) }
  const options = { settings: { ...testnet, limits } }
  let ledger = await FuzzLedger.open(BATCH, options)
  for (let batch = 0; batch < batches; batch++) {
    if (batch > 0 && batch % BATCHES_PER_LEDGER === 0) {
      await ledger.close()
      ledger = await FuzzLedger.open(BATCH, options)
    }
    const seed = Number(values.seed) + batch
    const dice = new Dice(seed)
    const outcome = await ledger.run(Array.from({ length: BATCH }, () => wasmModule(dice)))
    for (const breach of outcome.breaches) breaches.push(`seed ${seed}: ${breach}`)
    total.modules += outcome.modules
    total.uploaded += outcome.uploaded
    total.ran += outcome.ran
    total.answer = Math.max(total.answer, outcome.slowestAnswerMillis)
    total.close = Math.max(total.close, outcome.slowestCloseMillis)
  }
  await ledger.close()
  for (const breach of breaches.slice(0, 20)) console.log(breach)
  console.log(
    `${total.modules} modules, ${total.uploaded} uploaded, ${total.ran} ran to their end, ` +
      `${breaches.length} breaches; on the processor: slowest answer ${total.answer.toFixed(0)} ms, ` +
      `slowest ledger of ${BATCH} ${total.close.toFixed(0)} ms`
  )
  return breaches.length === 0 ? 0 : 1
}

const reportBreaches = (breaches: ReadonlyArray<string>): number => {
  for (const breach of breaches.slice(0, 20)) console.log(breach)
  return breaches.length
}

/** Every reader, and the same kinds of input over HTTP. */
const wire = async (): Promise<number> => {
  const [cases, seed] = [Number(values.cases), Number(values.seed)]
  const requests = Math.ceil(cases / 20)
  const started = performance.now()
  const read = await fuzzWire(cases - requests, seed)
  console.log([...read.read].map(([name, count]) => `${name} ${count}`).join(", "))
  const sent = await fuzzHttp(requests, seed)
  console.log(`statuses: ${[...sent.statuses].map(([status, count]) => `${status} ${count}`).join(", ")}`)
  const count = reportBreaches([...read.breaches, ...sent.breaches])
  const rate = cases / ((performance.now() - started) / 1_000)
  console.log(
    `${cases} cases, ${count} breaches; ${rate.toFixed(0)} cases a second; on the processor: slowest reader ` +
      `${read.slowestMillis.toFixed(0)} ms, slowest request ${sent.slowestMillis.toFixed(0)} ms; the heap grew by ` +
      `${Math.round(read.heapBytes / 1_048_576)} MB`
  )
  return count === 0 ? 0 : 1
}

const targets: Readonly<Record<string, () => Promise<number>>> = { wire, wasm, rpc }
const target = targets[positionals[0] ?? "wire"]
if (target === undefined) {
  console.log(
    "usage: npm run fuzz -- [wire] [--cases N], wasm [--modules N], or rpc [--requests N]; each with [--seed S]"
  )
  process.exitCode = 2
} else process.exitCode = await target()
