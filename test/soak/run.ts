// `npm run soak`: valid payments and hostile requests together, on the embedded database and on PostgreSQL, whose
// process is killed in turn. Bounded in count: `--payments N` for each database (3,000, about an hour in all), and five
// hostile requests for each. No valid payment may fail. The mean memory of the last quarter, measured after collections
// of garbage, is at most 2.5 % above the third's: until then V8 shrinks the heap of the start. Descriptors and the disk
// for each payment stay flat, and a request of health waits at most 50 ms at the 99th percentile. Then the ledger, the
// database and the log agree. Ends with `N passed, N failed`.
import { execFile } from "node:child_process"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { parseArgs, promisify } from "node:util"
import { root } from "../../runtime/bootstrap.mjs"
import { post } from "../../runtime/redteam/ask.ts"
import { templateOf } from "../../runtime/redteam/bodies.ts"
import { Place } from "../faults/Place.ts"
import { Dice } from "../fuzz/Dice.ts"
import { mutateJson } from "../fuzz/mutate.ts"
import { collectGarbage } from "./collectGarbage.ts"

const { values } = parseArgs({
  options: {
    payments: { type: "string", default: "3000" },
    only: { type: "string", default: "" },
    seed: { type: "string", default: "1" }
  }
})
const payments = Number(values.payments)
/** Samples over a run. */
const samplesCount = 40
const killsCount = 4
/** Half of the 5 % that a half of the run may add, since two quarters are compared. */
const memoryShareMax = 0.025
const waitMillisMax = 50

interface Sample {
  readonly memoryBytes: number
  readonly descriptors: number
  readonly diskBytes: number
}

const bytesIn = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (sum, entry) => sum + (statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0),
      0
    )

const sampleOf = ({ replica, state }: Place): Sample => ({
  memoryBytes: Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${replica.pid}/status`, "utf8"))?.[1]) * 1_024,
  descriptors: readdirSync(`/proc/${replica.pid}/fd`).length,
  diskBytes: bytesIn(state)
})

const mean = (numbers: ReadonlyArray<number>): number => numbers.reduce((sum, one) => sum + one, 0) / numbers.length

/** Means of an earlier quarter, the second if none is given, and of the last. */
const quarters = (samples: ReadonlyArray<Sample>, key: keyof Sample, earlier = 1): readonly [number, number] => {
  const of = (quarter: number) =>
    mean(samples.slice((samples.length * quarter) / 4, (samples.length * (quarter + 1)) / 4).map((one) => one[key]))
  return [of(earlier), of(3)]
}

const hostile = async ({ replica }: Place, dice: Dice, template: unknown): Promise<void> => {
  const route = dice.pick(["/verify", "/settle"])
  const { json, status, text } = await post(`${replica.url}${route}`, mutateJson(dice, template))
  // A busy facilitator refuses with 503, in the payment's shape.
  const reason = json?.errorReason ?? json?.invalidReason
  if (json === undefined || (status >= 500 && !(status === 503 && typeof reason === "string")))
    throw new Error(`${route} answered ${status}: ${text.slice(0, 200)}`)
}

const waitOf = async ({ replica }: Place): Promise<number> => {
  const started = performance.now()
  await fetch(`${replica.url}/health/live`).then((answer) => answer.text())
  return performance.now() - started
}

const audit = async ({ replica, state }: Place): Promise<number> => {
  const words = ["runtime/cli.ts", "audit", "--json", "--state", state]
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: root, maxBuffer: 1 << 26 }).catch(
    (error) => error as { readonly stdout: string }
  )
  await replica.ready()
  return JSON.parse(stdout).mismatches.length
}

const soak = async (database: "embedded" | "postgres", check: (sentence: string, holds: boolean) => void) => {
  const set = [
    "plugins=[x402-exact,receipts]",
    "limits.verify_per_second=0",
    "limits.settle_per_second=0",
    "receipts.host=soak.example"
  ]
  const place = await Place.open({ database, set })
  const dice = new Dice(Number(values.seed))
  const template = await templateOf("stellar:testnet")
  const [samples, waits]: [Array<Sample>, Array<number>] = [[], []]
  let [lost, broken] = [0, 0]
  const countBroken = (error: unknown): void => {
    broken += 1
    console.log(`${database}: ${String(error).slice(0, 300)}`)
  }
  try {
    for (let index = 0; index < payments; index++) {
      const isKill = database === "postgres" && index > 0 && index % Math.ceil(payments / killsCount) === 0
      const payment = await place.pay()
      if (isKill) await place.replica.crash()
      await Promise.all([
        place.bring(payment).catch(() => void (lost += 1)),
        ...(isKill ? [] : Array.from({ length: 5 }, () => hostile(place, dice, template).catch(countBroken))),
        ...(isKill ? [] : [waitOf(place).then((millis) => void waits.push(millis))])
      ])
      if (index % Math.ceil(payments / samplesCount) !== 0 || isKill) continue
      if (database === "embedded") await collectGarbage(place.replica.pid!)
      samples.push(sampleOf(place))
    }
    const received = await place.received()
    check(
      `${database}: ${payments} payments, ${lost} lost, ${received} on the ledger`,
      lost === 0 && received === BigInt(place.paid)
    )
    check(`${database}: ${payments * 5} hostile requests, ${broken} without the payment's shape`, broken === 0)
    const [memory, memoryLast] = quarters(samples, "memoryBytes", 2)
    const growth = memoryLast / memory - 1
    const sampled = samples.map(({ memoryBytes }) => (memoryBytes / 1e6).toFixed(0)).join(" ")
    const megabytes = `${(memory / 1e6).toFixed(0)} MB, then ${(memoryLast / 1e6).toFixed(0)} MB (${sampled})`
    check(`${database}: memory ${megabytes}`, database === "postgres" || growth <= memoryShareMax)
    const [files, filesLast] = quarters(samples, "descriptors")
    check(`${database}: descriptors ${files.toFixed(0)}, then ${filesLast.toFixed(0)}`, filesLast <= files + 3)
    const p99 = waits.toSorted((a, b) => a - b)[Math.floor(waits.length * 0.99)] ?? 0
    check(`${database}: a request of health waited ${p99.toFixed(0)} ms`, p99 <= waitMillisMax)
    const [disk, diskLast] = quarters(samples, "diskBytes")
    const bytesEach = (diskLast - disk) / (payments / 2)
    check(`${database}: ${bytesEach.toFixed(0)} bytes of disk for a payment`, bytesEach < 64_000)
    const mismatches = await audit(place)
    check(`${database}: the audit of ledger, database and log has ${mismatches} mismatches`, mismatches === 0)
  } finally {
    await place.close()
  }
}

let [passed, failed] = [0, 0]
for (const database of ["embedded", "postgres"] as const) {
  if (!database.includes(values.only)) continue
  await soak(database, (sentence, holds) => {
    console.log(`${holds ? "ok   " : "FAIL "} ${sentence}`)
    if (holds) passed += 1
    else failed += 1
  })
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)
