// Epochs of the journal. A position is a plain number, and a database that lost its last commits (a promoted standby, a
// restored backup or snapshot) gives the same numbers again to other facts. An epoch names the line of the journal on
// which a position was read. The journal begins a new epoch, before it assigns another position, in two cases: another
// server process, database or timeline serves the database, or the journal's end is below a position that this process
// has read. While a restore is still loading the tables, it begins none: the journal's end is not available yet. A
// cursor is a position with its epoch: one of another epoch resumes at the last position that both have in common.
import { Effect, Option } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

export interface JournalCursor {
  readonly position: bigint
  /** Creation time in microseconds since 1970; 0 if unknown, as in cursors of version 0.1. */
  readonly epoch: bigint
}

export interface JournalEnd {
  /** 0 while a restore loads the tables: the end is not known then. */
  readonly epoch: bigint
  /** Position of the last fact that has one; 0 without any. */
  readonly end: bigint
}

/**
 * Where a reader with this cursor continues. A position beyond the end of its own epoch is foreign: no journal of ours
 * issued it, and we deliver all events rather than nothing. While a restore loads the tables, every cursor is kept.
 */
export const resumeAt = (cursor: JournalCursor, { end, epoch }: JournalEnd): JournalCursor => {
  const isForeign = epoch !== 0n && cursor.position > end && (cursor.epoch >= epoch || cursor.epoch === 0n)
  return isForeign ? { position: 0n, epoch } : cursor
}

const positionMax = 2n ** 63n - 1n

/** `<position>-<epoch in base 36>`, the form for clients. */
export const encodeCursor = ({ epoch, position }: JournalCursor): string => `${position}-${epoch.toString(36)}`

/** A plain position is a cursor of version 0.1. None if it is not a cursor. */
export const decodeCursor = (text: string): Option.Option<JournalCursor> => {
  const parts = /^([0-9]{1,19})(?:-([0-9a-z]{1,12}))?$/.exec(text)
  if (parts === null) return Option.none()
  const position = BigInt(parts[1]!)
  let epoch = 0n
  for (const digit of parts[2] ?? "") epoch = epoch * 36n + BigInt(Number.parseInt(digit, 36))
  return position > positionMax || epoch > positionMax ? Option.none() : Option.some({ position, epoch })
}

/** SQL: whether a different server serves the database now than at the beginning of the newest epoch. */
export const isServedAnew = `kernel_server_identity() is distinct from
  (select server from kernel_journal_epochs order by epoch desc limit 1)`

export const newestEpoch = "coalesce((select max(epoch) from kernel_journal_epochs), 0)"

/**
 * SQL: the last position that the current journal shares with a cursor's epoch. A cursor without an epoch counts as one
 * of the first. An epoch that is missing in the journal may belong to a line that branched off anywhere after the
 * newest epoch before it began. For example, a standby replaced a server, and the server's backup is restored later: it
 * lacks the standby's epoch. Such a cursor resumes where that epoch began: events are delivered twice rather than
 * never.
 */
export const commonPosition = (sql: SqlClient.SqlClient, { epoch, position }: JournalCursor) => {
  const of = epoch === 0n ? sql`(select min(epoch) from kernel_journal_epochs)` : sql`${epoch}::int8`
  return sql`least(${position}::int8, (select min(begins_after) from kernel_journal_epochs where epoch <> ${of}
    and epoch >= coalesce((select max(epoch) from kernel_journal_epochs where epoch <= ${of}), 0)))`
}

/**
 * SQL: whether both tables have their primary keys. A restore creates them after it has loaded the rows; until then the
 * journal's end is not available.
 */
export const isWhole = `(select count(*) = 2 from pg_index
  where indisprimary and indrelid in (to_regclass('kernel_facts'), to_regclass('kernel_journal_epochs')))`

interface EpochRow {
  readonly epoch: bigint
  readonly begins_after: bigint
  readonly server: string
}

/** The epochs that this process has read, by its client. A restored journal may lack the newest of them. */
const epochsRead = new WeakMap<SqlClient.SqlClient, ReadonlyArray<EpochRow>>()

/** Reads the epochs if there is a newer one than this process has cached. */
export const rememberEpochs = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, newest: bigint) {
  if (epochsRead.get(sql)?.at(-1)?.epoch === newest) return
  epochsRead.set(
    sql,
    yield* sql<EpochRow>`select epoch, begins_after, server from kernel_journal_epochs order by epoch`
  )
})

/** Maximum number of kept epochs: cursors of older ones resume at the beginning of the oldest. */
const epochsMax = 1_000

/**
 * In the caller's transaction, under the lock of positions: begins a new epoch if another server process, database or
 * timeline now serves, or if the journal's end is below `seen`, a position that was read in the newest epoch.
 */
export const beginEpoch = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  seen: JournalCursor
): Effect.fn.Return<void, SqlError.SqlError> {
  const begun = yield* sql<{
    begins: bigint
    epoch: bigint
  }>`insert into kernel_journal_epochs (epoch, begins_after, server)
    select greatest((extract(epoch from clock_timestamp()) * 1000000)::int8, ${sql.literal(newestEpoch)} + 1),
      j.position, kernel_server_identity()
    from (select coalesce(max(position), 0) as position from kernel_facts) j
    where ${sql.literal(isServedAnew)}
      or (${seen.epoch}::int8 = ${sql.literal(newestEpoch)} and j.position < ${seen.position}::int8)
    returning begins_after as begins, epoch`
  if (begun.length === 0) return
  // An epoch that began after the dump was made. Its cursors share the restored facts with this journal; without its
  // row they would resume at the beginning of the epoch before it.
  for (const { begins_after, epoch, server } of epochsRead.get(sql) ?? [])
    yield* sql`insert into kernel_journal_epochs (epoch, begins_after, server)
      values (${epoch}, ${begins_after}, ${server}) on conflict do nothing`
  yield* sql`delete from kernel_journal_epochs where epoch <
    (select min(epoch) from (select epoch from kernel_journal_epochs order by epoch desc limit ${epochsMax}) newest)`
  yield* rememberEpochs(sql, begun[0]!.epoch)
  // A new database has no facts that an epoch could end.
  if (begun[0]!.begins === 0n && seen.position === 0n) return
  yield* Effect.logInfo("the journal of facts begins a new epoch: its database server changed").pipe(
    Effect.annotateLogs({ commonUpTo: String(begun[0]!.begins) })
  )
})
