// `npm run simulate -- --runs N --seed S`: runs seeds S to S+N-1 on every core, prints the coverage, and every seed
// that broke an invariant with that invariant. Exit code 1 if one did, or if a required event occurred fewer than 100
// times (for short trials: `--least N`). Replay a failing seed with `--runs 1 --seed S`. With `--agents` the seeds are
// those of `agents/simulateAgents.ts`.
import { availableParallelism } from "node:os"
import process from "node:process"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { parseArgs } from "node:util"
import { simulateAgents } from "./agents/simulateAgents.ts"
import { simulateChannels } from "./channels/simulateChannels.ts"
import { Coverage, occurrences } from "./Coverage.ts"
import * as Liveness from "./liveness.ts"
import { type Report, simulate } from "./simulate.ts"

interface Batch {
  readonly runs: number
  readonly payments: number
  readonly faults: number
  readonly liveness: Liveness.Liveness
  readonly coverage: ReadonlyArray<readonly [string, number]>
  readonly broken: ReadonlyArray<{ readonly seed: number; readonly violations: ReadonlyArray<string> }>
}

/** Seeds that a worker runs between two reports. */
const batchSize = 50

/** A seed's run of payments, and its run of a seller with channels. */
const reportOf = async (seed: number): Promise<Report> => {
  const report = simulate(seed)
  const channels = await simulateChannels(seed)
  const coverage = new Coverage()
  for (const one of [report, channels]) coverage.add(one.coverage)
  return { ...report, violations: [...report.violations, ...channels.violations], coverage: coverage.counts }
}

const batchOf = async (seeds: ReadonlyArray<number>): Promise<Batch> => {
  const reports: Array<Report> = []
  for (const seed of seeds) reports.push(await reportOf(seed))
  const coverage = new Coverage()
  for (const report of reports) coverage.add(report.coverage)
  return {
    runs: reports.length,
    payments: reports.reduce((sum, { payments }) => sum + payments, 0),
    faults: reports.reduce((sum, { faults }) => sum + faults, 0),
    liveness: reports.reduce((all, { liveness }) => Liveness.sum(all, liveness), Liveness.none),
    coverage: [...coverage.counts],
    broken: reports
      .filter(({ violations }) => violations.length > 0)
      .map(({ seed, violations }) => ({ seed, violations }))
  }
}

/** The seeds of agents that pay, one after another. */
const runAgents = (first: number, runs: number) => {
  const started = performance.now()
  const counts = new Map<string, number>()
  let broken = 0
  for (let seed = first; seed < first + runs; seed++) {
    const report = simulateAgents(seed)
    for (const [what, count] of report.counts) counts.set(what, (counts.get(what) ?? 0) + count)
    if (report.violations.length === 0) continue
    broken += 1
    console.log(`seed ${seed} broke: ${report.violations.slice(0, 3).join("; ")}`)
  }
  for (const [what, count] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`  ${what.padEnd(34)} ${String(count).padStart(8)}`)
  const seconds = (performance.now() - started) / 1_000
  console.log(`${runs} runs of agents from seed ${first} in ${seconds.toFixed(1)} s: ${broken} broke an invariant`)
  process.exitCode = broken > 0 ? 1 : 0
}

const main = async () => {
  const { values } = parseArgs({
    options: {
      agents: { type: "boolean", default: false },
      runs: { type: "string" },
      seed: { type: "string", default: "1" },
      least: { type: "string", default: "100" },
      workers: { type: "string", default: String(availableParallelism()) },
      "until-broken": { type: "boolean", default: false }
    }
  })
  const defaultRuns = values.agents ? "500" : "20000"
  const [runs, first, least] = [values.runs ?? defaultRuns, values.seed, values.least].map(Number) as [
    number,
    number,
    number
  ]
  if (values.agents) return runAgents(first, runs)
  const started = performance.now()
  const coverage = new Coverage()
  const broken: Array<Batch["broken"][number]> = []
  let liveness = Liveness.none
  let [done, payments, faults, next] = [0, 0, 0, first]
  const take = (): ReadonlyArray<number> => {
    if (values["until-broken"] && broken.length > 0) return []
    const seeds = Array.from({ length: Math.min(batchSize, first + runs - next) }, (_, index) => next + index)
    next += seeds.length
    return seeds
  }
  const workers = Math.max(1, Math.min(Number(values.workers), Math.ceil(runs / batchSize)))
  await Promise.all(
    Array.from(
      { length: workers },
      () =>
        new Promise<void>((resolve, reject) => {
          const worker = new Worker(new URL(import.meta.url), { workerData: { isWorker: true } })
          const give = () => {
            const seeds = take()
            if (seeds.length > 0) worker.postMessage(seeds)
            else void worker.terminate().then(() => resolve())
          }
          worker.on("error", reject)
          worker.on("message", (batch: Batch | "ready") => {
            if (batch !== "ready") {
              done += batch.runs
              payments += batch.payments
              faults += batch.faults
              liveness = Liveness.sum(liveness, batch.liveness)
              coverage.add(batch.coverage)
              for (const one of batch.broken) {
                broken.push(one)
                if (broken.length <= 20) console.log(`seed ${one.seed} broke: ${one.violations.slice(0, 3).join("; ")}`)
              }
              if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${runs} runs`)
            }
            give()
          })
        })
    )
  )
  const seconds = (performance.now() - started) / 1_000
  for (const what of occurrences)
    console.log(`  ${what.padEnd(26)} ${String(coverage.counts.get(what) ?? 0).padStart(8)}`)
  const missing = broken.length > 0 && values["until-broken"] ? [] : coverage.missing(least)
  if (missing.length > 0) console.log(`seen fewer than ${least} times: ${missing.join(", ")}`)
  const dull = broken.length > 0 && values["until-broken"] ? [] : Liveness.tooFew(liveness)
  console.log(Liveness.describe(liveness))
  for (const one of dull) console.log(one)
  console.log(
    `${done} runs from seed ${first} in ${seconds.toFixed(1)} s: ${payments} payments, ${faults} faults, ` +
      `${broken.length} runs broke an invariant`
  )
  process.exitCode = broken.length > 0 || missing.length > 0 || dull.length > 0 ? 1 : 0
}

if (isMainThread) await main()
else if ((workerData as { isWorker?: boolean } | null)?.isWorker === true) {
  parentPort!.on("message", async (seeds: ReadonlyArray<number>) => parentPort!.postMessage(await batchOf(seeds)))
  parentPort!.postMessage("ready")
}
