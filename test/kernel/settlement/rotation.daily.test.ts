// Keys rotated while two replicas run over one database and one ledger: the other replica follows, a pending payment of
// the old sponsor ends, and a change that would lose something is not made.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Exit, FileSystem, Layer, Scope } from "effect"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { KeyRotation } from "../../../kernel/settlement/channels/KeyRotation.ts"
import { SponsorDrain } from "../../../kernel/settlement/sponsor/SponsorDrain.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const serviceOf = <A>({ services }: Facilitator, key: Context.Key<any, A>): A =>
  Context.getUnsafe(services, key as never) as A
const rotationOf = (facilitator: Facilitator) => serviceOf(facilitator, KeyRotation)

const sponsorOf = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask("/supported"), ({ json }) => json.kinds[0].signer as string)

/** Readiness' report on the signing keys. */
const signerOf = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask("/health/ready"), ({ json }) => json.signer as Readonly<Record<string, unknown>>)

const statesOf = ({ sql }: Facilitator) =>
  Effect.map(
    sql<{ sponsor: string; state: string }>`select sponsor, state from kernel_settlements order by recorded_at`,
    (rows) => rows.map(({ sponsor, state }) => [sponsor, state])
  )

const notYetKnown = "settle_ledger_transaction_status_unknown"

/** Repeats a payment until its outcome: while it is busy, or pending after the three seconds configured here. */
const settledBy = (facilitator: Facilitator, body: unknown) =>
  eventually(facilitator.settle(body), ({ json, status }) => status !== 503 && json.errorReason !== notYetKnown)

const secret = (...pairs: ReadonlyArray<Keypair>) => pairs.map((pair) => pair.secret()).join()

/** A ledger, and two replicas that read their seeds from separate files; channels are given or derived. */
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
  return { world, replica, first, second, old, next, stranger, channels, write, payTo, payment }
})

describe.skipIf(!databaseKinds.includes("postgres"))("keys that are rotated while replicas run", () => {
  it.live(
    "replicas rotate the sponsor; pending payments end under the former one",
    () =>
      Effect.gen(function* () {
        const { first, next, old, payment, second, stranger, world, write } = yield* startReplicas(true)
        const { rotate } = rotationOf(first)
        expect((yield* Effect.flip(rotate("sponsor"))).message).toMatch(/still G/)
        yield* write("a", secret(next))
        expect((yield* Effect.flip(rotate("sponsor"))).message).toMatch(/is missing; keep it after/)
        expect(yield* sponsorOf(first)).toBe(old.publicKey())

        yield* world.ledger.setFaults([{ drops: () => true }])
        const body = yield* payment
        expect((yield* first.settle(body)).json).toMatchObject({ success: false })
        expect((yield* statesOf(first)).map(([sponsor]) => sponsor)).toEqual([old.publicKey()])

        yield* write("a", secret(next, old))
        expect((yield* rotate("sponsor")).sponsor).toBe(next.publicKey())
        expect(yield* sponsorOf(first)).toBe(next.publicKey())
        // The other replica's file holds the former seed, then a foreign one, then the right one.
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
    "rotated seeds keep former channels until their payments end",
    () =>
      Effect.gen(function* () {
        const { channels, first, payment, second, world, write } = yield* startReplicas(true)
        const { rotate } = rotationOf(first)
        const [, kept, added] = channels as [Keypair, Keypair, Keypair]
        yield* world.ledger.setFaults([{ drops: () => true }])
        yield* first.settle(yield* payment)
        yield* first.settle(yield* payment)
        yield* write("channels", secret(kept, added))
        expect((yield* Effect.flip(rotate("channels"))).message).toMatch(/keep them after a semicolon/)
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
    "a rotated sponsor seed derives new channels; former ones end and are merged",
    () =>
      Effect.gen(function* () {
        const { first, next, old, payTo, payment, second, stranger, world, write } = yield* startReplicas(false)
        expect((yield* Effect.flip(serviceOf(first, SponsorDrain).drain(payTo))).message).toMatch(/no former sponsor's/)
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
        // The former sponsor may still have to pay for the open one.
        const early = yield* Effect.flip(serviceOf(first, SponsorDrain).drain(payTo))
        expect(early.message).toMatch(/settlements under a former sponsor are open \(1\)|running replicas sign/)
        // No transaction lands now, so the new channels cannot be created: a former one is leased.
        expect((yield* first.settle(yield* payment)).json.errorReason).toBe(notYetKnown)
        const { sql } = first
        const usedBy = sql<{
          channel: string
        }>`select channel from kernel_settlements where sponsor = ${next.publicKey()} order by recorded_at`
        expect((yield* usedBy).map(({ channel }) => before.includes(channel))).toEqual([true])
        yield* eventually(channelsOf(second), (addresses) => addresses.join() === after.join())

        yield* world.ledger.setFaults([])
        yield* eventually(statesOf(second), (states) => states.every(([, state]) => state === "settled"))
        const open = sql`select 1 from kernel_channels where address = any(${after}) and state = 'ready'
          and sequence is not null`
        yield* eventually(open, ({ length }) => length === 2)
        for (const replica of [first, second]) {
          const settled = yield* settledBy(replica, yield* payment)
          expect(settled.json.errorReason).toBeUndefined()
          expect(settled.json).toMatchObject({ success: true })
        }
        expect((yield* usedBy).slice(1).filter(({ channel }) => !after.includes(channel))).toEqual([])

        // No replica signs as the former sponsor: its channels are merged into the new one.
        yield* sql`update kernel_channels set sequence = null where address = ${after[0]!}`
        const ended = sql<{ count: number }>`select count(*)::int as count from kernel_channels
          where address = any(${before}) and state = 'retired'`
        yield* eventually(ended, ([row]) => row!.count === 2)

        // The former sponsor's XLM goes where the operator says, all but its reserve.
        const { drain } = serviceOf(first, SponsorDrain)
        const { accounts } = serviceOf(first, LedgerRpc)
        const held = Effect.map(accounts([old.publicKey(), payTo]), ({ accounts }) =>
          [old.publicKey(), payTo].map((address) => accounts.get(address)!)
        )
        const [former, target] = yield* held
        expect((yield* Effect.flip(drain(old.publicKey()))).message).toMatch(/is a former sponsor itself/)
        expect((yield* Effect.flip(drain(stranger.publicKey()))).message).toMatch(/is no account on the ledger/)
        const amountStroops = former!.balanceStroops - former!.reserveStroops
        expect(yield* drain(payTo)).toEqual([{ account: old.publicKey(), amountStroops }])
        const [left, grown] = yield* held
        expect(left!.balanceStroops).toBe(left!.reserveStroops)
        expect(grown!.balanceStroops - target!.balanceStroops).toBe(amountStroops)
        expect(yield* drain(payTo)).toEqual([])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  /** The replicas here share a process and thus one gauge: it has the last reading of any of them. */
  const isCurrent =
    (value: 0 | 1) =>
    ({ text }: { readonly text: string }) =>
      text.includes(`\ntollkeeper_signer_rotation_current ${value}\n`)

  it.live(
    "a replica follows several rotations to the newest keys, also after downtime",
    () =>
      Effect.gen(function* () {
        const { first, next, old, replica, second, stranger, write } = yield* startReplicas(false)
        const newest = Keypair.random()
        const { rotate } = rotationOf(first)
        // The third one is down while the keys change twice.
        yield* write("c", secret(old))
        const third = yield* Scope.make()
        yield* replica("c").pipe(Scope.provide(third))
        yield* Scope.close(third, Exit.void)

        for (const name of ["a", "b"]) yield* write(name, secret(next, old))
        yield* rotate("sponsor")
        for (const name of ["a", "b"]) yield* write(name, secret(stranger, next, old))
        yield* rotate("sponsor")
        for (const name of ["a", "b"]) yield* write(name, secret(newest, stranger, next, old))
        yield* rotate("sponsor")
        yield* eventually(sponsorOf(second), (address) => address === newest.publicKey())

        const again = yield* replica("c")
        const report = yield* eventually(signerOf(again), ({ state }) => state === "degraded")
        expect(report.detail).toBe(
          `signs as ${old.publicKey()}, replaced by ${newest.publicKey()}; renew the source of its seeds here (NEW,OLD)`
        )
        expect(report).toMatchObject({ signsAs: old.publicKey(), rotation: 0 })
        yield* eventually(again.ask("/metrics"), isCurrent(0))
        // "done" if the first one polled before this one was back.
        yield* eventually(
          signerOf(first),
          ({ replicasBehind, rotationState }) =>
            replicasBehind === 1 && (rotationState === "taken" || rotationState === "done")
        )
        // A rotation while a live replica signs with a replaced key is taken, and not done.
        const last = Keypair.random()
        for (const name of ["a", "b"]) yield* write(name, secret(last, newest, stranger, next, old))
        yield* rotate("sponsor")
        for (const one of [first, second]) yield* eventually(sponsorOf(one), (address) => address === last.publicKey())
        for (let polls = 0; polls < 8; polls++) {
          const { replicasBehind, rotation, rotationState } = yield* eventually(
            signerOf(first),
            (one) => one.rotation === 4 && one.rotationState !== "prepared"
          )
          expect(replicasBehind).toBeGreaterThan(0)
          expect([rotation, rotationState]).toEqual([4, "taken"])
          yield* Effect.sleep("500 millis")
        }
        // Its source gets an intermediate key, which is newer than the leaked one; then the newest.
        yield* write("c", secret(next, old))
        yield* eventually(sponsorOf(again), (address) => address === next.publicKey())
        yield* write("c", secret(last, newest, stranger, next, old))
        yield* eventually(sponsorOf(again), (address) => address === last.publicKey())
        for (const one of [first, second, again])
          yield* eventually(
            signerOf(one),
            ({ detail, rotation, rotationState, state }) =>
              state === "ready" && detail === undefined && rotation === 4 && rotationState === "done"
          )
        yield* eventually(again.ask("/metrics"), isCurrent(1))
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  it.live(
    "a rotation whose row cannot be written changes no replica's keys",
    () =>
      Effect.gen(function* () {
        const { first, next, old, second, write } = yield* startReplicas(false)
        for (const name of ["a", "b"]) yield* write(name, secret(next, old))
        yield* first.sql`create function refuse_rotation() returns trigger language plpgsql as
          'begin raise exception ''no row''; end'`
        yield* first.sql`create trigger refused before insert on kernel_key_rotations
          for each row execute function refuse_rotation()`
        expect((yield* Effect.flip(rotationOf(first).rotate("sponsor")))._tag).toBe("SqlError")
        expect([yield* sponsorOf(first), yield* sponsorOf(second)]).toEqual([old.publicKey(), old.publicKey()])
        yield* first.sql`drop trigger refused on kernel_key_rotations`
        yield* rotationOf(first).rotate("sponsor")
        yield* eventually(sponsorOf(second), (address) => address === next.publicKey())
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )

  it.live(
    "a rotation lost in a failover is recorded again, unless superseded",
    () =>
      Effect.gen(function* () {
        const { first, next, old, second, stranger, write } = yield* startReplicas(false)
        yield* write("a", secret(next, old))
        yield* rotationOf(first).rotate("sponsor")
        yield* first.sql`delete from kernel_key_rotations`
        yield* write("b", secret(stranger, old))
        const rows = first.sql<{ from: string; to: string }>`select from_id as "from", to_id as "to"
          from kernel_key_rotations`
        const [row] = yield* eventually(rows, ({ length }) => length === 1)
        expect(row).toEqual({ from: old.publicKey(), to: next.publicKey() })
        const refused = yield* Effect.flip(rotationOf(second).rotate("sponsor"))
        expect(refused.message).toMatch(new RegExp(`rotated to ${next.publicKey()}, whose seed is not`))
        expect(yield* sponsorOf(second)).toBe(old.publicKey())
        yield* write("b", secret(next, old))
        yield* eventually(sponsorOf(second), (address) => address === next.publicKey())
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
