// `npm run bench -- replicas`: one, two and four facilitators over one PostgreSQL, with one sponsor and the channels
// shared, all started and warm before measuring. A second process must only cost itself: processor time for a verify
// and a settle stays the same as with one, and no backend waits for a lock. Each facilitator always has the same number
// of clients, or requests per second, so that its batches are the same size in each stage, and the stages alternate in
// short rounds, so that changes in load affect all of them. Lock waits are sampled from pg_stat_activity every ten
// milliseconds. `--quick` makes fewer payments. The status is 0 only if every bar holds.
import process from "node:process"
import { parseArgs } from "node:util"
import type { SendOrder } from "./payments/orders.ts"
import { signed } from "./payments/measure.ts"
import { median } from "./payments/median.ts"
import { warm } from "./payments/scenarios.ts"
import { startWorld, type Subject, type World } from "./payments/world.ts"
import { atLeast, atMost, type Bar, barLine } from "./rig/bars.ts"
import { type BenchDatabase, connectTo } from "./rig/database.ts"
import { familyMillis, pause, processorMillis } from "./rig/processes.ts"
import { Progress } from "./rig/Progress.ts"

/** Same as the number of all settling clients. */
const channels = 40
const counts = [1, 2, 4]
/**
 * For each facilitator in use. All processes of a machine with two processors can carry this rate together; a higher
 * rate would measure how they compete for the processors.
 */
const verifiesPerSecond = 20
const settleClients = 10
/** Work after an answer (a batch of log lines, of analytics) is done within this time, and is counted. */
const afterMillis = 1_200
/** For each, before anything counts. */
const warmSettles = 60
const readMillis = 10
/** Maximum of the cost with four divided by the cost with one. */
const growthMax = 1.15

interface Cost {
  readonly facilitators: number
  readonly database: number
  readonly rate: number
  readonly good: number
}

interface Figures {
  readonly replicas: number
  readonly verify: Cost
  readonly settle: Cost
  /** Samples that found a backend waiting for a lock, of all samples. */
  readonly lockWaits: number
  readonly samples: number
  /** The statements that waited, with the number of backends seen waiting in each. */
  readonly waitedFor: ReadonlyMap<string, number>
}

/** Samples the backends that wait for a lock until it is stopped. */
const watchLocks = (database: BenchDatabase) => {
  let stopped = false
  let waits = 0
  let reads = 0
  const waitedFor = new Map<string, number>()
  const running = (async () => {
    while (!stopped) {
      const rows = await database.query(`select wait_event as lock, substring(ltrim(query) from 1 for 60) as text
        from pg_stat_activity where wait_event_type = 'Lock'`)
      reads += 1
      if (rows.length > 0) waits += 1
      for (const { lock, text } of rows) {
        const what = `${lock}: ${String(text).replaceAll(/\s+/g, " ")}`
        waitedFor.set(what, (waitedFor.get(what) ?? 0) + 1)
      }
      await pause(readMillis)
    }
  })()
  return async () => {
    stopped = true
    await running
    return { lockWaits: waits, samples: reads, waitedFor }
  }
}

type Sent = Omit<SendOrder, "order" | "port" | "from">

/** Processor time of the round's facilitators and of the database, in milliseconds, and the payments' outcomes. */
interface Round {
  readonly facilitators: number
  readonly database: number
  readonly answers: number
  readonly good: number
  readonly rate: number
}

const round = async (world: World, subjects: ReadonlyArray<Subject>, sent: Sent): Promise<Round> => {
  await signed(world, "plain", sent.count)
  const ours = () => subjects.reduce((sum, { pid }) => sum + processorMillis(pid), 0)
  const [before, database] = [ours(), familyMillis(world.databasePid)]
  const port = subjects.map((one) => one.port)
  const { answers, outcomes, rate } = await world.clients.send({ ...sent, port, from: 0 })
  // Work after an answer is done by then.
  await pause(afterMillis)
  return {
    facilitators: ours() - before,
    database: familyMillis(world.databasePid) - database,
    answers,
    good: (outcomes["200 valid"] ?? 0) + (outcomes["200 settled"] ?? 0),
    rate
  }
}

/** Cost of all rounds per answer, and the median of their rates. */
const costOf = (rounds: ReadonlyArray<Round>): Cost => {
  const sum = (of: (round: Round) => number) => rounds.reduce((total, one) => total + of(one), 0)
  const answers = sum((one) => one.answers)
  return {
    facilitators: sum((one) => one.facilitators) / answers,
    database: sum((one) => one.database) / answers,
    good: sum((one) => one.good) / answers,
    rate: median(rounds.map((one) => one.rate))
  }
}

const line = ({ lockWaits, samples: reads, replicas, settle, verify }: Figures): string =>
  `  ${replicas} of them: CPU ms a verify ${verify.facilitators.toFixed(2)}; a settle ` +
  `${settle.facilitators.toFixed(1)} and ${settle.database.toFixed(1)} of PostgreSQL's; ` +
  `${verify.rate.toFixed(0)} verifies and ${settle.rate.toFixed(1)} settles a second; ` +
  `a lock wait in ${lockWaits} of ${reads} samples`

const check = (all: ReadonlyArray<Figures>): ReadonlyArray<Bar> => {
  const [one, most] = [all[0]!, all.at(-1)!]
  const grown = (pick: (figures: Figures) => number) => pick(most) / pick(one)
  return [
    atMost(
      "verify: CPU with four over one",
      grown(({ verify }) => verify.facilitators),
      growthMax
    ),
    atMost(
      "settle: CPU with four over one, PostgreSQL's included",
      grown(({ settle }) => settle.facilitators + settle.database),
      growthMax
    ),
    atLeast("answered well", Math.min(...all.flatMap(({ settle, verify }) => [verify.good, settle.good])), 1),
    atMost("samples that found a lock wait", most.lockWaits / most.samples, 0.01)
  ]
}

/** Starts each as a separate process over one database, all equally hot. */
const startAll = async (world: World, warmVerifies: number, progress: Progress): Promise<ReadonlyArray<Subject>> => {
  progress.step("facilitator 1")
  const first = await world.startOurs({ name: "replica", channels })
  const beside = { databaseUrl: first.databaseUrl!, sponsorSecret: first.sponsorSecret! }
  const subjects = [first]
  while (subjects.length < counts.at(-1)!) {
    progress.step(`facilitator ${subjects.length + 1}`)
    subjects.push(await world.startOurs({ name: `replica-${subjects.length}`, channels, beside }))
  }
  progress.step("warming")
  await warm(
    world,
    subjects.map((subject) => ({ subject })),
    warmVerifies
  )
  for (const one of subjects) await round(world, [one], settles(1, warmSettles))
  return subjects
}

const verifies = (replicas: number, each: number): Sent => ({
  pool: "plain",
  path: "/verify",
  count: replicas * each,
  load: { perSecond: replicas * verifiesPerSecond }
})
const settles = (replicas: number, each: number): Sent => ({
  pool: "plain",
  path: "/settle",
  count: replicas * each,
  load: { clients: replicas * settleClients }
})

/** The subjects of a round with N replicas; they rotate, so that the single one is not always the same process. */
const askedIn = (subjects: ReadonlyArray<Subject>, replicas: number, at: number): ReadonlyArray<Subject> =>
  Array.from({ length: replicas }, (_, place) => subjects[(at + place) % subjects.length]!)

interface Stage {
  readonly replicas: number
  readonly verifies: Array<Round>
  readonly settles: Array<Round>
  lockWaits: number
  samples: number
  readonly waitedFor: Map<string, number>
}

const measureAll = async (world: World, quick: boolean, progress: Progress): Promise<ReadonlyArray<Figures>> => {
  const sizes = quick
    ? { warm: 1_200, verify: 150, settle: 20, rounds: 4 }
    : { warm: 3_000, verify: 250, settle: 40, rounds: 8 }
  const subjects = await startAll(world, sizes.warm, progress)
  const database = connectTo(subjects[0]!.databaseUrl!)
  const stages = counts.map((replicas): Stage => ({
    replicas,
    verifies: [],
    settles: [],
    lockWaits: 0,
    samples: 0,
    waitedFor: new Map()
  }))
  try {
    for (let at = 0; at < sizes.rounds; at++) {
      progress.step(`round ${at + 1} of ${sizes.rounds}`)
      for (const stage of at % 2 === 0 ? stages : stages.toReversed()) {
        const asked = askedIn(subjects, stage.replicas, at)
        const stop = watchLocks(database)
        stage.verifies.push(await round(world, asked, verifies(stage.replicas, sizes.verify)))
        stage.settles.push(await round(world, asked, settles(stage.replicas, sizes.settle)))
        const { lockWaits, samples: reads, waitedFor } = await stop()
        stage.lockWaits += lockWaits
        stage.samples += reads
        for (const [what, count] of waitedFor) stage.waitedFor.set(what, (stage.waitedFor.get(what) ?? 0) + count)
      }
    }
  } finally {
    await database.close()
  }
  progress.end()
  return stages.map(({ settles, verifies, ...rest }) => {
    const figures = { ...rest, verify: costOf(verifies), settle: costOf(settles) }
    console.log(line(figures))
    for (const [what, count] of [...figures.waitedFor].toSorted(([, a], [, b]) => b - a).slice(0, 5))
      console.log(`    ${count} seen waiting for ${what}`)
    return figures
  })
}

export const bench = async (): Promise<boolean> => {
  const { quick } = parseArgs({
    args: process.argv.slice(3),
    options: { quick: { type: "boolean", default: false } }
  }).values
  const progress = new Progress("replicas", quick ? 9 : 13)
  const world = await startWorld({ deno: false, say: (said) => progress.say(said) })
  try {
    const bars = check(await measureAll(world, quick, progress))
    const missed = bars.filter(({ holds }) => !holds).length
    const verdict = missed === 0 ? "every bar held" : `${missed} of ${bars.length} bars MISSED`
    console.log(`replicas: ${verdict}: ${bars.map(barLine).join("; ")}`)
    return missed === 0
  } finally {
    progress.end()
    await world.stop()
  }
}
