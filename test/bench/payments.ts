// `npm run bench -- payments`: this facilitator beside the official `@x402/stellar` class behind express, each in a
// process of its own, on one ledger in one run. Payments are signed in advance, both are warm, rounds alternate, and
// the bars are on processor time per payment and on ratios, so that load on the machine does not decide. `--quick` is a
// sample of about four minutes, `--busy` only a hundred channels at their limit, `--deno` runs ours on Deno. Figures go
// to dist/bench as JSON and as a page, except those of `--busy`. The last line has the ratios; the status is 0 only
// when every bar holds.
import { mkdirSync, writeFileSync } from "node:fs"
import { cpus, loadavg } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { check, verifyBusy, rateKept } from "./payments/bars.ts"
import { countAll } from "./payments/counted.ts"
import { signatureMillis } from "./payments/floor.ts"
import type { Case, Counted, Figures, Settling } from "./payments/figures.ts"
import { alternate } from "./payments/measure.ts"
import { page, type Report } from "./payments/page.ts"
import { busyPlan, type Plan, planOf } from "./payments/plan.ts"
import { busy, openLoop, refusals, settleBeside, variants, warm } from "./payments/scenarios.ts"
import { channelsBeside, startWorld, type World } from "./payments/world.ts"
import { type Bar, barLine } from "./rig/bars.ts"
import { root } from "./rig/program.ts"
import { Progress } from "./rig/Progress.ts"

const measureAll = async (world: World, plan: Plan, step: (what: string) => void): Promise<Figures> => {
  step("starting both facilitators")
  const ours = await world.startOurs({ name: "tollkeeper", channels: channelsBeside })
  const peer = await world.startPeer()
  step("warming")
  await warm(world, [{ subject: ours }, { subject: peer }], plan.warmVerifies)
  const [one, two] = await alternate(
    world,
    [
      { name: "verify", subject: ours, kind: "plain" },
      { name: "verify", subject: peer, kind: "plain" }
    ],
    plan.verify,
    step
  )
  const open = await openLoop(world, ours, peer, plan, two!.rate, step)
  const settle = await settleBeside(world, ours, peer, plan, step)
  await peer.stop()
  const refused = await refusals(world, ours, plan, step)
  await ours.stop()
  const varied = await variants(world, plan, step)
  const counted = await countAll(world, plan, step)
  const many = plan.busy === undefined ? undefined : await busy(world, plan.busy, step)
  return {
    verify: { ours: one!, class: two! },
    open,
    refusals: refused,
    signatureMillis: signatureMillis(),
    variants: varied,
    settle,
    counted,
    ...(many === undefined ? {} : { busy: many })
  }
}

const short = (value: number | null): string => (value === null ? "unknown" : value.toFixed(2))

const caseLine = (name: string, { answers, cpu, millis, outcomes, rate, subject }: Case): string =>
  `  ${`${name}, ${subject}`.padEnd(36)} ${rate.toFixed(1).padStart(7)}/s   ` +
  `ms p50 ${millis.p50.toFixed(0)}, p95 ${millis.p95.toFixed(0)}, p99 ${millis.p99.toFixed(0)}   ` +
  `CPU ms: ${short(cpu.facilitator)} facilitator, ${short(cpu.database)} database, ${short(cpu.ledger)} ledger, ` +
  `${short(cpu.clients)} clients   ${answers}: ${Object.entries(outcomes)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ")}`

const countedLine = (name: string, { rpc, rpcCalls, roundTrips, statements }: Counted): string =>
  `  ${name.padEnd(36)} ${rpcCalls.toFixed(2)} RPC calls (${Object.entries(rpc)
    .map(([method, calls]) => `${method} ${calls.toFixed(2)}`)
    .join(", ")}), ${statements.toFixed(2)} statements in ${roundTrips.toFixed(2)} round trips`

/** What the facilitator spent in all, on those that settled alone. */
const perSettled = ({ cpu, settling }: Case & { readonly settling: Settling }): string =>
  short(cpu.facilitator === null ? null : (cpu.facilitator * settling.sent) / settling.settled)

const settleLines = (one: Case & { readonly settling: Settling }): ReadonlyArray<string> => [
  caseLine("settle", one),
  `    ${one.settling.settled} of ${one.settling.sent} settled in ${one.settling.ledgers} ledgers, ` +
    `${one.settling.ofBound.toFixed(3)} of what ${one.settling.channels} accounts carry; ` +
    `${perSettled(one)} CPU ms per settled one`
]

/** What clients measured: printed beside the figure with a bar, since it depends on the machine's load. */
const besideLine = (name: string, without: Case, withIt: Case): string =>
  `  ${`rate with ${name}, of that without`.padEnd(36)} ${(withIt.rate / without.rate).toFixed(3).padStart(7)}`

/** What of a payment with metadata its size alone costs. */
const sizeLine = ({ plain, unread }: Figures["variants"]): string =>
  `  ${"kept with unread metadata, by CPU".padEnd(36)} ${rateKept(plain, unread).toFixed(3).padStart(7)}`

/** What of a refusal no facilitator can save, as a share of a valid verify. */
const floorLine = (refusals: Figures["refusals"], signatureMillis: number): string => {
  const valid = refusals.valid.cpu.facilitator ?? Number.NaN
  const alone = refusals.answeringAlone.cpu.facilitator ?? Number.NaN
  const share = (millis: number) => (millis / valid).toFixed(3)
  const parts = [
    `${share(alone)} to read JSON and answer`,
    `${share(signatureMillis)} to check a signature (${signatureMillis.toFixed(3)} ms)`,
    `${share(alone + signatureMillis)} both`
  ]
  return `    of a valid verify's: ${parts.join(", ")}`
}

const lines = ({ busy, counted, open, refusals, settle, signatureMillis, variants, verify }: Figures) => [
  ...[verify.ours, verify.class].map((one) => caseLine("verify", one)),
  ...[open.ours, open.class].map((one) => caseLine(`verify at ${open.perSecond} a second`, one)),
  ...Object.entries(refusals).map(([name, one]) => caseLine(`refusals: ${name}`, one)),
  floorLine(refusals, signatureMillis),
  ...Object.entries(variants).map(([name, one]) => caseLine(`variant: ${name}`, one)),
  besideLine("keys", variants.bare, variants.keys),
  besideLine("telemetry", variants.bare, variants.telemetry),
  besideLine("metadata", variants.plain, variants.metadata),
  sizeLine(variants),
  caseLine("settle, cold", settle.cold),
  ...[settle.ours, settle.class, ...(busy === undefined ? [] : [busy])].flatMap(settleLines),
  ...Object.entries(counted).map(([name, one]) => countedLine(`counted: ${name}`, one))
]

const optionsOf = () =>
  parseArgs({
    args: process.argv.slice(3),
    options: {
      quick: { type: "boolean", default: false },
      busy: { type: "boolean", default: false },
      deno: { type: "boolean", default: false }
    }
  }).values

const write = (report: Report): string => {
  const folder = join(root, "dist", "bench")
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `payments-${report.runtime}`)
  writeFileSync(`${file}.json`, `${JSON.stringify(report, undefined, 2)}\n`)
  writeFileSync(`${file}.html`, page(report))
  return file
}

const summary = (bars: ReadonlyArray<Bar>): string => {
  const missed = bars.filter(({ holds }) => !holds).length
  const verdict = missed === 0 ? "every bar held" : `${missed} of ${bars.length} bars MISSED`
  return `payments: ${verdict}: ${bars.map(barLine).join("; ")}`
}

/** All figures, written down and compared with their bars. */
const benchAll = async (world: World, deno: boolean, quick: boolean, machine: string, progress: Progress) => {
  const figures = await measureAll(world, planOf({ quick }), (what) => progress.step(what))
  progress.end()
  for (const line of lines(figures)) console.log(line)
  const bars = check(figures)
  const runtime = deno ? "deno" : "node"
  const at = new Date().toISOString()
  const file = write({ at, machine, database: world.database, runtime, quick, figures, bars })
  console.log(`figures in ${file}.json and ${file}.html`)
  return bars
}

const benchBusy = async (world: World, progress: Progress) => {
  const measured = await busy(world, busyPlan, (what) => progress.step(what))
  progress.end()
  for (const line of settleLines(measured)) console.log(line)
  return verifyBusy(measured)
}

export const bench = async (): Promise<boolean> => {
  const { busy: isBusyAlone, deno, quick } = optionsOf()
  const progress = new Progress("payments", isBusyAlone ? 2 : quick ? 27 : 52)
  const world = await startWorld({ deno, say: (line) => progress.say(line) })
  try {
    const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}, load ${loadavg()[0]!.toFixed(1)}`
    progress.say(`payments: on ${machine}; ${world.database}; ours on ${deno ? "Deno" : `Node ${process.version}`}`)
    const bars = isBusyAlone ? await benchBusy(world, progress) : await benchAll(world, deno, quick, machine, progress)
    console.log(summary(bars))
    return bars.every(({ holds }) => holds)
  } finally {
    progress.end()
    await world.stop()
  }
}
