// Calls to the ledger's RPC and statements to the database per payment: here the facilitators run behind counting
// proxies, which would distort a time. The activity of an idle facilitator is counted first and subtracted.
import { type Counter, countRpc, countSql } from "../rig/counting.ts"
import { pause } from "../rig/processes.ts"
import type { Counted, Figures } from "./figures.ts"
import { signed } from "./measure.ts"
import type { PaymentKind } from "./orders.ts"
import type { Plan } from "./plan.ts"
import { channelsBeside, type Subject, type World } from "./world.ts"

interface Meters {
  readonly rpc: Counter
  readonly sql?: Counter
}

interface Reading {
  readonly at: number
  readonly rpc: ReadonlyMap<string, number>
  readonly sql: ReadonlyMap<string, number>
}

const read = ({ rpc, sql }: Meters): Reading => ({
  at: performance.now(),
  rpc: rpc.counts(),
  sql: sql?.counts() ?? new Map()
})

const since = (now: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
  new Map([...now].map(([what, count]) => [what, count - (before.get(what) ?? 0)]))

/** Calls of each kind per millisecond when idle. */
type Idle = (what: string) => number

const idleOf = async (meters: Meters, seconds: number): Promise<Idle> => {
  const before = read(meters)
  await pause(seconds * 1_000)
  const now = read(meters)
  const counts = new Map([...since(now.rpc, before.rpc), ...since(now.sql, before.sql)])
  return (what) => (counts.get(what) ?? 0) / (now.at - before.at)
}

/** Waits after the last answer, so that delayed writes are counted too. */
const afterMillis = 1_000

const ledgerNow = async (world: World): Promise<number> => (await world.rpc("getLatestLedger")).sequence as number

interface Sent {
  readonly kind: PaymentKind
  readonly path: "/verify" | "/settle"
  readonly count: number
  readonly clients: number
}

const count = async (
  world: World,
  subject: Subject,
  meters: Meters,
  idle: Idle,
  { clients, count, kind, path }: Sent
): Promise<Counted> => {
  await signed(world, kind, count)
  const [before, ledger] = [read(meters), await ledgerNow(world)]
  await world.clients.send({ pool: kind, port: subject.port, path, from: 0, count, load: { clients } })
  await pause(afterMillis)
  const now = read(meters)
  const each = (counts: ReadonlyMap<string, number>): Record<string, number> =>
    Object.fromEntries(
      [...counts]
        .map(([what, seen]) => [what, Math.max(0, seen - idle(what) * (now.at - before.at)) / count] as const)
        .filter(([, one]) => one > 0)
    )
  const [rpc, sql] = [each(since(now.rpc, before.rpc)), each(since(now.sql, before.sql))]
  return {
    payments: count,
    rpc,
    rpcCalls: Object.values(rpc).reduce((sum, one) => sum + one, 0),
    statements: sql["statement"] ?? 0,
    roundTrips: sql["round trip"] ?? 0,
    ledgers: (await ledgerNow(world)) - ledger
  }
}

const verifies = (kind: PaymentKind, many: number): Sent => ({ kind, path: "/verify", count: many, clients: 32 })

/** Our facilitator behind both proxies, freshly started. */
const countOurs = async (world: World, { counted }: Plan, rpc: Counter, step: (what: string) => void) => {
  let sql: Counter | undefined
  const subject = await world.startOurs({
    name: "counted",
    channels: channelsBeside,
    rpcUrl: rpc.url,
    throughSql: async (databaseUrl) => (sql = await countSql(databaseUrl)).url
  })
  try {
    const meters: Meters = { rpc, sql: sql! }
    // The first payments open connections and fill caches.
    await signed(world, "plain", channelsBeside)
    const first = { pool: "plain", port: subject.port, from: 0, count: channelsBeside, load: { clients: 8 } }
    for (const path of ["/verify", "/settle"] as const) await world.clients.send({ ...first, path })
    step("calls and statements: idle")
    const idle = await idleOf(meters, counted.idleSeconds)
    const of = (sent: Sent) => {
      step(`calls and statements: ${sent.path.slice(1)}, ${sent.kind}`)
      return count(world, subject, meters, idle, sent)
    }
    return {
      verify: await of(verifies("plain", counted.verifies)),
      malformed: await of(verifies("malformed", counted.verifies)),
      badlySigned: await of(verifies("badly signed", counted.verifies)),
      settle: await of({ kind: "plain", path: "/settle", count: counted.settles, clients: 64 })
    }
  } finally {
    await subject.stop()
    await sql?.stop()
  }
}

const countPeer = async (world: World, { counted }: Plan, rpc: Counter) => {
  const subject = await world.startPeer(rpc.url)
  const of = (sent: Sent) => count(world, subject, { rpc }, () => 0, sent)
  const classVerify = await of(verifies("plain", counted.verifies))
  const classSettle = await of({ kind: "plain", path: "/settle", count: counted.settles, clients: 64 })
  await subject.stop()
  return { classVerify, classSettle }
}

export const countAll = async (world: World, plan: Plan, step: (what: string) => void): Promise<Figures["counted"]> => {
  const rpc = await countRpc(world.ledgerUrl)
  try {
    const ours = await countOurs(world, plan, rpc, step)
    step("calls: the class")
    return { ...ours, ...(await countPeer(world, plan, rpc)) }
  } finally {
    await rpc.stop()
  }
}
