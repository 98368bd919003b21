// `npm run bench -- batch`: the cost of `batch-settlement`. A voucher's verification over HTTP, by the processor time
// of the facilitator only, compared with a bare server's and a signature's, and its RPC calls and statements; a paid
// call with a seller on this machine; the ledger transactions of a thousand calls of forty buyers, and the same work by
// `exact`; the cost of contract calls. Ledger, database, clients and seller are separate processes. Bars are on
// processor time and counts, so that load on the machine does not decide. A voucher may take 0.35 ms on a machine with
// 0.10 ms for a signature and 0.08 ms for a bare server; its bar is therefore the same ratio to the two as measured in
// the same run. BENCH_PROFILE names a folder for a CPU profile of the facilitator; VOUCHERS is the number sent in a
// round.
import { cpus, loadavg } from "node:os"
import process from "node:process"
import type { BatchChannel } from "../support/batchBuyer.ts"
import { type CallFigures, paidCalls } from "./batch/calls.ts"
import { contractCosts } from "./batch/costs.ts"
import { countVouchers, type VoucherCounts } from "./batch/counted.ts"
import { type BatchWorld, openChannels, settled, startBatchWorld } from "./batch/world.ts"
import type { Case } from "./payments/figures.ts"
import { signatureMillis } from "./payments/floor.ts"
import { measureRound, type Round, together } from "./payments/measure.ts"
import { median } from "./payments/median.ts"
import type { Subject } from "./payments/world.ts"
import { atLeast, atMost, type Bar, barLine } from "./rig/bars.ts"
import { Progress } from "./rig/Progress.ts"

const buyersCount = 40
const calls = 1_000
const vouchers = Number(process.env["VOUCHERS"] ?? 4_000)
const warmRounds = 2
const rounds = 5
const clients = 32
const deposit = 10_000_000n
/** Payments by `exact`, one transaction each: a sample for a thousand. */
const exactPayments = 100

/** 0.35 ms of 0.18: ratio of a voucher's processor time to the sum of a signature and a bare server's answer. */
const ofFloorMax = 0.35 / 0.18
/** The same 0.18 ms, to compute the vouchers that a core of that speed answers in a second. */
const floorMillis = 0.18
const perSecondMin = 2_000
const callMillisMax = 10
const transactionsMax = 45
/** The mean of an idle facilitator is subtracted, so a count may be off by this much per voucher. */
const countSlack = 0.05

interface Figures {
  readonly verify: Case
  readonly floor: Case
  /** Milliseconds of processor time of one signature's check. */
  readonly signature: number
  readonly exact: Case
  readonly counted: VoucherCounts
  /** Paid calls with vouchers that the facilitator verifies, and with vouchers that the seller verifies itself. */
  readonly asked: CallFigures
  readonly known: CallFigures
  /** Milliseconds of claims of this many channels, and the cost of each. */
  readonly claims: ReadonlyArray<readonly [channels: number, millis: number]>
}

/** Vouchers of all channels in turns, each above its channel's last one. */
const bodiesOf = ({ batch }: BatchWorld, channels: ReadonlyArray<BatchChannel>): ReadonlyArray<string> =>
  Array.from({ length: vouchers }, (_, at) => {
    const channel = channels[at % channels.length]!
    return JSON.stringify(batch.body(channel, batch.pay(channel, BigInt(100 + at)), 10n))
  })

/** Alternating rounds of the facilitator and of a bare server. */
const verifies = async (world: BatchWorld, subject: Subject, step: (what: string) => void) => {
  const floor = await world.startFloor()
  const measured: readonly [Array<Round>, Array<Round>] = [[], []]
  const signatures: Array<number> = []
  for (let round = 0; round < warmRounds + rounds; round++) {
    step(round < warmRounds ? "warming" : `vouchers: round ${round - warmRounds + 1} of ${rounds}`)
    for (const [at, one] of [subject, floor].entries()) {
      const order = { pool: "vouchers", path: "/verify", from: 0, count: vouchers, load: { clients } } as const
      const figures = await measureRound(world, one, order)
      if (round >= warmRounds) measured[at]!.push(figures)
    }
    if (round >= warmRounds) signatures.push(signatureMillis())
  }
  await floor.stop()
  return {
    verify: together("voucher", subject.name, measured[0]),
    floor: together("answering alone", floor.name, measured[1]),
    signature: median(signatures)
  }
}

const claimsOf = async ({ batch }: BatchWorld, subject: Subject, channels: ReadonlyArray<BatchChannel>) => {
  const taken: Array<readonly [number, number]> = []
  for (const [at, count] of [1, 10, 40].entries()) {
    const total = BigInt(10 * (at + 1))
    const claims = channels.slice(0, count).map((channel) => ({ channel, max: total, total }))
    const from = performance.now()
    await settled(subject, batch.body(channels[0]!, batch.claim(claims), 0n))
    taken.push([count, performance.now() - from])
  }
  return taken
}

const byExact = async (world: BatchWorld, subject: Subject): Promise<Case> => {
  const payers = world.buyers.map((buyer) => buyer.secret())
  const { ledgerUrl, seller } = world
  await world.clients.sign({
    pool: "exact",
    kind: "plain",
    count: exactPayments,
    ledgerUrl,
    payers,
    payTo: seller.publicKey()
  })
  const order = { pool: "exact", path: "/settle", from: 0, count: exactPayments, load: { clients: 40 } } as const
  return together("exact", subject.name, [await measureRound(world, subject, order)])
}

const measureAll = async (world: BatchWorld, step: (what: string) => void): Promise<Figures> => {
  step("starting the facilitator")
  const subject = await world.startOurs()
  step(`opening ${buyersCount} channels`)
  const channels = await openChannels(world, subject, deposit)
  await world.clients.fill({ pool: "vouchers", bodies: bodiesOf(world, channels) })
  const { floor, signature, verify } = await verifies(world, subject, step)
  step("paid calls, verified by the facilitator")
  const asked = await paidCalls(world, subject, calls, "0a".repeat(32), 0)
  step("paid calls, verified by the seller")
  const known = await paidCalls(world, subject, calls, "0b".repeat(32), 60_000)
  step("claims")
  const claims = await claimsOf(world, subject, channels)
  step("the same by exact")
  const exact = await byExact(world, subject)
  await subject.stop()
  step("calls and statements")
  const counted = await countVouchers(world, channels, vouchers)
  return { verify, floor, signature, exact, counted, asked, known, claims }
}

const short = (value: number | null): string => (value === null ? "unknown" : value.toFixed(3))
const cpuOf = ({ cpu }: Case): number => cpu.facilitator ?? Number.NaN

const caseLine = (name: string, one: Case): string =>
  `  ${name.padEnd(34)} ${short(one.cpu.facilitator)} ms of CPU   ${one.rate.toFixed(0)} a second, ` +
  `p50 ${one.millis.p50.toFixed(1)} ms   ${Object.entries(one.outcomes)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ")}`

const callLine = (name: string, { calls, p50, p99, transactions }: CallFigures): string =>
  `  ${name.padEnd(34)} p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms   ` +
  `${calls} calls of ${buyersCount} buyers: ${transactions} transactions`

const lines = ({ asked, claims, counted, exact, floor, known, signature, verify }: Figures): ReadonlyArray<string> => [
  caseLine("a voucher's verification", verify),
  caseLine("a bare server, same bodies", floor),
  `  ${"one signature".padEnd(34)} ${short(signature)} ms of CPU`,
  `  ${"a voucher's calls".padEnd(34)} ${counted.rpcCalls.toFixed(3)} RPC, ` +
    `${counted.statements.toFixed(3)} statements (${counted.vouchers} vouchers, ${counted.ledgers} ledgers)`,
  callLine("paid call, facilitator verifies", asked),
  callLine("paid call, seller verifies", known),
  caseLine("a payment by exact, settled", exact),
  `  ${"the same work by exact".padEnd(34)} ${exact.outcomes["200 settled"] ?? 0} transactions ` +
    `for ${exact.answers} calls`,
  `  ${"claims, until final".padEnd(34)} ` +
    claims.map(([count, millis]) => `${count}: ${millis.toFixed(0)} ms`).join(", "),
  ...contractCosts().map(
    ([name, { feeStroops, instructions }]) => `  ${name.padEnd(34)} ${instructions} instructions, ${feeStroops} stroops`
  )
]

const barsOf = ({ asked, counted, floor, known, signature, verify }: Figures): ReadonlyArray<Bar> => {
  const ofFloor = cpuOf(verify) / (cpuOf(floor) + signature)
  return [
    atLeast("vouchers found valid", (verify.outcomes["200 valid"] ?? 0) / verify.answers, 1),
    atMost("voucher: CPU of a signature's and a bare server's", ofFloor, ofFloorMax),
    atLeast("voucher: a second of a core where they take 0.18 ms", 1_000 / (ofFloor * floorMillis), perSecondMin),
    atMost("voucher: RPC calls", counted.rpcCalls, countSlack),
    atMost("voucher: SQL statements", counted.statements, countSlack),
    atMost("paid call: p50 ms", Math.max(asked.p50, known.p50), callMillisMax),
    atMost(`transactions of ${calls} calls`, Math.max(asked.transactions, known.transactions), transactionsMax)
  ]
}

export const bench = async (): Promise<boolean> => {
  const progress = new Progress("batch", 8 + warmRounds + rounds)
  progress.step("starting ledger and database")
  const world = await startBatchWorld(buyersCount, process.env["BENCH_PROFILE"])
  try {
    const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}, load ${loadavg()[0]!.toFixed(1)}`
    progress.say(`batch: on ${machine}; ${world.database}; Node ${process.version}`)
    const figures = await measureAll(world, (what) => progress.step(what))
    progress.end()
    for (const line of lines(figures)) console.log(line)
    const bars = barsOf(figures)
    console.log(`batch: ${bars.map(barLine).join("; ")}`)
    return bars.every(({ holds }) => holds)
  } finally {
    progress.end()
    await world.stop()
  }
}
