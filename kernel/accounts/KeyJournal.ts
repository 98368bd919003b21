// Rows through which replicas agree on keys: one for each reread that an operator requested, with its revision; one for
// each revoked key; and one for each running replica with its last reread. A table lock gives each reread its own
// revision. A replica does not count after a minute without a sign of life.
import { Effect, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../database/Database.ts"
import type { NamedKey, Role } from "../http/Keys.ts"

/** A replica without a sign of life for this long has ended. */
const liveSeconds = 60
/** Maximum rows of a read: far more than operators ever revoke, or one database serves. */
const revokedMax = 100_000
const replicasMax = 500

/** All parts are read again. */
export const allParts = "all"

/** The scope of a reread: all parts or one part; within one part a single name, or all names if `name` is empty. */
export interface RereadScope {
  readonly part: string
  readonly name: string
  /** Whether that name changes without an overlap, because its secret has leaked. */
  readonly withoutOverlap: boolean
}

export interface KeyChange extends NamedKey {
  readonly isRevoked: boolean
}

export interface ReplicaKeys {
  readonly replica: string
  readonly revision: number
  /** The changes of the last reread on that replica, for people. */
  readonly changes: string
  /** The reason why its sources were refused; null if they were read. */
  readonly fault: string | null
  readonly inForce: ReadonlyArray<string>
  /** Keys that its sources list although they are revoked. */
  readonly refused: ReadonlyArray<string>
}

type ReplicaRow = Omit<ReplicaKeys, "inForce" | "refused"> & { readonly in_force: string; readonly refused: string }

const namesOf = Schema.decodeSync(Schema.fromJsonString(Schema.Array(Schema.String)))

export const makeKeyJournal = Effect.fnUntraced(function* (replica: string) {
  const sql = yield* SqlClient.SqlClient

  const revision = sql<{ revision: number }>`select coalesce(max(revision), 0)::int4 as revision
    from kernel_key_rereads`.pipe(Effect.map(([row]) => row!.revision))

  const since = (known: number) =>
    sql<RereadScope>`select distinct part, name, without_overlap as "withoutOverlap" from kernel_key_rereads
      where revision > ${known}`

  const revoked = sql<{ readonly role: Role; readonly digest: string }>`select role, digest from kernel_revoked_keys
    limit ${revokedMax}`

  /** A new revision that revokes and reinstates these keys. */
  const record = (changes: ReadonlyArray<KeyChange>, { withoutOverlap, name, part }: RereadScope) =>
    inTransaction(
      Effect.gen(function* () {
        yield* sql`lock table kernel_key_rereads in share row exclusive mode`
        const next = (yield* revision) + 1
        const row = { revision: next, asked_by: replica, part, name, without_overlap: withoutOverlap }
        yield* sql`insert into kernel_key_rereads ${sql.insert(row)}`
        for (const { digest, isRevoked, principal, role } of changes)
          yield* isRevoked
            ? sql`insert into kernel_revoked_keys ${sql.insert({ role, digest, principal, revision: next })}
                on conflict (role, digest) do update set revision = excluded.revision, revoked_at = clock_timestamp()`
            : sql`delete from kernel_revoked_keys where role = ${role} and digest = ${digest}`
        return next
      })
    ).pipe(Effect.provideService(SqlClient.SqlClient, sql))

  const announce = ({ changes, fault, inForce, refused, revision }: Omit<ReplicaKeys, "replica">) =>
    sql`with ended as (delete from kernel_key_replicas where seen_at < clock_timestamp() - make_interval(hours => 1))
      insert into kernel_key_replicas ${sql.insert({
        replica,
        revision,
        changes,
        fault,
        in_force: JSON.stringify(inForce),
        refused: JSON.stringify(refused)
      })} on conflict (replica) do update set revision = excluded.revision, changes = excluded.changes,
        fault = excluded.fault, in_force = excluded.in_force, refused = excluded.refused, seen_at = clock_timestamp()`

  const live: Effect.Effect<ReadonlyArray<ReplicaKeys>, SqlError.SqlError> = sql<ReplicaRow>`select replica,
      revision::int4, changes, fault, in_force, refused from kernel_key_replicas
      where seen_at > clock_timestamp() - make_interval(secs => ${liveSeconds}::float8)
      order by replica limit ${replicasMax}`.pipe(
    Effect.map((rows) =>
      rows.map(({ in_force, refused, ...row }) => ({ ...row, inForce: namesOf(in_force), refused: namesOf(refused) }))
    )
  )

  /** Removes the row of a replica that stops, so that others do not wait for it. */
  const leave = sql`delete from kernel_key_replicas where replica = ${replica}`.pipe(
    Effect.timeout("1 second"),
    Effect.ignore
  )

  return { revision, since, revoked, record, announce, live, leave }
})
