// Browser sessions of accounts: a browser that has signed a challenge with an account is identified by a cookie as that
// account for some hours, and may read the account's own data only. Each session is a row, so that signing out ends it
// for every copy of the cookie, on every replica. Each session needs its own challenge; a challenge opens only one
// session. The cookie's token is sealed: a forged one costs no statement. It is sent by pages of this origin only
// (`SameSite=Strict`), and is not readable by scripts.
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Base64Url, Hex } from "effect/encoding"
import type { HttpServerRequest } from "effect/http"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { contract } from "../contract/Contract.ts"
import { inTransaction } from "../database/Database.ts"
import { clockSecondsMax, cookieOf, passesCsrfCheck, sessionCookie } from "../http/Sessions.ts"
import type { LedgerUnavailable } from "../ledger/LedgerRpc.ts"
import { Crypto } from "../platform/Crypto.ts"
import { type AccountAnswer, AccountChallenges, leftMillisMax as challengeMillisMax } from "./AccountChallenges.ts"
import { AccountSeal } from "./AccountSeal.ts"
import { AccountSignatures } from "./AccountSignatures.ts"
import { EndedSessions } from "./EndedSessions.ts"
import { KeyRevisions } from "./KeyRevisions.ts"

interface AccountSession {
  readonly account: string
  readonly until: Date
}

type SignInAnswer = Omit<AccountAnswer, "purpose">
type Request = HttpServerRequest.HttpServerRequest
type Sql<A> = Effect.Effect<A, SqlError.SqlError>

const hoursMax = 12
const leftMillisMax = hoursMax * 3_600_000 + clockSecondsMax * 1_000
/**
 * The allowed range of a session's end now. A session that ends later was opened while a clock was ahead, and is not
 * valid.
 */
const ends = Effect.map(Clock.currentTimeMillis, (now) => ({ now: new Date(now), last: new Date(now + leftMillisMax) }))
/** Concurrent sessions of one account and from one address; a further one ends the oldest. */
const openMax = { ofAccount: 16, ofPlace: 64 }
/**
 * Rows of one account, of one address and of all, below 1 KB each. A row stays while its challenge could be answered
 * again, and beyond these a sign-in is refused.
 */
export const rowsMax = { ofAccount: 64, ofPlace: 1_024, ofAll: 20_000 }
/** Batch size for deleting rows, which a later sign-in does. */
const sweepMax = 200
const cookieName = "tollkeeper_account"
const tokenForm = /^[A-Za-z0-9_-]{32}\.[A-Za-z0-9_-]{43}$/
/** The seal's purpose: a session of plain HTTP is not valid over TLS. */
const sealedFor = (overTls: boolean): string => (overTls ? "session over TLS" : "session")

export class AccountSessions extends Context.Service<
  AccountSessions,
  {
    /** A session and its cookie, or the reason for a refusal. `source` is the address that opens it. */
    readonly open: (
      answer: SignInAnswer,
      options: { readonly source: string; readonly overTls: boolean }
    ) => Effect.Effect<
      { readonly session: AccountSession; readonly cookie: string } | string,
      SqlError.SqlError | LedgerUnavailable
    >
    /**
     * The session of a request. None without a session, and None for a request that changes something and was not sent
     * by our pages.
     */
    readonly of: (request: Request) => Sql<Option.Option<AccountSession>>
    /** Permanently ends the request's session, or all sessions of its account, if one of our pages requests it. */
    readonly end: (request: Request, everywhere: boolean) => Sql<void>
    /** The cookie that deletes the session cookie. */
    readonly closed: (overTls: boolean) => string
  }
>()("tollkeeper/accounts/AccountSessions") {
  static readonly layerNoDeps = Layer.effect(
    AccountSessions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto
      const challenges = yield* AccountChallenges
      const { isSeal, seal } = yield* AccountSeal
      const record = makeRecord(sql)
      const digest = (text: string): string => Hex.encode(crypto.sha256(new TextEncoder().encode(text)))

      /** The digest of a request's token, if we issued the token. */
      const tokenOf = (request: Request): string | undefined => {
        const { overTls = false, value: token = "" } = cookieOf(request, cookieName) ?? {}
        if (!tokenForm.test(token)) return undefined
        const [random, sealed] = token.split(".", 2)
        return isSeal(sealedFor(overTls), random!, sealed!) ? digest(token) : undefined
      }

      const open: AccountSessions["Service"]["open"] = Effect.fn("AccountSessions.open")(
        function* (answer, { overTls, source }) {
          const error = yield* challenges.errorOf({ ...answer, purpose: "session" })
          if (error !== undefined) return error
          const random = Base64Url.encode(crypto.randomBytes(24))
          const token = `${random}.${seal(sealedFor(overTls), random)}`
          const until = new Date((yield* Clock.currentTimeMillis) + hoursMax * 3_600_000)
          const refused = yield* inTransaction(
            record({
              challenge: digest(answer.challenge),
              token: digest(token),
              account: answer.account,
              place: seal("place", source),
              until
            })
          )
          if (refused !== undefined) return refused
          const cookie = sessionCookie(cookieName, { value: token, overTls, maxAgeSeconds: hoursMax * 3_600 })
          return { session: { account: answer.account, until }, cookie }
        },
        Effect.provideService(SqlClient.SqlClient, sql)
      )

      const of: AccountSessions["Service"]["of"] = Effect.fnUntraced(function* (request) {
        const token = passesCsrfCheck(request) ? tokenOf(request) : undefined
        if (token === undefined) return Option.none()
        const { last, now } = yield* ends
        const [row] = yield* sql<AccountSession>`select account, until from kernel_account_sessions
          where token = ${token} and ended_at is null and until > ${now} and until <= ${last}`
        return Option.fromUndefinedOr(row)
      })

      const end: AccountSessions["Service"]["end"] = Effect.fnUntraced(function* (request, everywhere) {
        const token = tokenOf(request)
        if (token === undefined) return
        const now = new Date(yield* Clock.currentTimeMillis)
        const which = everywhere
          ? sql`account in (select account from kernel_account_sessions where token = ${token} and ended_at is null)`
          : sql`token = ${token}`
        yield* sql`update kernel_account_sessions set ended_at = ${now} where ended_at is null and ${which}`
      })

      const closed = (overTls: boolean) => sessionCookie(cookieName, { value: "", overTls, maxAgeSeconds: 0 })
      return AccountSessions.of({ open, of, end, closed })
    })
  )

  static readonly layer = this.layerNoDeps.pipe(
    Layer.provideMerge(AccountChallenges.layer),
    Layer.provide(AccountSeal.layer),
    Layer.provideMerge(AccountSignatures.layer)
  )
}

/** Records a session within the bounds; why it did not, or undefined. Runs in a transaction. */
const makeRecord = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (session: {
    readonly challenge: string
    readonly token: string
    readonly account: string
    readonly place: string
    readonly until: Date
  }): Effect.fn.Return<string | undefined, SqlError.SqlError> {
    const { account, challenge, place, token, until } = session
    const openedAt = new Date(yield* Clock.currentTimeMillis)
    const answerableSince = new Date(openedAt.getTime() - challengeMillisMax)
    // Of a full table the oldest sessions make room.
    yield* sql`delete from kernel_account_sessions where challenge in (
      select challenge from kernel_account_sessions where until < ${openedAt}
        or (opened_at < ${answerableSince} and (ended_at is not null
          or (select count(*) from kernel_account_sessions) >= ${rowsMax.ofAll}))
      order by opened_at limit ${sweepMax})`
    const rows = yield* sql`insert into kernel_account_sessions (challenge, token, account, source, opened_at, until)
      select ${challenge}, ${token}, ${account}, ${place}, ${openedAt}, ${until}
      where (select count(*) from kernel_account_sessions where account = ${account}) < ${rowsMax.ofAccount}
        and (select count(*) from kernel_account_sessions where source = ${place}) < ${rowsMax.ofPlace}
        and (select count(*) from kernel_account_sessions) < ${rowsMax.ofAll}
      on conflict (challenge) do nothing returning 1`
    const excess = (of: Statement.Fragment, max: number) =>
      sql`(select challenge from kernel_account_sessions where ${of} and ended_at is null
        order by opened_at desc offset ${max})`
    yield* sql`update kernel_account_sessions set ended_at = ${openedAt} where challenge in (
      ${excess(sql`account = ${account}`, openMax.ofAccount)} union all
      ${excess(sql`source = ${place}`, openMax.ofPlace)})`
    if (rows.length === 1) return undefined
    const [known] = yield* sql`select 1 from kernel_account_sessions where challenge = ${challenge}`
    return known === undefined
      ? "too many sign-ins of this account or address within a quarter of an hour; try again later"
      : "this challenge was already answered; request a new one"
  })

export const accountsContract = contract(
  "accounts",
  AccountSessions,
  AccountChallenges,
  AccountSignatures,
  EndedSessions,
  KeyRevisions
)
