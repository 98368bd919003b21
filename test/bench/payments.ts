// `npm run bench -- payments`: compares this facilitator with the official `@x402/stellar` class behind express, each
// in a separate process, on one ledger in one run. Payments are signed in advance, both are warm, rounds alternate, and
// the bars are on processor time per payment and on ratios, so that load on the machine does not decide. `--quick` is a
// sample of about four minutes, `--busy` only a hundred channels at their limit, `--deno` runs ours on Deno. `--beside
// FOLDER` compares verify and settle with another checkout instead of the class. Figures go to dist/bench as JSON and
// as a page, except those of `--busy` and `--beside`. The last line has the ratios; the status is 0 only if every bar
// holds.
import { mkdirSync, writeFileSync } from "node:fs"
import { cpus, loadavg } from "node:os"
import { join, resolve } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { check, verifyBeside, verifyBusy } from "./payments/bars.ts"
import { countAll } from "./payments/counted.ts"
import { signatureMillis } from "./payments/floor.ts"
import { type Measured, printing, settleLines } from "./payments/lines.ts"
import { alternate } from "./payments/measure.ts"
import { page, type Report } from "./payments/page.ts"
import { busyPlan, type Plan, planOf } from "./payments/plan.ts"
import { busy, openLoop, refusals, settleBeside, variants, warm } from "./payments/scenarios.ts"
import { channelsBeside, startWorld, type World } from "./payments/world.ts"
import { type Bar, barLine } from "./rig/bars.ts"
import { root } from "./rig/program.ts"
import { Progress } from "./rig/Progress.ts"

const measureAll = async (
  world: World,
  plan: Plan,
  step: (what: string) => void,
  measured: Measured
): Promise<void> => {
  step("starting both facilitators")
  const ours = await world.startOurs({ name: "tollkeeper", channels: channelsBeside })
  const peer = await world.startPeer()
  measured.signatureMillis = signatureMillis()
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
  measured.verify = { ours: one!, class: two! }
  measured.open = await openLoop(world, ours, peer, plan, two!.rate, step)
  measured.settle = await settleBeside(world, ours, peer, plan, step)
  await peer.stop()
  measured.refusals = await refusals(world, ours, plan, step)
  await ours.stop()
  measured.variants = await variants(world, plan, step)
  measured.counted = await countAll(world, plan, step)
  if (plan.busy !== undefined) measured.busy = await busy(world, plan.busy, step)
}

const optionsOf = () =>
  parseArgs({
    args: process.argv.slice(3),
    options: {
      quick: { type: "boolean", default: false },
      busy: { type: "boolean", default: false },
      deno: { type: "boolean", default: false },
      beside: { type: "string" }
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
  const measure = (measured: Measured) => measureAll(world, planOf({ quick }), (what) => progress.step(what), measured)
  const figures = await printing(measure, (line) => {
    progress.end()
    console.log(line)
  })
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

/** Verify and settle of this checkout and another one, in turns. */
const benchBeside = async (world: World, checkout: string, quick: boolean, progress: Progress) => {
  const plan = planOf({ quick })
  const step = (what: string) => progress.step(what)
  step("starting both facilitators")
  const ours = await world.startOurs({ name: "tollkeeper", channels: channelsBeside })
  const before = await world.startOurs({ name: "before", channels: channelsBeside, checkout: resolve(checkout) })
  step("warming")
  await warm(world, [{ subject: ours }, { subject: before }], plan.warmVerifies)
  const [one, two] = await alternate(
    world,
    [ours, before].map((subject) => ({ name: "verify", subject, kind: "plain" as const })),
    plan.verify,
    step
  )
  const settle = await settleBeside(world, ours, before, plan, step)
  return verifyBeside({ ours: one!, before: two! }, settle)
}

export const bench = async (): Promise<boolean> => {
  const { beside, busy: isBusyAlone, deno, quick } = optionsOf()
  const progress = new Progress("payments", isBusyAlone ? 2 : quick ? 27 : 52)
  const world = await startWorld({ deno, say: (line) => progress.say(line) })
  try {
    const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}, load ${loadavg()[0]!.toFixed(1)}`
    progress.say(`payments: on ${machine}; ${world.database}; ours on ${deno ? "Deno" : `Node ${process.version}`}`)
    const bars =
      beside !== undefined
        ? await benchBeside(world, beside, quick, progress)
        : isBusyAlone
          ? await benchBusy(world, progress)
          : await benchAll(world, deno, quick, machine, progress)
    console.log(summary(bars))
    return bars.every(({ holds }) => holds)
  } finally {
    progress.end()
    await world.stop()
  }
}
