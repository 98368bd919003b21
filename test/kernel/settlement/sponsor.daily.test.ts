// A sponsor that cannot pay, and a network that is too expensive: settling is busy immediately and verifying decides
// nothing, no channel is leased and nothing is stored, operators see it, and it recovers automatically.
import { expect, it } from "@effect/vitest"
import { Account, Asset, Keypair, Networks, Operation, TransactionBuilder } from "@stellar/stellar-sdk"
import { Context, Effect, Option } from "effect"
import { describe } from "vitest"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { Sponsor } from "../../../kernel/settlement/sponsor/Sponsor.ts"
import type { Faults } from "../../../plugins/ledger-local/node/Faults.ts"
import { Within } from "../../../runtime/commands/CommandTarget.ts"
import { examineSponsor } from "../../../runtime/commands/doctor.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { askFriendbot } from "../../../runtime/redteam/rpcCall.ts"
import { eventually } from "../../support/eventually.ts"

const price = 10_000n

const accountOf = (facilitator: Facilitator, address: string) =>
  Effect.map(
    (Context.getUnsafe(facilitator.services, LedgerRpc as never) as LedgerRpc["Service"]).accounts([address]),
    ({ accounts }) => accounts.get(address)!
  )

/** Moves the sponsor's money away, except this amount. */
const drain = Effect.fnUntraced(function* (facilitator: Facilitator, sponsor: Keypair, keepStroops: bigint) {
  const { balanceStroops, sequence } = yield* accountOf(facilitator, sponsor.publicKey())
  const other = yield* facilitator.account(0n)
  const amount = balanceStroops - keepStroops - 100n
  const transaction = new TransactionBuilder(new Account(sponsor.publicKey(), sequence.toString()), {
    fee: "100",
    networkPassphrase: Networks.TESTNET
  })
    .addOperation(
      Operation.payment({
        destination: other.publicKey(),
        asset: Asset.native(),
        amount: `${amount / 10_000_000n}.${(amount % 10_000_000n).toString().padStart(7, "0")}`
      })
    )
    .setTimeout(0)
    .build()
  transaction.sign(sponsor)
  const sent = yield* Effect.promise(() =>
    facilitator.rpc("sendTransaction", { transaction: transaction.toEnvelope().toXDR("base64") })
  )
  expect(sent.status).toBe("PENDING")
  yield* eventually(accountOf(facilitator, sponsor.publicKey()), (account) => account.balanceStroops === keepStroops)
})

const ledgerOf = (facilitator: Facilitator) => Effect.map(facilitator.ask("/health/ready"), ({ json }) => json.ledger)

const sponsorOf = ({ services }: Facilitator) => Context.getUnsafe(services, Sponsor as never) as Sponsor["Service"]

/** What doctor finds of the sponsor and its channels. */
const findingsOf = ({ services }: Facilitator) =>
  Effect.provideService(examineSponsor, Within, { services, folder: "." })

const expectBusy = Effect.fnUntraced(function* (facilitator: Facilitator, body: unknown, why: string) {
  const settled = yield* facilitator.settle(body)
  expect([settled.status, settled.json.errorReason, settled.json.transaction]).toEqual([
    503,
    "settle_ledger_temporarily_unavailable",
    ""
  ])
  const verified = yield* facilitator.verify(body)
  expect([verified.status, verified.json.isValid, verified.json.invalidReason]).toEqual([
    503,
    false,
    "ledger_unavailable"
  ])
  expect(verified.headers.get("retry-after")).not.toBeNull()
  // Both answers name the cause.
  expect([settled.json.errorMessage, verified.json.invalidMessage]).toEqual([
    `${why}; try the same payment again`,
    `${why}; nothing was decided, try the same payment again`
  ])
  const stored = yield* Effect.orDie(facilitator.sql`select 1 from kernel_settlements where state <> 'settled'`)
  const leased = yield* Effect.orDie(
    facilitator.sql`select 1 from kernel_channels where leased_until > clock_timestamp()`
  )
  expect([stored.length, leased.length]).toEqual([0, 0])
})

describe.each(databaseKinds)("on %s", (database) => {
  it.live(
    "is busy with an empty sponsor until it is funded [S84, S85]",
    () =>
      Effect.gen(function* () {
        const sponsor = Keypair.random()
        const facilitator = yield* startFacilitator({
          database,
          channels: 2,
          environment: { SPONSOR_SECRET: sponsor.secret() }
        })
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const payment = yield* facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds: 300 })
        const full = yield* eventually(ledgerOf(facilitator), ({ channelsUsable }) => channelsUsable === 2)
        expect(full).toMatchObject({ state: "ready", channelsReady: 2, oldestOpenSettlementSeconds: null })
        expect(BigInt(full.sponsorBalanceStroops) - BigInt(full.sponsorSpendableStroops)).toBe(10_000_000n)
        // Its reserve of two entries, and a stroop less than a transaction may cost.
        yield* drain(facilitator, sponsor, 10_000_000n + 209_999n)
        const short = `the sponsor's balance does not cover another transaction; send XLM to ${sponsor.publicKey()}`
        const empty = yield* eventually(ledgerOf(facilitator), ({ detail }) => detail === short)
        expect(empty).toMatchObject({
          detail: short,
          sponsorBalanceStroops: "10209999",
          sponsorSpendableStroops: "209999"
        })
        const metrics = (yield* facilitator.ask("/metrics")).text
        expect(metrics).toMatch(/^tollkeeper_sponsor_spendable_stroops 209999$/m)
        expect(metrics).toMatch(/^tollkeeper_channels_usable 2$/m)
        expect((yield* facilitator.ask("/health/ready")).status).toBe(200)
        yield* expectBusy(facilitator, payment.body, short)
        const [finding] = yield* findingsOf(facilitator)
        expect(finding).toMatchObject({ check: "sponsor", state: "fault", detail: short })
        // The local profile's faucet funds it automatically.
        expect(yield* sponsorOf(facilitator).unfunded).toEqual(Option.none())
        yield* Effect.promise(() => askFriendbot(facilitator.ledgerUrl, sponsor.publicKey()))
        yield* eventually(accountOf(facilitator, sponsor.publicKey()), (account) => account.balanceStroops > 10n ** 10n)
        // A request that is refused has the sponsor read again, and waits for that.
        let settled = yield* facilitator.settle(payment.body)
        for (let tries = 0; tries < 4 && settled.status === 503; tries++) {
          yield* Effect.sleep("120 millis")
          settled = yield* facilitator.settle(payment.body)
        }
        expect(settled.json).toMatchObject({ success: true })
        yield* eventually(ledgerOf(facilitator), ({ state }) => state === "ready")
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "names the address of a sponsor that was never funded: readiness, both answers, doctor and start",
    () =>
      Effect.gen(function* () {
        const funded = yield* startFacilitator({ channels: 1 })
        const sponsor = Keypair.random()
        const facilitator = yield* startFacilitator({
          database,
          ledgerUrl: funded.ledgerUrl,
          channels: 0,
          set: ["networks.ledger:testnet.channel_count=2", "networks.ledger:testnet.development_auto_fund=false"],
          environment: { SPONSOR_SECRET: sponsor.secret() }
        })
        const why = `the sponsor's account is not on the ledger; send XLM to ${sponsor.publicKey()}`
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const { body } = yield* facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds: 300 })
        yield* expectBusy(facilitator, body, why)
        expect(yield* ledgerOf(facilitator)).toMatchObject({ state: "degraded", detail: expect.stringContaining(why) })
        expect(yield* sponsorOf(facilitator).unfunded).toEqual(Option.some(why))
        const [finding] = yield* findingsOf(facilitator)
        expect(finding).toMatchObject({ state: "fault", detail: why, remedy: `send XLM to ${sponsor.publicKey()}` })
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "is busy while the network's fee exceeds the ceiling [S84, S85]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, channels: 2 })
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const payment = yield* facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds: 300 })
        const asking = (stroops: number): Partial<Faults> => ({
          onRpc: (method) =>
            method !== "getFeeStats"
              ? undefined
              : {
                  kind: "wrong",
                  change: (result: any) => {
                    const fees = Object.fromEntries(
                      Object.keys(result.sorobanInclusionFee).map((name) => [name, String(stroops)])
                    )
                    return { ...result, sorobanInclusionFee: fees }
                  }
                }
        })
        yield* facilitator.ledger.setFaults([asking(10_001)])
        const dear = yield* eventually(ledgerOf(facilitator), ({ state }) => state === "degraded")
        expect(dear).toMatchObject({ inclusionFeeStroops: "10001" })
        yield* expectBusy(facilitator, payment.body, "the network asks more for inclusion than may be bid")
        yield* facilitator.ledger.setFaults([asking(9_999)])
        yield* eventually(ledgerOf(facilitator), ({ state }) => state === "ready")
        expect((yield* facilitator.settle(payment.body)).json).toMatchObject({ success: true })
        // The first bid is a tenth of the ceiling, however much is asked.
        const bids = yield* facilitator.sql<{ bid: bigint }>`select inclusion_stroops as bid from kernel_attempts
          order by number limit 1`
        expect(bids).toEqual([{ bid: 1_000n }])
      }).pipe(Effect.scoped),
    240_000
  )
})
