// The parts of the bench of payments, one function each: every part starts what only it needs and stops it again.
import { createServer } from "node:http"
import type { Case, Figures, Settling } from "./figures.ts"
import { alternate, measureRound, type Round, settlingOf, signed, together } from "./measure.ts"
import type { Plan } from "./plan.ts"
import { channelsBeside, type Subject, type World } from "./world.ts"

type Step = (what: string) => void

/** Distinct payments that warm a facilitator; they are sent again until there were enough. */
const warmPool = 300

/** Verifies until the code is hot, on each in turns. */
export const warm = async (world: World, subjects: ReadonlyArray<Subject>, verifies: number, key?: string) => {
  await signed(world, "plain", warmPool)
  const credential = key === undefined ? {} : { key }
  for (let sent = 0; sent < verifies; sent += warmPool)
    for (const { port } of subjects)
      await world.clients.send({
        pool: "plain",
        port,
        path: "/verify",
        from: 0,
        count: warmPool,
        load: { clients: 32 },
        ...credential
      })
}

/** Verifies at a rate that the slower of the two carries easily: half of what the class reached. */
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
  for (const subject of [ours, peer])
    await settles(world, subject, { clients: channelsBeside, count: plan.warmSettles })
  for (let round = 0; round < plan.settle.rounds; round++)
    for (const subject of round % 2 === 0 ? [ours, peer] : [peer, ours]) {
      step(`settle, ${plan.settle.count} from ${plan.settle.clients} clients: ${subject.name}`)
      rounds.get(subject)!.push(await settles(world, subject, plan.settle))
    }
  return {
    ours: await settledCase(world, ours, rounds.get(ours)!, channelsBeside),
    class: await settledCase(world, peer, rounds.get(peer)!, channelsBeside)
  }
}

/** What refusing costs beside a valid verify. */
export const refusals = async (world: World, ours: Subject, plan: Plan, step: Step): Promise<Figures["refusals"]> => {
  const [valid, malformed, badlySigned] = await alternate(
    world,
    [
      { name: "valid", subject: ours, kind: "plain" },
      { name: "malformed", subject: ours, kind: "malformed" },
      { name: "badly signed", subject: ours, kind: "badly signed" }
    ],
    { ...plan.refusals, clients: plan.verify.clients },
    step
  )
  return { valid: valid!, malformed: malformed!, badlySigned: badlySigned! }
}

/** A collector that takes whatever it is sent. */
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

/** The same verify with keys, with telemetry, and with a catalog that listens, each beside one that differs in this. */
export const variants = async (world: World, bare: Subject, plan: Plan, step: Step): Promise<Figures["variants"]> => {
  step("starting the variants")
  const collector = await startCollector()
  const keyed = await world.startOurs({ name: "keys", channels: 1, env: { FACILITATOR_API_KEYS: `bench:${key}` } })
  const telemetry = await world.startOurs({
    name: "telemetry",
    channels: 1,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.1"
    }
  })
  const catalog = await world.startOurs({
    name: "catalog",
    channels: 1,
    plugins: ["x402-exact", "catalog"],
    set: ["catalog_security.probe_origins=false"]
  })
  try {
    step("warming the variants")
    await warm(world, [telemetry, catalog, bare], plan.warmVerifies)
    await warm(world, [keyed], plan.warmVerifies, key)
    const size = { ...plan.variants, clients: plan.verify.clients }
    const [one, two, three] = await alternate(
      world,
      [
        { name: "bare", subject: bare, kind: "plain" },
        { name: "keys", subject: keyed, kind: "plain", key },
        { name: "telemetry", subject: telemetry, kind: "plain" }
      ],
      size,
      step
    )
    if (collector.requests() === 0) throw new Error("nothing was sent to the collector: telemetry was not on")
    const [plain, metadata] = await alternate(
      world,
      [
        { name: "plain", subject: catalog, kind: "plain" },
        { name: "metadata", subject: catalog, kind: "metadata" }
      ],
      size,
      step
    )
    return { bare: one!, keys: two!, telemetry: three!, plain: plain!, metadata: metadata! }
  } finally {
    for (const subject of [keyed, telemetry, catalog]) await subject.stop()
    collector.stop()
  }
}

/** Many channels at their limit, ours alone. */
export const busy = async (world: World, plan: Plan, step: Step): Promise<Figures["busy"]> => {
  if (plan.busy === undefined) return undefined
  const { channels, clients, count } = plan.busy
  step(`starting ${channels} channels`)
  const subject = await world.startOurs({ name: "busy", channels })
  try {
    await settles(world, subject, { clients, count: channels })
    step(`settle, ${count} from ${clients} clients over ${channels} channels`)
    return await settledCase(world, subject, [await settles(world, subject, { clients, count })], channels)
  } finally {
    await subject.stop()
  }
}
