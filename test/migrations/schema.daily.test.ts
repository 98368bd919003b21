import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { splitStatements } from "../../kernel/database/Migrations.ts"
import { readText } from "../architecture/sources.ts"
import { databaseKinds, databaseLayer } from "../support/databases.ts"
import { owners } from "./schema.ts"

const notOurs = "'tollkeeper_migrations_%'"

/** Columns, constraints, indexes and functions of a database, as lines. */
const shape = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const columns = yield* sql<{ line: string }>`
    select format('%s.%s %s%s default %s generated %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
      case when a.attnotnull then ' not null' else '' end, coalesce(pg_get_expr(d.adbin, d.adrelid), 'none'),
      coalesce(nullif(a.attidentity::text || a.attgenerated::text, ''), 'never')) as line
    from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where n.nspname = 'public' and c.relkind in ('r', 'p', 'v') and a.attnum > 0 and not a.attisdropped
      and c.relname not like ${sql.literal(notOurs)} order by 1`
  const constraints = yield* sql<{ line: string }>`
    select format('%s %s', conrelid::regclass, pg_get_constraintdef(k.oid)) as line
    from pg_constraint k join pg_namespace n on n.oid = k.connamespace
    where n.nspname = 'public' and contype <> 'n'
        and conrelid::regclass::text not like ${sql.literal(notOurs)} order by 1`
  const indexes = yield* sql<{ line: string }>`
    select indexdef as line from pg_indexes
    where schemaname = 'public' and tablename not like ${sql.literal(notOurs)} order by 1`
  const functions = yield* sql<{ line: string }>`
    select pg_get_functiondef(p.oid) as line from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    left join pg_depend d on d.objid = p.oid and d.deptype = 'e'
    where n.nspname = 'public' and p.prokind = 'f' and d.objid is null order by 1`
  return [...columns, ...constraints, ...indexes, ...functions].map(({ line }) => line)
})

for (const kind of databaseKinds) {
  describe(`migrations/schema.sql on ${kind}`, () => {
    it.effect("makes what all migrations together make", () =>
      Effect.gen(function* () {
        const migrated = yield* Effect.provide(shape, databaseLayer(kind, owners))
        const written = yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          for (const statement of splitStatements(readText("migrations/schema.sql")))
            yield* sql.unsafe(statement).unprepared
          return yield* shape
        }).pipe(Effect.provide(databaseLayer(kind, [])))
        expect(migrated.length).toBeGreaterThan(100)
        expect(written, "run `npm run schema`").toEqual(migrated)
      })
    )
  })
}
