// Rows through which replicas agree on the signing keys: one row per rotation, with its generation, and one row per
// live replica. A rotation is recorded under a table lock, so that two replicas cannot record the same generation; the
// row is committed before the first signature with its keys. A replica announces itself when its keys change and every
// half minute; it does not count after a minute and a half of silence. Sponsors are named by their addresses, channels
// by a digest of theirs.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../database/Database.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { isChange, kinds, type Rotation, type SigningKeys } from "./rotationStatus.ts"

const announceMillis = 30_000
/** A replica without a sign of life for this long has ended. */
export const liveSeconds = 90
/** Maximum rows of a read: a daily rotation for some years, and far more replicas than one database serves. */
const rotationsMax = 2_000
const replicasMax = 500

export interface RotationJournal {
  /** All rotations of the network, newest first. */
  readonly rotations: Effect.Effect<ReadonlyArray<Rotation>, SqlError.SqlError>
  /** The keys of the running replicas. */
  readonly live: Effect.Effect<ReadonlyArray<SigningKeys>, SqlError.SqlError>
  /** Records the change that `decide` derives from the newest rows: sponsor, channels, or both. */
  readonly record: <E>(
    decide: (
      rotations: ReadonlyArray<Rotation>
    ) => Effect.Effect<{ readonly from: SigningKeys; readonly to: SigningKeys }, E>
  ) => Effect.Effect<void, E | SqlError.SqlError>
  /** Publishes the signing keys of this replica to the others. */
  readonly announce: (keys: SigningKeys) => Effect.Effect<void, SqlError.SqlError>
  /**
   * Records that this replica signs with a rotation's keys, and whether no live replica signs with replaced keys any
   * more.
   */
  readonly advance: (rotation: Rotation, isDone: boolean) => Effect.Effect<unknown, SqlError.SqlError>
  /** Removes the row of a replica that stops, so that others do not wait for it. */
  readonly leave: Effect.Effect<void>
}

/** The journal of one network, written as one replica. */
export const makeRotationJournal = Effect.fnUntraced(function* (network: string, replica: string) {
  const sql = yield* SqlClient.SqlClient
  let announced: { readonly keys: SigningKeys; readonly at: number } | undefined

  const rotations = sql<Rotation>`select generation::int4, kind, from_id as "from", to_id as "to", state
    from kernel_key_rotations where network = ${network} and generation is not null
    order by generation desc limit ${rotationsMax}`

  const live = sql<SigningKeys>`select sponsor, channels_id as channels from kernel_signers where network = ${network}
    and seen_at > clock_timestamp() - make_interval(secs => ${liveSeconds}::float8) limit ${replicasMax}`

  const record = <E>(
    decide: (
      rotations: ReadonlyArray<Rotation>
    ) => Effect.Effect<{ readonly from: SigningKeys; readonly to: SigningKeys }, E>
  ) =>
    inTransaction(
      Effect.gen(function* () {
        yield* sql`lock table kernel_key_rotations in share row exclusive mode`
        const earlier = yield* rotations
        const { from, to } = yield* decide(earlier)
        let generation = earlier[0]?.generation ?? 0
        for (const kind of kinds) {
          if (!isChange(kind, { from, to })) continue
          generation += 1
          // The new keys end their chain, even if an earlier rotation had replaced them.
          yield* sql`delete from kernel_key_rotations where network = ${network} and from_id = ${to[kind]}`
          yield* sql`insert into kernel_key_rotations (network, generation, kind, from_id, to_id)
            values (${network}, ${generation}, ${kind}, ${from[kind]}, ${to[kind]})
            on conflict (network, from_id) do update set generation = excluded.generation, kind = excluded.kind,
              to_id = excluded.to_id, state = 'prepared', rotated_at = clock_timestamp()`
        }
      })
    ).pipe(Effect.provideService(SqlClient.SqlClient, sql))

  const announce = Effect.fnUntraced(function* (keys: SigningKeys) {
    const now = yield* monotonicMillis
    const isSame = announced?.keys.sponsor === keys.sponsor && announced.keys.channels === keys.channels
    if (isSame && now - announced!.at < announceMillis) return
    yield* sql`with ended as (delete from kernel_signers
        where network = ${network} and seen_at < clock_timestamp() - make_interval(hours => 1))
      insert into kernel_signers (network, replica, sponsor, channels_id)
      values (${network}, ${replica}, ${keys.sponsor}, ${keys.channels})
      on conflict (network, replica) do update
        set sponsor = excluded.sponsor, channels_id = excluded.channels_id, seen_at = clock_timestamp()`
    announced = { keys, at: now }
  })

  const advance = ({ generation, state }: Rotation, isDone: boolean) => {
    const next = isDone ? "done" : "taken"
    return state === "done" || state === next
      ? Effect.void
      : sql`update kernel_key_rotations set state = ${next} where network = ${network} and generation = ${generation}`
  }

  const leave = sql`delete from kernel_signers where network = ${network} and replica = ${replica}`.pipe(
    Effect.timeout("1 second"),
    Effect.ignore
  )

  const journal: RotationJournal = { rotations, live, record, announce, advance, leave }
  return journal
})
