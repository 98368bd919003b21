// Replicas with different settings and keys, over one database and one ledger: each leases the channels that it can
// sign for, none removes a channel that another requires, and channels that no replica requires are merged into the
// sponsor.
import { expect, it } from "@effect/vitest"
import { Keypair, xdr } from "@stellar/stellar-sdk"
import { Context, Duration, Effect, Layer } from "effect"
import { describe } from "vitest"
import { DatabaseSource } from "../../../../kernel/database/DatabaseSource.ts"
import { databaseKinds, type DatabaseKind, sourceLayer } from "../../../support/databases.ts"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../../support/facilitator.ts"
import { eventually } from "../../../support/eventually.ts"

const testnet = "networks.ledger:testnet"
/** Allows a busy machine to serve all callers in the end. */
const patient = "limits.channel_wait_ms=20000"

/** A database that several facilitators use, one after another or at the same time. */
const sharedDatabase = Effect.fnUntraced(function* (kind: DatabaseKind) {
  const opened = yield* Context.get(yield* Layer.build(sourceLayer(kind)), DatabaseSource).open
  return Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
})

/** How often a payment is repeated that is refused because a starved machine is busy. */
const askedMax = 5

/** `count` different concurrent payments, and the final answer of each. */
const settleMany = Effect.fnUntraced(function* (world: Facilitator, at: Facilitator, count: number) {
  const payTo = (yield* world.account(0n)).publicKey()
  return yield* Effect.forEach(
    Array.from({ length: count }),
    Effect.fnUntraced(function* () {
      const { body } = yield* world.payment({
        payer: yield* world.account(),
        payTo,
        amount: 10n,
        maxTimeoutSeconds: 300
      })
      for (let asked = 1; ; asked++) {
        const { json, status } = yield* at.settle(body)
        if (json.success === true) return "success"
        if (status !== 503 || asked === askedMax) return `${status} ${json.errorReason}`
        // A replica that has just started may not have seen a ledger yet, and answers when to retry.
        yield* Effect.sleep(Duration.millis(json.retryAfterMs))
      }
    }),
    { concurrency: "unbounded" }
  )
})

const states = (facilitator: Facilitator) =>
  Effect.map(
    facilitator.sql<{ state: string; count: number }>`select state, count(*)::int as count from kernel_channels
      group by state order by state`,
    (rows) => rows.map(({ count, state }) => `${count} ${state}`).join(", ")
  )

const readyOf = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask("/metrics"), ({ text }) => Number(/^tollkeeper_channels_ready ([0-9]+)/m.exec(text)?.[1]))

const signersOf = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask("/supported"), ({ json }) => json.signers["stellar:*"] as ReadonlyArray<string>)

/** Expires the claims of all replicas to these channels. */
const lapse = (facilitator: Facilitator, addresses: ReadonlyArray<string>) =>
  facilitator.sql`update kernel_channels set required_until = clock_timestamp() - interval '1 second'
    where address = any(${addresses})`

/** Marks a sequence for rereading, so the next turn reads all channels. */
const survey = (facilitator: Facilitator, address: string) =>
  facilitator.sql`update kernel_channels set sequence = null where address = ${address}`

const accountKey = (address: string) =>
  xdr.LedgerKey.account(
    new xdr.LedgerKeyAccount({
      accountId: xdr.PublicKey.publicKeyTypeEd25519(Keypair.fromPublicKey(address).rawPublicKey())
    })
  ).toXdr("base64")

const exists = (world: Facilitator, address: string) =>
  Effect.promise(() => world.rpc("getLedgerEntries", { keys: [accountKey(address)] }).then((a) => a.entries.length))

describe.each(databaseKinds)("replicas of different settings on %s", (kind) => {
  it.live(
    "a replica with fewer keys leases only channels it can sign for [S92, S340]",
    () =>
      Effect.gen(function* () {
        const shared: FacilitatorOptions = {
          database: yield* sharedDatabase(kind),
          environment: { SPONSOR_SECRET: Keypair.random().secret() }
        }
        const large = yield* startFacilitator({
          ...shared,
          channels: 6,
          set: [`${testnet}.channel_count_max=6`, patient]
        })
        const small = yield* startFacilitator({
          ...shared,
          channels: 2,
          ledgerUrl: large.ledgerUrl,
          set: [`${testnet}.channel_count_max=2`, patient]
        })
        const answers = yield* Effect.all([settleMany(large, small, 8), settleMany(large, large, 8)], {
          concurrency: 2
        })
        expect(answers.flat()).toEqual(Array.from({ length: 16 }, () => "success"))
        expect([yield* readyOf(large), yield* readyOf(small)]).toEqual([6, 2])
        expect([(yield* signersOf(large)).length, (yield* signersOf(small)).length]).toEqual([7, 3])
        expect(yield* states(large)).toBe("6 ready")
        expect(yield* large.sql`select 1 from kernel_sponsor_transactions where purpose <> 'channels'`).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "replicas switch between derived and given channels; old ones are merged [S340]",
    () =>
      Effect.gen(function* () {
        const given = [1, 2, 3].map(() => Keypair.random())
        const world = yield* startFacilitator({ channels: 1 })
        const shared: FacilitatorOptions = {
          database: yield* sharedDatabase(kind),
          ledgerUrl: world.ledgerUrl,
          channels: 3,
          environment: {
            SPONSOR_SECRET: Keypair.random().secret(),
            CHANNELS: given.map((pair) => pair.secret()).join()
          }
        }
        const derived = yield* startFacilitator(shared)
        const before = (yield* signersOf(derived)).slice(1)
        expect(yield* settleMany(world, derived, 4)).toEqual(Array.from({ length: 4 }, () => "success"))
        yield* derived.stop

        const configured = yield* startFacilitator({ ...shared, set: [`${testnet}.channel_secrets_env=CHANNELS`] })
        expect((yield* signersOf(configured)).slice(1)).toEqual(given.map((pair) => pair.publicKey()))
        expect(yield* settleMany(world, configured, 8)).toEqual(Array.from({ length: 8 }, () => "success"))
        yield* eventually(readyOf(configured), (ready) => ready === 3)
        // For a while a replica of the former settings might still run.
        // Replaced channels serve until the first new one is ready.
        yield* eventually(states(configured), (text) => text === "6 ready")
        yield* lapse(configured, before)
        yield* survey(configured, given[0]!.publicKey())
        yield* eventually(states(configured), (text) => text === "3 ready, 3 retired")
        expect(yield* Effect.forEach(before, (address) => exists(world, address))).toEqual([0, 0, 0])
        yield* configured.stop

        const again = yield* startFacilitator(shared)
        expect((yield* signersOf(again)).slice(1)).toEqual(before)
        expect(yield* settleMany(world, again, 4)).toEqual(Array.from({ length: 4 }, () => "success"))
        // An unclaimed channel is no longer leased, but stays: its keys are not here.
        yield* lapse(
          again,
          given.map((pair) => pair.publicKey())
        )
        yield* survey(again, before[0]!)
        yield* eventually(states(again), (text) => text === "3 ready, 3 retiring")
        expect(yield* exists(world, given[0]!.publicKey())).toBe(1)
      }).pipe(Effect.scoped),
    240_000
  )
})
