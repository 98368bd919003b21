// Copies every row from one of our databases into another. Both have the same migrations, and the target is empty. The
// copy reads the source and runs in one transaction of the target. It transfers each row as PostgreSQL's text for a
// composite value, which preserves every type. Afterwards it compares row counts and checksums, table by table.
import { Effect, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/** Nothing was copied. */
class MoveRefused extends Schema.TaggedError<MoveRefused>()("MoveRefused", { message: Schema.String }) {}

interface MovedTable {
  readonly table: string
  readonly rows: number
}

type Client = SqlClient.SqlClient

/** Rows of one statement. */
const batchMax = 500
const migrationsPrefix = "tollkeeper_migrations_"

/** Owners of migrations by their tables' names, in the order of their first runs. */
export const ownersOf = (sql: Client) =>
  Effect.map(
    sql<{ name: string }>`select relname as name from pg_class where relkind = 'r'
      and relnamespace = 'public'::regnamespace and starts_with(relname, ${migrationsPrefix}) order by oid`,
    (rows) => rows.map(({ name }) => name.slice(migrationsPrefix.length))
  )

/** The tables to copy, in the order of their foreign keys. */
const tablesOf = Effect.fnUntraced(function* (sql: Client) {
  const tables = yield* sql<{ name: string; needs: ReadonlyArray<string> }>`select c.relname as name,
      array(select distinct r.relname::text from pg_constraint f join pg_class r on r.oid = f.confrelid
        where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as needs
    from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
      and not starts_with(c.relname, ${migrationsPrefix}) order by 1`
  const ordered: Array<string> = []
  const add = (name: string): void => {
    if (ordered.includes(name)) return
    for (const needed of tables.find((one) => one.name === name)?.needs ?? []) add(needed)
    ordered.push(name)
  }
  for (const { name } of tables) add(name)
  return ordered
})

/** The stored columns of a table: generated ones are computed again. */
const columnsOf = (sql: Client, table: string) =>
  Effect.map(
    sql<{ name: string }>`select quote_ident(attname) as name from pg_attribute
      where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    (rows) => rows.map(({ name }) => name)
  )

/** The number of rows, and a sum of their hashes, whatever their order. */
const summaryOf = (sql: Client, table: string, columns: ReadonlyArray<string>) =>
  Effect.map(
    sql.unsafe<{ rows: string; sum: string }>(`select count(*)::text as rows, coalesce(sum(hashtextextended(
      row(${columns.join(", ")})::text, 0)::numeric), 0)::text as sum from ${table}`),
    ([row]) => row!
  )

const copyTable = Effect.fnUntraced(function* (from: Client, to: Client, table: string) {
  const columns = yield* columnsOf(from, table)
  const list = columns.join(", ")
  yield* to.unsafe(`alter table ${table} disable trigger user`)
  yield* to.unsafe(`delete from ${table}`)
  const cursor = `rows_of_${table}`
  // Each row as the text of a composite value.
  yield* from.unsafe(`declare ${cursor} no scroll cursor for select t::text as line from ${table} t`)
  while (true) {
    const rows = yield* from.unsafe<{ line: string }>(`fetch ${batchMax} from ${cursor}`)
    if (rows.length === 0) break
    const picked = columns.map((column) => `(r).${column}`).join(", ")
    yield* to.unsafe(
      `insert into ${table} (${list}) overriding system value
        select ${picked} from (select line::${table} as r from unnest($1::text[]) line offset 0) rows`,
      [rows.map(({ line }) => line)]
    )
  }
  yield* from.unsafe(`close ${cursor}`)
  yield* to.unsafe(`alter table ${table} enable trigger user`)
  const [before, after] = [yield* summaryOf(from, table, columns), yield* summaryOf(to, table, columns)]
  if (before.rows !== after.rows || before.sum !== after.sum)
    return yield* new MoveRefused({
      message: `table ${table} has ${before.rows} rows here and ${after.rows} there, or others; nothing was kept`
    })
  return { table, rows: Number(after.rows) }
})

/** Sets every sequence to the source's position. */
const moveSequences = Effect.fnUntraced(function* (from: Client, to: Client) {
  const sequences = yield* from<{ name: string; last: string | null }>`select quote_ident(sequencename) as name,
    last_value::text as last from pg_sequences where schemaname = 'public'`
  for (const { last, name } of sequences) if (last !== null) yield* to`select setval(${name}::regclass, ${last}::int8)`
})

const isEmpty = (to: Client) =>
  Effect.map(
    to<{ used: boolean }>`select exists (select 1 from kernel_settlements)
      or exists (select 1 from kernel_facts) as used`,
    ([row]) => row!.used === false
  )

/** Copies all rows; fails, and keeps none in the target, unless both have the same rows afterwards. */
export const moveRows = (
  from: Client,
  to: Client
): Effect.Effect<ReadonlyArray<MovedTable>, MoveRefused | SqlError.SqlError> =>
  from.withTransaction(
    to.withTransaction(
      Effect.gen(function* () {
        yield* from`set transaction isolation level repeatable read, read only`.unprepared
        for (const sql of [from, to]) {
          yield* sql`set local timezone = 'UTC'`.unprepared
          yield* sql`set local statement_timeout = 0`.unprepared
        }
        if (!(yield* isEmpty(to)))
          return yield* new MoveRefused({ message: "the target has settlements already; name an empty database" })
        const [source, target] = [yield* tablesOf(from), yield* tablesOf(to)]
        const missing = source.filter((table) => !target.includes(table))
        if (missing.length > 0)
          return yield* new MoveRefused({ message: `the target lacks the tables ${missing.join(", ")}` })
        const moved: Array<MovedTable> = []
        for (const table of source) moved.push(yield* copyTable(from, to, table))
        yield* moveSequences(from, to)
        return moved
      })
    )
  )
