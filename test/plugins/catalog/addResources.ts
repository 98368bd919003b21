// Resources as if each had been paid for, with ids from 1.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Replaces all existing resources. */
export const addResources = Effect.fnUntraced(function* (count: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate catalog_resources restart identity cascade`
  yield* sql`insert into catalog_resources (key, resource_key, type, resource, state, state_changed_at, verification,
    pay_tos, version, version_hash, declaration, extensions, document, first_seen_at, updated_at)
    select gen_random_uuid()::text, 'k', 'http', 'https://a.example.com/', 'active', now(), 'payment_observed',
      array['G'], 1, 'h', '{}'::jsonb, array['catalog'], '{"name":"' || n || '"}', now(), now()
      from generate_series(1, ${count}) n`
})
