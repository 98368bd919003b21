// The parts of the payments bench, one function each: every part starts and stops the programs that only it needs.
import { createServer } from "node:http"
import type { Case, Figures, Settling } from "./figures.ts"
import { alternate, alternateWhole, measureRound, type Round, settlingOf, signed, together } from "./measure.ts"
import type { PaymentKind } from "./orders.ts"
import type { Busy, Plan } from "./plan.ts"
import { channelsBeside, type Subject, type World } from "./world.ts"

type Step = (what: string) => void

/** Number of distinct payments that warm a facilitator; they are sent repeatedly until there are enough. */
const warmPool = 300
/** Older payments are signed again, because an expired one warms little. */
const warmMillisMax = 30_000

/** Payments that are signed ahead and settle before they expire: twenty per ledger, sixty ledgers. */
const warmSettlesMax = 400

export interface Warmed {
  readonly subject: Subject
  /** Default: plain ones. */
  readonly kind?: PaymentKind
  readonly key?: string
  /** The requests of every second pool are traced. */
  readonly isTraced?: boolean
}

/** Verifies until the code is hot, on each in turns, over the connections that will be measured. */
export const warm = async (world: World, warmed: ReadonlyArray<Warmed>, verifies: number) => {
  const kinds = new Set(warmed.map(({ kind = "plain" }) => kind))
  let signedAt = -Infinity
  for (let sent = 0; sent < verifies; sent += warmPool) {
    if (performance.now() - signedAt > warmMillisMax) {
      for (const kind of kinds) await signed(world, kind, warmPool)
      signedAt = performance.now()
    }
    const isOdd = (sent / warmPool) % 2 === 1
    for (const { isTraced = false, key, kind = "plain", subject } of warmed)
      await world.clients.send({
        pool: kind,
        port: subject.port,
        path: "/verify",
        from: 0,
        count: warmPool,
        load: { clients: 32 },
        isTraced: isTraced && isOdd,
        ...(key === undefined ? {} : { key })
      })
  }
}

/** Verifies at a rate that the slower subject handles easily: half of the official class's rate. */
export const openLoop = async (
  world: World,
  ours: Subject,
  peer: Subject,
  plan: Plan,
  classRate: number,
  step: Step
): Promise<Figures["open"]> => {
  const perSecond = Math.max(1, Math.floor(classRate / 2))
  const count = perSecond * plan.openSeconds
  const cases: Array<Case> = []
  for (const subject of [ours, peer]) {
    step(`verify, ${perSecond} a second whether answered or not: ${subject.name}`)
    await signed(world, "plain", count)
    const sent = { pool: "plain", path: "/verify" as const, from: 0, count, load: { perSecond } }
    cases.push(together("verify, open loop", subject.name, [await measureRound(world, subject, sent)]))
  }
  return { perSecond, ours: cases[0]!, class: cases[1]! }
}

const settles = async (
  world: World,
  subject: Subject,
  { clients, count }: { readonly clients: number; readonly count: number }
): Promise<Round> => {
  await signed(world, "plain", count)
  return measureRound(world, subject, { pool: "plain", path: "/settle", from: 0, count, load: { clients } })
}

const settledCase = async (
  world: World,
  subject: Subject,
  rounds: ReadonlyArray<Round>,
  channels: number
): Promise<Case & { readonly settling: Settling }> => ({
  ...together("settle", subject.name, rounds),
  settling: await settlingOf(world, rounds, channels)
})

/** Settlements of both in turns, each over twenty accounts. */
export const settleBeside = async (
  world: World,
  ours: Subject,
  peer: Subject,
  plan: Plan,
  step: Step
): Promise<Figures["settle"]> => {
  const rounds = new Map<Subject, Array<Round>>([
    [ours, []],
    [peer, []]
  ])
  const warming = { clients: channelsBeside, count: Math.min(plan.warmSettles, warmSettlesMax) }
  const warmFrom = async (sent: number): Promise<Round> => {
    step(`settle: warming, ${sent} of ${plan.warmSettles}`)
    const own = await settles(world, ours, warming)
    await settles(world, peer, warming)
    return own
  }
  const cold = await warmFrom(0)
  for (let sent = warming.count; sent < plan.warmSettles; sent += warming.count) await warmFrom(sent)
  for (let round = 0; round < plan.settle.rounds; round++)
    for (const subject of round % 2 === 0 ? [ours, peer] : [peer, ours]) {
      step(`settle, ${plan.settle.count} from ${plan.settle.clients} clients: ${subject.name}`)
      rounds.get(subject)!.push(await settles(world, subject, plan.settle))
    }
  return {
    ours: await settledCase(world, ours, rounds.get(ours)!, channelsBeside),
    class: await settledCase(world, peer, rounds.get(peer)!, channelsBeside),
    cold: together("settle, cold", ours.name, [cold])
  }
}

/**
 * The cost of a refusal compared with a valid verify. Both are warm: one-time compilation is not part of a refusal's
 * cost.
 */
export const refusals = async (world: World, ours: Subject, plan: Plan, step: Step): Promise<Figures["refusals"]> => {
  step("warming refusals")
  const kinds = ["malformed", "badly signed"] as const
  await warm(
    world,
    kinds.map((kind) => ({ subject: ours, kind })),
    plan.warmRefusals
  )
  const alone = await world.startFloor()
  await warm(world, [{ subject: alone, kind: "malformed" }], plan.warmRefusals)
  const [valid, malformed, badlySigned, answeringAlone] = await alternate(
    world,
    [
      { name: "valid", subject: ours, kind: "plain" },
      { name: "malformed", subject: ours, kind: "malformed" },
      { name: "badly signed", subject: ours, kind: "badly signed" },
      { name: "malformed", subject: alone, kind: "malformed" }
    ],
    { ...plan.refusals, clients: plan.verify.clients },
    step
  )
  await alone.stop()
  return { valid: valid!, malformed: malformed!, badlySigned: badlySigned!, answeringAlone: answeringAlone! }
}

/** A collector that accepts everything. */
const startCollector = async () => {
  let requests = 0
  const server = createServer((request, response) => {
    requests += 1
    request.resume().on("end", () => response.setHeader("content-type", "application/json").end("{}"))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    requests: () => requests,
    stop: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}

const key = "0123456789abcdef-bench"

/** Separate facilitators, started the same way: bare, with keys, with telemetry, with a catalog. */
const startVariants = async (world: World, collectorUrl: string) => {
  const listening = { plugins: ["x402-exact", "catalog"], set: ["catalog_security.probe_origins=false"] }
  const sent = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl,
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.1"
  }
  return {
    bare: await world.startOurs({ name: "bare", channels: 1 }),
    keyed: await world.startOurs({ name: "keys", channels: 1, env: { FACILITATOR_API_KEYS: `bench:${key}` } }),
    telemetry: await world.startOurs({ name: "telemetry", channels: 1, env: sent }),
    plain: await world.startOurs({ name: "catalog", channels: 1, ...listening }),
    metadata: await world.startOurs({ name: "metadata", channels: 1, ...listening }),
    unread: await world.startOurs({ name: "unread", channels: 1, ...listening })
  }
}

/**
 * The same verify with keys, with telemetry, and with a catalog that listens, each compared with a facilitator that
 * differs only in this.
 */
export const variants = async (world: World, plan: Plan, step: Step): Promise<Figures["variants"]> => {
  step("starting the variants")
  const collector = await startCollector()
  const started = await startVariants(world, collector.url)
  const contenders = [
    { name: "bare", subject: started.bare, kind: "plain" },
    { name: "keys", subject: started.keyed, kind: "plain", key },
    { name: "telemetry", subject: started.telemetry, kind: "plain" },
    { name: "plain", subject: started.plain, kind: "plain" },
    { name: "metadata", subject: started.metadata, kind: "metadata" },
    { name: "unread", subject: started.unread, kind: "unread" }
  ] as const
  try {
    step("warming the variants")
    await warm(
      world,
      contenders.map((one) => ({ ...one, isTraced: one.subject === started.telemetry })),
      plan.warmVariants
    )
    const size = { ...plan.variants, clients: plan.verify.clients }
    const [bare, keys, telemetry, plain, metadata, unread] = await alternateWhole(world, contenders, size, step)
    if (collector.requests() === 0) throw new Error("nothing was sent to the collector: telemetry was not on")
    return { bare: bare!, keys: keys!, telemetry: telemetry!, plain: plain!, metadata: metadata!, unread: unread! }
  } finally {
    for (const subject of Object.values(started)) await subject.stop()
    collector.stop()
  }
}

/** Many channels at their limit, only on our facilitator. */
export const busy = async (
  world: World,
  { channels, clients, count, warm }: Busy,
  step: Step
): Promise<NonNullable<Figures["busy"]>> => {
  step(`starting ${channels} channels`)
  const subject = await world.startOurs({ name: "busy", channels })
  try {
    await settles(world, subject, { clients, count: warm })
    step(`settle, ${count} from ${clients} clients over ${channels} channels`)
    return await settledCase(world, subject, [await settles(world, subject, { clients, count })], channels)
  } finally {
    await subject.stop()
  }
}
