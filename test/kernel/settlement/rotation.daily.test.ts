// Keys rotated while two replicas run over one database and one ledger: the other replica follows, a payment that was
// pending under the old sponsor ends, and nothing is taken up by which something would be lost.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, FileSystem, Layer } from "effect"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { KeyRotation } from "../../../kernel/settlement/channels/KeyRotation.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const rotationOf = ({ services }: Facilitator) =>
  Context.getUnsafe(services, KeyRotation as never) as KeyRotation["Service"]

const sponsorOf = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask("/supported"), ({ json }) => json.kinds[0].signer as string)

const statesOf = ({ sql }: Facilitator) =>
  Effect.map(
    sql<{ sponsor: string; state: string }>`select sponsor, state from kernel_settlements order by recorded_at`,
    (rows) => rows.map(({ sponsor, state }) => [sponsor, state])
  )

const notYetKnown = "settle_ledger_transaction_status_unknown"

/** The same payment until there is an answer: told to come again, or not known within the three seconds of these. */
const settledBy = (facilitator: Facilitator, body: unknown) =>
  eventually(facilitator.settle(body), ({ json, status }) => status !== 503 && json.errorReason !== notYetKnown)

const secret = (...pairs: ReadonlyArray<Keypair>) => pairs.map((pair) => pair.secret()).join()

/** A ledger, and two replicas that read their seeds from files of their own; channels are given or derive. */
const startReplicas = Effect.fnUntraced(function* (areGiven: boolean) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-rotation-" })
  const opened = yield* Context.get(yield* Layer.build(sourceLayer("postgres")), DatabaseSource).open
  const world = yield* startFacilitator({ channels: 1, closeMillis: 250 })
  const [old, next, stranger] = [Keypair.random(), Keypair.random(), Keypair.random()]
  const channels = [1, 2, 3].map(() => Keypair.random())
  const write = (name: string, text: string) => files.writeFileString(`${folder}/${name}`, text)
  yield* Effect.forEach(["a", "b"], (name) => write(name, secret(old)))
  yield* write("channels", secret(...channels.slice(0, 2)))
  const replica = (name: string) =>
    startFacilitator({
      database: Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }),
      ledgerUrl: world.ledgerUrl,
      channels: 2,
      environment: { SPONSOR_SECRET_FILE: `${folder}/${name}`, CHANNELS_FILE: `${folder}/channels` },
      set: [
        ...(areGiven ? ["networks.ledger:testnet.channel_secrets_env=CHANNELS"] : []),
        "limits.settle_timeout_ms=3000",
        "limits.channel_wait_ms=20000"
      ]
    })
  const [first, second] = [yield* replica("a"), yield* replica("b")]
  const payTo = (yield* world.account(0n)).publicKey()
  const payment = Effect.gen(function* () {
    const terms = { payer: yield* world.account(), payTo, amount: 10n, maxTimeoutSeconds: 300, secondsPerLedger: 1 }
    return (yield* world.payment(terms)).body
  })
  return { world, first, second, old, next, stranger, channels, write, payment }
})

describe.skipIf(!databaseKinds.includes("postgres"))("keys that are rotated while replicas run", () => {
  it.live(
    "change the sponsor of all of them; what is pending under the old one ends, and new payments are the new one's",
    () =>
      Effect.gen(function* () {
        const { first, next, old, payment, second, stranger, world, write } = yield* startReplicas(true)
        const { rotate } = rotationOf(first)
        expect((yield* Effect.flip(rotate("sponsor"))).message).toMatch(/still G/)
        yield* write("a", secret(next))
        expect((yield* Effect.flip(rotate("sponsor"))).message).toMatch(/is gone; keep it behind/)
        expect(yield* sponsorOf(first)).toBe(old.publicKey())

        yield* world.ledger.setFaults([{ drops: () => true }])
        const body = yield* payment
        expect((yield* first.settle(body)).json).toMatchObject({ success: false })
        expect((yield* statesOf(first)).map(([sponsor]) => sponsor)).toEqual([old.publicKey()])

        yield* write("a", secret(next, old))
        expect((yield* rotate("sponsor")).sponsor).toBe(next.publicKey())
        expect(yield* sponsorOf(first)).toBe(next.publicKey())
        // The other one's file is of before, then of somebody else, then right.
        yield* write("b", secret(stranger, old))
        expect(yield* sponsorOf(second)).toBe(old.publicKey())
        yield* write("b", secret(next, old))
        yield* eventually(sponsorOf(second), (address) => address === next.publicKey())

        yield* world.ledger.setFaults([])
        yield* eventually(statesOf(second), ([pending]) => pending![1] === "settled")
        for (const replica of [first, second]) {
          const settled = yield* settledBy(replica, yield* payment)
          expect(settled.json.errorReason).toBeUndefined()
          expect(settled.json).toMatchObject({ success: true })
        }
        expect(yield* statesOf(first)).toEqual([
          [old.publicKey(), "settled"],
          [next.publicKey(), "settled"],
          [next.publicKey(), "settled"]
        ])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  it.live(
    "change the channels; a payment held by one of before ends, and the seeds of those may not be left out",
    () =>
      Effect.gen(function* () {
        const { channels, first, payment, second, world, write } = yield* startReplicas(true)
        const { rotate } = rotationOf(first)
        const [, kept, added] = channels as [Keypair, Keypair, Keypair]
        yield* world.ledger.setFaults([{ drops: () => true }])
        yield* first.settle(yield* payment)
        yield* first.settle(yield* payment)
        yield* write("channels", secret(kept, added))
        expect((yield* Effect.flip(rotate("channels"))).message).toMatch(/keep them behind a semicolon/)
        yield* write("channels", `${secret(kept, added)};${secret(channels[0]!)}`)
        const now = yield* rotate("channels")
        expect(now.channels).toEqual([kept.publicKey(), added.publicKey()])
        const signers = Effect.map(second.ask("/supported"), ({ json }) => json.signers["stellar:*"].slice(1))
        yield* eventually(signers, (addresses) => addresses.join() === now.channels.join())
        yield* world.ledger.setFaults([])
        yield* eventually(statesOf(second), (states) => states.every(([, state]) => state === "settled"))
        const settled = yield* settledBy(second, yield* payment)
        expect(settled.json.errorReason).toBeUndefined()
        expect(settled.json).toMatchObject({ success: true })
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  it.live(
    "change the channels that derive from the sponsor's seed: pending ones end, new ones open, those of before are merged",
    () =>
      Effect.gen(function* () {
        const { first, next, old, payment, second, world, write } = yield* startReplicas(false)
        const channelsOf = (facilitator: Facilitator) =>
          Effect.map(facilitator.ask("/supported"), ({ json }) => json.signers["stellar:*"].slice(1) as Array<string>)
        const before = yield* channelsOf(first)
        yield* world.ledger.setFaults([{ drops: () => true }])
        yield* first.settle(yield* payment)
        yield* write("a", secret(next, old))
        yield* write("b", secret(next, old))
        const rotated = yield* rotationOf(first).rotate("sponsor")
        const after = rotated.channels.slice(0, 2)
        expect(after.filter((address) => before.includes(address))).toEqual([])
        yield* eventually(channelsOf(second), (addresses) => addresses.join() === after.join())

        yield* world.ledger.setFaults([])
        yield* eventually(statesOf(second), ([pending]) => pending![1] === "settled")
        for (const replica of [first, second]) {
          const settled = yield* settledBy(replica, yield* payment)
          expect(settled.json.errorReason).toBeUndefined()
          expect(settled.json).toMatchObject({ success: true })
        }
        const { sql } = first
        const used = yield* sql<{
          channel: string
        }>`select channel from kernel_settlements where sponsor = ${next.publicKey()}`
        expect(used.filter(({ channel }) => !after.includes(channel))).toEqual([])

        // Three minutes later nobody has claimed those of before; they are given back to who is the sponsor now.
        yield* sql`update kernel_channels set wanted_until = clock_timestamp() where address = any(${before})`
        yield* sql`update kernel_channels set sequence = null where address = ${after[0]!}`
        const ended = sql<{ count: number }>`select count(*)::int as count from kernel_channels
          where address = any(${before}) and state = 'retired'`
        yield* eventually(ended, ([row]) => row!.count === 2)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
