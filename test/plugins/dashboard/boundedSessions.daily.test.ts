// Rows that sign-ins and sign-outs may write: bounded for an account, an address, a key and in all.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { type AccountChallenge, AccountChallenges } from "../../../kernel/accounts/AccountChallenges.ts"
import { AccountSessions, rowsMax } from "../../../kernel/accounts/AccountSessions.ts"
import { EndedSessions, ofKeyMax } from "../../../kernel/accounts/EndedSessions.ts"
import { Sessions } from "../../../kernel/http/Sessions.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const shop = "shop-secret-0123456789"

const serviceOf = <S>({ services }: Facilitator, key: Context.Key<any, S>): S =>
  Context.getUnsafe(services, key as never) as S

const host = "127.0.0.1"

const signed = (by: Keypair, challenge: string): string =>
  Buffer.from(by.sign(createHash("sha256").update(`Stellar Signed Message:\n${challenge}`).digest())).toString("base64")

/** Signs in past the routes, and their rates, from a source. */
const signIn = Effect.fnUntraced(function* (facilitator: Facilitator, by: Keypair, source: string) {
  const account = by.publicKey()
  const made = yield* serviceOf(facilitator, AccountChallenges).make("session", host, account)
  const { challenge } = made as AccountChallenge
  const answer = { host, account, challenge, signature: signed(by, challenge) }
  const opened = yield* serviceOf(facilitator, AccountSessions).open(answer, { source, overTls: false })
  return typeof opened === "string" ? opened : "opened"
})

const rowsOf = ({ sql }: Facilitator) =>
  Effect.map(
    sql<{ all: number; open: number }>`select count(*)::int4 as all,
      (count(*) filter (where ended_at is null))::int4 as open from kernel_account_sessions`,
    ([row]) => row!
  )

describe.each(databaseKinds)("sessions on %s", (database) => {
  it.live(
    "bounds the rows of an account, of an address and of all",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment: { FACILITATOR_API_KEYS: `shop:${shop}` } })
        const { sql } = facilitator
        const one = Keypair.random()
        for (let n = 0; n < rowsMax.ofAccount; n++) expect(yield* signIn(facilitator, one, `ip:${n}`)).toBe("opened")
        expect(yield* signIn(facilitator, one, "ip:other")).toMatch(/^too many sign-ins/)
        expect(yield* rowsOf(facilitator)).toEqual({ all: rowsMax.ofAccount, open: 16 })
        expect(yield* signIn(facilitator, Keypair.random(), "ip:1")).toBe("opened")

        // Once their challenges have ended, ended sessions go.
        yield* sql`update kernel_account_sessions set opened_at = opened_at - interval '16 minutes'`
        expect(yield* signIn(facilitator, one, "ip:other")).toBe("opened")
        expect((yield* rowsOf(facilitator)).all).toBe(18)

        const place = rowsMax.ofPlace
        for (let n = 0; n < 70; n++) expect(yield* signIn(facilitator, Keypair.random(), "ip:crowd")).toBe("opened")
        expect((yield* rowsOf(facilitator)).open).toBe(17 + 64)
        const fill = (count: number, age: string, source: string) => sql`insert into kernel_account_sessions
          select age || n, age || n, 'G' || n, ${source}, now() - age::interval, now() + interval '1 hour', null
          from generate_series(1, ${count}::int4) n, (select ${age}::text as age) a`
        const [{ source } = { source: "" }] = yield* sql<{ source: string }>`select source from kernel_account_sessions
          group by source order by count(*) desc limit 1`
        yield* fill(place - 70, "1 second", source)
        expect(yield* signIn(facilitator, Keypair.random(), "ip:crowd")).toMatch(/^too many sign-ins/)
        expect(yield* signIn(facilitator, Keypair.random(), "ip:calm")).toBe("opened")

        // The oldest of a full table make room, unless their challenges could be answered again.
        yield* fill(rowsMax.ofAll, "20 minutes", "many")
        for (let more = true; more; more = (yield* rowsOf(facilitator)).all > rowsMax.ofAll)
          yield* signIn(facilitator, Keypair.random(), "ip:calm")
        expect(yield* signIn(facilitator, Keypair.random(), "ip:calm")).toBe("opened")
        yield* sql`update kernel_account_sessions set opened_at = now()`
        expect(yield* signIn(facilitator, Keypair.random(), "ip:calm")).toBe("opened")
        yield* fill(rowsMax.ofAll - (yield* rowsOf(facilitator)).all, "2 seconds", "others")
        expect(yield* signIn(facilitator, Keypair.random(), "ip:calm")).toMatch(/^too many sign-ins/)
        const [size] = yield* sql<{ bytes: number }>`
          select pg_total_relation_size('kernel_account_sessions')::int4 as bytes`
        expect(size!.bytes).toBeLessThan(rowsMax.ofAll * 1_024)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "bounds the sign-outs of a key, and all of them stay ended",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment: { FACILITATOR_API_KEYS: `shop:${shop}` } })
        const sessions = serviceOf(facilitator, Sessions)
        const ended = serviceOf(facilitator, EndedSessions)
        const requests = Array.from({ length: 2 * ofKeyMax + 4 }, () => {
          const cookie = Option.getOrThrow(sessions.open(shop, false)).cookie.split(";", 1)[0]!
          return HttpServerRequest.fromWeb(new Request("http://pay.example/x", { headers: { cookie } }))
        })
        for (const request of requests) yield* ended.end(request)
        const [rows] = yield* facilitator.sql<{ all: number }>`select count(*)::int4 as all from kernel_ended_sessions`
        expect(rows!.all).toBeLessThanOrEqual(ofKeyMax + 1)
        expect(requests.filter((request) => sessions.named(request) !== undefined)).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )
})
