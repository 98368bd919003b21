// What `batch-settlement` costs this process: CPU time of verifying a voucher from its JSON to the answer, beside one
// signature alone; the same by HTTP with a client in this process, as a rate; and what deposits and claims of 1, 10 and
// 40 channels cost on the embedded ledger, in stroops of the resource fee. Prints figures; its bar is 0.35 ms of a
// voucher.
import { NodeServices } from "@effect/platform-node"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect } from "effect"
import process from "node:process"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { anonymous } from "../../kernel/http/Principal.ts"
import { Facilitator } from "../../kernel/payment/Facilitator.ts"
import { decodePayment } from "../../kernel/payment/wire/Wire.ts"
import { voucherDigest } from "../../plugins/x402-batch/batchCodec.ts"
import { verifyEd25519 } from "../../kernel/ledger/Ed25519.ts"
import { engineCrypto } from "../support/engineCrypto.ts"
import { startBatch } from "../plugins/x402-batch/world.ts"

const channelsMax = 40
const vouchers = Number(process.env["VOUCHERS"] ?? 4_000)
const cpuMillisMax = 0.35
const clients = 8

const cpuMillis = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1_000
}

/** CPU milliseconds of one of many runs. */
const cpuOf = <E, R>(count: number, run: (index: number) => Effect.Effect<unknown, E, R>) =>
  Effect.gen(function* () {
    const from = cpuMillis()
    for (let index = 0; index < count; index++) yield* run(index)
    return (cpuMillis() - from) / count
  })

const signatureMillis = (contract: Parameters<typeof voucherDigest>[0]) => {
  const key = Keypair.random()
  const digest = voucherDigest(contract, "00".repeat(32), 1n)
  const signature = Uint8Array.from(key.sign(digest))
  const [publicKey, from] = [Uint8Array.from(key.rawPublicKey()), cpuMillis()]
  for (let index = 0; index < vouchers; index++) verifyEd25519(engineCrypto, publicKey, digest, signature)
  return (cpuMillis() - from) / vouchers
}

const run = Effect.gen(function* () {
  const facilitator = yield* startBatch({ database: "pglite", channels: 20, set: ["limits.verify_per_second=0"] })
  const { batch, services } = facilitator
  const seller = yield* facilitator.seller
  const channels = yield* Effect.forEach(
    Array.from({ length: channelsMax }),
    () => facilitator.open(seller, 10_000_000n),
    { concurrency: 10 }
  )
  const bodies = Array.from({ length: vouchers }, (_, index) => {
    const channel = channels[index % channelsMax]!
    return JSON.stringify(batch.body(channel, batch.pay(channel, BigInt(100 + index)), 10n))
  })
  const service = Context.getUnsafe(services, Facilitator as never) as Facilitator["Service"]
  const words = Context.getUnsafe(services, WireVocabulary as never) as WireVocabulary["Service"]
  const verify = (index: number) =>
    Effect.suspend(() => {
      const payment = decodePayment(JSON.parse(bodies[index % vouchers]!), {
        principal: { owner: anonymous, source: "ip:127.0.0.1", keyed: false },
        words,
        crypto: engineCrypto
      })
      if (!("requirements" in payment)) return Effect.die(new Error("a body of ours is no payment"))
      return Effect.flatMap(service.verify(payment), (answer) =>
        answer._tag === "Valid" ? Effect.void : Effect.die(new Error(answer.message))
      )
    })
  yield* cpuOf(500, verify)
  const one = yield* cpuOf(vouchers, verify)
  const alone = signatureMillis(batch.at)
  console.log(`a voucher's verification: ${one.toFixed(3)} ms of CPU; its signature alone ${alone.toFixed(3)} ms`)

  const [from, cpuFrom] = [performance.now(), cpuMillis()]
  yield* Effect.forEach(bodies, (body) => facilitator.verify(body), { concurrency: clients, discard: true })
  const seconds = (performance.now() - from) / 1_000
  const byHttp = (cpuMillis() - cpuFrom) / vouchers
  console.log(
    `by HTTP, its client in this process: ${(vouchers / seconds).toFixed(0)} a second, ${byHttp.toFixed(3)} ms of CPU`
  )

  for (const [at, count] of [1, 10, 40].entries()) {
    const total = BigInt(10 * (at + 1))
    const claims = channels.slice(0, count).map((channel) => ({ channel, max: total, total }))
    const { json, text } = yield* facilitator.settle(batch.body(channels[0]!, batch.claim(claims), 0n))
    if (json.success !== true) return yield* Effect.die(new Error(text))
  }
  const fees = yield* facilitator.sql<{ kind: string; stroops: bigint }>`
    select split_part(authorization_key, ':', 1) as kind, resource_fee_stroops as stroops from kernel_settlements
    where state = 'settled' order by recorded_at`
  const claimed = fees.filter(({ kind }) => kind === "claim").map(({ stroops }) => stroops)
  console.log(`resource fee: a deposit ${fees[0]!.stroops} stroops; claims of 1, 10 and 40 ${claimed.join(", ")}`)
  return one <= cpuMillisMax
})

export const bench = (): Promise<boolean> =>
  run.pipe(Effect.scoped, Effect.provide(NodeServices.layer), Effect.runPromise)
