// `npm run bench -- replicas`: one, two and four facilitators over one PostgreSQL, with one sponsor and the channels
// shared, all started and warm before anything counts. A second process must cost nothing but itself: processor time
// for a verify and a settle stays what it was with one, and nobody waits for a lock. Locks are looked for every ten
// milliseconds, by the server's own word. `--quick` takes fewer payments. The status is 0 only when every bar holds.
import process from "node:process"
import { parseArgs } from "node:util"
import type { SendOrder } from "./payments/orders.ts"
import { signed } from "./payments/measure.ts"
import { warm } from "./payments/scenarios.ts"
import { startWorld, type Subject, type World } from "./payments/world.ts"
import { atLeast, atMost, type Bar, barLine } from "./rig/bars.ts"
import { type BenchDatabase, connectTo } from "./rig/database.ts"
import { familyMillis, pause, processorMillis } from "./rig/processes.ts"
import { Progress } from "./rig/Progress.ts"

const channels = 40
const counts = [1, 2, 4]
const lookMillis = 10
/** Cost with four over cost with one. */
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
  /** Looks that found somebody waiting for a lock, of all looks. */
  readonly lockWaits: number
  readonly looks: number
  /** What they were about to do, with how many were seen waiting for it. */
  readonly waitedFor: ReadonlyMap<string, number>
}

/** Looks for whoever waits for a lock, until it is told to stop. */
const watchLocks = (database: BenchDatabase) => {
  let stopped = false
  let waits = 0
  let looks = 0
  const waitedFor = new Map<string, number>()
  const running = (async () => {
    while (!stopped) {
      const rows = await database.query(`select wait_event as lock, substring(ltrim(query) from 1 for 60) as text
        from pg_stat_activity where wait_event_type = 'Lock'`)
      looks += 1
      if (rows.length > 0) waits += 1
      for (const { lock, text } of rows) {
        const what = `${lock}: ${String(text).replaceAll(/\s+/g, " ")}`
        waitedFor.set(what, (waitedFor.get(what) ?? 0) + 1)
      }
      await pause(lookMillis)
    }
  })()
  return async () => {
    stopped = true
    await running
    return { lockWaits: waits, looks, waitedFor }
  }
}

type Sent = Omit<SendOrder, "order" | "port" | "from">

const cost = async (world: World, subjects: ReadonlyArray<Subject>, sent: Sent): Promise<Cost> => {
  await signed(world, "plain", sent.count)
  const ours = () => subjects.reduce((sum, { pid }) => sum + processorMillis(pid), 0)
  const [before, database] = [ours(), familyMillis(world.databasePid)]
  const port = subjects.map((one) => one.port)
  const { answers, outcomes, rate } = await world.clients.send({ ...sent, port, from: 0 })
  return {
    facilitators: (ours() - before) / answers,
    database: (familyMillis(world.databasePid) - database) / answers,
    rate,
    good: ((outcomes["200 valid"] ?? 0) + (outcomes["200 settled"] ?? 0)) / answers
  }
}

const line = ({ lockWaits, looks, replicas, settle, verify }: Figures): string =>
  `  ${replicas} of them: CPU ms a verify ${verify.facilitators.toFixed(2)}; a settle ` +
  `${settle.facilitators.toFixed(1)} and ${settle.database.toFixed(1)} of PostgreSQL's; ` +
  `${verify.rate.toFixed(0)} verifies and ${settle.rate.toFixed(1)} settles a second; ` +
  `somebody waited for a lock in ${lockWaits} of ${looks} looks`

const judge = (all: ReadonlyArray<Figures>): ReadonlyArray<Bar> => {
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
    atMost("looks that found a wait for a lock", most.lockWaits / most.looks, 0.01)
  ]
}

/** Each as a process of its own over one database, all of them equally hot. */
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
  for (const one of subjects) await cost(world, [one], settles(channels))
  return subjects
}

const verifies = (count: number): Sent => ({ pool: "plain", path: "/verify", count, load: { clients: 32 } })
const settles = (count: number): Sent => ({ pool: "plain", path: "/settle", count, load: { clients: channels } })

const measureAll = async (world: World, quick: boolean, progress: Progress): Promise<ReadonlyArray<Figures>> => {
  const sizes = quick ? { warm: 1_200, verify: 600, settle: 80 } : { warm: 3_000, verify: 2_000, settle: 400 }
  const subjects = await startAll(world, sizes.warm, progress)
  const database = connectTo(subjects[0]!.databaseUrl!)
  const all: Array<Figures> = []
  try {
    for (const replicas of counts) {
      progress.step(`${replicas} of them`)
      const asked = subjects.slice(0, replicas)
      const stop = watchLocks(database)
      const verify = await cost(world, asked, verifies(sizes.verify))
      const settle = await cost(world, asked, settles(sizes.settle))
      const figures = { replicas, verify, settle, ...(await stop()) }
      all.push(figures)
      progress.end()
      console.log(line(figures))
      for (const [what, count] of [...figures.waitedFor].toSorted(([, a], [, b]) => b - a).slice(0, 5))
        console.log(`    ${count} seen waiting for ${what}`)
    }
    return all
  } finally {
    await database.close()
  }
}

export const bench = async (): Promise<boolean> => {
  const { quick } = parseArgs({
    args: process.argv.slice(3),
    options: { quick: { type: "boolean", default: false } }
  }).values
  const progress = new Progress("replicas", 8)
  const world = await startWorld({ deno: false, say: (said) => progress.say(said) })
  try {
    const bars = judge(await measureAll(world, quick, progress))
    const missed = bars.filter(({ holds }) => !holds).length
    const verdict = missed === 0 ? "every bar held" : `${missed} of ${bars.length} bars MISSED`
    console.log(`replicas: ${verdict}: ${bars.map(barLine).join("; ")}`)
    return missed === 0
  } finally {
    progress.end()
    await world.stop()
  }
}
