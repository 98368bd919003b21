// `npm run bench -- receipts`: the cost of receipts and their log. Two facilitators that differ only in the plugin,
// each a process with its own database, settle in short rounds that alternate. Their processor time and that of the
// database are compared, including all work within a second after a round. Also prints the time to make one receipt,
// the disk space of a leaf, and the time of the audit by the number of settlements.
// `--rounds N --count N --audit 10000,64000`.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import process from "node:process"
import { parseArgs } from "node:util"
import { auditTimes } from "./auditTimes.ts"
import { signClaims } from "../../plugins/receipts/claims.ts"
import type { ReceiptClaims } from "../../plugins/receipts/contract.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"
import type { Cpu } from "./payments/figures.ts"
import { measureRound, type Round, signed } from "./payments/measure.ts"
import { median } from "./payments/median.ts"
import { channelsBeside, startWorld, type Subject, type World } from "./payments/world.ts"
import { atMost, barLine } from "./rig/bars.ts"
import { connectTo } from "./rig/database.ts"
import { Progress } from "./rig/Progress.ts"

/** Work after a round: the log's leaves and checkpoints follow within this time. */
const behindMillis = 1_500
/** Settlements before anything counts. */
const warmSettles = 400

const claims: ReceiptClaims = {
  v: 1,
  iss: "did:web:pay.example",
  network: "stellar:testnet",
  transaction: "ab".repeat(32),
  ledger: 1_234_567,
  closedAt: 1_790_000_000,
  payer: Keypair.random().publicKey(),
  payTo: Keypair.random().publicKey(),
  asset: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
  amount: "10000",
  scheme: "exact",
  settlement: "00000000-0000-4000-8000-000000000000",
  attempts: 1,
  fee: "30000",
  resource: "https://seller.example/weather?city=Riga"
}

/** Milliseconds of processor time of one receipt: canonical JSON, and the signature. */
const makeMillis = (): number => {
  const crypto = Effect.runSync(Effect.provide(Crypto, NodeCrypto.layer))
  const signer = crypto.ed25519Signer(Uint8Array.from(Keypair.random().rawSecretKey()))
  const sign = (message: Uint8Array) => Effect.sync(() => signer(message))
  const make = (count: number) => {
    for (let n = 0; n < count; n++)
      Effect.runSync(signClaims({ ...claims, ledger: n }, "did:web:pay.example#receipt-0", sign))
  }
  make(2_000)
  const before = process.cpuUsage()
  make(2_000)
  const { system, user } = process.cpuUsage(before)
  return (user + system) / 1_000 / 2_000
}

const settleOn = async (world: World, subject: Subject, count: number): Promise<Round> => {
  await signed(world, "plain", count)
  const order = { pool: "plain", path: "/settle" as const, from: 0, count, load: { clients: channelsBeside } }
  return measureRound(world, subject, order, behindMillis)
}

/** Bytes of the receipts' tables per outcome: of all tables, and only of the log's. */
const diskOf = async ({ databaseUrl }: Subject) => {
  const database = connectTo(databaseUrl!)
  try {
    const [row] = await database.query(`select count(*)::int as leaves,
      (select sum(pg_total_relation_size(c.oid))::int8 from pg_class c
        where c.relname like 'receipts\\_%' and c.relkind = 'r') as bytes,
      pg_total_relation_size('receipts_leaves') as log from receipts_leaves where record is not null`)
    const { bytes, leaves, log } = row as { readonly bytes: bigint; readonly leaves: number; readonly log: bigint }
    return { leaves, bytes: Number(bytes) / leaves, log: Number(log) / leaves }
  } finally {
    await database.close()
  }
}

const spent = (rounds: ReadonlyArray<Round>, of: (cpu: Cpu) => number | null): number =>
  median(rounds.map(({ cpu }) => of(cpu) ?? Number.NaN))

const start = async (world: World) => ({
  without: await world.startOurs({ name: "without", channels: channelsBeside }),
  beside: await world.startOurs({
    name: "receipts",
    channels: channelsBeside,
    plugins: ["x402-exact", "receipts"],
    set: ["receipts.host=pay.example"],
    env: { RECEIPTS_SECRET: Keypair.random().secret() }
  })
})

const line = (name: string, rounds: ReadonlyArray<Round>): string =>
  `  ${name.padEnd(18)} CPU ms for each settle: ${spent(rounds, (cpu) => cpu.facilitator).toFixed(3)} facilitator, ` +
  `${spent(rounds, (cpu) => cpu.database).toFixed(3)} database   ms p50 ${median(
    rounds.map(({ millis }) => millis.p50)
  ).toFixed(0)}, p95 ${median(rounds.map(({ millis }) => millis.p95)).toFixed(0)}`

export const bench = async (): Promise<boolean> => {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      rounds: { type: "string", default: "12" },
      count: { type: "string", default: "60" },
      audit: { type: "string", default: "10000,64000" }
    }
  })
  const [rounds, count] = [Number(values.rounds), Number(values.count)]
  const progress = new Progress("receipts", rounds + 2)
  const world = await startWorld({ deno: false, say: (text) => progress.say(text) })
  try {
    progress.step("starting and warming")
    const { beside, without } = await start(world)
    const measured = { beside: [] as Array<Round>, without: [] as Array<Round> }
    for (const subject of [without, beside]) await settleOn(world, subject, warmSettles)
    for (let round = 0; round < rounds; round++) {
      progress.step(`round ${round + 1} of ${rounds}`)
      for (const name of round % 2 === 0 ? (["without", "beside"] as const) : (["beside", "without"] as const))
        measured[name].push(await settleOn(world, name === "beside" ? beside : without, count))
    }
    progress.end()
    const whole = ({ database, facilitator }: Cpu) => (facilitator ?? Number.NaN) + (database ?? Number.NaN)
    const [own, base] = [measured.beside, measured.without].map((all) => [
      spent(all, (cpu) => cpu.facilitator),
      spent(all, whole)
    ]) as [[number, number], [number, number]]
    const disk = await diskOf(beside)
    const { resumed, times } = await auditTimes(beside, values.audit.split(",").map(Number))
    const made = makeMillis()
    console.log(line("without receipts", measured.without))
    console.log(line("with receipts", measured.beside))
    console.log(
      `  of the facilitator's CPU ${((own[0] / base[0] - 1) * 100).toFixed(1)} %, with the database's ` +
        `${((own[1] / base[1] - 1) * 100).toFixed(1)} %; ${made.toFixed(3)} ms to make one receipt`
    )
    console.log(
      `  ${disk.leaves} leaves: ${disk.bytes.toFixed(0)} bytes of disk each, ${disk.log.toFixed(0)} of them ` +
        "the log's"
    )
    for (const { mebibytes, seconds, settlements } of times)
      console.log(`  audit of ${settlements}: ${seconds.toFixed(1)} s, ${mebibytes.toFixed(0)} MiB`)
    const [few, many] = [times[0]!, times.at(-1)!]
    const each = (many.seconds - few.seconds) / (many.settlements - few.settlements)
    console.log(`  resumed: ${resumed.toFixed(1)} s; a million: ${(each * 1e6).toFixed(0)} s`)
    const bars = [
      atMost("share of a settle's CPU", own[0] / base[0] - 1, 0.05),
      atMost("ms of its time", made, 1),
      atMost("seconds for a million audited", each * 1e6, 600)
    ]
    console.log(`receipts: ${bars.map(barLine).join("; ")}`)
    return bars.every(({ holds }) => holds)
  } finally {
    progress.end()
    await world.stop()
  }
}
